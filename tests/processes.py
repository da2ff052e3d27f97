"""Processes below another one, as /proc tells; one may end at any moment while it is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def children(process: int) -> list[int]:
    """Give the processes that a process has started, by any of its threads."""
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                found += map(int, (thread / "children").read_text(encoding="ascii").split())
    return found


def descendants(process: int) -> Iterator[int]:
    """Give the processes below one."""
    for child in children(process):
        yield child
        yield from descendants(child)


def command(process: int) -> bytes:
    """Give the words that a process was started with; nothing where it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
