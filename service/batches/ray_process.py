"""The process between an engine and Ray: it holds connection and actors, so that Ray cannot end the engine.

A Ray driver that loses its head ends its own process. Here that is a process that can be started again.
"""

from __future__ import annotations

import logging
import os
import queue
import secrets
import signal
import socket
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from time import monotonic, sleep
from typing import Any

from service.batches.commands import JobCommand, Outcome, Step
from service.batches.executor import ExecutorLostError
from service.batches.local_processes import has_index
from service.batches.worker_pool import Reply, Worker, WorkerPool
from service.settings import Settings
from service.workers.process import SINGLE
from service.workers.tasks import WorkerReady

NAMESPACE = "whycrash"
# An address of a Ray client's server, behind which the head need not be reachable.
CLIENT = "ray://"
# Seconds between two heartbeats to the engine, and between two looks at Ray's head.
BEAT = 1.0
# Failed looks in a row after which the head is taken for gone.
LOOKS = 3
# What of a local Ray's memory its object store may take, bytes: a step and its answer are some kilobytes.
OBJECTS = 100 << 20
_LOG = logging.getLogger("whycrash.batch")


@dataclass(frozen=True, slots=True)
class PoolCall:
    """What the engine wants: a method of the worker pool, and what it is called with."""

    name: str
    value: JobCommand | str


@dataclass(frozen=True, slots=True)
class RayStatus:
    """A heartbeat: the outcomes of commands, how many workers are ready, or what is wrong for good."""

    outcomes: tuple[Outcome, ...] = ()
    ready: int = 0
    wrong: str = ""


def serve(pipe: Connection, settings: Settings, folder: str) -> None:
    """Connect to Ray, or start it under `folder`, and serve commands until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prepare(settings)
    try:
        # Imported here: it takes a while, and reads the environment when it is.
        import ray

        connect(settings, folder)
    except (ImportError, ConnectionError, RuntimeError, ValueError, OSError) as error:
        pipe.send(
            RayStatus(
                wrong=(
                    "Ray cannot be used: "
                    f"{str(error).splitlines()[0] if str(error) else type(error).__name__}"
                )
            )
        )
        return
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    size = settings.workers or max(1, int(resources.get("CPU", 1)))
    if not settings.ray_address.startswith(CLIENT):
        # End this process once the head of the cluster is gone: Ray itself would wait a minute, then do the
        # same.
        import ray

        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        threading.Thread(target=_look, args=(host, int(port)), name="head", daemon=True).start()
    actors = _ActorSpawner(settings)
    worker_pool = WorkerPool(actors, size, first_alone=not has_index(settings))
    threading.Thread(target=actors.listen, args=(pipe,), name="commands", daemon=True).start()
    try:
        _work(pipe, worker_pool, actors)
    except ExecutorLostError as error:
        pipe.send(RayStatus(wrong=str(error)))
    except (EOFError, OSError):
        pass  # the engine is gone, and needs no answer
    finally:
        worker_pool.close()
        ray.shutdown()


def prepare(settings: Settings) -> None:
    """Set what Ray reads of the environment when it is imported."""
    # Nothing is told to anybody outside.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if not settings.ray_address:
        # Ray's ports are open to the whole network; who has not this token gets no answer.
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        # A cluster that a variable of Ray's own names is not meant: ours is set by WHYCRASH_RAY_ADDRESS.
        os.environ.pop("RAY_ADDRESS", None)


def connect(settings: Settings, folder: str) -> None:
    """Connect to the cluster that the settings name, else start Ray on this machine."""
    import ray

    usual: dict[str, Any] = {"namespace": NAMESPACE, "log_to_driver": False, "logging_level": logging.ERROR}
    if settings.ray_address:
        ray.init(address=settings.ray_address, **usual)
        return
    cores = settings.workers or os.cpu_count() or 1
    ray.init(num_cpus=cores, include_dashboard=False, object_store_memory=OBJECTS, _temp_dir=folder, **usual)


def _work(pipe: Connection, worker_pool: WorkerPool, actors: _ActorSpawner) -> None:
    told = 0.0
    while not actors.over:
        outcomes = worker_pool.outcomes(BEAT)
        if outcomes or monotonic() - told >= BEAT / 2:
            pipe.send(RayStatus(tuple(outcomes), worker_pool.ready))
            told = monotonic()
        for command in actors.commands():
            getattr(worker_pool, command.name)(command.value)


class _ActorSpawner:
    """Starts Ray actors.

    Replies and calls of the engine arrive through one queue, so that one wait covers both.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._heard: queue.SimpleQueue[_ActorWorker | PoolCall | None] = queue.SimpleQueue()
        self._commands: list[PoolCall] = []
        self.over = False

    def listen(self, pipe: Connection) -> None:
        """Receive calls of the engine until it closes the pipe."""
        with suppress(EOFError, OSError):
            while True:
                self._heard.put(pipe.recv())
        self._heard.put(None)

    def commands(self) -> Sequence[PoolCall]:
        """Give the calls received so far."""
        found, self._commands = self._commands, []
        return found

    def spawn(self) -> Worker:
        """Start an actor; where the cluster has no room for it yet, it waits there."""
        return _ActorWorker(self._settings, self._heard)

    def receive(self, workers: Sequence[Worker], timeout: float) -> Iterable[tuple[Worker, Reply | None]]:
        """Wait for replies or commands."""
        del workers
        for item in self._waited(timeout):
            if isinstance(item, _ActorWorker):
                yield from ((item, reply) for reply in item.replies())
            elif isinstance(item, PoolCall):
                self._commands.append(item)
            else:
                self.over = True

    def close(self) -> None:
        """Nothing to close beside the actors."""

    def _waited(self, timeout: float) -> Iterator[_ActorWorker | PoolCall | None]:
        with suppress(queue.Empty):
            yield self._heard.get(timeout=timeout)
            while True:
                yield self._heard.get_nowait()


