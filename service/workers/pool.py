"""A pool of worker processes with a bounded queue and a deadline for each task.

Each process has a thread here, which hands it one task after the other, passes on what it answers, and puts
another in its place when it dies or is late.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from time import monotonic

from corpus.message import Message
from service.schemas.errors import BusyError, LateError, RequestError, WorkerLostError
from service.schemas.events import Event
from service.settings import Settings, without_secrets
from service.workers import process, spawning
from service.workers.failures import (
    AbandonedError,
    NoWorkerError,
    StoppingError,
    failing_frame,
    failure_event,
)
from service.workers.queue import TaskQueue
from service.workers.tasks import (
    PromptShown,
    SearchHits,
    Task,
    TaskEnd,
    TriageMaterial,
    TriageTask,
    WorkerReady,
)

_LOG = logging.getLogger("whycrash.workers")
# Seconds for a process to load, the making of a first index included.
LOADING = 600.0
# Seconds until another process is tried where one could not load all that it needs.
AGAIN = 30.0
# Seconds that a triage is taken for before any was measured.
FIRST_GUESS = 0.1
STOPPING = "errors.server-stopping-hand-again"
FORSAKEN = "errors.whoever-handed-left-before"

WorkerMessage = Event | TriageMaterial | PromptShown | SearchHits
Keep = Callable[[WorkerMessage], None]


class TaskHandle:
    """A task in the pool: an iterator over its messages, in whatever thread.

    Work that was begun continues without a listener.
    """

    def __init__(self, task: Task, seconds: float, keep: Keep | None) -> None:
        self.task = task
        self._ends = monotonic() + seconds
        self._seconds = seconds
        self._keep = keep
        self._messages: queue.SimpleQueue[WorkerMessage | None] = queue.SimpleQueue()

    @property
    def abandon(self) -> float:
        """The seconds until the deadline."""
        return max(0.0, self._ends - monotonic())

    def put(self, message: WorkerMessage) -> None:
        """Pass on a message; what is to be kept is kept first."""
        if self._keep:
            try:
                self._keep(message)
            except Exception as error:  # noqa: BLE001 - an answer that cannot be kept is still given
                _LOG.error("an answer could not be kept: %s", failing_frame(error))
        self._messages.put(message)

    def fail(self, error: Exception) -> None:
        """Pass on that there is no answer."""
        self.put(failure_event(error))

    def late(self) -> LateError:
        """Make the error of a task that took too long."""
        return LateError(Message("errors.took-longer-seconds-ended", seconds=f"{self._seconds:g}"))

    def stop(self) -> None:
        """Answer that the server stops."""
        self.fail(StoppingError(Message(STOPPING), 5.0))
        self.end()

    def end(self) -> None:
        """Say that no message follows."""
        self._messages.put(None)

    def __iter__(self) -> Iterator[WorkerMessage]:
        while (message := self._messages.get()) is not None:
            yield message


class ProcessPool:
    """Runs tasks in processes of their own; its methods may be called from any thread."""

    def __init__(
        self,
        settings: Settings,
        size: int | None = None,
        serve: Callable[[Connection, Settings], None] = process.serve,
    ) -> None:
        self._settings = settings
        self._serve = serve
        self.size = size or settings.workers or os.cpu_count() or 1
        self.queue_size = settings.queue
        self._line: TaskQueue[TaskHandle] = TaskQueue()
        self._lock = threading.Lock()
        self._open = 0
        self._usual = FIRST_GUESS
        self.threads: list[WorkerThread] = []
        self._closed = False

    def start(self) -> None:
        """Start the processes; returns at once, tasks wait until one is loaded."""
        self.threads = [
            WorkerThread(self, self._settings, number, self._serve) for number in range(self.size)
        ]
        for thread in self.threads:
            thread.start()

    def close(self) -> None:
        """End all processes; tasks that wait are answered that the server stops."""
        with self._lock:
            self._closed = True
        waiting = self._line.close()
        for thread in self.threads:
            thread.stop()
        for handle in waiting:
            self._let_go()
            handle.stop()
        for thread in self.threads:
            thread.join(timeout=10)
        self.threads = []

    @property
    def waiting(self) -> int:
        """How many tasks are worked on or wait."""
        return self._open

    @property
    def failure(self) -> str:
        """What keeps the pool from answering, or the empty text."""
        told = [thread.wrong for thread in self.threads]
        return "" if "" in told else (told[0] if told else Message("errors.workers-not-started"))

    def submit(self, task: Task, seconds: float, keep: Keep | None = None) -> TaskHandle:
        """Queue a task; `keep` is called with each message before the listener gets it. Raises BusyError."""
        with self._lock:
            self.check_capacity()
            self._open += 1
            handle = TaskHandle(task, seconds, keep)
            # Within the lock: what is queued before the pool closes is answered by it.
            self._line.push(handle)
        return handle

    def withdraw(self, triage_id: str) -> None:
        """Remove a triage whose client left from the queue, and say so in its record.

        One that was begun goes on to its end.
        """
        handle = self._line.discard(
            lambda handle: isinstance(handle.task, TriageTask) and handle.task.id == triage_id
        )
        if handle is None:
            return
        self._let_go()
        handle.fail(AbandonedError(Message(FORSAKEN)))
        handle.end()

    def check_capacity(self) -> None:
        """Raise BusyError where one more task would be too many, StoppingError where the pool is closed."""
        if self._closed:
            raise StoppingError(Message(STOPPING), 5.0)
        if self._open >= self.size + self.queue_size:
            wait = max(1.0, self._usual * self._open / self.size)
            raise BusyError(
                Message("errors.triages-way-try-again", open=self._open, wait=f"{wait:.0f}"), wait
            )

    def next(self, timeout: float | None = None) -> TaskHandle | None:
        """Wait for the next task; None when the pool closes. Raises queue.Empty after `timeout` seconds."""
        return self._line.pop(timeout)

    def done(self, seconds: float) -> None:
        """Note that a task is over, and how long it took."""
        with self._lock:
            self._open -= 1
            self._usual += 0.1 * (seconds - self._usual)

    def _let_go(self) -> None:
        """Note that a task is over that was never begun, which says nothing of how long tasks take."""
        with self._lock:
            self._open -= 1


class WorkerThread(threading.Thread):
    """Keeps one process at work."""

    def __init__(
        self,
        pool: ProcessPool,
        settings: Settings,
        number: int,
        serve: Callable[[Connection, Settings], None],
    ) -> None:
        super().__init__(name=f"worker-{number}", daemon=True)
        self._pool = pool
        self._settings = settings
        self._serve = serve
        self.process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._stopping = threading.Event()
        self.wrong: str = Message("errors.workers-still-loading")

    def run(self) -> None:
        """Start a process, and hand it tasks until the pool closes."""
        self._load()
        while True:
            try:
                handle = self._next()
            except queue.Empty:
                # What was missing, such as a server that was down, may be there by now.
                self._renew()
                continue
            if handle is None:
                break
            self._take(handle)
        self._end()

    def stop(self) -> None:
        """End the process at once."""
        self._stopping.set()
        if self.process is not None and self.process.is_alive():
            self.process.terminate()

    def _next(self) -> TaskHandle | None:
        if self._pipe is None and not self._pool.failure and not self._stopping.is_set():
            # Other threads have processes: a task that would fail here succeeds there.
            self._stopping.wait(AGAIN)
            raise queue.Empty
        return self._pool.next(AGAIN if self.wrong else None)

    def _take(self, handle: TaskHandle) -> None:
        """Answer a task, and leave a process for the next one."""
        if self._stopping.is_set():
            self._pool.done(0.0)
            handle.stop()
            return
        started = monotonic()
        try:
            self._work(handle)
        finally:
            self._pool.done(monotonic() - started)
            handle.end()
        if self._pipe is None:
            self._renew()

    def _renew(self) -> None:
        self._end()
        if not self._stopping.is_set():
            self._load()

    def _load(self) -> None:
        context = spawning.context()
        self._pipe, other = context.Pipe()
        # No daemon: those may have no children, and NVML is read in one.
        self.process = context.Process(
            target=self._serve, args=(other, without_secrets(self._settings)), name=self.name
        )
        try:
            self.process.start()
            other.close()
            if self._stopping.is_set():
                self.process.terminate()  # `stop` came too early to find it
            told = self._pipe.recv() if self._pipe.poll(LOADING) else None
        except (EOFError, OSError) as error:
            if not self._stopping.is_set():
                _LOG.error("a worker could not start: %s", type(error).__name__)
            told = None
        if isinstance(told, WorkerReady):
            self.wrong = told.wrong
        else:
            self.wrong = Message("errors.worker-not-start-server")
            self._end()

    def _work(self, handle: TaskHandle) -> None:
        if self._pipe is not None and self.process is not None and not self.process.is_alive():
            self._renew()  # it died while idle, which this task did not cause
        if handle.abandon <= 0:
            handle.fail(handle.late())
            return
        if self._pipe is None:
            handle.fail(NoWorkerError(self.wrong, 5.0) if self.wrong else self._lost())
            return
        try:
            self._pipe.send(handle.task)
            self._listen(self._pipe, handle)
        except LateError as error:
            self._end()
            handle.fail(error)
        except (EOFError, OSError):
            self._end()
            handle.fail(self._lost())
        except Exception as error:  # noqa: BLE001 - a task fails, and its thread goes on
            _LOG.error("a task could not be handed over: %s", failing_frame(error))
            self._end()
            handle.fail(error)

    def _lost(self) -> RequestError:
        if self._stopping.is_set():
            return StoppingError(Message(STOPPING), 5.0)
        return WorkerLostError(Message("errors.process-read-log-died"))

    def _listen(self, pipe: Connection, handle: TaskHandle) -> None:
        while True:
            if not pipe.poll(handle.abandon):
                raise handle.late()
            message = pipe.recv()
            if isinstance(message, TaskEnd):
                return
            handle.put(message)

    def _end(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self.process is not None:
            self.process.kill()
            self.process.join(timeout=5)
