"""The process between a pool's owner and Ray: it holds the actors, so that Ray cannot end the owner.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from time import monotonic, sleep
from typing import Any

from ingest.errors import PoolLostError
from ingest.extras import missing
from ingest.workers.messages import ExitReason, Notice, PoolEvent, TaskEnd
from ingest.workers.pool import Worker, WorkerPool
from ingest.workers.process import WorkerProgram

NAMESPACE = "whycrash"
# An address of a Ray client's server, behind which the head need not be reachable.
CLIENT = "ray://"
# Seconds between two heartbeats to the owner, and between two looks at Ray's head.
BEAT = 1.0
# Failed looks in a row after which the head is taken for gone.
LOOKS = 3
# What of a local Ray's memory its object store may take, bytes: a task and its answer are some kilobytes.
OBJECTS = 100 << 20
_LOG = logging.getLogger("whycrash.workers")


@dataclass(frozen=True, slots=True)
class RayPlan:
    """Where Ray is and what it runs.

    `address` is empty for a Ray of this machine, which keeps its files in `folder`; `size` 0 is a worker for
    each core of the cluster. `depth` and `first_alone` are those of the worker pool.
    """

    program: WorkerProgram
    address: str
    size: int
    folder: str
    depth: int = 1
    first_alone: bool = False


@dataclass(frozen=True, slots=True)
class PoolCall:
    """What the owner wants: a method of the worker pool, and what it is called with."""

    name: str
    arguments: tuple[object, ...]
    options: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RayStatus:
    """A heartbeat: what became of tasks, how many workers are ready, or what is wrong for good."""

    events: tuple[PoolEvent, ...] = ()
    ready: int = 0
    wrong: str = ""


def serve(pipe: Connection, plan: RayPlan) -> None:
    """Connect to Ray, or start it, and serve calls until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prepare(plan)
    try:
        # Imported here: it takes a while, and reads the environment when it is.
        import ray

        connect(plan)
    except ModuleNotFoundError as error:
        pipe.send(RayStatus(wrong=str(missing(error) or error)))
        return
    except (ImportError, ConnectionError, RuntimeError, ValueError, OSError) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        pipe.send(RayStatus(wrong=f"Ray cannot be used: {first_line}"))
        return
    # Ray annotates nothing here.
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    size = plan.size or max(1, int(resources.get("CPU", 1)))
    if not plan.address.startswith(CLIENT):
        # End this process once the head of the cluster is gone: Ray itself would wait a minute, then do the
        # same.
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        threading.Thread(target=_look, args=(host, int(port)), name="head", daemon=True).start()
    actors = _ActorBackend(plan.program)
    pool = WorkerPool(actors, size, depth=plan.depth, first_alone=plan.first_alone)
    threading.Thread(target=actors.listen, args=(pipe,), name="calls", daemon=True).start()
    try:
        _work(pipe, pool, actors)
    except PoolLostError as error:
        pipe.send(RayStatus(wrong=str(error)))
    except (EOFError, OSError):
        pass  # the owner is gone, and needs no answer
    finally:
        pool.close()
        ray.shutdown()


def prepare(plan: RayPlan) -> None:
    """Set what Ray reads of the environment when it is imported."""
    # Nothing is told to anybody outside.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Ray's own processes write into the terminal what only its makers can read; what matters comes as an
    # exception.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    if not plan.address:
        # Ray's ports are open to the whole network; who has not this token gets no answer.
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        # A cluster that a variable of Ray's own names is not meant: ours is set by WHYCRASH_RAY_ADDRESS.
        os.environ.pop("RAY_ADDRESS", None)


def connect(plan: RayPlan) -> None:
    """Connect to the cluster that the plan names, else start Ray on this machine."""
    import ray

    usual: dict[str, Any] = {"namespace": NAMESPACE, "log_to_driver": False, "logging_level": logging.ERROR}
    if plan.address:
        ray.init(address=plan.address, **usual)
        return
    cores = plan.size or os.cpu_count() or 1
    ray.init(
        num_cpus=cores, include_dashboard=False, object_store_memory=OBJECTS, _temp_dir=plan.folder, **usual
    )


