"""The executors of batches: commands as tasks of a worker pool, on processes of this machine or on Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ingest import index
from ingest.errors import PoolLostError, SearchIndexError
from ingest.workers.messages import PoolEvent, TaskAnswered, TaskDied, TaskLate, TaskReturned
from ingest.workers.pool import Pool
from ingest.workers.process import WorkerProgram
from ingest.workers.processes import open_processes
from ingest.workers.ray_pool import RayPool
from service.batches import worker_program
from service.batches.commands import (
    JOB_MEMORY,
    AnswerCommand,
    DropCommand,
    JobCommand,
    JobReturned,
    JobWasAnswered,
    JobWasLost,
    JobWasRead,
    ReadCommand,
    StepFailed,
    StepResult,
)
from service.batches.executor import ExecutorLostError
from service.settings import Settings, without_secrets

# Jobs that one worker has: one in progress, one waiting for a decision, one ahead.
DEPTH = 3


def open_local(settings: Settings) -> PoolExecutor:
    """Open an executor of processes: as many as the settings say, else one for each core."""
    return PoolExecutor(
        lambda: open_processes(
            job_program(settings),
            settings.workers,
            "batch-worker",
            depth=DEPTH,
            first_alone=not _has_index(settings),
        )
    )


def open_ray(settings: Settings) -> PoolExecutor:
    """Open an executor on Ray; returns at once; its workers start in the background."""
    return PoolExecutor(
        lambda: RayPool(
            job_program(settings),
            settings.ray_address,
            settings.workers,
            depth=DEPTH,
            first_alone=not _has_index(settings),
        )
    )


def job_program(settings: Settings) -> WorkerProgram:
    """Give what the workers of a batch run."""
    return WorkerProgram(worker_program.open_job_worker, (without_secrets(settings),), JOB_MEMORY)


def _has_index(settings: Settings) -> bool:
    """Tell whether there is an index, which else the first worker makes."""
    try:
        return index.current(settings.home) is not None
    except SearchIndexError:
        return False


class PoolExecutor:
    """Hands the commands of an engine to a worker pool, a job being a key."""

    def __init__(self, open_pool: Callable[[], Pool]) -> None:
        with _translated():
            self.pool = open_pool()

    @property
    def capacity(self) -> int:
        """How many more commands the ready workers take."""
        return self.pool.capacity

    def submit(self, command: JobCommand) -> None:
        """Have a job read."""
        with _translated():
            self.pool.submit(command.id, ReadCommand(command), command.seconds, hold=True)

    def answer(self, job_id: str) -> None:
        """Have the worker that read a job answer it."""
        with _translated():
            self.pool.follow_up(job_id, AnswerCommand(job_id))

    def answer_by_rules(self, job_id: str) -> None:
        """Have the worker that read a job answer it without a model."""
        with _translated():
            self.pool.follow_up(job_id, AnswerCommand(job_id, by_rules=True))

    def drop(self, job_id: str) -> None:
        """Have the worker that read a job forget it."""
        with _translated():
            self.pool.release(job_id, DropCommand(job_id))

    def abandon(self, job_id: str) -> None:
        """Cancel a job; its worker is ended if a step on it takes long."""
        with _translated():
            self.pool.abandon(job_id, DropCommand(job_id))

    def outcomes(self, timeout: float) -> Sequence[StepResult]:
        """Wait for outcomes; replaces workers that died and ends those that are late."""
        with _translated():
            return [outcome for event in self.pool.events(timeout) for outcome in self._outcomes(event)]

    def close(self) -> None:
        """End all workers."""
        self.pool.close()

    def _outcomes(self, event: PoolEvent) -> Iterator[StepResult]:
        match event:
            case TaskAnswered(answer=JobWasRead() | JobWasAnswered() as outcome):
                yield outcome
            case TaskAnswered(answer=StepFailed() as outcome):
                # Its worker has forgotten it, whichever step it was.
                self.pool.release(event.key)
                yield outcome
            case TaskDied(reason=reason) if reason.ray:
                yield JobWasLost(event.key, f"The Ray worker that worked on it died ({reason.ray}).")
            case TaskDied(reason=reason) if reason.signal:
                said = f"The process that worked on it was ended by {reason.signal_name}."
                yield JobWasLost(event.key, said)
            case TaskDied(reason=reason):
                yield JobWasLost(event.key, f"The process that worked on it ended with code {reason.code}.")
            case TaskLate():
                yield JobWasLost(event.key, f"It took longer than {event.seconds:.0f} seconds and was ended.")
            case TaskReturned():
                yield JobReturned(event.key)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except PoolLostError as error:
        raise ExecutorLostError(str(error)) from error
