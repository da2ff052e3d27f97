"""The server's worker pool: a bounded queue, a deadline for each task, and its messages as they come.

One thread runs the pool of processes; the messages of a task that are to be kept are kept by a thread of
their own, so that a slow database holds up only its own task.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from multiprocessing.connection import Connection
from time import monotonic
from typing import cast

from corpus.message import Message
from ingest.workers.messages import PoolEvent, TaskAnswered, TaskDied, TaskLate, TaskMessage, TaskReturned
from ingest.workers.pool import WorkerPool
from ingest.workers.processes import LocalWorker, ProcessBackend
from service.schemas.errors import (
    AbandonedError,
    BusyError,
    LateError,
    NoWorkerError,
    StoppingError,
    WorkerLostError,
)
from service.schemas.events import Event
from service.schemas.failures import failing_frame, failure_of
from service.settings import Settings, without_secrets
from service.signals import tracing
from service.workers import worker_program
from service.workers.queue import TaskQueue
from service.workers.tasks import PromptShown, RetoldDiagnosis, SearchHits, Submission, Task, TriageMaterial

_LOG = logging.getLogger("whycrash.workers")
# Seconds until another process is tried where one could not load all that it needs.
AGAIN = 30.0
# Seconds that a triage is taken for before any was measured.
FIRST_GUESS = 0.1
# Seconds that closing waits for the messages that are still being kept.
CLOSING = 10.0
# Seconds after which the pool is looked after where nothing happens.
TURN = 1.0
# Seconds before the next turn after one that failed.
AFTER_ERROR = 0.1
STOPPING = "errors.server-stopping-hand-again"
FORSAKEN = "errors.whoever-handed-left-before"

WorkerMessage = Event | TriageMaterial | PromptShown | RetoldDiagnosis | SearchHits
Keep = Callable[[WorkerMessage], None]


class TaskHandle:
    """A task in the pool: an iterator over its messages, in whatever thread.

    Work that was begun continues without a listener.
    """

    def __init__(
        self, task: Task, seconds: float, keep: Keep | None, over: Callable[[TaskHandle], None]
    ) -> None:
        """Prepare; `over` is called when all messages are kept, before the listener hears the end."""
        # The caller's span, noted here: the thread that hands the task over is in none.
        parent = tracing.current()
        self.task = replace(task, parent=parent) if parent else task
        self.begun: float | None = None
        self.is_over = False
        self._ends = monotonic() + seconds
        self._seconds = seconds
        self._over = over
        self._messages: queue.SimpleQueue[WorkerMessage | None] = queue.SimpleQueue()
        self._to_keep: queue.SimpleQueue[WorkerMessage | None] = queue.SimpleQueue()
        self.keeper: threading.Thread | None = None
        if keep:
            self.keeper = threading.Thread(target=self._kept, args=(keep,), name="task-keeper", daemon=True)
            self.keeper.start()

    @property
    def abandon(self) -> float:
        """The seconds until the deadline."""
        return max(0.0, self._ends - monotonic())

    def put(self, message: WorkerMessage) -> None:
        """Pass on a message; what is to be kept is kept first."""
        (self._to_keep if self.keeper else self._messages).put(message)

    def fail(self, error: Exception) -> None:
        """Pass on that there is no answer, and that no message follows."""
        self.put(failure_of(error))
        self.end()

    def late(self) -> None:
        """Answer that the task took too long."""
        self.fail(LateError(Message("errors.took-longer-seconds-ended", seconds=f"{self._seconds:g}")))

    def stop(self) -> None:
        """Answer that the server stops."""
        self.fail(StoppingError(Message(STOPPING), 5.0))

    def end(self) -> None:
        """Say that no message follows."""
        if self.keeper:
            self._to_keep.put(None)
        else:
            self._over(self)
            self._messages.put(None)

    def __iter__(self) -> Iterator[WorkerMessage]:
        while (message := self._messages.get()) is not None:
            yield message

    def _kept(self, keep: Keep) -> None:
        while (message := self._to_keep.get()) is not None:
            try:
                keep(message)
            except Exception as error:  # noqa: BLE001 - an answer that cannot be kept is still given
                _LOG.error("an answer could not be kept: %s", failing_frame(error))
            self._messages.put(message)
        self._over(self)
        self._messages.put(None)


class ProcessPool:
    """Runs tasks in processes of their own; its methods may be called from any thread."""

    def __init__(
        self,
        settings: Settings,
        size: int | None = None,
        serve: Callable[[Connection, Settings], None] = worker_program.serve,
    ) -> None:
        self.size = size or settings.workers or os.cpu_count() or 1
        self.queue_size = settings.queue
        self._line: TaskQueue[TaskHandle] = TaskQueue()
        self._lock = threading.Lock()
        self._open = 0
        self._usual = FIRST_GUESS
        # No daemons: those may have no children, and NVML is read in one.
        backend = ProcessBackend(serve, (without_secrets(settings),), "worker", daemon=False)
        self._pool = WorkerPool(backend, self.size, renew_after=AGAIN)
        self._dispatcher: _Dispatcher | None = None
        self._closed = False

    def start(self) -> None:
        """Start the processes; returns at once, tasks wait until one is loaded."""
        self._dispatcher = _Dispatcher(self._pool, self._line)
        self._dispatcher.start()

    def close(self) -> None:
        """End all processes; tasks that wait are answered that the server stops."""
        with self._lock:
            self._closed = True
        waiting = self._line.close()
        for handle in waiting:
            handle.stop()
        ends = monotonic() + CLOSING
        begun = self._dispatcher.stop() if self._dispatcher else ()
        for handle in (*waiting, *begun):
            if handle.keeper:
                handle.keeper.join(max(0.0, ends - monotonic()))

    @property
    def waiting(self) -> int:
        """How many tasks are worked on or wait."""
        return self._open

    @property
    def failure(self) -> str:
        """What keeps the pool from answering, or the empty text."""
        return self._dispatcher.failure if self._dispatcher else Message("errors.workers-not-started")

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [process.pid for process in self._pool.workers if isinstance(process, LocalWorker)]

    def submit(self, task: Task, seconds: float, keep: Keep | None = None) -> TaskHandle:
        """Queue a task; `keep` is called with each message before the listener gets it. Raises BusyError."""
        with self._lock:
            self.check_capacity()
            handle = TaskHandle(task, seconds, keep, self._over)
            self._open += 1
            # Within the lock: what is queued before the pool closes is answered by it.
            self._line.push(handle)
        self._pool.wake()
        return handle

    def withdraw(self, triage_id: str) -> None:
        """Remove a triage whose client left from the queue, and say so in its record.

        One that was begun goes on to its end.
        """
        handle = self._line.discard(
            lambda handle: isinstance(handle.task, Submission) and handle.task.id == triage_id
        )
        if handle is not None:
            self._over(handle)  # another may have its place at once
            handle.fail(AbandonedError(Message(FORSAKEN)))

    def check_capacity(self) -> None:
        """Raise BusyError where one more task would be too many, StoppingError where the pool is closed."""
        if self._closed:
            raise StoppingError(Message(STOPPING), 5.0)
        if self._open >= self.size + self.queue_size:
            wait = max(1.0, self._usual * self._open / self.size)
            raise BusyError(
                Message("errors.triages-way-try-again", open=self._open, wait=f"{wait:.0f}"), wait
            )

    def _over(self, handle: TaskHandle) -> None:
        """Note, once, that a task is over; one that was never begun says nothing of how long tasks take."""
        with self._lock:
            if handle.is_over:
                return
            handle.is_over = True
            self._open -= 1
            if handle.begun is not None:
                self._usual += 0.1 * (monotonic() - handle.begun - self._usual)


class _Dispatcher(threading.Thread):
    """Hands waiting tasks to the workers, and passes on what they answer."""

    def __init__(self, pool: WorkerPool, line: TaskQueue[TaskHandle]) -> None:
        super().__init__(name="worker-pool", daemon=True)
        self._pool = pool
        self._line = line
        self._stopping = threading.Event()
        self._begun: dict[str, TaskHandle] = {}
        # Begun by a worker that turned out to be dead.
        self._again: deque[TaskHandle] = deque()
        self._keys = map(str, count())
        self.failure: str = Message("errors.workers-still-loading")

    def run(self) -> None:
        """Work until stopped."""
        try:
            while not self._stopping.is_set():
                try:
                    self._turn()
                except Exception as error:  # noqa: BLE001 - one message must not end the work on all tasks
                    _LOG.error("the worker pool: %s", failing_frame(error))
                    # What fails at each turn would fill the log.
                    self._stopping.wait(AFTER_ERROR)
        finally:
            self._pool.close()

    def stop(self) -> list[TaskHandle]:
        """End all workers, and answer what they work on that the server stops; gives those tasks."""
        self._stopping.set()
        self._pool.wake()
        self.join()
        begun = [*self._again, *self._begun.values()]
        for handle in begun:
            handle.stop()
        return begun

    def _turn(self) -> None:
        for event in self._pool.events(TURN):
            self._pass_on(event)
        if (wrong := self._pool.wrong) is not None:
            self.failure = wrong
        elif self._pool.failed_starts:
            self.failure = Message("errors.worker-not-start-server")
        unable = not self._pool.workers and self._pool.failed_starts > 0
        while (unable or self._pool.capacity) and (handle := self._next()) is not None:
            if handle.abandon <= 0:
                handle.late()
            elif unable:
                handle.fail(NoWorkerError(self.failure, 5.0))
            else:
                self._hand_over(handle)

    def _next(self) -> TaskHandle | None:
        try:
            return self._again.popleft() if self._again else self._line.pop(0)
        except queue.Empty:
            return None

    def _hand_over(self, handle: TaskHandle) -> None:
        key = next(self._keys)
        handle.begun = handle.begun or monotonic()
        try:
            self._pool.submit(key, handle.task, handle.abandon)
        except Exception as error:  # noqa: BLE001 - a task fails, and the pool goes on
            _LOG.error("a task could not be handed over: %s", failing_frame(error))
            handle.fail(error)
        else:
            self._begun[key] = handle

    def _pass_on(self, event: PoolEvent) -> None:
        if isinstance(event, TaskMessage):
            self._begun[event.key].put(cast("WorkerMessage", event.message))
            return
        handle = self._begun.pop(event.key)
        match event:
            case TaskAnswered():
                handle.end()
            case TaskLate():
                handle.late()
            case TaskDied():
                handle.fail(WorkerLostError(Message("errors.process-read-log-died")))
            case TaskReturned():
                self._again.append(handle)