class _ActorWorker:
    """An actor that holds a JobWorker; Ray hands it one step after the other."""

    def __init__(self, settings: Settings, heard: queue.SimpleQueue[Any]) -> None:
        import ray

        self._heard = heard
        self._calls: deque[Future[Reply | None]] = deque()
        self._why = ""
        # Not restarted by Ray: a fresh one would know nothing of the reports that the old one held.
        worker: Any = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(RayWorker)
        self._actor: Any = worker.remote(settings)
        self._call(self._actor.load.remote())

    def send(self, step: Step) -> None:
        """Queue a step at the actor."""
        self._call(self._actor.take.remote(step))

    def replies(self) -> Iterator[Reply | None]:
        """Give what it replied by now, in the order of its steps; None where it is gone."""
        from ray.exceptions import RayError

        while self._calls and self._calls[0].done():
            try:
                reply = self._calls.popleft().result()
            except RayError as error:
                self._why = type(error).__name__
                self._calls.clear()
                yield None
                return
            if reply is not None:
                yield reply

    def kill(self) -> None:
        """End the actor's process."""
        import ray

        ray.kill(self._actor, no_restart=True)

    def exit_reason(self) -> str:
        """Say what Ray calls its end."""
        return f"The Ray worker that worked on it died ({self._why})."

    def _call(self, reference: Any) -> None:
        future: Future[Reply | None] = reference.future()
        self._calls.append(future)
        future.add_done_callback(lambda _future: self._heard.put(self))


class RayWorker:
    """What runs in an actor's process."""

    def __init__(self, settings: Settings) -> None:
        os.environ.update(dict.fromkeys(SINGLE, "1"))
        # Imported here: numpy and others look at the threads that they may use when they are imported.
        from service.batches.worker import JobWorker

        self._worker = JobWorker(settings)

    def load(self) -> WorkerReady:
        """Load what every job needs."""
        return WorkerReady(self._worker.load())

    def take(self, step: Step) -> Outcome | None:
        """Do one step."""
        return self._worker.run(step)


def _look(host: str, port: int) -> None:
    missed = 0
    while missed < LOOKS:
        sleep(BEAT)
        try:
            socket.create_connection((host, port), timeout=BEAT).close()
            missed = 0
        except OSError:
            missed += 1
    _LOG.error("the head of the Ray cluster at %s:%s is gone", host, port)
    os._exit(1)
