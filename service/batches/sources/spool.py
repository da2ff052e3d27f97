"""Redacted, packed copies of what was handed in, under the batch's own folder.

Nothing raw ever has a name on the disk.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import BinaryIO

from corpus.message import Message
from ingest.logs.inputs.compression import packed
from ingest.redaction.redactor import Redactor
from service.persistence.spool import free_bytes
from service.schemas.errors import TooLargeError
from service.schemas.records import JobPlace
from service.settings import Settings

_UNSAFE = re.compile(r"[^\w.@+=-]+")
# In characters, of which each may be four bytes; file systems take names of 255 bytes.
_LONGEST_PART = 60
_DEEPEST = 8


def nothing() -> None:
    """Let it go on."""


@dataclass
class BatchSpool:
    """The copies of one batch; `left` is how many bytes more it may hold, unpacked.

    `check` is called with each piece, and raises where it is to end: at a deadline, or when nobody waits any
    more.
    """

    folder: Path
    left: int
    jobs: int = 0
    check: Callable[[], None] = nothing

    def begin(self) -> SpooledJob:
        """Begin the next job."""
        self.jobs += 1
        return SpooledJob(self, f"{self.jobs:06d}")

    def take(self, size: int) -> None:
        """Count bytes; raises TooLargeError beyond the limit."""
        self.check()
        self.left -= size
        if self.left < 0:
            raise TooLargeError(Message("errors.logs-unpack-more-request"))

    def limit(self, size: int) -> None:
        """Hold no more than `size` bytes from here on."""
        self.left = min(self.left, size)

    def discard(self) -> None:
        """Remove all copies."""
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass
class SpooledJob:
    """The copies of one job's files: one file where it is one log, else a folder."""

    spool: BatchSpool
    number: str
    logs: list[str] = field(default_factory=list)
    configs: list[str] = field(default_factory=list)

    def log(self, name: str, chunks: Iterable[bytes]) -> None:
        """Keep a log, redacted and packed.

        Raises TooLargeError, DiskFullError, or what reading the chunks raises.
        """
        path, file = self._create(name)
        self.logs.append(path)
        with free_bytes(), file:
            for piece in packed(Redactor().stream(self._counted(chunks))):
                file.write(piece)

    def config(self, name: str, raw: bytes) -> None:
        """Keep a configuration, redacted."""
        self.spool.take(len(raw))
        path, file = self._create(name)
        self.configs.append(path)
        with free_bytes(), file:
            file.write(b"".join(Redactor().stream([raw])))

    def place(self) -> JobPlace:
        """Say where the copies are."""
        if len(self.logs) + len(self.configs) == 1:
            return JobPlace(paths=tuple(self.logs), spooled=True)
        return JobPlace(paths=(str(self.spool.folder / self.number),), spooled=True)

    def _counted(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.spool.take(len(chunk))
            yield chunk

    def _create(self, name: str) -> tuple[str, BinaryIO]:
        folder = self.spool.folder / self.number
        with free_bytes():
            self._make(self.spool.folder)
            for path in _candidates(folder, safe_path(name)):
                # Taken by a name that signs told apart which no file name of ours has, or by one that is a
                # folder here.
                with suppress(FileExistsError, IsADirectoryError, NotADirectoryError):
                    self._make(path.parent)
                    opened = os.fdopen(
                        os.open(
                            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
                        ),
                        "wb",
                    )
                    return str(path), opened
        raise AssertionError("there is always a next number")

    def _make(self, folder: Path) -> None:
        if not folder.is_dir():
            folder.mkdir(parents=True, mode=0o700, exist_ok=True)


def open_spool(folder: Path, settings: Settings, check: Callable[[], None] = nothing) -> BatchSpool:
    """Make the spool of a batch whose files are to lie in `folder`."""
    return BatchSpool(folder, settings.max_unpacked_mb << 20, check=check)


def safe_path(name: str) -> str:
    """Give a relative path that stays below its folder, by the names of an archive or a client."""
    clean = Redactor().clean(name)
    parts = [
        part
        for raw in re.split(r"[/\\]", clean)
        if (part := _UNSAFE.sub("_", raw)[-_LONGEST_PART:]).strip(".")
    ]
    return "/".join(parts[-_DEEPEST:]) or "log"


def _candidates(folder: Path, name: str) -> Iterator[Path]:
    """Yield where a file may lie: under its name, then with numbers before it."""
    path = folder / name
    yield path
    for number in count(2):
        yield path.with_name(f"{number}-{path.name}")
        yield folder / f"{number}-{path.name}"
