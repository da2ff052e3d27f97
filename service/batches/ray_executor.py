"""An executor whose workers are Ray actors, in a cluster started on this machine or in a named one.

The workers read logs, home folder and corpus by their paths, so a cluster of several machines needs them on a
shared disk, and whycrash installed on each.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from ingest import sockets
from service.batches import ray_process
from service.batches.commands import JobCommand, JobWasRead, Outcome
from service.batches.executor import ExecutorLostError
from service.batches.ray_process import PoolCall, RayStatus
from service.batches.worker_pool import DEPTH
from service.settings import Settings, without_secrets
from service.workers import spawning

# Seconds without a heartbeat until the process between the engine and Ray is taken for dead; more while it
# connects.
SILENCE = 20.0
CONNECTING = 120.0
PREFIX = "wc-ray-"


def open_ray(settings: Settings) -> RayExecutor:
    """Open an executor on Ray; returns at once; its workers start in the background."""
    return RayExecutor(settings)


class RayExecutor:
    """Speaks with the process that holds the connection to Ray.

    When it ends, all commands are lost.
    """

    def __init__(self, settings: Settings) -> None:
        sweep()
        # Named by this process: what a killed one left is known by its number.
        self._folder = Path(sockets.new_folder(f"{PREFIX}{os.getpid()}-"))
        context = spawning.context()
        self._pipe, other = context.Pipe()
        self._process = context.Process(
            target=ray_process.serve,
            args=(other, without_secrets(settings), str(self._folder)),
            name="batch-ray",
            daemon=True,
        )
        self._process.start()
        other.close()
        self._ready = 0
        self._out: set[str] = set()
        self._ends = monotonic() + CONNECTING

    @property
    def capacity(self) -> int:
        """How many more commands the ready workers take."""
        return max(0, self._ready * DEPTH - len(self._out))

    @property
    def pid(self) -> int:
        """The number of the process that speaks with Ray."""
        return self._process.pid or 0

    def submit(self, command: JobCommand) -> None:
        """Have a job read."""
        self._out.add(command.id)
        self._send("submit", command)

    def answer(self, job_id: str) -> None:
        """Have a job that was read answered."""
        self._send("answer", job_id)

    def answer_by_rules(self, job_id: str) -> None:
        """Have a job that was read answered without a model."""
        self._send("answer_by_rules", job_id)

    def drop(self, job_id: str) -> None:
        """Have a job that was read forgotten."""
        self._out.discard(job_id)
        self._send("drop", job_id)

    def abandon(self, job_id: str) -> None:
        """Stop work on a job."""
        self._out.discard(job_id)
        self._send("abandon", job_id)

    def outcomes(self, timeout: float) -> Sequence[Outcome]:
        """Wait for outcomes."""
        try:
            if not self._pipe.poll(timeout):
                if monotonic() > self._ends:
                    raise ExecutorLostError("Ray does not answer.")
                return []
            told = list(self._heard())
        except (EOFError, OSError) as error:
            raise ExecutorLostError(
                "The process that speaks with Ray ended; its head may be gone."
            ) from error
        return told

    def close(self) -> None:
        """End the process, with it the actors and a Ray of this machine."""
        # It shuts Ray down once the pipe is closed, which takes a second.
        self._pipe.close()
        self._process.join(timeout=10)
        self._process.kill()
        self._process.join(timeout=5)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _send(self, name: str, value: JobCommand | str) -> None:
        try:
            self._pipe.send(PoolCall(name, value))
        except OSError as error:
            raise ExecutorLostError("The process that speaks with Ray ended.") from error

    def _heard(self) -> Sequence[Outcome]:
        found: list[Outcome] = []
        while self._pipe.poll():
            bulletin: RayStatus = self._pipe.recv()
            if bulletin.wrong:
                raise ExecutorLostError(bulletin.wrong)
            self._ready = bulletin.ready
            self._ends = monotonic() + SILENCE
            found += bulletin.outcomes
        for outcome in found:
            if not isinstance(outcome, JobWasRead):
                self._out.discard(outcome.id)
        return found


def sweep() -> None:
    """Remove the folders that killed processes left of their Ray."""
    for folder in Path(sockets.place()).glob(f"{PREFIX}*"):
        number = folder.name.removeprefix(PREFIX).split("-")[0]
        if number.isdecimal() and not Path("/proc", number).exists():
            shutil.rmtree(folder, ignore_errors=True)
