"""Changes of keys that the failing message names: another name, one that is to go, a value that is taken."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from corpus.frameworks import known_frameworks
from corpus.keys import canonical, flag, last_level, pattern, unsigned
from corpus.library import Library
from corpus.message import words
from corpus.schema import ChangeKind, Language, Scalar, SettingSpec
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from service.remediation.feasibility import same, value_of
from service.remediation.framework_relations import settable_frameworks
from service.remediation.hinted_settings import MessageHint
from service.remediation.moved_keys import Rename
from service.remediation.named_options import NamedOption
from service.remediation.own_names import own_option
from service.remediation.ranking import BEFORE_ADVICE, ChangeGroup
from service.remediation.refusals import refusing_program
from service.remediation.setting_values import is_guidance, misfit_reason, number_of, typed_value
from service.remediation.stated_settings import is_variable
from service.schemas.diagnosis import ProposedChange

# A single word may stand beside any number.
LEAST_WORDS = 2
# What to put there where a message names no value. Blanks mark it as guidance, in Chinese too.
_WAYS = {
    "up": "changes.to-higher",
    "down": "changes.to-lower",
    "off": "changes.to-nothing",
    "named": "changes.to-allowed",
    "checked": "changes.to-allowed",
    "set": "changes.to-asked",
    "other": "changes.to-existing",
}
_KIND: dict[str, ChangeKind] = {"flag": "flag", "env": "env", "package": "package", "command": "command"}


def kind_of(spec: SettingSpec) -> ChangeKind:
    """Give the kind of a change of a setting, as it is spelled."""
    return _KIND.get(spec.spelled, "setting")


def advised_value(item: MessageHint, now: str | None, language: Language) -> Scalar:
    """Give the value that the message names, or say in words which way to move it."""
    value = typed_value(item.value) if item.value else item.bound(now)
    if value is not None and not misfit_reason(value, item.spec):
        return value
    if item.spec.type == "bool" and item.way in ("on", "off", "set"):
        return item.way != "off"
    if now is not None and number_of(now, "float") is not None and item.way in ("up", "down"):
        return words("changes.above" if item.way == "up" else "changes.below", language, now=now)
    # A switch that is on has one other value.
    is_on = item.spec.type == "bool" and item.way in ("named", "checked") and same("true", now or "")
    return words(_WAYS.get("off" if is_on else item.way, "changes.to-asked"), language)


def renamed_change(rename: Rename, language: Language) -> ProposedChange:
    """Propose the right name with the job's own value."""
    spec, value = rename.spec, typed_value(rename.value)
    # A value that was masked is the job's own secret: the mask must not take its place.
    fitting = (
        value is not None
        and not misfit_reason(value, spec)
        and not is_guidance(value)
        and "[redacted:" not in str(value)
    )
    why = "changes.renamed" if rename.known else "changes.misspelt"
    if canonical(rename.old) == canonical(rename.new):
        why = "changes.signed"
    told = words("changes.read-as" if rename.reads else why, language, old=rename.old, new=rename.new)
    return ProposedChange(
        framework=rename.framework,
        kind=kind_of(spec),
        key=rename.new,
        to=value if fitting and value is not None else words("changes.same-value", language, old=rename.old),
        why=told,
        proof=told if rename.reads else None,
        replaces=rename.old,
        status="verified" if fitting or rename.is_level else "unverified",
    )


def with_refusals(
    groups: Sequence[ChangeGroup],
    refusals: Sequence[NamedOption],
    report: CrashReport,
    library: Library,
    settings: Sequence[Setting],
    language: Language,
) -> list[ChangeGroup]:
    """Add a change for each option that the program refuses; those that it does not know go together."""
    made = [(_refusal_change(option, report, library, settings, language), option) for option in refusals]
    gone = [change for change, option in made if option.unknown]
    gone[1:] = [change.model_copy(update={"goes_with": gone[0].key}) for change in gone[1:]]
    found: list[ChangeGroup] = []
    for change, option in made:
        home = next((group for group in found if group.changes[0].key == option.goes_with), None)
        if home is not None:
            home.changes.append(change.model_copy(update={"goes_with": option.goes_with}))
        elif not option.unknown:
            found.append(ChangeGroup([change], True, True, 0))
    left = [ChangeGroup(gone, True, True, BEFORE_ADVICE)] if gone else []
    return _in_one_step([*groups, *found, *left])


