"""Change the `#SBATCH` lines of a Slurm script."""

from __future__ import annotations

import shlex
from dataclasses import replace

from corpus.keys import unsigned
from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.directives import SHORT, DirectiveOption, options
from ingest.configfiles.shell.spelling import same, spelled
from ingest.configfiles.shell.words import WordEdit
from service.patching.target import PatchTarget

# Options of srun that sbatch refuses.
STEP_ONLY = frozenset({"kill-on-bad-exit", "label", "mpi", "multi-prog", "unbuffered", "cpu-bind"})
# Slurm takes one of each group; beside another one an addition would be refused or ignored.
_GROUPS = [{"mem", "mem-per-cpu", "mem-per-gpu"}, {"gres", "gpus-per-node", "gpus"}]
_OPPOSITES = {"requeue": "no-requeue", "no-requeue": "requeue"}


def with_short(target: PatchTarget) -> PatchTarget:
    """Add the one-letter names, which srun takes as well."""
    short = tuple(
        letter for letter, name in SHORT.items() if name in _long(target) and letter not in target.names
    )
    return replace(target, names=target.names + short)


def _long(target: PatchTarget) -> set[str]:
    return {SHORT.get(name, unsigned(name)) for name in target.names}


def found(text: str, target: PatchTarget) -> list[DirectiveOption]:
    """Give the directives that set the option."""
    return [option for option in options(text) if option.name in _long(target)]


def hold(text: str, target: PatchTarget) -> bool:
    """Tell whether Slurm reads the value."""
    named = found(text, target)
    if isinstance(target.to, bool) and (not named or named[-1].value is None):
        return bool(named) is target.to and not (target.to and _opposite(text, target))
    return bool(named) and named[-1].value is not None and same(named[-1].value.text, target.to)


def _opposite(text: str, target: PatchTarget) -> list[DirectiveOption]:
    names = {_OPPOSITES.get(name) for name in _long(target)}
    return [option for option in options(text) if option.name in names]


def edits(text: str, target: PatchTarget) -> list[WordEdit]:
    """Give the edits that set the option; none where it stands already."""
    if hold(text, target):
        return []
    if isinstance(target.to, bool):
        return _switched(text, target)
    named = found(text, target)
    if not named:
        return [_added(text, target, f"--{sorted(_long(target))[0]}={shlex.quote(spelled(target.to, ''))}")]
    alike = {option.value.text if option.value else None for option in named}
    changed = []
    for option in named if len(alike) == 1 else named[-1:]:
        if option.value is None:
            raise NotPatchableError(Message("patch.line-stands-without-value", line=option.word.line))
        changed.append(option.value.replaced(spelled(target.to, option.value.text)))
    return changed


def _switched(text: str, target: PatchTarget) -> list[WordEdit]:
    named, opposite = found(text, target), _opposite(text, target)
    if target.to and opposite:
        return [option.word.replaced(f"--{_OPPOSITES[option.name]}") for option in opposite]
    if target.to:
        return [_added(text, target, f"--{sorted(_long(target))[0]}")]
    return [_without(text, option) for option in named]


def removals(text: str, target: PatchTarget) -> list[WordEdit]:
    """Give the edits that take the option out of the directives."""
    return [_without(text, option) for option in found(text, target)]


def _without(text: str, option: DirectiveOption) -> WordEdit:
    """Take an option out, and its line with it where nothing else stands there."""
    start, end = option.line
    last = option.value.end if option.value is not None else option.word.end
    if not (text[start + len("#SBATCH") : option.word.start] + text[last:end]).strip():
        return WordEdit(start, min(end + 1, len(text)), "")
    return WordEdit(option.word.start, len(text) - len(text[last:].lstrip(" \t")), "")


def _added(text: str, target: PatchTarget, option: str) -> WordEdit:
    """Add a directive behind the last one."""
    present = options(text)
    if not present:
        raise NotPatchableError(Message("patch.script-no-sbatch-line"))
    for group in _GROUPS:
        other = [each for each in present if each.name in group - _long(target)]
        if group & _long(target) and other:
            raise NotPatchableError(
                Message("patch.line-stands-excludes", line=other[0].word.line, name=other[0].name)
            )
    end = present[-1].line[1]
    return WordEdit(end, end, f"\n#SBATCH {option}")
