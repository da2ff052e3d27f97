"""Telemetry beside a job: a process of its own writes a snapshot every so often; the last one is kept."""

from __future__ import annotations

import os
import signal
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
# From linux/prctl.h.
_PR_SET_PDEATHSIG = 1


class TelemetrySampler:
    """Starts sampling a little after it is entered, and ends it at exit; every 0 seconds means never."""

    def __init__(self, every: float, first_after: float = FIRST_AFTER) -> None:
        self._every = every
        self._stopping = threading.Event()
        # It stays as long as the samples are taken: the kernel ends the sampler with the thread that started
        # it.
        self._thread = threading.Thread(target=self._sample, args=(first_after,), daemon=True)
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def latest(self) -> Path | None:
        """The last snapshot, where there is one."""
        path = Path(self._folder.name) / "snapshot.json" if self._folder else None
        return path if path and path.exists() else None

    def _sample(self, first_after: float) -> None:
        if self._stopping.wait(first_after):
            return
        try:
            process = self._started()
        except (OSError, subprocess.SubprocessError):
            return  # a disk that is full, or too many processes, cost the samples and nothing else
        self._stopping.wait()
        process.terminate()
        try:
            process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        # Imported here: most jobs that fail at once should not have waited for it.
        import ctypes

        control = ctypes.CDLL(None).prctl
        self._folder = tempfile.TemporaryDirectory(prefix="whycrash-")
        # -P: the job's folder may hold modules of our names.
        command = [
            sys.executable,
            "-P",
            "-m",
            "ui.cli.main",
            "snapshot",
            "--watch",
            f"{self._every:g}",
            "--out",
            f"{self._folder.name}/snapshot.json",
        ]
        process = subprocess.Popen(  # noqa: S603 - our own program
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            # After a kill of this process, nothing else would end it.
            preexec_fn=lambda: control(_PR_SET_PDEATHSIG, signal.SIGTERM),
        )
        # The job comes first, also while the sampler loads.
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, 19)
        return process

    def stop(self) -> None:
        """Take no more samples."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> Self:
        if self._every:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._folder is not None:
            self._folder.cleanup()