def _in_one_step(groups: Sequence[ChangeGroup]) -> list[ChangeGroup]:
    """Let names that a framework's program refuses be mended together: with one left it stops again.

    What the catalogue does not know may have a name that nobody found, and is no part of the step. The same
    holds for values of which a message tells that each is wrong.
    """
    steps: dict[str | None, list[ChangeGroup]] = {}
    for group in groups:
        first = group.changes[0]
        is_common = first.framework in known_frameworks().common
        if first.replaces is not None or (first.removes and not is_common):
            steps.setdefault(None, []).append(group)
        elif group.together:
            steps.setdefault(group.measure, []).append(group)
    gone = [group for step in steps.values() for group in step[1:]]
    for home, *others in steps.values():
        rest = [change for group in others for change in group.changes]
        main = home.changes[0].key
        home.changes += [change.model_copy(update={"goes_with": main}) for change in rest]
    return [group for group in groups if not any(group is other for other in gone)]


def _refusal_change(
    option: NamedOption,
    report: CrashReport,
    library: Library,
    settings: Sequence[Setting],
    language: Language,
) -> ProposedChange:
    """Propose what a program says of an option that it refuses; the program itself tells that it has it."""
    mine = settable_frameworks(report)
    shown = [found.name for found in report.frameworks if found.name in mine]
    known = [name for name in shown if library.setting(name, option.key)]
    # A library that the program uses takes no options, and what starts it has its own; what no framework
    # knows is the program's own.
    program = refusing_program(report)
    mine_too = _programs(program, report) if program.endswith(".py") else shown
    others = (name for name in shown if name not in known_frameworks().generic and name in mine_too)
    owner = next(iter([*known, *others]), "python")
    spelled = next((each.spelled for each in settings if canonical(each.key) == canonical(option.key)), "")
    spelled = spelled or ("env" if option.why is not None and is_variable(option.key) else "")
    is_own = own_setting(option.key, report, settings) is not None
    if is_own or (
        option.why is not None and (not known or spelled == "env" or own_option(option.key, report))
    ):
        above = "python" if is_own else _owner_of_level_above(option.key, shown, mine, library)
        owner = "env" if spelled == "env" else above
    present = option.present if option.present is not None else value_of(option.key, settings)
    spec = library.setting(owner, option.key, report.version(owner))
    is_switch = bool(option.excludes) and spec is not None and spec.type == "bool"
    goes = option.unknown or option.removed or (bool(option.excludes) and not is_switch)
    to = words("changes.to-nothing", language) if goes else False if is_switch else _wanted(option, language)
    key = flag(option.key) if spelled == "flag" else option.key
    told = (
        ("changes.named", option.way == "other"),
        ("changes.advised", option.way),
        ("changes.refused", option.unknown),
        ("changes.excludes", option.excludes),
        ("changes.counted", option.value),
    )
    form = next((name for name, holds in told if holds), "changes.named")
    why = option.why.to(language) if option.why else words(form, language, key=key, other=option.excludes)
    return ProposedChange(
        framework=owner,
        kind="env" if spelled == "env" else "flag" if key.startswith("--") else "setting",
        key=key,
        from_=present,
        to=to,
        why=why,
        proof=why if option.proves else None,
        removes=goes,
        # The program's own words tell that it has the option and takes the value; the catalogue need not.
        status="verified"
        if goes
        or is_switch
        or (option.nearest and (spec is not None or present is not None or option.why is not None))
        else "unverified",
    )


