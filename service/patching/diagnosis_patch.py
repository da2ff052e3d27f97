"""The patch of an answer: its first remedy, written into the job's own files."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from corpus.frameworks import known_frameworks
from corpus.keys import canonical, unsigned
from corpus.library import Library
from corpus.message import edited, words
from corpus.schema import ChangeKind, Language
from ingest.configfiles import formats, notebook
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.spelling import is_unset
from ingest.logs.report import CrashReport
from ingest.redaction.redactor import MASK, Redactor
from service.composition import reasons
from service.patching import (
    launchers,
    limits,
    patches,
    python_environment,
    python_file,
    script_words,
    statements,
)
from service.patching.changed_files import changed_file, holder_of, tell_changed, tell_held
from service.patching.commands import corrected_command, recorded_command
from service.patching.handed_variables import handed
from service.patching.interpolation import followed
from service.patching.patch import carries, is_met
from service.patching.patches import ConfigFile, FileEdit, PatchedFiles
from service.patching.target import OWN_PROGRAM, PatchTarget
from service.patching.used_files import program_of, to_be_patched
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.feasibility import same
from service.remediation.fed_options import fed_by
from service.remediation.guesses import is_advised
from service.remediation.offered_edits import offered_edit
from service.remediation.own_edits import job_files
from service.remediation.own_names import closed_scripts, own_option
from service.remediation.refusals import refusing_program, unknown_options
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import Diagnosis, Dropped, ProposedChange

# Characters of a command of the log that is patched as if it were a file.
LONGEST_ROW = 400
_EXPORT = re.compile(r"(?m)^[ \t]*export[ \t]+(\w{1,80})=")


@dataclass(frozen=True)
class StepPatch:
    """What one step comes to in the job's files: their new texts, what was left out, and its targets."""

    edits: tuple[FileEdit, ...] = ()
    left_out: tuple[Dropped, ...] = ()
    targets: tuple[PatchTarget, ...] = ()


def patch_diagnosis(
    answer: Diagnosis,
    files: Sequence[ConfigFile],
    report: CrashReport,
    library: Library,
    language: Language,
    *,
    is_chosen: bool = False,
) -> Diagnosis:
    """Give the answer with its patch and its launch command, changed; for want of files a patch of that.

    `is_chosen` keeps the order of the changes: their first was chosen, and not only ranked.
    """
    line, text = report.command
    given = files
    used = _used(given, answer.changes, report, library)
    if not used and (not line or MASK in text):
        return answer
    files = used or [ConfigFile(f"command-at-line-{report.place(line).line}.sh", text)]
    # A longer command is shown whole and corrected, a word a line; nobody reads two such rows.
    is_shown = bool(given) or len(text) <= LONGEST_ROW
    changes = answer.changes if is_chosen else writable_first(answer.changes, files, report, library)
    targets = _unmet(_first_targets(changes, report, library), given)
    made = _patch_targets(targets, files)
    if not made.edits:
        made = _installed(targets, given) or made
    suggested = () if made.edits else _suggested(changes, used, report, library)
    if not made.edits and not suggested:
        suggested = _in_program(targets, given, report)
    if not made.edits and not suggested and (fed := fed_targets(targets, used, report)):
        targets, made = fed, _patch_targets(fed, used)
        suggested = () if made.edits else _in_code(fed, used, report, library)
        if made.edits or suggested:
            changes = _told_fed(changes, str(fed[0].names[0]), language)
    is_same = True
    changed = changed_file((*made.edits, *suggested), targets, report, given)
    if changed is not None:
        is_same = changed.holds(targets[0].to)
        targets = [] if changed.has_gone(changes[0].to) else targets
        changes = tell_changed(changes, changed, language)
    elif not made.edits and not suggested and (holder := _holder(changes, targets, used)):
        changes = tell_held(changes, holder, language)
    clean = Redactor().clean
    command = corrected_command(used, text or recorded_command(given), targets)
    dropped = reasons.translate_reasons(
        [Dropped(what=edited(item.what, clean), why=edited(item.why, clean)) for item in made.left_out],
        language,
    )
    engine = answer.engine.model_copy(update={"dropped": (*answer.engine.dropped, *dropped)})
    return answer.model_copy(
        update={
            "changes": changes,
            "patch": ("".join(_shown(edit, clean) for edit in made.edits) or None)
            if is_shown and is_same
            else None,
            "suggestion": ("".join(_shown(edit, clean) for edit in suggested) or None) if is_same else None,
            "command": command if command and clean(command) == command else None,
            "engine": engine,
        }
    )


