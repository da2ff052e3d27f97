"""Logs that are pipes: whoever reads one waits for what a test writes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from tests.waiting import PATIENCE


def reader_of(path: Path, seconds: float = PATIENCE) -> tuple[int, int]:
    """Wait for a process that reads a pipe; gives its number and our end of the pipe."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.02)
            continue
        # Our end stays open: were it closed, who has just opened the other would find an empty log and be
        # done.
        while time.monotonic() < end:
            for number in holders(path):
                return number, handle
            time.sleep(0.01)
    raise AssertionError(f"nobody reads {path}")


def reader_now(path: Path) -> Iterator[tuple[int, int]]:
    """Give the process that reads a pipe now, if one does, and our end of the pipe."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return
    number = next(holders(path), None)
    if number is None:
        os.close(handle)
        return
    yield number, handle


def holders(path: Path) -> Iterator[int]:
    """Give the other processes that have a file open."""
    own = os.getpid()
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal() or int(process.name) == own:
            continue
        try:
            names = [str(file.readlink()) for file in (process / "fd").iterdir()]
        except OSError:
            continue
        if str(path) in names:
            yield int(process.name)
