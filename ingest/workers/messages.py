"""What passes between a pool and its workers, and what a pool tells of its tasks."""

from __future__ import annotations

import signal
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """The first message of a worker: it has loaded what it needs; `wrong` says what it could not load."""

    wrong: str = ""


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """The last message about a task, with its answer where it has one."""

    answer: object = None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a worker is told without an answer."""

    content: object


@dataclass(frozen=True, slots=True)
class ExitReason:
    """How a worker ended: the number of a signal, a process's exit code, or Ray's name for it."""

    signal: int = 0
    code: int | None = None
    ray: str = ""

    def __str__(self) -> str:
        if self.ray:
            return self.ray
        return f"signal {self.signal}" if self.signal else f"exit code {self.code}"

    @property
    def signal_name(self) -> str:
        """The signal's name, such as SIGKILL; empty where it was none."""
        return signal.Signals(self.signal).name if self.signal else ""


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """A worker says something of the task that it works on."""

    key: str
    message: object


@dataclass(frozen=True, slots=True)
class TaskAnswered:
    """A task is over."""

    key: str
    answer: object


@dataclass(frozen=True, slots=True)
class TaskDied:
    """The worker died while it worked on this task."""

    key: str
    reason: ExitReason


@dataclass(frozen=True, slots=True)
class TaskLate:
    """The task took longer than its seconds, and was ended with its worker."""

    key: str
    seconds: float


@dataclass(frozen=True, slots=True)
class TaskReturned:
    """The worker is gone for a reason that is not this task's: the task is to be handed out again."""

    key: str


PoolEvent = TaskMessage | TaskAnswered | TaskDied | TaskLate | TaskReturned
