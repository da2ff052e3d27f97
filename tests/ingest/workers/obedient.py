"""A handler of tasks that does what the task's text says."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from ingest.workers.process import Tell
from tests.waiting import PATIENCE, until


class Obedient:
    """Answers with its process's number and what it remembers."""

    def __init__(self, wrong: str = "") -> None:
        self._wrong = wrong
        self._remembered: list[str] = []

    def load(self) -> str:
        """Lack what it was told to lack; die where that is `die`."""
        if self._wrong == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return self._wrong

    def handle(self, task: str, tell: Tell) -> object:
        """Do what a text says."""
        word, _, rest = task.partition(" ")
        match word:
            case "remember":
                self._remembered.append(rest)
            case "forget":
                self._remembered.remove(rest)
            case "say":
                tell(rest)
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                os._exit(int(rest))
            case "hang":
                time.sleep(PATIENCE)
            case "wait":
                until(Path(rest).exists, "it may end")
            case "fill":
                try:
                    return len(bytes(int(rest)))
                except MemoryError:
                    return "no memory"
        return os.getpid(), tuple(self._remembered)
