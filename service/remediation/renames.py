"""Names that the job's framework does not know.

The setting that was meant, by its history or by its spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from corpus.frameworks import known_frameworks
from corpus.keys import canonical, flag, last_level, levels_above, pattern, signs, unsigned
from corpus.library import Library, fits
from corpus.schema import SettingSpec
from ingest.configfiles.formats import CODE
from ingest.logs.configs.handed_keys import hands_configuration
from ingest.logs.configs.launch import Setting
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own, own_call
from ingest.logs.stacks.own_names import refusing_classes
from service.remediation.feasibility import value_of
from service.remediation.framework_relations import option_owner, settable_frameworks
from service.remediation.moved_keys import Rename, moved_keys, siblings
from service.remediation.named_options import NamedOption, is_stray_command, read_options
from service.remediation.own_names import (
    defined_fields,
    is_kin,
    meant_name,
    own_names,
    signed_names,
    stands_for,
    written_like,
)
from service.remediation.refusals import passed_option, refusing_program, unknown_options

# Facts of a message that there is no such setting: they hold its key, or the words that they quote.
_FIELDS = ("key", "argument", "reason", "name")
_KINDS = frozenset({"config_key", "config_error", "validation", "call"})
_FLAG = re.compile(r"(?<![\w-])--[A-Za-z][\w.-]*")
_KEY = re.compile(r"[+~]{0,2}[A-Za-z_][\w.@/-]*")
# A name that shares less than this with another one may as well be meant for something else; the second
# where the name is one of some versions only, and which of them runs is not known.
NEAR, NEARER = 0.75, 0.9
# What a name is like whose words are another one's, cut short; of how many letters such a word is at least.
ABBREVIATED, LEAST_LETTERS = 0.95, 3
# How many words a name has at least that another one is without one of them.
LEAST_WORDS = 4
# The setting of another phase than the one that a name without a phase is for.
_OTHER_PHASE = re.compile(r"(?:^|_)(?:eval|test|valid(?:ation)?|predict)(?:_|$)")
_TRAINING_PHASE = re.compile(r"(?:^|_)train(?:ing)?(?:_|$)")
# How many names that a program refuses are told at most.
MOST = 24
# How settings of a file are spelled, those of a command line aside.
_OF_FILES = frozenset({"yaml", "json"})
# What code asks a configuration for in vain: a mapping's key, an object's attribute, OmegaConf's key.
_ASKED_FOR = re.compile(
    r"^(?:\w+\.)*KeyError: (?:\w+: )?['\"](?P<key>[A-Za-z_]\w{1,60})['\"]"
    r"|'(?:\w*(?:Namespace|Dict|Munch|Box|Config|Cfg|Args|Options|HParams))' object has no attribute "
    r"'(?P<attribute>[A-Za-z_]\w{1,60})'"
    r"|\b(?:Key '(?P<struct>[A-Za-z_]\w{1,60})' is not in struct)"
    r"|\bConfig(?:Attribute|Key)Error: Missing key (?P<missing>[A-Za-z_]\w{1,60})"
)
# What Python and omegaconf say of a variable that the environment lacks; the calls tell Python's from others.
_UNSET = re.compile(
    r"[Ee]nvironment variable ['\"`]?(?P<told>[A-Z][A-Z0-9_]{1,60})['\"`]? (?:is |was )?"
    r"not (?:found|set|defined)\b"
    r"|^KeyError: '(?P<asked>[A-Z][A-Z0-9_]{1,60})'$"
)
_ENVIRONMENT = re.compile(r"^(?:.*/os\.py|<frozen os>)$")
_CONFIGURATION = re.compile(
    r"(?i)(?:^|[^a-z])(?:cfg|conf(?:ig)?|args|opts?|options|hparams|hp|params|settings)s?[\w.]*\["
)
# The level above a key in the statement that reads it: `cfg["optim"]["lr"]`, `cfg.optim.lr`.
_LEVEL_ABOVE = re.compile(r"(?:\[['\"]|\w\.)(?P<level>\w{2,60})(?:['\"]\]\[['\"]|['\"]\]\.|\.)$")
# Packages that hold a configuration whose keys are read as attributes.
_READER = re.compile(r"/(?:omegaconf|easydict|munch|box|addict|ml_collections)/")
# What a message says of a key that it quotes, where its program has no such key.
_UNKNOWN = re.compile(
    r"(?i)\b(?:un(?:known|recogni[sz]ed|expected|used)|extra|no such|not (?:\w+ )?(?:known|recogni[sz]ed|"
    r"valid|used|in|found|defined|expected|permitted|exist\w*)|(?:has|have|is|takes?) no)\b"
)


def find_renames(report: CrashReport, library: Library, settings: Sequence[Setting]) -> list[Rename]:
    """Give the right names of the keys that the log calls unknown, as far as the catalogue has any."""
    found: dict[tuple[str, str], Rename] = {}
    arguments = _arguments_of_code(report, settings)
    # What a launcher gives its processes nobody wrote by another name.
    told = (name for name in _unknown_keys(report) if not passed_option(flag(name), report))
    for name in dict.fromkeys(told):
        old = name if name in arguments else _own_key(name, settings)
        own = meant_name(name, report) or ("" if name in arguments else _by_own_names(old, report, settings))
        rename = next(_candidates(old, own, report, library, settings), None) or next(
            _handed_on(old, name, report, library, settings), None
        )
        if rename is not None:
            found.setdefault((rename.framework, rename.new), rename)
            found |= {
                (each.framework, each.new): each for each in siblings(rename, report, library, settings)
            }
    for new in [] if found else signed_names(report):
        spec = SettingSpec(framework=_owner(report), key=new, type="any", spelled="hydra")
        rename = Rename(spec.framework, unsigned(new), spec, new, False, value_of(unsigned(new), settings))
        found[rename.framework, new] = rename
    return list(found.values())[:MOST]


def find_refused(
    report: CrashReport, settings: Sequence[Setting], known: Sequence[Rename]
) -> list[NamedOption]:
    """Give the keys that the job sets and a failing line refuses by name, without those of `known`."""
    told = {canonical(rename.old) for rename in known}
    texts = [event.body for event in _refusing(report)]
    named = unknown_options(report) + [NamedOption(key, unknown=True) for key in _refused_keys(report)]
    named += [
        NamedOption(setting.key, setting.value, unknown=True)
        for setting in settings
        if any(
            re.search(rf"(?:['\"`]|(?<!-)--){pattern(setting.key)}(?![\w.-])", text) and _UNKNOWN.search(text)
            for text in texts
        )
    ]
    found: dict[str, NamedOption] = {}
    arguments = _arguments_of_code(report, settings)
    for option in named:
        if option.key in arguments or passed_option(option.key, report):
            continue  # a call hands it over in code, or a launcher gives it
        key = _own_key(option.key, settings)
        # What the program itself writes into its configuration stands in no setting that could be left out.
        writes = re.compile(rf"(?:\[['\"]|\.){re.escape(last_level(key))}(?:['\"]\])? ?=(?!=)")
        calls = report.root.frames if report.root is not None else ()
        if value_of(key, settings) is None and any(writes.search(frame.code) for frame in calls):
            continue
        if canonical(key) not in told:
            found.setdefault(canonical(key), replace(option, key=key))
    return list(found.values())[:MOST]


def read_in_vain(report: CrashReport, settings: Sequence[Setting]) -> list[Rename]:
    """Give the key of a file of the job's that is nearly the one which its own code asks for in vain."""
    if (variable := _variable_in_vain(report, settings)) is not None:
        return [variable]
    root = report.root
    match = _ASKED_FOR.search(f"{root.exception}: {root.body}") if root is not None else None
    if root is None or match is None or not root.frames:
        return []
    last = root.frames[-1]
    if not is_own(last) and not _READER.search(last.file):
        return []  # neither the job's own code nor a reader that it called asked for the key
    wanted = match["key"] or match["attribute"] or match["struct"] or match["missing"]
    own = own_call(root.frames)
    if own is None or (match["key"] and not _CONFIGURATION.search(own.code)):
        return []  # of data, whose columns are no keys of the job's
    above = _LEVEL_ABOVE.search(own.code.partition(wanted)[0])
    given = [item for item in settings if item.spelled in _OF_FILES]
    keys = {canonical(item.key) for item in given}
    near: dict[str, tuple[float, Setting, str]] = {}
    codes = [text for text in report.launches if text.endswith(CODE)]
    for item in given:
        parent, _, leaf = item.key.rpartition(".")
        new = f"{parent}.{wanted}" if parent else wanted
        is_there = not above or canonical(parent).endswith(canonical(above["level"])) or not parent
        likeness = _ratio(canonical(leaf), canonical(wanted))
        if above and likeness < NEAR and is_kin(canonical(leaf), canonical(wanted)):
            likeness = NEAR  # of a level that the statement names, all keys are known
        if likeness < NEAR or not is_there or canonical(new) in keys:
            continue
        # A key whose name the job's own code has is not in vain.
        if not any(re.search(rf"(?<![\w-]){re.escape(leaf)}(?![\w-])", text) for text in codes):
            near[item.key] = likeness, item, new
    if len(near) != 1:
        return []
    _, item, new = next(iter(near.values()))
    spec = SettingSpec(framework="python", key=new, type="any", spelled="yaml")
    return [Rename("python", item.key, spec, new, False, item.value, reads=True)]