def _work(pipe: Connection, pool: WorkerPool, actors: _ActorBackend) -> None:
    sent = 0.0
    while not actors.over:
        events = pool.events(BEAT)
        if events or monotonic() - sent >= BEAT / 2:
            pipe.send(RayStatus(tuple(events), pool.ready))
            sent = monotonic()
        for call in actors.calls():
            getattr(pool, call.name)(*call.arguments, **call.options)


class _ActorBackend:
    """Starts Ray actors.

    Replies and calls of the owner arrive through one queue, so that one wait covers both.
    """

    def __init__(self, program: WorkerProgram) -> None:
        self._program = program
        self._heard: queue.SimpleQueue[_ActorWorker | PoolCall | None] = queue.SimpleQueue()
        self._calls: list[PoolCall] = []
        self.over = False

    def listen(self, pipe: Connection) -> None:
        """Receive calls of the owner until it closes the pipe."""
        with suppress(EOFError, OSError):
            while True:
                self._heard.put(pipe.recv())
        self._heard.put(None)

    def calls(self) -> Sequence[PoolCall]:
        """Give the calls received so far."""
        found, self._calls = self._calls, []
        return found

    def spawn(self) -> Worker:
        """Start an actor; where the cluster has no room for it yet, it waits there."""
        return _ActorWorker(self._program, self._heard)

    def receive(self, workers: Sequence[Worker], timeout: float) -> Iterable[tuple[Worker, object]]:
        """Wait for replies or calls."""
        del workers
        for item in self._waited(timeout):
            if isinstance(item, _ActorWorker):
                yield from ((item, reply) for reply in item.replies())
            elif isinstance(item, PoolCall):
                self._calls.append(item)
            else:
                self.over = True

    def wake(self) -> None:
        """Nothing to wake: the calls of the owner end the wait."""

    def close(self) -> None:
        """Nothing to close beside the actors."""

    def _waited(self, timeout: float) -> Iterator[_ActorWorker | PoolCall | None]:
        with suppress(queue.Empty):
            yield self._heard.get(timeout=timeout)
            while True:
                yield self._heard.get_nowait()


class _ActorWorker:
    """An actor that holds a task handler; Ray hands it one task after the other."""

    # Ray tells of its end as it tells of an answer.
    alive = True

    def __init__(self, program: WorkerProgram, heard: queue.SimpleQueue[Any]) -> None:
        import ray

        self._heard = heard
        self._calls: deque[Future[Sequence[object]]] = deque()
        self._why = ""
        # Not restarted by Ray: a fresh one would know nothing of what the old one held.
        worker: Any = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(RayWorker)
        self._actor: Any = worker.remote(program)
        self._call(self._actor.ready.remote())

    def send(self, task: object) -> None:
        """Queue a task at the actor."""
        self._call(self._actor.handle.remote(task))

    def replies(self) -> Iterator[object]:
        """Give what it replied by now, in the order of its tasks; None where it is gone."""
        from ray.exceptions import RayError

        while self._calls and self._calls[0].done():
            try:
                replies = self._calls.popleft().result()
            except RayError as error:
                self._why = type(error).__name__
                self._calls.clear()
                yield None
                return
            yield from replies

    def kill(self) -> None:
        """End the actor's process."""
        import ray

        ray.kill(self._actor, no_restart=True)

    def exit_reason(self) -> ExitReason:
        """Say what Ray calls its end."""
        return ExitReason(ray=self._why)

    def _call(self, reference: Any) -> None:
        future: Future[Sequence[object]] = reference.future()
        self._calls.append(future)
        future.add_done_callback(lambda _future: self._heard.put(self))


class RayWorker:
    """What runs in an actor's process."""

    def __init__(self, program: WorkerProgram) -> None:
        self._handler, self._ready = program.opened()

    def ready(self) -> Sequence[object]:
        """Say that it has loaded what every task needs."""
        return (self._ready,)

    def handle(self, task: object) -> Sequence[object]:
        """Work on one task; gives its messages and its end, and nothing for a notice."""
        messages: list[object] = []
        if isinstance(task, Notice):
            self._handler.handle(task.content, messages.append)
            return ()
        answer = self._handler.handle(task, messages.append)
        return (*messages, TaskEnd(answer))


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
