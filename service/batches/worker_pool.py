"""A pool of workers: each does one step after the other within a deadline, and is replaced when it ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from service.batches.backoff import Backoff
from service.batches.commands import (
    AnswerCommand,
    DropCommand,
    JobCommand,
    JobReturned,
    JobWasLost,
    JobWasRead,
    Outcome,
    ReadCommand,
    Step,
)
from service.batches.executor import ExecutorLostError
from service.workers.tasks import WorkerReady

# Jobs that one worker holds: one in progress, one waiting for a decision, one ahead.
DEPTH = 3
# Workers that die while they load, in a row, after which no further one is started.
MAX_STARTS = 5
# Seconds for a worker to load, the making of a first index included.
LOADING = 600.0
# A cancelled job is ended with its worker after this many seconds.
PATIENCE = 0.5

Reply = Outcome | WorkerReady


class Worker(Protocol):
    """One worker process; steps are done in the order in which they are handed over."""

    def send(self, step: Step) -> None:
        """Hand over a step without waiting; ignored by a worker that has ended."""

    def kill(self) -> None:
        """End it at once."""

    def exit_reason(self) -> str:
        """Say how it died."""


class WorkerSpawner(Protocol):
    """Starts workers and receives their replies."""

    def spawn(self) -> Worker:
        """Start one; its first reply is WorkerReady. Raises ExecutorLostError."""

    def receive(self, workers: Sequence[Worker], timeout: float) -> Iterable[tuple[Worker, Reply | None]]:
        """Wait for replies; None from a worker that has ended. Raises ExecutorLostError."""

    def close(self) -> None:
        """Close what all workers share."""


@dataclass
class WorkerState:
    """A worker with its `steps` in their order, the start of the first one, and the jobs that it holds.

    `unwanted` are jobs that were abandoned while their steps were queued.
    """

    worker: Worker
    since: float
    ready: bool = False
    steps: deque[ReadCommand | AnswerCommand] = field(default_factory=deque)
    held: dict[str, float] = field(default_factory=dict)
    unwanted: set[str] = field(default_factory=set)

    @property
    def at_work_on(self) -> str | None:
        """The job of the step that is being done."""
        return _job(self.steps[0]) if self.steps else None

    @property
    def ends(self) -> float:
        """The moment at which the step that is being done is too late."""
        if not self.ready:
            return self.since + LOADING
        if not self.steps:
            return float("inf")
        step = self.steps[0]
        if _job(step) in self.unwanted:
            return self.since + PATIENCE
        return self.since + (step.command.seconds if isinstance(step, ReadCommand) else step.seconds)


class WorkerPool:
    """An executor over workers of one kind.

    Only the job that a worker was doing when it ended counts as lost.
    """

    def __init__(self, spawner: WorkerSpawner, size: int, *, first_alone: bool = False) -> None:
        self._spawner = spawner
        self._size = size
        # The first worker makes what the others then find, such as an index.
        self._first_alone = first_alone
        self._states: list[WorkerState] = []
        self._pause = Backoff(0.2, 10.0)
        self._told: list[Outcome] = []

    @property
    def capacity(self) -> int:
        """How many more commands the ready workers take."""
        return sum(max(0, DEPTH - len(state.held)) for state in self._states if state.ready)

    @property
    def ready(self) -> int:
        """How many workers have loaded and take commands."""
        return sum(state.ready for state in self._states)

    @property
    def workers(self) -> Sequence[Worker]:
        """The workers at work."""
        return [state.worker for state in self._states]

    def submit(self, command: JobCommand) -> None:
        """Hand a command to the worker with the least to do."""
        ready = [state for state in self._states if state.ready]
        if not ready:
            self._told.append(JobReturned(command.id))
            return
        state = min(ready, key=lambda state: len(state.held))
        state.held[command.id] = command.seconds
        self._hand(state, ReadCommand(command))

    def answer(self, job_id: str) -> None:
        """Have the worker that read a job answer it."""
        self._answer(job_id, by_rules=False)

    def answer_by_rules(self, job_id: str) -> None:
        """Have the worker that read a job answer it without a model."""
        self._answer(job_id, by_rules=True)

    def drop(self, job_id: str) -> None:
        """Have the worker that read a job forget it."""
        if state := self._holder(job_id):
            del state.held[job_id]
            state.worker.send(DropCommand(job_id))

    def abandon(self, job_id: str) -> None:
        """Cancel a job; its worker is ended if a step on it takes long."""
        if state := self._holder(job_id):
            del state.held[job_id]
            if any(_job(step) == job_id for step in state.steps):
                state.unwanted.add(job_id)
            else:
                state.worker.send(DropCommand(job_id))

    def outcomes(self, timeout: float) -> Sequence[Outcome]:
        """Wait for outcomes; replaces workers that died and ends those that are late."""
        alone = self._first_alone and not any(state.ready for state in self._states)
        while self._pause.over and len(self._states) < (1 if alone else self._size):
            self._states.append(WorkerState(self._spawner.spawn(), monotonic()))
        if not self._told:
            nearest = min((state.ends for state in self._states), default=float("inf")) - monotonic()
            for worker, reply in self._spawner.receive(self.workers, max(0.0, min(timeout, nearest))):
                self._told += self._replied(worker, reply)
        now = monotonic()
        for state in [state for state in self._states if state.ends <= now]:
            self._told += self._ended(
                state, f"It took longer than {state.ends - state.since:.0f} seconds and was ended."
            )
        told, self._told = self._told, []
        return told

    def close(self) -> None:
        """End all workers."""
        for state in self._states:
            state.worker.kill()
        self._states = []
        self._spawner.close()

    def _answer(self, job_id: str, *, by_rules: bool) -> None:
        if state := self._holder(job_id):
            self._hand(state, AnswerCommand(job_id, state.held[job_id], by_rules))

    def _hand(self, state: WorkerState, step: ReadCommand | AnswerCommand) -> None:
        if not state.steps:
            state.since = monotonic()
        state.steps.append(step)
        state.worker.send(step)

    def _holder(self, job_id: str) -> WorkerState | None:
        return next((state for state in self._states if job_id in state.held), None)

    def _replied(self, worker: Worker, reply: Reply | None) -> Iterator[Outcome]:
        state = next((state for state in self._states if state.worker is worker), None)
        if state is None:
            return
        if reply is None:
            yield from self._ended(state, worker.exit_reason())
        elif isinstance(reply, WorkerReady):
            self._started(state, reply.wrong)
        else:
            yield from self._done(state, reply)

    def _done(self, state: WorkerState, outcome: Outcome) -> Iterator[Outcome]:
        state.steps.popleft()
        state.since = monotonic()
        if outcome.id in state.unwanted:
            state.unwanted.discard(outcome.id)
            state.worker.send(DropCommand(outcome.id))
            return
        if not isinstance(outcome, JobWasRead):
            state.held.pop(outcome.id, None)
        yield outcome

    def _started(self, state: WorkerState, wrong: str) -> None:
        if wrong:
            # It would be the same for each of them.
            raise ExecutorLostError(f"No worker can work: {wrong}")
        state.ready = True
        self._first_alone = False
        self._pause.end()

    def _ended(self, state: WorkerState, why: str | None) -> Iterator[Outcome]:
        """End a worker; the job that it worked on is lost where there is a reason, the others come back."""
        self._states.remove(state)
        state.worker.kill()
        if not state.ready:
            self._pause.begin()
            if self._pause.failures >= MAX_STARTS:
                raise ExecutorLostError(f"No worker can be started: {why}")
        current = state.at_work_on
        for job_id in state.held:
            yield JobWasLost(job_id, why) if why and job_id == current else JobReturned(job_id)


def _job(step: Step) -> str:
    return step.command.id if isinstance(step, ReadCommand) else step.id
