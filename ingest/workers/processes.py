"""The backend of a pool whose workers are processes of this machine."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from ingest.workers import process, spawning
from ingest.workers.messages import ExitReason
from ingest.workers.pool import Worker, WorkerPool
from ingest.workers.process import WorkerProgram

# Bytes of a task of which a few fit into a pipe whose reader is at work: Linux keeps 200 kB or more of a
# socket.
SMALL = 16_384


def open_processes(
    program: WorkerProgram, size: int, name: str, *, depth: int = 1, first_alone: bool = False
) -> WorkerPool:
    """Open a pool of `size` processes (0: one for each core); they are started once events are waited for."""
    backend = ProcessBackend(process.serve, (program,), name)
    return WorkerPool(backend, size or os.cpu_count() or 1, depth=depth, first_alone=first_alone)


class ProcessBackend:
    """Starts worker processes: `serve` is called in each with its pipe and the arguments.

    The thread that starts them must live as long as they do: they end with it. `daemon` processes also end
    with this one where it forgets to close the pool, and may have no children.
    """

    def __init__(
        self, serve: Callable[..., None], arguments: tuple[Any, ...], name: str, *, daemon: bool = True
    ) -> None:
        self._serve = serve
        self._arguments = arguments
        self._name = name
        self._daemon = daemon
        self._waker = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        # Within it the waker is open: any thread may use it.
        self._lock = threading.Lock()
        self._open = True

    def spawn(self) -> Worker:
        """Start a process; raises OSError."""
        return LocalWorker(self._serve, self._arguments, self._name, daemon=self._daemon)

    def receive(self, workers: Sequence[Worker], timeout: float) -> Iterable[tuple[Worker, object]]:
        """Wait for messages; those that a worker sent before it died come first."""
        known = {worker.pipe: worker for worker in workers if isinstance(worker, LocalWorker)}
        for item in connection.wait([*known, self._waker], timeout):
            if isinstance(item, Connection):
                yield known[item], known[item].receive()
            else:
                os.eventfd_read(self._waker)

    def wake(self) -> None:
        """End the wait for messages."""
        with self._lock:
            if self._open:
                os.eventfd_write(self._waker, 1)

    def close(self) -> None:
        """Close what wakes the pool."""
        with self._lock:
            if self._open:
                self._open = False
                os.close(self._waker)


class LocalWorker:
    """A process with a pipe.

    The pool never waits for one that does not read: what may not fit into the pipe is sent by a thread.
    """

    def __init__(
        self, serve: Callable[..., None], arguments: tuple[Any, ...], name: str, *, daemon: bool
    ) -> None:
        context = spawning.context()
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, *arguments), name=name, daemon=daemon)
        try:
            self.process.start()
        finally:
            other.close()
        self._large: queue.SimpleQueue[bytes | None] | None = None

    @property
    def pid(self) -> int:
        """The process's number."""
        return self.process.pid or 0

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process.is_alive()

    def send(self, task: object) -> None:
        """Send a task to the process, or queue it."""
        data = bytes(ForkingPickler.dumps(task))
        if self._large is None and len(data) > SMALL:
            # From here on all goes this way, so that tasks stay in their order.
            self._large = queue.SimpleQueue()
            threading.Thread(target=self._write, args=(self._large,), name="large-tasks", daemon=True).start()
        if self._large is not None:
            self._large.put(data)
        else:
            self._send(data)

    def receive(self) -> object:
        """Give what the process says; None where it is gone."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            return None

    def kill(self) -> None:
        """Kill the process."""
        if self._large is not None:
            self._large.put(None)
        self.process.kill()
        self.process.join(timeout=5)
        self.pipe.close()

    def exit_reason(self) -> ExitReason:
        """Say by what signal or with what code it ended."""
        self.process.join(timeout=5)
        code = self.process.exitcode
        return ExitReason(signal=-code) if code is not None and code < 0 else ExitReason(code=code)

    def _write(self, tasks: queue.SimpleQueue[bytes | None]) -> None:
        while (data := tasks.get()) is not None:
            self._send(data)

    def _send(self, data: bytes) -> None:
        # It died or was killed, which the reader of the pipe notices.
        with suppress(OSError, ValueError):
            self.pipe.send_bytes(data)
