"""Read logs in a process of their own: one that kills or hangs its reader takes nothing else along.

The process is `python -m ingest.subprocess_reader CACHE`: an ingest task a line comes in, an intake a line
goes out.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any, Self

from corpus import log_patterns
from ingest import ingest_tasks
from ingest.ingest_tasks import IngestedContent, IngestTask
from ingest.logs.reader import Reader

# Seconds that a log may take besides those for its size: the first one of a process waits for its patterns.
PATIENCE = 120.0
BYTES_PER_SECOND = 1_000_000


class _GoneError(Exception):
    """The process ended."""


class _SlowError(_GoneError):
    """The process gave no answer in time."""


class SubprocessReader:
    """Takes ingest tasks one after the other in a process that is started anew when it died.

    For one thread.
    """

    def __init__(self, cache: Path, timeout: float = PATIENCE) -> None:
        self._cache = cache
        self._timeout = timeout
        self.process: subprocess.Popen[bytes] | None = None

    def read(self, ingest_task: IngestTask) -> IngestedContent:
        """Take in a file.

        One that ends the process twice, or takes too long, becomes an intake with its reason. It has no hash,
        so that the next run tries it again.
        """
        try:
            return self._answered(ingest_task)
        except _GoneError as error:
            return IngestedContent(ingest_task.file, reason=f"{ingest_task.file}: {error}")

    def _answered(self, ingest_task: IngestTask) -> IngestedContent:
        try:
            return self._answer(ingest_task)
        except _SlowError:
            self.close()
            raise
        except _GoneError:
            # It may have been the process that somebody ended, and not the log.
            self.close()
        try:
            return self._answer(ingest_task)
        except _GoneError:
            self.close()
            raise

    def _answer(self, ingest_task: IngestTask) -> IngestedContent:
        process = self.process = self.process or self._started()
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes
        try:
            process.stdin.write(json.dumps(asdict(ingest_task)).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise _GoneError("the process that was to read it ended") from error
        limit = self._timeout + ingest_task.bytes / BYTES_PER_SECOND
        row = _line(process.stdout.fileno(), limit)
        if not row:
            code = process.wait()
            ending = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise _GoneError(f"the process that read it ended ({ending})")
        record: dict[str, Any] = json.loads(row)
        return ingest_tasks.restored(record)

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - this very program
            # -P: the current folder may hold modules of our names.
            [sys.executable, "-P", "-m", "ingest.subprocess_reader", str(self._cache)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for this process, which closes the pipe
        )

    def close(self) -> None:
        """End the process."""
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in filter(None, (process.stdin, process.stdout)):
            with suppress(OSError):
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _line(descriptor: int, limit: float) -> bytes:
    """Read a line within a time; empty at the end of the pipe. Raises _SlowError where the time is over."""
    deadline = monotonic() + limit
    row = bytearray()
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while not row.endswith(b"\n"):
        if not poll.poll(max(0.0, 1000 * (deadline - monotonic()))):
            raise _SlowError(f"reading it took longer than {limit:.0f} seconds")
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            return b""
        row += piece
    return bytes(row)


def main(cache: Path) -> None:
    """Answer ingest tasks until standard input is closed."""
    # What is printed by accident must not stand between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    reader = Reader(log_patterns.load(cache=cache), cache)
    for row in sys.stdin:
        made = ingest_tasks.ingest_file(IngestTask(**json.loads(row)), reader)
        answers.write(json.dumps(made.record()) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