def _used(
    files: Sequence[ConfigFile], changes: Sequence[ProposedChange], report: CrashReport, library: Library
) -> tuple[ConfigFile, ...]:
    """Give the run's own files, without the lists of packages that its environment was not made from.

    Such a list pins to a wanted release what the run had otherwise.
    """
    targets = [target for target in patch_targets(changes, report, library) if target.kind == "package"]
    return tuple(
        file
        for file in to_be_patched(files, report)
        if not any(is_met(file.name, file.text, target) for target in targets)
    )


def _holder(
    changes: Sequence[ProposedChange], targets: Sequence[PatchTarget], files: Sequence[ConfigFile]
) -> str:
    """Name a file of the run that has the first change's value by now, which the run had not."""
    is_value = bool(targets) and targets[0].kind in ("setting", "flag", "env") and not targets[0].removes
    now = changes[0].from_ if changes else None
    # What code has of an option is a default: the command of the run gave another value, or none.
    given = [file for file in files if not file.name.endswith(formats.CODE)]
    is_other = is_value and now is not None and not same(now, targets[0].to)
    return holder_of(targets[0], given) if is_other else ""


def _shown(edit: FileEdit, clean: Callable[[str], str]) -> str:
    """Give a file's diff without secrets; with fewer rows around a change where those hold some.

    A masked row fits no file, so that the patch would not apply.
    """
    diffs = (edit.difference(context) for context in (3, 2, 1))
    return next((diff for diff in diffs if clean(diff) == diff), clean(edit.difference()))


def repatch_diagnosis(
    answer: Diagnosis,
    files: Sequence[ConfigFile],
    report: CrashReport,
    library: Library,
    language: Language,
    *,
    is_chosen: bool = False,
) -> Diagnosis:
    """Make the patch anew for an answer whose changes are others than the first one's."""
    unpatched = answer.model_copy(update={"patch": None, "command": None, "suggestion": None})
    made = patch_diagnosis(unpatched, files, report, library, language, is_chosen=is_chosen)
    # What could not be patched the first time is told once.
    engine = made.engine.model_copy(update={"dropped": tuple(dict.fromkeys(made.engine.dropped))})
    return made.model_copy(update={"engine": engine})


def writable_first(
    changes: Sequence[ProposedChange], files: Sequence[ConfigFile], report: CrashReport, library: Library
) -> tuple[ProposedChange, ...]:
    """Put first, of the changes as good as the first one, one that can be written into the files.

    To unset a variable that the job does not set could be written into any script: that speaks for none.
    """
    steps = group_steps(changes)
    equals = [
        step
        for step in steps
        if step[0].tier == steps[0][0].tier and is_advised(step[0])
        if step is steps[0] or step[0].from_ is not None or not _is_gone(step[0])
    ]
    made = (_patch_targets(patch_targets(step, report, library), files) for step in equals)
    chosen = next((step for step, patched in zip(equals, made, strict=True) if patched.edits), None)
    ordered = steps if chosen is None else [chosen, *(step for step in steps if step is not chosen)]
    return tuple(change for step in ordered for change in step)


def patch_first_step(
    changes: Sequence[ProposedChange], files: Sequence[ConfigFile], report: CrashReport, library: Library
) -> StepPatch:
    """Patch the files by the remedy that is shown first.

    Never by another one: who takes the patch expects what the answer puts first. What only helps to find
    out is none.
    """
    targets = _unmet(_first_targets(changes, report, library), files)
    made = _patch_targets(targets, _used(files, changes, report, library))
    changed = changed_file(made.edits, targets, report, files)
    return made if changed is None or changed.holds(targets[0].to) else StepPatch(left_out=made.left_out)


