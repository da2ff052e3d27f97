"""Uploaded files without a name: what was uploaded stands on the disk under no path, and is gone when we are.

A process that works on them opens them through /proc, where a file that has no name can still be reached.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from ingest.redact import Redactor
from service.errors import DiskFullError

_UNSAFE = re.compile(r"[^\w.@+= -]+")
_NAME_LENGTH = 120


@dataclass
class Spooled:
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
        with room():
            self.file.write(data)
            self.size += len(data)

    def rewind(self) -> None:
        """Write out what is held back and go to the begin; raises DiskFullError."""
        with room():
            self.file.seek(0)


@dataclass
class Spool:
    """The files of one request; all are gone once it is closed."""

    files: list[Spooled] = field(default_factory=list)

    def add(self, name: str) -> Spooled:
        """Begin a file; raises DiskFullError."""
        with room():
            # Not a context manager: it lives as long as the request.
            made = Spooled(name, tempfile.TemporaryFile())  # noqa: SIM115
        self.files.append(made)
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
        """Let the files go."""
        for spooled in self.files:
            spooled.file.close()
        self.files = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def safe_name(name: str) -> str:
    """Give a client's file name without what leads out of a folder, and without secrets; folders in it stay."""
    parts = [_UNSAFE.sub("_", part) for part in re.split(r"[/\\]", Redactor().clean(name))]
    return "/".join(part for part in parts if part.strip("._"))[-_NAME_LENGTH:].lstrip("/") or "file"


@contextmanager
def room() -> Iterator[None]:
    """Turn a full disk into DiskFullError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DiskFullError("There is no room on the disk for the upload.") from error
        raise
