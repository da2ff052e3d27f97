"""Files as they are read: looked at before they are read, in part, or while they still grow."""

from __future__ import annotations

import io
import os
import select
import stat
from pathlib import Path
from time import monotonic
from typing import BinaryIO

from corpus.message import Message
from ingest.errors import (
    BinaryInputError,
    DamagedArchiveError,
    GrowingInputError,
    MissingInputError,
    PartialInputError,
    UnreadableInputError,
)
from ingest.logs.inputs.streams import Readable

# What tells a tar archive stands in its first block.
HEAD = 512
# How far a file that is being written is followed beyond the size it had when it was opened.
GROWTH = 64 << 20
# How long the first byte of a named pipe is waited for.
PIPE_TIMEOUT_S = 30.0


class GrowingFile:
    """A file up to its first end; one that grows faster than it is read ends GROWTH behind its first size.

    A pipe (size None) has an end of its own. Each read gives all that was asked for, except at the end.
    """

    def __init__(self, raw: Readable, size: int | None = None) -> None:
        self._raw = raw
        self._left = None if size is None else size + GROWTH
        self._ended = False

    def read(self, size: int, /) -> bytes:
        """Give the next bytes; raises GrowingInputError or UnreadableInputError where it cannot go on."""
        if self._ended:
            return b""
        if self._left == 0:
            raise GrowingInputError(
                f"it was written to faster than it was read; reading stopped {GROWTH >> 20} MiB behind "
                "its size at first"
            )
        wanted = size if self._left is None else min(size, self._left)
        data = self._piece(wanted)
        # A pipe gives 64 KiB at a time.
        while data and len(data) < wanted and (more := self._piece(wanted - len(data))):
            data += more
        self._ended = len(data) < wanted
        if self._left is not None:
            self._left -= len(data)
        return data

    def _piece(self, size: int) -> bytes:
        try:
            return self._raw.read(size)
        except OSError as error:
            raise UnreadableInputError(f"it cannot be read on: {error.strerror or error}") from error

    def close(self) -> None:
        """Close the file."""
        self._raw.close()


class PeekedStream:
    """A stream whose first bytes (`head`, HEAD of them where it has so many) are known before it is read."""

    def __init__(self, raw: Readable) -> None:
        self._raw = raw
        self._error: PartialInputError | None = None
        self.head = self._begin()
        self._held = self.head

    def _begin(self) -> bytes:
        head = b""
        try:
            while len(head) < HEAD and (piece := self._raw.read(HEAD - len(head))):
                head += piece
        except PartialInputError as error:
            self._error = error
        return head

    def read(self, size: int, /) -> bytes:
        """Give the next bytes, the head first."""
        if self._held:
            held, self._held = self._held[:size], self._held[size:]
            more = b"" if self._error or len(held) == size else self._raw.read(size - len(held))
            return held + more
        if self._error:
            raise self._error
        return self._raw.read(size)

    def close(self) -> None:
        """Close the stream."""
        self._raw.close()


class FileSlice:
    """A part of a file that stays open for others.

    Raises DamagedArchiveError where the file ends before it.
    """

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file = file
        self._place = start
        self._left = size

    def read(self, size: int, /) -> bytes:
        """Give the next bytes."""
        if not self._left:
            return b""
        self._file.seek(self._place)
        data = self._file.read(min(size, self._left))
        if not data:
            raise DamagedArchiveError("the archive is cut inside this file")
        self._place += len(data)
        self._left -= len(data)
        return data

    def close(self) -> None:
        """Leave the file to its owner."""


class BorrowedStream:
    """A stream that is not ours to close."""

    def __init__(self, raw: Readable) -> None:
        self._raw = raw

    def read(self, size: int, /) -> bytes:
        """Give the next bytes."""
        return self._raw.read(size)

    def close(self) -> None:
        """Leave the stream open."""


class _OpenedFile(io.FileIO):
    """A file as it was opened; of a pipe a byte may have been read already.

    None is what a pipe without one gives at once.
    """

    held: bytes | None = None

    def read(self, size: int | None = -1, /) -> bytes:
        """Give the next bytes."""
        held, self.held = self.held, None
        return held or super().read(size)


def open_given(path: Path) -> io.FileIO:
    """Open what a user names, be it a pipe that somebody writes to.

    Raises MissingInputError, or BinaryInputError for a device.
    """
    raw = _opened(path)
    mode = os.fstat(raw.fileno()).st_mode
    if stat.S_ISFIFO(mode) and not _is_written(raw):
        raw.close()
        raise MissingInputError(
            Message("errors.nothing-came-through-pipe", path=path, pipe_timeout_s=f"{PIPE_TIMEOUT_S:g}")
        )
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raw.close()
        raise BinaryInputError(Message("errors.device-not-file-give", path=path))
    os.set_blocking(raw.fileno(), True)
    return raw


def check_given(path: Path) -> None:
    """Raise MissingInputError where what a user names cannot be opened."""
    _opened(path).close()


def _opened(path: Path) -> _OpenedFile:
    """Open a file without waiting, as a pipe that nobody writes to would make one."""
    try:
        return _OpenedFile(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except FileNotFoundError as error:
        raise MissingInputError(Message("errors.no-file", path=path)) from error
    except OSError as error:
        shown = str(path) if len(str(path)) <= 200 else f"{str(path)[:80]}..."
        raise MissingInputError(
            Message("errors.cannot-opened", shown=shown, reason=error.strerror)
        ) from error
    except ValueError as error:
        raise MissingInputError(Message("errors.no-file-name-holds")) from error


def _is_written(pipe: _OpenedFile) -> bool:
    """Wait a while for somebody who writes to a pipe; one who is there may be as slow as he likes."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    end = monotonic() + PIPE_TIMEOUT_S
    while monotonic() < end:
        if poll.poll(100):
            return True
        # Only a read tells a pipe that nobody has opened from one that is silent.
        pipe.held = pipe.read(1)
        if pipe.held != b"":
            return True
    return False


def open_found(path: str) -> GrowingFile:
    """Open what a folder holds, never waiting and following no link; raises OSError."""
    raw = io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
    size = regular_size(raw)
    if size is None:
        raw.close()
        raise OSError("no regular file")
    return GrowingFile(raw, size)


def regular_size(raw: io.FileIO) -> int | None:
    """Give a regular file's size, None for a pipe or a device."""
    status = os.fstat(raw.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None
