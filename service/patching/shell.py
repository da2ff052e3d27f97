"""Change launch scripts and commands: the smallest edit of the text; nothing is executed.

The text is read as bash reads it. A value is changed where it stands; one that the script computes, or that
several settings share, is left alone, and the error says where and why.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from corpus.frameworks import known_frameworks
from corpus.keys import unsigned
from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.directives import options
from ingest.configfiles.shell.document import applied
from ingest.configfiles.shell.inner import in_script, inner_scripts
from ingest.configfiles.shell.launches import SCRIPT, stages
from ingest.configfiles.shell.spelling import is_unset
from ingest.configfiles.shell.syntax import Script, parse
from ingest.configfiles.shell.words import WordEdit
from service.patching import (
    directives,
    environment,
    installs,
    launchers,
    limits,
    overrides,
    removal,
    renaming,
    runtime_environment,
    script_words,
)
from service.patching.target import PatchTarget

# Settings that a script can only hand to another file.
_ELSEWHERE = {
    "json": "patch.part-json-file-script",
    "python": "patch.set-program-own-code",
    "package": "patch.packages-not-installed-settings",
}


_PROSE = re.compile(r"[A-Za-z][A-Za-z'-]*,?(?:\s+[\w.,:;()'/-]+){2,}")


class EditMethod(NamedTuple):
    """How a kind of setting is found, changed and read back."""

    stands: Callable[[Script, PatchTarget], bool]
    edits: Callable[[Script, PatchTarget], list[WordEdit]]
    hold: Callable[[Script, PatchTarget], bool]


def apply(text: str, target: PatchTarget) -> str:
    """Give the script with the value; the same text where it says so already.

    Raises NotPatchableError where that cannot be done safely.
    """
    if not is_unset(target.to) and not target.removes:
        _refuse_prose(target)
    rows = text.replace("\r\n", "\n")
    if target.replaces is not None:
        text = applied(text, renaming.in_script(parse(rows), target))
        rows, target = text.replace("\r\n", "\n"), replace(target, replaces=None)
    return applied(text, _edits(parse(rows), target, _way(target)))


def _refuse_prose(target: PatchTarget) -> None:
    """Raise NotPatchableError where the value only describes what to write."""
    to = target.to
    if not isinstance(to, str):
        return
    if _PROSE.fullmatch(to):
        raise NotPatchableError(Message("patch.value-described-not-given"))
    if "$" in to and not environment.extends_itself(target):
        raise NotPatchableError(Message("patch.value-depends-machine-write", to=to))
    if "\n" in to or "\0" in to:
        raise NotPatchableError(Message("patch.value-more-line"))


def holds(text: str, target: PatchTarget) -> bool:
    """Tell whether the value stands where the framework reads it."""
    try:
        script, way = parse(text.replace("\r\n", "\n")), _way(target)
        if renaming.is_sign(target):
            return renaming.has_sign(script, target)
        if target.replaces is not None and overrides.places(script, renaming.former_names(target)):
            return False
        if way.hold(script, target):
            return True
        return not way.stands(script, target) and any(
            holds(each.text, target) for each in inner_scripts(script)
        )
    except NotPatchableError:
        return False


def carries(text: str, target: PatchTarget) -> bool:
    """Tell whether the script installs the target's package, in whatever version."""
    try:
        return target.kind == "package" and bool(installs.places(parse(text.replace("\r\n", "\n")), target))
    except NotPatchableError:
        return False


def _edits(script: Script, target: PatchTarget, way: EditMethod) -> list[WordEdit]:
    """Change the script, or the one that a command of it is given (`bash -c '...'`), if only one says it."""
    inner = inner_scripts(script)
    holding = []
    for each in inner:
        with contextlib.suppress(NotPatchableError):
            if way.stands(parse(each.text), target):
                holding.append(each)
    if len(holding) + way.stands(script, target) > 1:
        lines = ", ".join(str(each.line) for each in holding)
        raise NotPatchableError(Message("patch.several-scripts-set-line", lines=lines))
    if holding:
        return [in_script(holding[0], apply(holding[0].text, target))]
    try:
        return way.edits(script, target)
    except NotPatchableError:
        if len(inner) != 1 or way.stands(script, target):
            raise
        return [in_script(inner[0], apply(inner[0].text, target))]


