"""A worker that does what the task's text says: answer, hang, die, or tell how it was started."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing.connection import Connection

from service.events import Progress
from service.settings import Settings
from service.workers.tasks import End, Ready, TriageTask


def serve(pipe: Connection, settings: Settings) -> None:
    """Answer each task by its text."""
    pipe.send(Ready())
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        assert isinstance(task, TriageTask)
        if task.text == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if task.text == "hang":
            time.sleep(60)
        pipe.send(Progress(bytes=os.getpid(), total=len(task.text)))
        if task.text == "slow":
            time.sleep(0.5)
        pipe.send(End())


def unable(pipe: Connection, settings: Settings) -> None:
    """Say that something is missing, and wait."""
    pipe.send(Ready("There is no index."))
    try:
        pipe.recv()
    except EOFError:
        return