def is_about(item: MessageHint, change: ProposedChange) -> bool:
    """Tell whether a change is of the setting that a message names."""
    return change.framework == item.framework and canonical(change.key) == canonical(item.key)


def tells_value(key: str, now: str | None, said: str) -> bool:
    """Tell whether a message names a setting with the job's very value: `pipeline parallel size (3)`."""
    parts = [re.escape(part) for part in re.split(r"[_-]", last_level(unsigned(key)))]
    if now is None or len(parts) < LEAST_WORDS or not now.strip():
        return False
    named = rf"(?i)(?<![a-z0-9]){'[ _-]'.join(parts)}(?![a-z0-9])[`'\"]?(?: (?:of|is|was))?[ =:(]{{1,3}}"
    return re.search(rf"{named}[`'\"]?{re.escape(now.strip())}(?![\w.])", said) is not None


def own_setting(key: str, report: CrashReport, settings: Sequence[Setting]) -> Setting | None:
    """Give the job's own setting that a message of its own code names, though a framework has one too."""
    root, name = report.root, canonical(last_level(unsigned(key)))
    if root is None or not root.frames or not is_own(root.frames[-1]):
        return None
    if not re.search(rf"(?i)(?<![a-z0-9]){pattern(last_level(unsigned(key)))}(?![a-z0-9])", root.body):
        return None
    return next((item for item in settings if item.file and canonical(last_level(item.key)) == name), None)


def as_own(groups: Sequence[ChangeGroup], report: CrashReport, settings: Sequence[Setting]) -> None:
    """Tell changes that a message of the job's own code names as those of its own settings."""
    for group in groups:
        change = group.changes[0] if group.changes else None
        if change is None or change.kind not in ("flag", "setting"):
            continue
        own = own_setting(change.key, report, settings)
        if own is not None and change.framework not in launched(report):
            is_flag = own.spelled == "flag"
            update = {
                "framework": "python",
                "kind": "flag" if is_flag else "setting",
                "key": flag(own.key) if is_flag else own.key,
                "from_": own.value,
            }
            group.changes[0] = change.model_copy(update=update)


def launched(report: CrashReport) -> frozenset[str]:
    """Name the frameworks whose own programs the job's command starts, and whose settings it gives them."""
    texts = (report.command[1], *report.launches)
    return frozenset(
        name
        for name, row in known_frameworks().rows.items()
        for launch in row.launches
        if any(re.search(launch, text) for text in texts)
    )


def _programs(script: str, report: CrashReport) -> frozenset[str]:
    """Name the frameworks that a script which calls itself so is a program of."""
    texts = (report.command[1], *report.launches)
    paths = {script, *(path for text in texts for path in re.findall(rf"\S*{re.escape(script)}", text))}
    return frozenset(
        name
        for name, row in known_frameworks().rows.items()
        if any(re.search(launch, path) for launch in row.launches for path in paths)
    )


def _owner_of_level_above(key: str, shown: Sequence[str], mine: Collection[str], library: Library) -> str:
    """Name the framework whose setting the level above a key is; the job's own program else."""
    above = key.rpartition(".")[0]
    owners = (name for name in (*shown, *sorted(mine)) if above and library.setting(name, above))
    return next(owners, "python")


def _wanted(option: NamedOption, language: Language) -> Scalar:
    """Give the value that an option is to have, as far as the program's message tells it."""
    if option.way in ("on", "off"):
        return option.way == "on"
    if option.why is not None and option.value is not None:
        number, plain = number_of(option.value, "float"), typed_value(option.value)
        return (
            number if number is not None and "." in option.value else option.value if plain is None else plain
        )
    if option.way and not option.value:
        return words(_WAYS[option.way], language)
    if option.required:
        return words("changes.to-given", language)
    if option.nearest:
        return option.nearest
    if option.sort:
        return words(f"changes.to-{option.sort}", language)
    if option.choices:
        return words("changes.to-one-of", language, choices=", ".join(option.choices))
    return words("changes.to-allowed", language)