def _way(target: PatchTarget) -> EditMethod:
    apart = (
        (target.spelled == script_words.WORD, script_words),
        (limits.is_limit(target), limits),
        (runtime_environment.is_part(target), runtime_environment),
    )
    if own := next((module for is_own, module in apart if is_own), None):
        return EditMethod(lambda script, it: bool(own.places(script, it)), own.edits, own.hold)
    if target.removes:
        return EditMethod(removal.is_set_in, removal.remove_from_script, removal.is_gone)
    if target.kind == "package" and (
        not target.framework or known_frameworks().row(target.framework).installs
    ):
        return EditMethod(lambda script, it: bool(installs.places(script, it)), installs.edits, installs.hold)
    if target.call_argument[0]:
        return EditMethod(
            lambda script, it: bool(overrides.places(script, _option(it))),
            _edits_of_option,
            lambda script, it: overrides.hold(script, _option(it)),
        )
    if target.kind == "package" or target.spelled in _ELSEWHERE:
        raise NotPatchableError(Message(_ELSEWHERE.get(target.spelled, _ELSEWHERE["package"])))
    if target.kind == "env" or target.spelled == "env":
        return EditMethod(
            lambda script, it: bool(environment.places(script, it)), environment.edits, environment.hold
        )
    if known_frameworks().row(target.framework).directives:
        return EditMethod(
            lambda script, it: bool(
                overrides.places(script, directives.with_short(it)) or directives.found(script.text, it)
            ),
            _slurm_edits,
            _slurm_hold,
        )
    if target.kind == "command" and launchers.is_launcher(target.names[0]):
        return EditMethod(launchers.hold, launchers.edits, launchers.hold)
    if target.kind == "command" or target.spelled in ("command", "directive"):
        raise NotPatchableError(Message("patch.command-own-run-hand"))
    return EditMethod(lambda script, it: bool(overrides.places(script, it)), overrides.edits, overrides.hold)


def _option(target: PatchTarget) -> PatchTarget:
    """Give the option by which a user's own program may take an argument of a call: `--num_workers`."""
    return replace(target, framework=SCRIPT, names=(target.call_argument[1],), spelled="flag")


def _edits_of_option(script: Script, target: PatchTarget) -> list[WordEdit]:
    """Change the option where the program has it; whether it would take another one is not known."""
    if not overrides.places(script, _option(target)):
        raise NotPatchableError(Message(_ELSEWHERE["python"]))
    return overrides.edits(script, _option(target))


def _slurm_edits(script: Script, target: PatchTarget) -> list[WordEdit]:
    """Change the directive, or the option of srun or sbatch; both together are left alone."""
    by_command = overrides.places(script, directives.with_short(target))
    if by_command and directives.found(script.text, target):
        if _slurm_hold(script, target):
            return []
        raise NotPatchableError(Message("patch.directive-command-line-both", line=by_command[0].line))
    if (
        by_command
        or any(unsigned(name) in directives.STEP_ONLY for name in target.names)
        or not options(script.text)
    ):
        if not by_command and not _is_taken(script, target):
            raise NotPatchableError(
                Message("patch.no-command-script-takes", commands=", ".join(target.commands))
            )
        return overrides.edits(script, directives.with_short(target))
    return directives.edits(script.text, target)


def _slurm_hold(script: Script, target: PatchTarget) -> bool:
    by_command = overrides.places(script, directives.with_short(target))
    if by_command and not overrides.hold(script, directives.with_short(target)):
        return False
    if directives.found(script.text, target) or not by_command:
        return directives.hold(script.text, target)
    return True


def _is_taken(script: Script, target: PatchTarget) -> bool:
    """Tell whether a program of the scheduler takes the option: `srun` knows others than `sbatch`."""
    names = {
        stage.words[0].text.rsplit("/", 1)[-1]
        for stage in stages(script)
        if stage.owner == target.framework and stage.words
    }
    return not target.commands or not names or bool(names & set(target.commands))