def _first_targets(
    changes: Sequence[ProposedChange], report: CrashReport, library: Library
) -> list[PatchTarget]:
    step = next(iter(group_steps(changes)), [])
    return patch_targets(step, report, library) if step and is_advised(step[0]) else []


def suggested_edits(
    changes: Sequence[ProposedChange], files: Sequence[ConfigFile], report: CrashReport, library: Library
) -> tuple[FileEdit, ...]:
    """Give what the first remedy comes to in the first file of Python code that has a place for it.

    Nothing where that file is no longer the one that ran, and the change does not follow for it.
    """
    targets = _first_targets(changes, report, library)
    found = _suggested(changes, _used(files, changes, report, library), report, library)
    found = found or _in_program(targets, files, report)
    changed = changed_file(found, targets, report, files)
    return found if changed is None or changed.holds(targets[0].to) else ()


def _suggested(
    changes: Sequence[ProposedChange], files: Sequence[ConfigFile], report: CrashReport, library: Library
) -> tuple[FileEdit, ...]:
    code = _code_of(files)
    if changes and changes[0].kind == "code":
        found = _own_edits(changes[0], code, files, report)
        return tuple(edit for edit in found if edit.is_writable)
    return _in_code(_first_targets(changes, report, library), files, report, library)


def _in_code(
    targets: Sequence[PatchTarget], files: Sequence[ConfigFile], report: CrashReport, library: Library
) -> tuple[FileEdit, ...]:
    """Give the first target in the first file of Python code that has a place for it.

    Where several have one, in the first that gives it the value which the run had; in none that gives
    another where a script passes that value, as a default is then not what runs.
    """
    quoted = frozenset(frame.code.strip() for event in report.events for frame in event.frames if frame.code)
    found: list[FileEdit] = []
    for file, target in itertools.product(_code_of(files), targets[:1]):
        owners = (target.framework, *known_frameworks().row(target.framework).extends)
        keys = [key for owner in owners for key in library.keys.get(owner, ())]
        with contextlib.suppress(NotPatchableError):
            known = frozenset(python_file.settings_of(keys))
            after = python_file.suggested(file.text, target, known, quoted)
            for other in targets[1:]:
                # What goes with the first one stands in the same call, or is left to its reader.
                with contextlib.suppress(NotPatchableError):
                    after = python_file.suggested(after, other, known, quoted)
            if (made := FileEdit(file, after)).is_writable and after != file.text:
                found.append(made)
    had = next((edit for edit in found if python_file.gives_present(edit.file.text, targets[0])), None)
    if had is None and targets and targets[0].present and holder_of(_as_run(targets[0]), _scripts(files)):
        return ()
    return tuple([had or found[0]] if found else ())


def _as_run(target: PatchTarget) -> PatchTarget:
    return replace(target, to=target.present)


def _scripts(files: Sequence[ConfigFile]) -> list[ConfigFile]:
    return [file for file in files if not file.name.endswith(formats.CODE)]


def _in_program(
    targets: Sequence[PatchTarget], files: Sequence[ConfigFile], report: CrashReport
) -> tuple[FileEdit, ...]:
    """Set the variables of a step in the first rows of the program that ran; all of them, or none."""
    program = program_of(files, report)
    if program is None or not program.exact or not targets:
        return ()
    after = program.text
    with contextlib.suppress(NotPatchableError):
        for target in targets:
            after = python_environment.with_variable(after, target)
        return (FileEdit(program, after),) if after != program.text else ()
    return ()


def _code_of(files: Sequence[ConfigFile]) -> list[ConfigFile]:
    return [file for file in files if file.exact and formats.format_of(file.name, file.text) == "python"]


def _installed(targets: Sequence[PatchTarget], files: Sequence[ConfigFile]) -> StepPatch | None:
    """Patch a script that installs the package before the job and starts none; None where there is none."""
    if not targets or any(target.kind != "package" for target in targets):
        return None
    installing = [file for file in files if carries(file.name, file.text, targets[0])]
    made = _patch_targets(targets, installing) if installing else StepPatch()
    return made if made.edits else None


