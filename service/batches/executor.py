"""What runs the commands of an engine: processes of this machine, or actors of a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from service.batches.commands import JobCommand, StepResult
from service.schemas.errors import ServiceError


class ExecutorLostError(ServiceError):
    """The workers of a batch cannot be started or reached; all that they had is to be handed out again."""


class Executor(Protocol):
    """Works on commands and tells what comes of each.

    Its methods raise ExecutorLostError; not to be shared between threads.
    """

    @property
    def capacity(self) -> int:
        """How many more commands it takes now, so that no worker waits for the next one."""

    def submit(self, command: JobCommand) -> None:
        """Have a job read; its outcome is a WasRead at best."""

    def answer(self, job_id: str) -> None:
        """Have a job that was read answered."""

    def answer_by_rules(self, job_id: str) -> None:
        """Have a job that was read answered without a model, which another job of the same crash asks."""

    def drop(self, job_id: str) -> None:
        """Have a job that was read forgotten."""

    def abandon(self, job_id: str) -> None:
        """Stop work on a job that is no longer wanted; further outcomes of it are ignored."""

    def outcomes(self, timeout: float) -> Sequence[StepResult]:
        """Wait at most `timeout` seconds for outcomes; an empty sequence where there are none."""

    def close(self) -> None:
        """End all workers at once."""
