"""How a first change is made on this machine: in the job's files, in its command, or around it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ingest.configfiles.shell.spelling import is_unset
from service.llm.triage_context import TriageContext
from service.patching.diagnosis_patch import group_steps
from service.patching.patches import FileEdit
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import ProposedChange

from .jobs import LoopJob

Way = Literal["patch", "suggestion", "command", "environment", "package"]

# Where a package that a change asks for is put inside the sandbox, and the exit status where there is none.
_SITE = "/home/user/site"
INSTALL_FAILED = 90
# Commands that change nothing but the shell they are given to: the only ones that are run.
_OF_THE_SHELL = re.compile(r"ulimit(?: -\w+(?: \w+)?)+")


@dataclass(frozen=True)
class Trial:
    """A change as it is tried: the files it writes, and the command that then starts the job."""

    way: Way
    launch: str
    edits: tuple[FileEdit, ...] = ()


class NotTriedError(Exception):
    """The first change is not one that runs here; `ending` says whether the answer falls short by that."""

    def __init__(self, ending: Literal["no change", "in words", "not tried"], why: str) -> None:
        super().__init__(why)
        self.ending = ending


def first_step(changes: Sequence[ProposedChange]) -> list[ProposedChange]:
    """Give the change that stands first with those that go with it; none where it only helps to find out."""
    step = next(iter(group_steps(changes)), [])
    return step if step and step[0].purpose == "cure" else []


def trial_of(job: LoopJob, context: TriageContext) -> Trial:
    """Choose how the first change is made: as `--apply` does, else by the command given, else around the job.

    Raises NotTriedError where there is none, where it says in words what a person is to work out, or where it
    is a command that acts on the machine.
    """
    answer = context.first
    step = first_step(answer.changes)
    if not step:
        if acts := [item.run for item in answer.steps if item.acts]:
            raise NotTriedError("not tried", "; ".join(acts))
        raise NotTriedError("no change", answer.headline)
    if edits := context.edits_of(answer):
        return Trial("patch" if answer.patch else "suggestion", job.launch, edits)
    if answer.command:
        return Trial("command", answer.command)
    if all(change.kind == "env" and (is_unset(change.to) or not is_guidance(change.to)) for change in step):
        return Trial("environment", "\n".join((*map(_exported, step), job.launch)))
    if all(change.kind == "package" for change in step):
        # Installed beside the environment, which stays as it is.
        wanted = " ".join(shlex.quote(_requirement(change)) for change in step)
        pip = f"python -m pip install --quiet --target {_SITE} {wanted} || exit {INSTALL_FAILED}"
        return Trial("package", f"{pip}\nexport PYTHONPATH={_SITE}\n{job.launch}")
    if all(_OF_THE_SHELL.fullmatch(change.key) for change in step):
        return Trial("environment", "\n".join((*(change.key for change in step), job.launch)))
    if step[0].kind == "command":
        raise NotTriedError("not tried", "a command that acts on the machine")
    raise NotTriedError("in words", "no value that a file, the command or the environment can hold")


def _exported(change: ProposedChange) -> str:
    if is_unset(change.to):
        return f"unset {change.key}"
    value = str(int(change.to) if isinstance(change.to, bool) else change.to)
    return f"export {change.key}={shlex.quote(value)}"


def _requirement(change: ProposedChange) -> str:
    version = str(change.to)
    if not version or is_guidance(change.to) or not any(sign.isdigit() for sign in version):
        return change.key
    return f"{change.key}{version}" if version[0] in "<>=!~" else f"{change.key}=={version}"