def fed_targets(
    targets: Sequence[PatchTarget], files: Sequence[ConfigFile], report: CrashReport
) -> list[PatchTarget]:
    """Give the job's own option in place of a setting that the code has from it; none where it has not."""
    first = next(iter(targets), None)
    if first is None or first.kind not in ("setting", "flag") or first.removes or first.replaces:
        return []
    call, leaf = first.call_argument
    name = canonical(leaf or unsigned(first.names[0]))
    code = [JobFile(file.name, file.text) for file in _code_of(files)]
    own = fed_by(name, call, code) if name.isidentifier() else None
    if own is None or canonical(own) == name:
        return []
    kind: ChangeKind = "flag" if own.startswith("-") else "setting"
    named = PatchTarget(OWN_PROGRAM, kind, (own,), first.to, present=first.present, run=first.run)
    return [replace(named, own=own_option(own, report))]


def _told_fed(
    changes: Sequence[ProposedChange], option: str, language: Language
) -> tuple[ProposedChange, ...]:
    """Say of the first change which option of the job's own it is made by."""
    first, *others = changes
    why = words("changes.fed-by", language, option=option)
    return (first.model_copy(update={"why": f"{first.why} {why}".strip()}), *others)


def _own_edits(
    change: ProposedChange, code: Sequence[ConfigFile], files: Sequence[ConfigFile], report: CrashReport
) -> tuple[FileEdit, ...]:
    """Make an edit of code or of a launch script in the very file, which may hold what the report has not."""
    if change.by == "model":
        return _edited_statement(change, code) if change.from_ is not None else ()
    given = [file for file in files if file.exact]
    names = {file.name for file in given}
    # What other files of the job's say of it counts although they are not to be changed.
    others = [file for file in job_files(report) if file.name not in names]
    own = [JobFile(file.name, file.text) for file in given]
    exported = list(dict.fromkeys(name for file in given for name in _EXPORT.findall(file.text)))
    found = offered_edit(report, [*own, *others], exported)
    if found is None or found.file is None or found.place != change.key:
        return ()
    return tuple(FileEdit(file, found.text) for file in given if file.name == found.file.name)[:1]


def _edited_statement(change: ProposedChange, code: Sequence[ConfigFile]) -> tuple[FileEdit, ...]:
    """Give the edit of a statement in the file that the change's place names."""
    name, _, line = change.key.rpartition(":") if change.key[-1:].isdecimal() else (change.key, "", "0")
    for file in code:
        row = notebook.line_at(file.text, change.key) if file.notebook else 0
        line = str(row) if row else line
        if row or file.name.rpartition("/")[2] == name.rpartition("/")[2]:
            with contextlib.suppress(NotPatchableError):
                after = statements.replaced(file.text, int(line), change.from_ or "", str(change.to))
                return (FileEdit(file, after),)
    return ()


def _patch_targets(targets: Sequence[PatchTarget], files: Sequence[ConfigFile]) -> StepPatch:
    sources = [handed(files, followed(files, target)) for target in targets]
    made = patches.patch_files(files, sources) if targets else PatchedFiles()
    return StepPatch(made.edits, made.left_out, tuple(targets) if made.edits else ())


def _unmet(targets: Sequence[PatchTarget], files: Sequence[ConfigFile]) -> list[PatchTarget]:
    """Give the targets without the packages that a list of the job's has in a wanted release already."""
    return [target for target in targets if not any(is_met(file.name, file.text, target) for file in files)]


def patch_targets(
    changes: Sequence[ProposedChange], report: CrashReport, library: Library
) -> list[PatchTarget]:
    """Give what the job's files must say for the changes that can be written into one."""
    return [
        _target(change, report, library)
        for change in changes
        # Guidance in words is nothing to write, nor what was not checked.
        if (not is_guidance(change.to) or _says_all(change))
        and (
            change.status == "verified"
            or (change.by == "rules" and (change.kind == "package" or _says_all(change)))
            or (change.by == "rules" and change.kind == "command" and change.from_ is not None)
        )
    ]


