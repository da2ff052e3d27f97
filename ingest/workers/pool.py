"""A pool of workers: each does one task after the other within a deadline, and is replaced when it ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from ingest.errors import PoolLostError
from ingest.workers.backoff import Backoff
from ingest.workers.messages import (
    ExitReason,
    Notice,
    PoolEvent,
    TaskAnswered,
    TaskDied,
    TaskEnd,
    TaskLate,
    TaskMessage,
    TaskReturned,
    WorkerReady,
)

# Workers that die while they load, in a row, after which no further one is started.
MAX_STARTS = 5
# Seconds for a worker to load, the making of a first index included.
LOADING = 600.0
# A task that is no longer wanted is ended with its worker after this many seconds.
CANCEL_GRACE = 0.5


class Worker(Protocol):
    """One worker process; tasks are done in the order in which they are handed over."""

    @property
    def alive(self) -> bool:
        """Whether it runs, as far as is known without a wait."""

    def send(self, task: object) -> None:
        """Hand over a task without waiting; ignored by a worker that has ended.

        Raises what pickle does where the task cannot be sent to any process.
        """

    def kill(self) -> None:
        """End it at once."""

    def exit_reason(self) -> ExitReason:
        """Say how it died."""


class Backend(Protocol):
    """Starts workers and receives their messages."""

    def spawn(self) -> Worker:
        """Start a worker; its first message is WorkerReady. Raises OSError or PoolLostError."""

    def receive(self, workers: Sequence[Worker], timeout: float) -> Iterable[tuple[Worker, object]]:
        """Wait for messages; None from a worker that has ended. Raises PoolLostError."""

    def wake(self) -> None:
        """End the wait of `receive`; may be called from any thread."""

    def close(self) -> None:
        """Close what all workers share."""


class Pool(Protocol):
    """Works on tasks, each under a key. Its methods raise PoolLostError; for one thread."""

    @property
    def capacity(self) -> int:
        """How many more keys the ready workers take now, so that none waits for its next task."""

    def submit(self, key: str, task: object, seconds: float, *, hold: bool = False) -> None:
        """Hand a task over, of which each step may take `seconds`.

        With `hold` its worker keeps what it made of it under the key, for a task that follows, until the key
        is released.
        """

    def follow_up(self, key: str, task: object) -> None:
        """Hand the worker that holds the key its last task; ignored where none does."""

    def release(self, key: str, notice: object = None) -> None:
        """Let go of a held key; its worker is told the notice."""

    def abandon(self, key: str, notice: object = None) -> None:
        """Stop work on a key; no event follows, and its worker is ended where a step on it takes long."""

    def events(self, timeout: float) -> Sequence[PoolEvent]:
        """Wait at most `timeout` seconds for events; an empty sequence where there are none."""

    def close(self) -> None:
        """End all workers at once."""


@dataclass(frozen=True, slots=True)
class _QueuedTask:
    key: str
    seconds: float
    hold: bool


@dataclass
class WorkerState:
    """A worker with its `tasks` in their order, the start of the first one, and the keys that it holds.

    `held` has the seconds for each step of a key, `unwanted` the notices of keys that were abandoned while
    their tasks were queued, `wrong` what the worker could not load.
    """

    worker: Worker
    since: float
    ready: bool = False
    wrong: str = ""
    tasks: deque[_QueuedTask] = field(default_factory=deque)
    held: dict[str, float] = field(default_factory=dict)
    unwanted: dict[str, object] = field(default_factory=dict)

    @property
    def ends(self) -> float:
        """The moment at which the task that is being done is too late."""
        if not self.ready:
            return self.since + LOADING
        if not self.tasks:
            return float("inf")
        task = self.tasks[0]
        return self.since + (CANCEL_GRACE if task.key in self.unwanted else task.seconds)


class WorkerPool:
    """A pool over workers of one backend.

    Only the task that a worker was doing when it ended counts as its own; the others are returned.
    """

    def __init__(
        self,
        backend: Backend,
        size: int,
        *,
        depth: int = 1,
        first_alone: bool = False,
        renew_after: float | None = None,
    ) -> None:
        """Prepare; the workers are started by `events`.

        `depth` is how many keys one worker has, at work on and ahead. With `first_alone`, the first worker
        makes what the others then find, such as an index. `renew_after`: a worker that lacks something works
        on, and is replaced when it was idle for so many seconds, and starts are tried for ever; without it,
        PoolLostError is raised.
        """
        self._backend = backend
        self._size = size
        self._depth = depth
        self._first_alone = first_alone
        self._renew_after = renew_after
        self._states: list[WorkerState] = []
        self._pause = Backoff(0.2, 10.0)
        self._pending: list[PoolEvent] = []

    @property
    def capacity(self) -> int:
        """How many more keys the ready workers take."""
        return sum(max(0, self._depth - len(state.held)) for state in self._states if state.ready)

    @property
    def ready(self) -> int:
        """How many workers have loaded and take tasks."""
        return sum(state.ready for state in self._states)

    @property
    def wrong(self) -> str | None:
        """What the ready workers lack, empty where one lacks nothing; None where none is ready."""
        return min((state.wrong for state in self._states if state.ready), default=None)

    @property
    def failed_starts(self) -> int:
        """How many workers in a row died while they loaded."""
        return self._pause.failures

    @property
    def workers(self) -> Sequence[Worker]:
        """The workers at work."""
        return [state.worker for state in self._states]

    def submit(self, key: str, task: object, seconds: float, *, hold: bool = False) -> None:
        """Hand a task to the worker with the least to do."""
        while ready := [state for state in self._states if state.ready]:
            state = min(ready, key=lambda state: (bool(state.wrong), len(state.held)))
            if state.tasks or state.worker.alive:
                self._hand(state, task, _QueuedTask(key, seconds, hold))
                state.held[key] = seconds
                return
            # It died in its idle time, which no task caused.
            self._pending += self._ended(state, TaskReturned)
        self._pending.append(TaskReturned(key))

    def follow_up(self, key: str, task: object) -> None:
        """Hand the worker that holds the key its last task."""
        if state := self._holder(key):
            self._hand(state, task, _QueuedTask(key, state.held[key], hold=False))

    def release(self, key: str, notice: object = None) -> None:
        """Let go of a held key."""
        if state := self._holder(key):
            del state.held[key]
            _notify(state, notice)

    def abandon(self, key: str, notice: object = None) -> None:
        """Stop work on a key; its worker is ended if a step on it takes long."""
        if state := self._holder(key):
            del state.held[key]
            if any(task.key == key for task in state.tasks):
                state.unwanted[key] = notice
            else:
                _notify(state, notice)

    def events(self, timeout: float) -> Sequence[PoolEvent]:
        """Wait for events; replaces workers that died and ends those that are late."""
        alone = self._first_alone and not self.ready
        while self._pause.over and len(self._states) < (1 if alone else self._size):
            self._spawn()
        if not self._pending:
            nearest = min((state.ends for state in self._states), default=float("inf")) - monotonic()
            for worker, message in self._backend.receive(self.workers, max(0.0, min(timeout, nearest))):
                self._pending += self._received(worker, message)
        now = monotonic()
        for state in [state for state in self._states if state.ends <= now]:
            late = state.ends - state.since
            self._pending += self._ended(state, lambda key, at=late: TaskLate(key, at))  # type: ignore[misc]
        for state in [state for state in self._states if state.wrong and not state.held]:
            if self._renew_after is not None and now - state.since >= self._renew_after:
                # What was missing, such as a server that was down, may be there by now.
                self._remove(state)
        found, self._pending = self._pending, []
        return found

    def wake(self) -> None:
        """End the wait of `events`; may be called from any thread."""
        self._backend.wake()

    def close(self) -> None:
        """End all workers."""
        for state in self._states:
            state.worker.kill()
        self._states = []
        self._backend.close()

    def _spawn(self) -> None:
        try:
            self._states.append(WorkerState(self._backend.spawn(), monotonic()))
        except OSError as error:
            self._pause.begin()
            if self._renew_after is None:
                raise PoolLostError(f"No worker process can be started: {error}") from error

    def _hand(self, state: WorkerState, task: object, queued: _QueuedTask) -> None:
        state.worker.send(task)
        if not state.tasks:
            state.since = monotonic()
        state.tasks.append(queued)

    def _holder(self, key: str) -> WorkerState | None:
        return next((state for state in self._states if key in state.held), None)

    def _received(self, worker: Worker, message: object) -> Iterator[PoolEvent]:
        state = next((state for state in self._states if state.worker is worker), None)
        if state is None:
            return
        if message is None:
            reason = worker.exit_reason()
            yield from self._ended(state, lambda key: TaskDied(key, reason))
        elif isinstance(message, WorkerReady):
            self._started(state, message.wrong)
        elif isinstance(message, TaskEnd):
            yield from self._done(state, message.answer)
        elif state.tasks and state.tasks[0].key not in state.unwanted:
            yield TaskMessage(state.tasks[0].key, message)

    def _done(self, state: WorkerState, answer: object) -> Iterator[PoolEvent]:
        task = state.tasks.popleft()
        state.since = monotonic()
        if task.key in state.unwanted:
            _notify(state, state.unwanted.pop(task.key))
            return
        if not task.hold:
            state.held.pop(task.key, None)
        yield TaskAnswered(task.key, answer)

    def _started(self, state: WorkerState, wrong: str) -> None:
        if wrong and self._renew_after is None:
            # It would be the same for each of them.
            raise PoolLostError(f"No worker can work: {wrong}")
        state.ready = True
        state.wrong = wrong
        state.since = monotonic()
        self._first_alone = False
        self._pause.end()

    def _ended(self, state: WorkerState, tell: Callable[[str], PoolEvent]) -> Iterator[PoolEvent]:
        """Remove a worker; `tell` makes the event of the task that it worked on, the others are returned."""
        self._remove(state)
        if not state.ready:
            self._pause.begin()
            if self._renew_after is None and self._pause.failures >= MAX_STARTS:
                raise PoolLostError(f"No worker can be started: {state.worker.exit_reason()}")
        current = state.tasks[0].key if state.tasks else None
        for key in state.held:
            yield tell(key) if key == current else TaskReturned(key)

    def _remove(self, state: WorkerState) -> None:
        self._states.remove(state)
        state.worker.kill()


def _notify(state: WorkerState, notice: object) -> None:
    if notice is not None:
        state.worker.send(Notice(notice))
