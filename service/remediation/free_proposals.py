"""Changes that a model proposes of its own, checked like those of the corpus.

A number or a truth value of a setting that the catalogue, or the job's own files, know is `verified`. What
is only plausible is `unverified`: it is told and never written to a file. What the version does not have,
what is out of range and what changes nothing is dropped. A log may have dictated what a model proposes, so
texts, paths, packages, and values that stand in the log beside their key are never verified.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from corpus.frameworks import known_frameworks
from corpus.keys import canonical, last_level, pattern, unsigned
from corpus.library import Library
from corpus.message import Message
from corpus.package_names import is_on_index
from corpus.releases import known_packages
from corpus.schema import Change, ChangeKind, Language, Scalar, SettingSpec, Text
from ingest.logs.report import CrashReport
from service.remediation.changes import check_change
from service.remediation.feasibility import key_at, same, value_of
from service.remediation.framework_relations import option_owner, settable_frameworks, shown_frameworks
from service.remediation.setting_values import is_guidance, is_text_to_yaml, typed_value
from service.schemas.diagnosis import ProposedChange
from service.scoring.assessment import Assessment

YAML = (".yaml", ".yml")
KINDS: tuple[ChangeKind, ...] = ("setting", "flag", "env", "package", "command")
CODE = "code"
# What a model calls the job's own program, of which the options are that no framework has.
OF_SCRIPT = frozenset({"script", "job", "own", "program"})
# A framework with so many settings in the catalogue has hardly one that is not there.
MANY = 60
# A name as settings, variables and packages have: no blank, no quote, nothing that a shell reads.
_KEY = re.compile(r"(?:[+~]{0,2}|-{1,2})[A-Za-z_][\w.@/-]{0,119}(?:\[[\w.-]{1,40}\])?")
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}(?:\[[A-Za-z0-9,._-]{1,40}\])?")
_INSTALL = re.compile(
    r"(?:python[\d.]* -m |uv )?pip[\d.]* install(?: (?:-U|--upgrade|--force-reinstall|--no-cache-dir))* "
    rf"['\"]?(?P<name>{_PACKAGE.pattern})(?P<version>(?:===?|~=|!=|[<>]=?)[\w.*+,<>=!~]{{1,60}})?['\"]?"
)
# An install without a version, as the rules write it too.
INSTALL = "install"
_VARIABLE = re.compile(r"export\s+[A-Z]")
_EXPORT = re.compile(
    r"export\s+(?P<name>[A-Z][A-Z0-9_]{1,79})\s*=\s*['\"]?(?P<value>[^\s'\"`$;&|<>]{1,120})['\"]?"
)
_OPTION = re.compile(r"#(?P<name>--[a-z][a-z-]{1,40})[= ](?P<value>[\w:.,%+-]{1,60})")
# What is run is no setting with a value.
_RUN = re.compile(r"(?i)(?:.*[._-])?(?:command|cmd|entrypoint|argv|exec)")
# A value told in words, with nothing in it that a shell or a page reads.
_WORDS = re.compile(r"[A-Za-z0-9][\w ./,()+=<>!-]{2,239}")
# A setting by which code of others is loaded.
_LOADS_CODE = re.compile(
    r"(?i)(?:^|[._-])(?:trust_remote_code|trust-remote-code|ld_preload|\w*path|bash_env)$"
)
# Variables by which code is loaded into each program that starts, and where a system's own libraries lie.
_PRELOADS = re.compile(r"(?i)(?:LD_PRELOAD|LD_AUDIT|BASH_ENV|PYTHONSTARTUP)")
_SYSTEM_LIBRARY = re.compile(
    r"(?:/usr|/lib|/opt/conda)[\w./+-]*|(?:/[\w.+-]+)+/(?:site|dist)-packages/[\w./+-]+"
)
# A value as variables of libraries take it: a number, a truth value, a word or a few.
_PLAIN_VALUE = re.compile(r"(?i)-?\d[\d.]{0,15}[a-z]{0,3}|[a-z][a-z0-9_]{0,15}(?:[:,][a-z0-9_]{1,16}){0,3}")
# A variable, or a switch of a call, that words set.
_SET = re.compile(r"(?<![\w.])([A-Z][A-Z0-9_]{2,79}|trust[_-]remote[_-]code)\s?=")
# One of the program's own for what it reads or writes: `log_path`, `vocab-path`, `data.train.path`.
_DATA_PATH = re.compile(
    r"-{0,2}(?!(?:.*[._-])?(?:python|library|libraries|lib|modules?|plugins?|sys|class|code)[._-])"
    r"[a-z][a-z0-9_.-]*[._-]path"
)
# What is told of a package in words: a version, or what is done with it.
_TOLD_OF_PACKAGE = re.compile(
    r"(?i)\d|\b(?:(?:re|un)?install|(?:re)?build|built|upgrade|update|downgrade|pin|remove|match|same|"
    r"compatible|latest|newer|older|newest|nightly|stable|release|version|wheel|source)"
)
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]{2,60}?) ?(?P<version>(?:==|>=|<=|~=|<|>)[\w.,<>=!~ *+-]{1,80})")
# An option as packages of Python spell theirs, of several words.
_OWN_OPTION = re.compile(r"[a-z]\w*_\w+")
# A file of Python, or a module in a package.
_PROGRAM = re.compile(r"[\w./\\-]+\.py|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
LONGEST, LONGEST_WORDS = 120, 240
# Types of settings that take texts.
_TEXTS = frozenset({"str", "list"})
# Numbers below are ranks, cards and switches, also where a text is taken.
_SMALL = 1000
LEAST_VARIABLE = 4
# A value that is too common in logs to have come from one.
_COMMON = re.compile(r"(?i)true|false|none|null|auto|\d{1,2}|")


@dataclass(frozen=True, slots=True)
class FreeProposal:
    """A change as a model words it; every field is untrusted text of bounded length."""

    framework: str
    kind: str
    key: str
    to: str
    why: str


def check_proposal(
    proposal: FreeProposal,
    cause: str,
    assessment: Assessment,
    library: Library,
    language: Language,
    shown: Collection[str] = (),
) -> list[ProposedChange] | str:
    """Check one proposal: gives the change with those that must follow it, or why there is none.

    `shown` are lines of the log that the model was shown beyond those of the report.
    """
    longest = LONGEST_WORDS if is_guidance(proposal.to) else LONGEST
    if not proposal.key or not proposal.to or len(proposal.to) > longest:
        return Message("model.names-no-value")
    proposal = _meant(proposal)
    # What is to be written in the job's code is no setting's value.
    is_code = CODE in (proposal.framework.lower(), proposal.kind)
    is_run = proposal.kind == "command" or _RUN.fullmatch(proposal.key) is not None
    if is_run or is_code or not _KEY.fullmatch(proposal.key):
        return Message("model.no-setting")
    if _is_respelled(proposal, assessment):
        return [_own_change(proposal, value_of(proposal.key, assessment.settings), assessment.report)]
    refusal = ""
    for spec in () if proposal.kind == "package" else _specs(proposal, assessment, library):
        if spec.spelled == "package":
            break
        if _PRELOADS.fullmatch(spec.key) and not _may_be_loaded(proposal.to, assessment.report):
            refusal = Message("model.no-setting")
            continue
        if spec.type == "bool" and spec.spelled == "flag" and _is_program(proposal.to, assessment.report):
            # A switch that stands before the program itself.
            return [_own_change(replace(proposal, framework=spec.framework), None, assessment.report)]
        version = assessment.report.version(spec.framework)
        change = _change(proposal, spec, key_at(version, spec, assessment.settings))
        made, why = check_change(change, cause, assessment.report, library, assessment.settings, language)
        if made:
            names = {spec.key, *(alias.key for alias in spec.aliases), proposal.key}
            # A number in place of a text is no measure: whoever words it may mean an account.
            to = made[0].to
            is_number = isinstance(to, int | float) and (spec.type not in _TEXTS or abs(to) < _SMALL)
            sure = is_number and not _is_of_log(names, proposal.to, assessment, shown)
            status = made[0].status if sure and not _LOADS_CODE.search(spec.key) else "unverified"
            return [item.model_copy(update={"status": status, "by": "model"}) for item in made]
        # An option of the job's own program may be called as one of a tool that no job of this kind runs.
        is_meant = spec.framework not in known_frameworks().everywhere or spec.framework == proposal.framework
        refusal = refusal or (why if is_meant else "")
    if refusal:
        return refusal
    installers = sorted(known_frameworks().with_field("installs"))
    is_package = proposal.kind == "package" or any(library.setting(name, proposal.key) for name in installers)
    made_or_why = (
        _package(proposal, assessment, library)
        if is_package
        else _unknown(proposal, assessment, library, shown)
    )
    return made_or_why if isinstance(made_or_why, str) else [made_or_why]


def _meant(proposal: FreeProposal) -> FreeProposal:
    """Give what a command comes to: a package, a variable, an option of the scheduler; any other is one."""
    command = f"{proposal.key} {proposal.to}"
    if proposal.kind in ("command", "package") and (found := _INSTALL.fullmatch(command)):
        version = (found["version"] or "").removeprefix("==") or INSTALL
        return replace(proposal, kind="package", key=found["name"], to=version)
    whole = _REQUIREMENT.fullmatch(proposal.to.strip()) if proposal.kind == "package" else None
    if whole and _normal(whole["name"]) == _normal(proposal.key):
        # The requirement as a whole: `torch` and `torch==2.0.1`.
        return replace(proposal, to=whole["version"])
    if found := _EXPORT.fullmatch(
        f"{proposal.key}={proposal.to}" if _VARIABLE.match(proposal.key) else command
    ):
        return replace(proposal, framework="env", kind="env", key=found["name"], to=found["value"])
    if proposal.key.upper().startswith("#SBATCH ") or proposal.kind == "command":
        option = _OPTION.fullmatch(re.sub(r"^(?i:#sbatch|sbatch|srun|salloc)\s+", "#", command))
        if option:
            # Whose options stand in a job script's directives.
            scheduler = next(row.id for row in known_frameworks().rows.values() if row.directives)
            return replace(
                proposal, framework=scheduler, kind="setting", key=option["name"], to=option["value"]
            )
    return proposal


def _specs(proposal: FreeProposal, assessment: Assessment, library: Library) -> Iterator[SettingSpec]:
    """Yield what the catalogue knows under the key: of the named framework, then of the job's."""
    report, known = assessment.report, known_frameworks()
    named = proposal.framework.lower().strip()
    mine = sorted(settable_frameworks(report)) + sorted(shown_frameworks(report))
    for framework in dict.fromkeys([named, *mine, *sorted(known.everywhere)]):
        for key in dict.fromkeys((proposal.key, unsigned(proposal.key))):
            if spec := library.setting(framework, key, report.version(framework)):
                yield spec