def _is_gone(change: ProposedChange) -> bool:
    """Tell whether a variable is to be taken out of the environment: words that can be written."""
    return change.kind == "env" and is_unset(change.to)


def _says_all(change: ProposedChange) -> bool:
    """Tell whether a change can be written although its value is told in words: the key says what to do."""
    return (
        change.removes
        or _is_gone(change)
        or _keeps_value(change)
        or (
            change.kind == "command"
            and (limits.parted(change.key) is not None or launchers.is_launcher(change.key))
        )
    )


def _keeps_value(change: ProposedChange) -> bool:
    """Tell whether a key is renamed where it stands, and what it holds stays."""
    return change.replaces is not None and change.status == "verified" and is_guidance(change.to)


def _target(change: ProposedChange, report: CrashReport, library: Library) -> PatchTarget:
    version = report.version(change.framework)
    if change.kind == "command" and (limit := limits.parted(change.key)):
        return PatchTarget(change.framework, change.kind, limit[:1], limit[1])
    if change.kind == "command" and launchers.is_launcher(change.key):
        return PatchTarget(change.framework, change.kind, (change.key,), True)
    if change.kind == "command" and change.from_ is not None:
        return PatchTarget(change.framework, change.kind, (change.from_,), change.to, script_words.WORD)
    if change.removes:
        return _removal(change, report)
    spec = library.setting(change.framework, change.key, version)
    names = dict.fromkeys((change.key, *library.names(change.framework, change.key, version)))
    if change.replaces is not None:
        # A release that is not known may have the wrong name too.
        wrong = canonical(change.replaces)
        names = dict.fromkeys(name for name in names if name == change.key or canonical(name) != wrong)
    return PatchTarget(
        change.framework,
        change.kind,
        tuple(names),
        "unset" if _is_gone(change) else change.to,
        # An argument of the user's code may count in another unit than the setting.
        "command" if spec and spec.unit and spec.spelled == "directive" else spec.spelled if spec else "",
        change.replaces,
        spec.commands if spec else (),
        program=refusing_program(report) if change.replaces else "",
        present=change.from_ or "",
        own=own_option(change.key, report) if change.framework == "python" else "",
        run=_of_run(report),
        in_code=spec is not None and spec.in_code,
        refused_by=tuple(closed_scripts(names, report)),
        keeps=_keeps_value(change),
        argument=spec.argument if spec is not None else "",
        is_list=spec is not None and spec.type == "list",
        is_word_or_list=spec is not None and spec.type == "any",
    )


def _of_run(report: CrashReport) -> tuple[tuple[str, str], ...]:
    """Give the settings that the output shows, of several values the last one before the failure."""
    last = report.root.line if report.root is not None else 0
    told = sorted((item for item in report.settings if item.line <= last), key=lambda item: item.line)
    return tuple({canonical(item.key): item.value for item in told}.items())


def _removal(change: ProposedChange, report: CrashReport) -> PatchTarget:
    """Make the target of a key that is to go, with what the program's message calls its value."""
    wanted = canonical(change.key)
    told = [option.present for option in unknown_options(report) if canonical(option.key) == wanted]
    # What follows a key that the program knows is its value.
    value = told[0] if told else change.from_
    return PatchTarget(
        change.framework,
        change.kind,
        (change.key,),
        value or "",
        removes=True,
        program=refusing_program(report),
    )


def group_steps(changes: Sequence[ProposedChange]) -> list[list[ProposedChange]]:
    """Put changes that are one step together: what goes with another, and siblings of the same value."""
    found: list[list[ProposedChange]] = []
    for change in changes:
        home = next((step for step in found if _belongs(change, step[0])), None)
        if home is None:
            found.append([change])
        else:
            home.append(change)
    return found


def _belongs(change: ProposedChange, first: ProposedChange) -> bool:
    if change.goes_with is not None:
        return change.goes_with == first.key
    same = (change.framework, change.from_case, str(change.to)) == (
        first.framework,
        first.from_case,
        str(first.to),
    )
    parent = first.key.rpartition(".")[0]
    return same and bool(parent) and change.key.rpartition(".")[0] == parent