def _variable_in_vain(report: CrashReport, settings: Sequence[Setting]) -> Rename | None:
    """Give the variable that the job sets by nearly the name asked for, and that nobody else names."""
    root = report.root
    match = _UNSET.search(root.body) if root is not None else None
    if root is None or match is None:
        return None
    if match["asked"] and not (root.frames and _ENVIRONMENT.match(root.frames[-1].file)):
        return None
    wanted = match["told"] or match["asked"]
    near = {
        item.key: item
        for item in settings
        if item.spelled == "env"
        and item.key != wanted
        and _ratio(canonical(item.key), canonical(wanted)) >= NEAR
        and sum(len(re.findall(rf"\b{item.key}\b", text)) for text in report.launches) == 1
    }
    if len(near) != 1 or any(item.key == wanted for item in settings):
        return None
    (item,) = near.values()
    spec = SettingSpec(framework="env", key=wanted, type="any", spelled="env")
    return Rename("env", item.key, spec, wanted, False, item.value, reads=True)


def _arguments_of_code(report: CrashReport, settings: Sequence[Setting]) -> frozenset[str]:
    """Name the arguments of calls that stand in code alone.

    One that stands in a file of the job's is its key all the same, below other levels too where the call
    hands a configuration on; what it hands on under another name may hold objects of the code's own.
    """
    own = own_call(report.root.frames) if report.root is not None else None
    hands_on = own is not None and hands_configuration(own.code)
    gathers = own is not None and "**" in own.code and not hands_on
    calls = (fact.fields for fact in report.facts if fact.kind == "call" and "key" in fact.fields)
    return frozenset(
        name
        for name in (str(fields["key"]) for fields in calls)
        if gathers or value_of(_own_key(name, settings) if hands_on else name, settings) is None
    )