def _change(proposal: FreeProposal, spec: SettingSpec, key: str) -> Change:
    value = typed_value(proposal.to)
    to: Scalar = value if value is not None else proposal.to
    if spec.type == "float" and isinstance(to, str):
        with_point = re.fullmatch(r"-?\d{0,12}\.\d{1,12}", to)
        to = float(to) if with_point else to
    kind: ChangeKind = spec.spelled if spec.spelled in ("flag", "env", "package") else "setting"
    return Change(
        framework=spec.framework, kind=kind, key=key, to=to, why=Text(en=proposal.why, zh=proposal.why)
    )


def _unknown(
    proposal: FreeProposal, assessment: Assessment, library: Library, shown: Collection[str]
) -> ProposedChange | str:
    """Judge a key that the catalogue does not hold: the job's own files may prove that there is one."""
    report, known = assessment.report, known_frameworks()
    now = value_of(proposal.key, assessment.settings)
    if now is not None and same(now, proposal.to):
        return Message("changes.job-value")
    framework = proposal.framework.lower().strip()
    is_own = now is not None or _is_named(proposal.key, report)
    is_variable = proposal.kind == "env" and _is_variable(proposal, report)
    if not is_own and not is_variable and not _is_of_package(proposal, assessment, shown):
        # Of a program that nobody knows, a log may have made up the name of the setting, too.
        if framework not in known.rows:
            return Message("model.no-setting")
        if len(library.keys.get(framework, ())) >= MANY:
            return Message("model.not-catalogue-version", framework=framework)
    # Settings of the job's own files stand on no line of the log.
    own = typed_value(value_of(proposal.key, [item for item in assessment.settings if item.line == 0]))
    to = typed_value(proposal.to)
    proved = isinstance(own, int) and type(own) is type(to) and not _LOADS_CODE.search(proposal.key)
    sure = proved and not _is_of_log({proposal.key}, proposal.to, assessment, shown)
    made = _own_change(proposal, now, report)
    return made if to is None or not sure else made.model_copy(update={"to": to, "status": "verified"})


