"""Uploaded files without a name: they have no path on the disk, and are gone when the process ends.

A process that works on them opens them through /proc, where a file that has no name can still be reached.
"""

from __future__ import annotations

import errno
import io
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, cast

from typing_extensions import Buffer

from corpus.message import Message
from ingest.redaction.redactor import Redactor
from service.schemas.errors import BusyError, DiskFullError

_UNSAFE = re.compile(r"[^\w.@+= -]+")
_NAME_LENGTH = 120


@dataclass
class SpooledUpload:
    """An uploaded file: the name that the client gave, only ever a label, and what it holds."""

    name: str
    file: BinaryIO
    size: int = 0

    @property
    def path(self) -> Path:
        """Give where other processes of the same user can open it."""
        return Path(f"/proc/{os.getpid()}/fd/{self.file.fileno()}")

    def write(self, data: bytes) -> None:
        """Add bytes; raises DiskFullError."""
        with free_bytes():
            self.file.write(data)
            self.size += len(data)

    def rewind(self) -> None:
        """Write out what is held back and go to the begin; raises DiskFullError."""
        with free_bytes():
            self.file.seek(0)


class _FileRange(io.RawIOBase):
    """A part of a file that others read, too."""

    def __init__(self, shared: BinaryIO, begin: int, size: int) -> None:
        super().__init__()
        self._shared = shared
        self._begin = begin
        self._size = size
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._place = max(
            0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        )
        return self._place

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer)
        piece = os.pread(
            self._shared.fileno(), max(0, min(len(view), self._size - self._place)), self._begin + self._place
        )
        view[: len(piece)] = piece
        self._place += len(piece)
        return len(piece)


@dataclass
class PackedUpload(SpooledUpload):
    """An uploaded file that lies behind others in one file: a process may have only so many of them open.

    Read in this process.
    """

    begin: int = 0

    def write(self, data: bytes) -> None:
        """Add bytes, once all files before this one are written; raises DiskFullError."""
        if not self.size:
            self.begin = self.file.tell()
        super().write(data)

    def rewind(self) -> None:
        """Write out what is held back, and read from the begin on from here; raises DiskFullError."""
        with free_bytes():
            self.file.flush()
        self.file = cast("BinaryIO", io.BufferedReader(_FileRange(self.file, self.begin, self.size)))


@dataclass
class Spool:
    """The files of one request; all are gone once it is closed.

    `packed` puts them into one, for requests of many files.
    """

    packed: bool = False
    files: list[SpooledUpload] = field(default_factory=list)
    opened: list[BinaryIO] = field(default_factory=list)

    def add(self, name: str) -> SpooledUpload:
        """Begin a file; raises DiskFullError, or BusyError where too many files are open."""
        made = PackedUpload(name, self._shared()) if self.packed else SpooledUpload(name, self._file())
        self.files.append(made)
        return made

    def _shared(self) -> BinaryIO:
        return self.opened[0] if self.opened else self._file()

    def _file(self) -> BinaryIO:
        with free_bytes():
            # Not a context manager: it lives as long as the request.
            made: BinaryIO = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115
        self.opened.append(made)
        return made

    @property
    def paths(self) -> tuple[Path, ...]:
        """Give each file's path."""
        return tuple(file.path for file in self.files)

    @property
    def names(self) -> tuple[str, ...]:
        """Give each file's name, harmless as a label."""
        return tuple(safe_name(file.name) for file in self.files)

    def close(self) -> None:
        """Close the files."""
        for file in self.opened:
            # What could not be written to a full disk is dropped as well.
            with suppress(OSError):
                file.close()
        self.files, self.opened = [], []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def safe_name(name: str) -> str:
    """Give a client's file name without what leads out of a folder, and without secrets.

    Folders in it stay.
    """
    parts = [_UNSAFE.sub("_", part) for part in re.split(r"[/\\]", Redactor().clean(name))]
    return "/".join(part for part in parts if part.strip("._"))[-_NAME_LENGTH:].lstrip("/") or "file"


@contextmanager
def free_bytes() -> Iterator[None]:
    """Turn a full disk into DiskFullError, too many open files into BusyError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DiskFullError(Message("errors.no-room-disk-upload")) from error
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise BusyError(Message("errors.many-files-open"), 5.0) from error
        raise
