"""A worker that does what the task's text says: answer, hang, die, or tell how it was started."""

from __future__ import annotations

import os
import signal
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

from ingest.workers.messages import TaskEnd, WorkerReady
from ingest.workers.process import die_with_parent
from service.schemas.events import FirstAnswer, Progress
from service.settings import Settings
from service.workers.pool import ProcessPool, WorkerMessage
from service.workers.tasks import Submission
from tests.waiting import PATIENCE, until

# A task of this text, with a file's path after it, is worked on until the file is there.
UNTIL = "until "


def serve(pipe: Connection, settings: Settings) -> None:
    """Answer each task by its text."""
    pipe.send(WorkerReady())
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        assert isinstance(task, Submission)
        if task.text == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if task.text == "garble":
            pipe.send_bytes(b"no message of ours")
        pipe.send(Progress(bytes=os.getpid(), total=len(task.text)))
        if task.text == "hang":
            time.sleep(PATIENCE)
        if task.text.startswith(UNTIL):
            until(Path(task.text.removeprefix(UNTIL)).exists, "it may end")
        pipe.send(TaskEnd())


def unable(pipe: Connection, settings: Settings) -> None:
    """Say that something is missing, and wait."""
    pipe.send(WorkerReady("There is no index."))
    try:
        pipe.recv()
    except EOFError:
        return


def missing(pipe: Connection, settings: Settings) -> None:
    """Lack something until there is a home folder."""
    if settings.home.exists():
        serve(pipe, settings)
    else:
        unable(pipe, settings)


def crashing(pipe: Connection, settings: Settings) -> None:
    """Die while loading, until there is a home folder."""
    if settings.home.exists():
        serve(pipe, settings)


def first_then_dead(pipe: Connection, settings: Settings) -> None:
    """Give a first answer and die."""
    # Imported here: what makes answers doubles the time in which any other worker of the tests starts.
    from tests.service.factories import diagnosis

    pipe.send(WorkerReady())
    task = pipe.recv()
    pipe.send(FirstAnswer(diagnosis=diagnosis(id=task.id)))
    os.kill(os.getpid(), signal.SIGKILL)


def hang_with_parent(pipe: Connection, settings: Settings) -> None:
    """Hang in a task, as a worker does that is bound to its server."""
    die_with_parent()
    serve(pipe, settings)


def main() -> None:
    """Be a server whose one worker hangs; its process is printed."""
    pool = ProcessPool(Settings(home=Path("/nowhere")), 1, hang_with_parent)
    pool.start()
    (told,) = pool.submit(Submission("log", "x", id="1"), PATIENCE)
    begun: list[WorkerMessage] = []
    pool.submit(Submission("log", "hang", id="2"), PATIENCE, begun.append)
    until(lambda: begun, "the worker hangs")
    sys.stdout.write(f"{told.bytes}\n")  # type: ignore[union-attr]  # a Progress
    sys.stdout.flush()
    time.sleep(PATIENCE)


if __name__ == "__main__":
    main()