def _own_key(key: str, settings: Sequence[Setting]) -> str:
    """Give the job's own key for the last part of it that a message names; the name itself else."""
    given = {canonical(setting.key): setting.key for setting in settings}
    if canonical(key) in given:
        return key
    # A level that holds others is none of the settings: a message may refuse all of it by its name.
    above = {canonical(level): level for own in given.values() for level in levels_above(own)}
    for known in (given, above):
        longer = [own for name, own in known.items() if name.endswith(f".{canonical(key)}")]
        if longer:
            return longer[0] if len(longer) == 1 else key
    return key


def _refused_keys(report: CrashReport) -> Iterator[str]:
    """Give the keys of a configuration that the failing lines refuse, in full where the log shows that."""
    lines = {event.line for event in _speaking(report)}
    keys = [
        str(fact.fields["key"])
        for fact in report.facts
        if fact.kind == "config_key" and fact.line in lines and "key" in fact.fields
    ]
    yield from dict.fromkeys(_full(key, report) for key in keys if _KEY.fullmatch(key))


def _full(key: str, report: CrashReport) -> str:
    """Give the full key that the log shows for its last part."""
    full = (
        str(fact.fields["key"]) for fact in report.facts if fact.kind == "config_key" and "key" in fact.fields
    )
    return next((longer for longer in full if longer.endswith(f".{key}")), key)