def _own_change(proposal: FreeProposal, now: str | None, report: CrashReport) -> ProposedChange:
    """Make the change of a setting as it is proposed; it is told and not written."""
    framework = proposal.framework.lower().strip()
    owner = "python" if framework in OF_SCRIPT else option_owner(report)
    return ProposedChange(
        framework=framework if framework in known_frameworks().rows else owner,
        kind=next((kind for kind in KINDS if kind == proposal.kind), "setting"),
        key=proposal.key,
        from_=now,
        to=proposal.to,
        why=proposal.why,
        status="unverified",
        by="model",
    )


def _is_respelled(proposal: FreeProposal, assessment: Assessment) -> bool:
    """Tell whether a file of YAML has a number as a text, and it is proposed so that YAML reads a number."""
    wanted = canonical(proposal.key)
    return not is_text_to_yaml(proposal.to) and any(
        item.file.endswith((".yaml", ".yml"))
        and same(item.value, proposal.to)
        and is_text_to_yaml(item.value)
        for item in assessment.settings
        if canonical(item.key) == wanted
    )


def _is_program(value: str, report: CrashReport) -> bool:
    """Tell whether a value names the program that the job started, as its file or as a module.

    One of the files that were handed in: a log may name any.
    """
    path = value.strip().replace("\\", "/")
    named = path if path.endswith(".py") else f"{path.replace('.', '/')}.py"
    frames = (frame for event in report.standing for frame in event.frames)
    started = [report.command[1], *(frame.file.replace("\\", "/") for frame in frames)]
    stands = re.compile(rf"(?<![\w.-]){re.escape(named)}\b")
    at_hand = {text.rpartition("\n")[2].rpartition("/")[2] for text in report.launches}
    is_own = _PROGRAM.fullmatch(value) is not None and named.rpartition("/")[2] in at_hand
    return is_own and any(map(stands.search, started))


