"""Workers of a batch as processes of this machine."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from multiprocessing import connection, parent_process
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler

from ingest import index
from ingest.errors import SearchIndexError
from service.batches.commands import Step
from service.batches.executor import ExecutorLostError
from service.batches.worker_pool import Reply, Worker, WorkerPool
from service.settings import Settings, without_secrets
from service.workers import spawning
from service.workers.process import SINGLE
from service.workers.tasks import WorkerReady

# Bytes of a step of which a few fit into a pipe whose reader is at work: Linux keeps 200 kB or more of a
# socket.
SMALL = 16_384


def open_local(settings: Settings) -> WorkerPool:
    """Open an executor of processes: as many as the settings say, else one for each core."""
    return WorkerPool(
        _ProcessSpawner(settings),
        settings.workers or os.cpu_count() or 1,
        first_alone=not has_index(settings),
    )


def has_index(settings: Settings) -> bool:
    """Tell whether there is an index, which else the first worker makes."""
    try:
        return index.current(settings.home) is not None
    except SearchIndexError:
        return False


class _ProcessSpawner:
    """Starts worker processes of this machine."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def spawn(self) -> Worker:
        """Start a process."""
        try:
            return _LocalWorker(self._settings)
        except OSError as error:
            raise ExecutorLostError(f"No worker process can be started: {error}") from error

    def receive(self, workers: Sequence[Worker], timeout: float) -> Iterable[tuple[Worker, Reply | None]]:
        """Wait for replies; those that a worker sent before it died come first."""
        known = {worker.pipe: worker for worker in workers if isinstance(worker, _LocalWorker)}
        for pipe in connection.wait(list(known), timeout):
            worker = known[pipe]  # type: ignore[index]
            yield worker, worker.poll_replies()

    def close(self) -> None:
        """Nothing to close beside the processes."""


class _LocalWorker:
    """A process with a pipe.

    The engine never waits for one that does not read: what may not fit into the pipe is sent by a thread.
    """

    def __init__(self, settings: Settings) -> None:
        context = spawning.context()
        self.pipe, other = context.Pipe()
        # A daemon: should the engine's process end without closing its workers, they go with it.
        self._process = context.Process(
            target=serve, args=(other, without_secrets(settings)), name="batch-worker", daemon=True
        )
        # Before it starts: numpy, which comes with this module, looks at its threads when it is imported.
        before = {name: os.environ.get(name) for name in SINGLE}
        os.environ.update(dict.fromkeys(SINGLE, "1"))
        try:
            self._process.start()
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        other.close()
        self._large: queue.SimpleQueue[bytes | None] | None = None

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid or 0

    def send(self, step: Step) -> None:
        """Send a step to the process, or queue it."""
        data = bytes(ForkingPickler.dumps(step))
        if self._large is None and len(data) > SMALL:
            # From here on all goes this way, so that steps stay in their order.
            self._large = queue.SimpleQueue()
            threading.Thread(target=self._write, args=(self._large,), name="batch-steps", daemon=True).start()
        if self._large is not None:
            self._large.put(data)
        else:
            self._send(data)

    def poll_replies(self) -> Reply | None:
        """Give what the process says; None where it is gone."""
        try:
            reply: Reply = self.pipe.recv()
        except (EOFError, OSError):
            return None
        return reply

    def kill(self) -> None:
        """Kill the process."""
        if self._large is not None:
            self._large.put(None)
        self._process.kill()
        self._process.join(timeout=5)
        self.pipe.close()

    def exit_reason(self) -> str:
        """Say by what signal or with what code it ended."""
        self._process.join(timeout=5)
        code = self._process.exitcode
        if code is not None and code < 0:
            return f"The process that worked on it was ended by {signal.Signals(-code).name}."
        return f"The process that worked on it ended with code {code}."

    def _write(self, steps: queue.SimpleQueue[bytes | None]) -> None:
        while (data := steps.get()) is not None:
            self._send(data)

    def _send(self, data: bytes) -> None:
        # It died or was killed, which the reader of the pipe notices.
        with suppress(OSError, ValueError):
            self.pipe.send_bytes(data)


def serve(pipe: Connection, settings: Settings) -> None:
    """Do steps until the other end closes the pipe."""
    # Ctrl-C is for the engine, which ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(dict.fromkeys(SINGLE, "1"))
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    # Imported here: numpy and others look at the threads that they may use when they are imported.
    from service.batches.worker import JobWorker

    worker = JobWorker(settings)
    try:
        pipe.send(WorkerReady(worker.load()))
        while True:
            reply = worker.run(pipe.recv())
            if reply is not None:
                pipe.send(reply)
    except (EOFError, OSError):
        return


def _end_with_parent() -> None:
    """End this process when the engine's was killed: nobody would take the result of a long log."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