def _refusing(report: CrashReport) -> list[Event]:
    """Give the failing lines that call a key of the job unknown."""
    return [
        event
        for event in report.standing
        if "unknown-setting" in event.tells and not is_stray_command(event.body)
    ]


def _speaking(report: CrashReport) -> list[Event]:
    """Give the failing lines that refuse a key which somebody set."""
    refused = any("refused-override" in event.tells for event in report.standing)
    # Code that reads a key which the configuration lacks: nobody set it by a wrong name.
    read = () if refused else ("ConfigAttributeError",)
    return [
        event
        for event in _refusing(report)
        if not event.exception.endswith(read)
        and not any(not option.unknown for option in read_options(event.body))
    ]


def _unknown_keys(report: CrashReport) -> Iterator[str]:
    """Give the keys as the failing lines name them; a full key stands for its last part."""
    events = _speaking(report)
    lines = {event.line for event in events}
    told = [fact.fields for fact in report.facts if fact.kind in _KINDS and fact.line in lines]
    told += [event.facts for event in events]
    # Beside a key, `name` is who refuses it: the function, the class.
    texts = [
        str(fields[name])
        for fields in told
        for name in _FIELDS
        if name in fields and not (name == "name" and "key" in fields)
    ]
    for text in texts:
        for key in _FLAG.findall(text) or ([text] if _KEY.fullmatch(text) else []):
            # A long message is kept in part, which may end within a name.
            is_whole = re.compile(rf"{re.escape(key)}(?![\w-])")
            if not text.endswith(key) or key == text or any(is_whole.search(said.body) for said in events):
                yield _full(key, report)
    yield from (option.key for option in unknown_options(report))