def sets_what_loads_code(words: str) -> bool:
    """Tell whether words set a variable, or a switch, by which code of others is loaded."""
    named = (match[1] for match in _SET.finditer(words))
    return any(_LOADS_CODE.search(name) and not _DATA_PATH.fullmatch(name) for name in named)


def is_of_job(change: ProposedChange, assessment: Assessment, library: Library) -> bool:
    """Tell whether a change is of what this job is shown to have: a setting, an option, a statement.

    By what finds or loads code a log could do most harm: that counts for none.
    """
    if _LOADS_CODE.search(change.key) and (change.kind == "env" or not _DATA_PATH.fullmatch(change.key)):
        return False
    if change.from_ is not None or value_of(change.key, assessment.settings) is not None:
        return True
    report = assessment.report
    is_known = library.setting(change.framework, change.key, report.version(change.framework)) is not None
    return change.kind != "package" and (is_known or _is_named(change.key, report))


def _is_named(key: str, report: CrashReport) -> bool:
    """Tell whether the job's own files have the name: what its code passes need be no known setting."""
    named = re.compile(rf"(?<![\w.]){pattern(last_level(unsigned(key)))}(?!\w)")
    return any(map(named.search, report.launches))


def _is_of_package(proposal: FreeProposal, assessment: Assessment, shown: Collection[str]) -> bool:
    """Tell whether it can be an option of a package that no catalogue has, or of the job's own program.

    The package is one that the job's code uses; of the program a file may not be at hand. A number or a truth
    value alone, under a name that no line of the log has: none has made it up.
    """
    package = proposal.framework.lower().strip().replace("-", "_")
    if package in known_frameworks().rows or not _OWN_OPTION.fullmatch(proposal.key):
        return False
    if not isinstance(typed_value(proposal.to), int) or _LOADS_CODE.search(proposal.key):
        return False
    report = assessment.report
    imported = re.compile(rf"(?m)^\s*(?:from|import)\s+{re.escape(package)}\b")
    frames = (frame.file for event in report.standing for frame in event.frames)
    is_used = any(map(imported.search, report.launches)) or any(f"/{package}/" in file for file in frames)
    return (is_used or package in OF_SCRIPT) and not _is_of_log({proposal.key}, "", assessment, shown)


