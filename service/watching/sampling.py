"""Telemetry beside a job: a process of its own writes a snapshot every so often; the last one is kept."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

# A job that is over sooner needs no samples: its failure is in its first lines.
FIRST_AFTER = 10.0


class Sampling:
    """Starts sampling a little after it is entered, and ends it at exit; every 0 seconds means never."""

    def __init__(self, every: float, first_after: float = FIRST_AFTER) -> None:
        self._every = every
        self._process: subprocess.Popen[bytes] | None = None
        self._timer = threading.Timer(first_after, self._start)
        self._timer.daemon = True
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def latest(self) -> Path | None:
        """The last snapshot, where there is one."""
        path = Path(self._folder.name) / "snapshot.json" if self._folder else None
        return path if path and path.exists() else None

    def _start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="whycrash-")
        command = [sys.executable, "-m", "ui.cli.main", "snapshot", "--watch", f"{self._every:g}", "--out", f"{self._folder.name}/snapshot.json"]
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )
        # The job comes first, also while the sampler loads.
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, 19)

    def stop(self) -> None:
        """Take no more samples."""
        self._timer.cancel()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=3)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        if self._every:
            self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
        if self._folder is not None:
            self._folder.cleanup()