def _candidates(
    old: str, own: str, report: CrashReport, library: Library, settings: Sequence[Setting]
) -> Iterator[Rename]:
    """Give what may have been meant: the same setting under its present name, then the most alike.

    `own` is the name of the job's own program that may be meant, if any.
    """
    held = [(item.key, item.value) for item in settings]
    # A parser prints what it does not know with the value that it was given.
    held += [(item.key, item.present) for item in unknown_options(report) if item.present is not None]
    value = next((given for key, given in held if canonical(key) == canonical(old)), None)
    bare = unsigned(old)
    mine = settable_frameworks(report)
    shown = dict.fromkeys((*(found.name for found in report.frameworks if found.name in mine), *sorted(mine)))
    # A launcher's options are its own, whatever the job that it starts.
    refusing = _refusing_framework(report)
    is_launcher = bool(refusing) and known_frameworks().row(refusing).is_launcher
    order = [refusing] if is_launcher else list(shown)
    # Where the version has it, something else is wrong.
    lacking = [name for name in order if library.setting(name, bare, report.version(name)) is None]
    # A version that is not known is none of those that have the name.
    undated = [name for name in order if name not in lacking and report.version(name) is None]
    if not report.frameworks and not signs(old):
        # Nothing but a call is seen: the history of its argument alone tells whose it was.
        undated = list(dict.fromkeys(framework for framework, _ in library.specs))
    root = report.root
    owners = refusing_classes(root.body, root.frames) if root is not None else ()
    names = [*(f"{owner}.{bare}" for owner in owners), bare]
    for framework, name in ((framework, name) for framework in (*lacking, *undated) for name in names):
        known = next(_by_history(framework, name, report.version(framework), library), None)
        if known is not None:
            yield Rename(framework, bare, known[0], known[1], True, value)
    if own:
        spec = SettingSpec(
            framework=_owner(report), key=own, type="any", spelled="flag" if signs(own) else "hydra"
        )
        yield Rename(spec.framework, bare, spec, own, False, value)
    # A key of a file is no option of the command line, where the framework's files have keys of their own.
    of_files = [item.key for item in settings if item.spelled in _OF_FILES]
    is_level = any(canonical(level) == canonical(old) for key in of_files for level in levels_above(key))
    in_file = is_level or any(canonical(key) == canonical(old) for key in of_files)
    for framework in lacking:
        version = report.version(framework)
        near = _by_spelling(framework, old, version, library, in_file=in_file, is_level=is_level)
        if near is not None:
            yield Rename(framework, bare, near[0], near[1], False, value, is_level=is_level)
    for framework in lacking:
        yield from moved_keys(framework, bare, report.version(framework), library, settings)


def _handed_on(
    old: str, argument: str, report: CrashReport, library: Library, settings: Sequence[Setting]
) -> Iterator[Rename]:
    """Give the present name of an argument of a framework's that a file has below a level of the job's own.

    Its code hands all of that level on, as `TrainingArguments(**config["training"])`.
    """
    above = old.removesuffix(argument)
    if above == old or not above.endswith("."):
        return
    for rename in _candidates(argument, "", report, library, settings):
        if rename.known:
            value = value_of(old, settings)
            yield replace(rename, old=old, new=f"{above}{rename.new}", value=value)


def _refusing_framework(report: CrashReport) -> str:
    """Name the framework whose program refuses its own command line; empty where it is not known."""
    program = refusing_program(report).rsplit("/", 1)[-1]
    rows = known_frameworks().rows.values() if program else ()
    return next((row.id for row in rows if any(re.fullmatch(way, program) for way in row.launches)), "")


def _owner(report: CrashReport) -> str:
    """Name the framework that the job's own options count for: the refusing one, else its first."""
    return _refusing_framework(report) or option_owner(report)


def _by_own_names(old: str, report: CrashReport, settings: Sequence[Setting]) -> str:
    """Give the one name of the job's own program that is most like the wrong one, or the empty string."""
    parent = old.rpartition(".")[0] if not signs(old) else ""
    fields = defined_fields(report) if not signs(old) else []
    known = [*(f"{parent}.{name}" if parent else name for name in fields), *own_names(report, settings)]
    # What the job gives by its right name was not meant by the wrong one.
    there = {canonical(item.key) for item in settings if item.spelled == "flag"} | {canonical(old)}
    names = [name for name in dict.fromkeys(known) if canonical(name) not in there]
    ranked = sorted(names, key=lambda name: _likeness(old, name), reverse=True)
    near = [name for name in ranked[:1] if _likeness(old, name) >= NEAR]
    found = near or [name for name in names if stands_for(old, name)] or _below_level(old, names)
    return written_like(found[0], old) if len(found) == 1 else ""


def _below_level(old: str, names: Sequence[str]) -> list[str]:
    """Give the names that are this one below a level (`data.dataset`), but for those of another phase."""
    found = [name for name in names if unsigned(name).rpartition(".")[::2][1] == unsigned(old)]
    asked = _OTHER_PHASE.search(unsigned(old))
    return [name for name in found if asked or not _OTHER_PHASE.search(unsigned(name).split(".")[0])]


