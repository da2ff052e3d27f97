"""A pool whose workers are Ray actors, in a cluster started on this machine or in a named one.

The workers read logs, home folder and corpus by their paths, so a cluster of several machines needs them on a
shared disk, and whycrash installed on each.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from ingest.errors import PoolLostError
from ingest.workers import ray_driver, ray_folders, spawning
from ingest.workers.messages import PoolEvent, TaskAnswered, TaskMessage
from ingest.workers.process import WorkerProgram
from ingest.workers.ray_driver import PoolCall, RayPlan, RayStatus

# Seconds without a heartbeat until the process between this one and Ray is taken for dead; more while it
# connects.
SILENCE = 20.0
CONNECTING = 120.0
PREFIX = "wc-ray-"


class RayPool:
    """Speaks with the process that holds the connection to Ray.

    When it ends, all tasks are lost. Opening it returns at once; its workers start in the background.
    """

    def __init__(
        self,
        program: WorkerProgram,
        address: str = "",
        size: int = 0,
        *,
        depth: int = 1,
        first_alone: bool = False,
    ) -> None:
        """Connect to the cluster at `address`, else start Ray here; `size` 0 is a worker for each core."""
        sweep()
        # Named by this process: what a killed one left is known by its number.
        self._folder = Path(ray_folders.new_folder(f"{PREFIX}{os.getpid()}-"))
        self._depth = depth
        context = spawning.context()
        self._pipe, other = context.Pipe()
        plan = RayPlan(program, address, size, str(self._folder), depth, first_alone)
        self._process = context.Process(
            target=ray_driver.serve, args=(other, plan), name="ray-driver", daemon=True
        )
        self._process.start()
        other.close()
        self._ready = 0
        # The keys that workers have, and whether each is held beyond the task that it was handed over with.
        self._out: dict[str, bool] = {}
        self._ends = monotonic() + CONNECTING

    @property
    def capacity(self) -> int:
        """How many more keys the ready workers take."""
        return max(0, self._ready * self._depth - len(self._out))

    @property
    def pid(self) -> int:
        """The number of the process that speaks with Ray."""
        return self._process.pid or 0

    def submit(self, key: str, task: object, seconds: float, *, hold: bool = False) -> None:
        """Hand a task to the worker with the least to do."""
        self._out[key] = hold
        self._send(PoolCall("submit", (key, task, seconds), {"hold": hold}))

    def follow_up(self, key: str, task: object) -> None:
        """Hand the worker that holds the key its last task."""
        if key in self._out:
            self._out[key] = False
            self._send(PoolCall("follow_up", (key, task)))

    def release(self, key: str, notice: object = None) -> None:
        """Let go of a held key."""
        self._out.pop(key, None)
        self._send(PoolCall("release", (key, notice)))

    def abandon(self, key: str, notice: object = None) -> None:
        """Stop work on a key."""
        self._out.pop(key, None)
        self._send(PoolCall("abandon", (key, notice)))

    def events(self, timeout: float) -> Sequence[PoolEvent]:
        """Wait for events."""
        try:
            if not self._pipe.poll(timeout):
                if monotonic() > self._ends:
                    raise PoolLostError("Ray does not answer.")
                return []
            found: list[PoolEvent] = []
            while self._pipe.poll():
                found += self._received(self._pipe.recv())
        except (EOFError, OSError) as error:
            raise PoolLostError("The process that speaks with Ray ended; its head may be gone.") from error
        return found

    def close(self) -> None:
        """End the process, with it the actors and a Ray of this machine."""
        # It shuts Ray down once the pipe is closed, which takes a second.
        self._pipe.close()
        self._process.join(timeout=10)
        self._process.kill()
        self._process.join(timeout=5)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _send(self, call: PoolCall) -> None:
        try:
            self._pipe.send(call)
        except OSError as error:
            raise PoolLostError("The process that speaks with Ray ended.") from error

    def _received(self, status: RayStatus) -> Sequence[PoolEvent]:
        if status.wrong:
            raise PoolLostError(status.wrong)
        self._ready = status.ready
        self._ends = monotonic() + SILENCE
        for event in status.events:
            is_held = isinstance(event, TaskAnswered) and self._out.get(event.key)
            if not isinstance(event, TaskMessage) and not is_held:
                self._out.pop(event.key, None)
        return status.events


def sweep() -> None:
    """Remove the folders that killed processes left of their Ray."""
    for folder in Path(ray_folders.place()).glob(f"{PREFIX}*"):
        number = folder.name.removeprefix(PREFIX).split("-")[0]
        if number.isdecimal() and not Path("/proc", number).exists():
            shutil.rmtree(folder, ignore_errors=True)
