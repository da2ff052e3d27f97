"""What runs in a worker process: it loads once, then answers task after task until its pipe is closed."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.pipeline.triage import Triage
    from service.settings import Settings

# Processes that share the cores: each computes on one, and does not spin for another.
SINGLE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "WHYCRASH_THREADS")
_LOG = logging.getLogger("whycrash.workers")
# From linux/prctl.h.
_PR_SET_PDEATHSIG = 1


def serve(pipe: Connection, settings: Settings) -> None:
    """Answer tasks until the other end closes the pipe."""
    # Ctrl-C is for the server, which closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    os.environ.update(dict.fromkeys(SINGLE, "1"))
    # Imported here: numpy and others look at the threads that they may use when they are imported.
    from service.workers.tasks import WorkerReady
    from service.workers.warm_triage import WarmTriage

    warm = WarmTriage(settings)
    pipe.send(WorkerReady(warm.load()))
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            _answer(pipe, warm.fresh(), settings, task)
        except OSError:
            return  # the server is gone


def die_with_parent() -> None:
    """Let the kernel end this process with its server: after a kill nothing else enforces the deadline."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = parent_process()
    if parent is not None and parent.pid != os.getppid():
        os._exit(1)  # it died before it was asked for


def _answer(pipe: Connection, triage: Triage, settings: Settings, task: object) -> None:
    from service.workers import failures, handlers
    from service.workers.tasks import TaskEnd

    try:
        for item in handlers.handle_task(triage, settings, task, pipe.send):  # type: ignore[arg-type]
            pipe.send(item)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - a task that fails is a record, and the process lives on
        if not failures.is_expected(error):
            _LOG.error("%s", failures.failing_frame(error))
        pipe.send(failures.failure_event(error))
    pipe.send(TaskEnd())