def _by_history(
    framework: str, old: str, version: str | None, library: Library
) -> Iterator[tuple[SettingSpec, str]]:
    """Find what the version calls the setting that had this name in another one."""
    spec = library.setting(framework, old)
    if spec is not None:
        yield from (
            (spec, name)
            for name in library.names(framework, old, version)
            if canonical(name) != canonical(old)
        )


def _by_spelling(
    framework: str,
    old: str,
    version: str | None,
    library: Library,
    *,
    in_file: bool = False,
    is_level: bool = False,
) -> tuple[SettingSpec, str] | None:
    """Find the valid name that is most like the wrong one; `in_file`, among those of files if it has any.

    `is_level`, among the levels that hold settings, since the wrong one holds some.
    """
    specs = [spec for spec in library.specs.values() if spec.framework == framework]
    of_files = [spec for spec in specs if spec.spelled in _OF_FILES] if in_file else []
    named = [
        (spec, name, NEARER if versions and version is None else NEAR)
        for spec in of_files or specs
        for name, versions in (
            (spec.key, spec.versions),
            *((alias.key, alias.versions) for alias in spec.aliases),
        )
        if fits(version, versions) and not _are_of_two_phases(old, name)
    ]
    if is_level:
        named = [
            (SettingSpec(framework=framework, key=level, type="any", spelled=spec.spelled), level, least)
            for spec, name, least in named
            for level in levels_above(name)
        ]
    alike = ((_likeness(old, name), spec, name, least) for spec, name, least in named)
    near = [(likeness, spec, name) for likeness, spec, name, least in alike if likeness >= least]
    is_flag = bool(signs(old))
    best = max(
        near,
        key=lambda row: (
            row[0],
            (row[1].spelled == "flag") is is_flag,
            not _OTHER_PHASE.search(canonical(row[2])) or bool(_OTHER_PHASE.search(canonical(old))),
            row[1].explained,
            row[2],
        ),
        default=None,
    )
    return best[1:] if best is not None else None


def _are_of_two_phases(one: str, other: str) -> bool:
    """Tell whether one name is for training and the other for an evaluation: none is a slip for the other."""
    pairs = ((one, other), (other, one))
    return any(
        _TRAINING_PHASE.search(canonical(train)) and _OTHER_PHASE.search(canonical(other))
        for train, other in pairs
    )


def _likeness(old: str, new: str) -> float:
    """Compare the last parts under the same parent, or the parents of the same last part: 0 to 1."""
    (parent, leaf), (other, last) = _parted(old), _parted(new)
    if parent == other:
        return _ratio(leaf, last)
    return _ratio(parent, other) if leaf == last and parent and other else 0.0


def _abbreviates(one: str, other: str) -> bool:
    """Tell whether two names have the same words, some cut short: `max_model_len`, `max_model_length`."""
    pairs = list(zip(one.split("_"), other.split("_"), strict=False))
    return one.count("_") == other.count("_") > 0 and all(
        long.startswith(short) and (short == long or len(short) >= LEAST_LETTERS)
        for short, long in (sorted(pair, key=len) for pair in pairs)
    )


def _parted(name: str) -> tuple[str, str]:
    parent, _, leaf = canonical(name).rpartition(".")
    return parent, leaf


def _lacks_a_word(one: str, other: str) -> bool:
    """Tell whether one name is another without one of its words: `per_device_batch_size`."""
    short, long = sorted((one.split("_"), other.split("_")), key=len)
    whole = iter(long)
    return len(long) == len(short) + 1 >= LEAST_WORDS and all(word in whole for word in short)


def _ratio(one: str, other: str) -> float:
    if _abbreviates(one, other) or _lacks_a_word(one, other):
        return ABBREVIATED
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= NEAR and matcher.quick_ratio() >= NEAR else 0.0
