"""What runs in a worker: it loads once, then works on task after task until its pipe is closed."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from ingest.redaction.extra import extra_text, use_extra
from ingest.workers.messages import Notice, TaskEnd, WorkerReady

# Workers share the cores: each computes on one, and does not spin for another.
SINGLE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "WHYCRASH_THREADS")
# From linux/prctl.h.
_PR_SET_PDEATHSIG = 1

Tell = Callable[[object], None]


class TaskHandler(Protocol):
    """Works on tasks. An exception that it raises ends its worker."""

    def load(self) -> str:
        """Load what every task needs; gives what is wrong, or the empty text."""

    def handle(self, task: Any, tell: Tell) -> object:
        """Work on a task and give its answer; `tell` passes on messages before."""


@dataclass(frozen=True)
class WorkerProgram:
    """What the workers of a pool run.

    `make` is a function of a module that imports nothing slow: numpy and others read how many threads they
    may use when they are imported, and the worker bounds that before it calls `make`. `memory` is what tasks
    may take beside what is loaded, bytes; 0 is no bound. `extra` is what else is masked: what is secret to
    the process that makes the program is secret to its workers, on whatever machine they are.
    """

    make: Callable[..., TaskHandler]
    arguments: tuple[Any, ...] = ()
    memory: int = 0
    extra: str = field(default_factory=extra_text)

    def opened(self) -> tuple[TaskHandler, WorkerReady]:
        """Make the handler and load it, within the process that is to run it."""
        os.environ.update(dict.fromkeys(SINGLE, "1"))
        # What is loaded here stays: the collector need not look for garbage in it, now or after each task.
        gc.disable()
        use_extra(self.extra)
        handler = self.make(*self.arguments)
        wrong = handler.load()
        gc.freeze()
        gc.enable()
        if self.memory and not wrong:
            bound_memory(self.memory)
        return handler, WorkerReady(wrong)


def serve(pipe: Connection, program: WorkerProgram) -> None:
    """Work on tasks until the other end closes the pipe."""
    # Ctrl-C is for the pool's process, which closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    handler, ready = program.opened()
    try:
        pipe.send(ready)
        while True:
            task = pipe.recv()
            if isinstance(task, Notice):
                handler.handle(task.content, pipe.send)
            else:
                pipe.send(TaskEnd(handler.handle(task, pipe.send)))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the pool is gone


def die_with_parent() -> None:
    """Let the kernel end this process with its parent, as nothing else then enforces a task's deadline."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = parent_process()
    if parent is not None and parent.pid != os.getppid():
        os._exit(1)  # it died before it was asked for


def bound_memory(more: int) -> None:
    """Let this process map no more than `more` bytes beyond what it has now.

    A request beyond fails in this process, where else the kernel would choose whom to kill.
    """
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + more
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(
        resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
    )