def _is_variable(proposal: FreeProposal, report: CrashReport) -> bool:
    """Tell whether a name can be one of a library's variables: no catalogue has those of all libraries.

    One by which code is found counts with a folder in which the job's failing code lies, another one with a
    value as such variables have it, or with a path of the job's own.
    """
    if not re.fullmatch(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*", proposal.key) or len(proposal.key) < LEAST_VARIABLE:
        return False
    if not _LOADS_CODE.search(proposal.key):
        place = proposal.to.rpartition("/")[0] if proposal.to.startswith("/") else ""
        is_own = place.count("/") > 1 and any(place in text for text in report.launches)
        return is_own or is_guidance(proposal.to) or _PLAIN_VALUE.fullmatch(proposal.to) is not None
    folder = proposal.to.rstrip("/")
    frames = (frame.file for event in report.standing for frame in event.frames)
    return folder.count("/") > 1 and any(file.startswith(f"{folder}/") for file in frames)


def _may_be_loaded(value: str, report: CrashReport) -> bool:
    """Tell whether a library is the system's or the job's own, or words say what to take away."""
    is_system = _SYSTEM_LIBRARY.fullmatch(value) is not None and ".." not in value
    return (
        is_guidance(value) or "/" not in value or is_system or any(value in text for text in report.launches)
    )


def _package(proposal: FreeProposal, assessment: Assessment, library: Library) -> ProposedChange | str:
    """Take a version of a package that the catalogue knows or many use: else a log may have made up its name.

    A version may be told in words, as a user chooses it.
    """
    name = proposal.key.strip()
    is_told = proposal.to == INSTALL or (
        is_guidance(proposal.to)
        and _WORDS.fullmatch(proposal.to) is not None
        and _TOLD_OF_PACKAGE.search(proposal.to) is not None
    )
    if not _PACKAGE.fullmatch(name) or not (is_told or _is_version(proposal.to)):
        return Message("model.no-package-version")
    bare = _normal(name.partition("[")[0])
    rows = {_normal(row): row for row in known_frameworks().rows}
    known = {_normal(key) for _, key in library.specs if library.specs[_, key].spelled == "package"} | set(
        rows
    )
    known |= {_normal(package) for package in known_packages()}
    known |= {_normal(package) for package in known_frameworks().modules.values()}
    # What the job's own files ask for is the job's, whoever made it.
    known |= {_normal(unsigned(item.key)) for item in assessment.settings if item.spelled == "package"}
    if bare not in known and not is_on_index(bare):
        return Message("model.no-known-package")
    seen = assessment.report.version(rows.get(bare, bare))
    # A package that is there is not installed once more, whatever its version.
    is_there = seen is not None or rows.get(bare, bare) in shown_frameworks(assessment.report)
    if (seen and proposal.to.strip("= v") == seen) or (proposal.to == INSTALL and is_there):
        return Message("changes.job-value")
    return ProposedChange(
        framework=min(known_frameworks().with_field("installs")),
        kind="package",
        key=name,
        from_=seen,
        to=proposal.to,
        why=proposal.why,
        status="unverified",
        by="model",
    )


def _is_version(text: str) -> bool:
    plain = text.strip()
    try:
        if plain[:1] in "=<>!~":
            return bool(str(SpecifierSet(plain)))
        return bool(str(Version(plain)))
    except (InvalidSpecifier, InvalidVersion):
        return False


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_of_log(names: set[str], value: str, assessment: Assessment, shown: Collection[str]) -> bool:
    """Tell whether the log may have dictated a change: it names the key, and the value stands in it too.

    A value that stands in any log, such as `true` or `8`, is not asked for. A job prints its own settings: a
    row that gives the present value is of that kind.
    """
    report = assessment.report
    texts = [
        *shown,
        *report.texts.values(),
        *(" ".join(map(str, fact.fields.values())) for fact in report.facts),
    ]
    named = re.compile(
        "|".join(rf"(?i:(?<![\w]){pattern(last_level(name))}(?![\w]))" for name in sorted(names))
    )
    now = next((found for name in sorted(names) if (found := value_of(name, assessment.settings))), None)
    own = re.compile(rf"{named.pattern}['\"\s:=]{{1,4}}{re.escape(now)}(?![\w.])" if now else r"(?!)")
    if not any(named.search(text) and not own.search(text) for text in texts):
        return False
    plain = value.strip().strip("'\"")
    if _COMMON.fullmatch(plain):
        return True
    stands = re.compile(rf"(?<![\w.]){re.escape(plain)}(?![\w]|\.\d)")
    return any(stands.search(text) for text in texts)
