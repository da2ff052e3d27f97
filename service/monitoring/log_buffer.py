"""A bounded copy of what a job prints, read where it fails: its beginning and end, in unnamed files.

What is dropped in between leaves its line ends, so that line numbers stay those of the whole output.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

HEAD = 64 << 20
SEGMENT = 64 << 20
SEGMENTS = 4
# The longest line that is held back until its end comes.
LONGEST = 1 << 20
_BLANKS = 1 << 20


class LogBuffer:
    """Takes the bytes of one or two streams, whole lines at a time, so that those of two streams do not mix.

    A disk that is full ends the copy and nothing else: `broken` says so.
    """

    def __init__(self, head: int = HEAD, segment: int = SEGMENT, segments: int = SEGMENTS) -> None:
        self._head_left = head
        self._segment = segment
        self._segments = segments
        # Made with the first bytes: where the disk is full, the job runs all the same.
        self._head: IO[bytes] | None = None
        self._tail: deque[tuple[IO[bytes], int]] = deque()
        self.held: dict[int, bytes] = {}
        self._size = 0
        self.dropped_lines = 0
        self.dropped_bytes = 0
        self.broken = ""

    def write(self, stream: int, data: bytes) -> None:
        """Take what a stream, known by a number, has printed."""
        end = data.rfind(b"\n") + 1
        held = self.held.get(stream, b"")
        if not end and len(held) + len(data) <= LONGEST:
            self.held[stream] = held + data
            return
        end = end or len(data)
        self._write(held)
        self._write(data[:end])
        self.held[stream] = data[end:]

    def _write(self, data: bytes) -> None:
        if not data or self.broken:
            return
        self._size += len(data)
        try:
            if self._head_left > 0:
                if self._head is None:
                    self._head = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the copy
                self._head.write(data)
                self._head_left -= len(data)
            else:
                if not self._tail or self._tail[-1][1] >= self._segment:
                    self._turn()
                file, size = self._tail.pop()
                file.write(data)
                self._tail.append((file, size + len(data)))
        except OSError as error:
            self.broken = (
                f"The copy of the job's output stopped after {self._size >> 20} MiB: {error.strerror}."
            )

    def _turn(self) -> None:
        """Begin another segment; the oldest goes once there are too many."""
        if len(self._tail) >= self._segments:
            old, size = self._tail.popleft()
            self.dropped_lines += sum(piece.count(b"\n") for piece in _read(old))
            self.dropped_bytes += size
            old.close()
        self._tail.append((tempfile.TemporaryFile(), 0))  # noqa: SIM115 - closed when its turn to go comes

    def chunks(self) -> Iterator[bytes]:
        """Give what was kept, with a blank line for each that was dropped."""
        for stream in list(self.held):
            self._write(self.held.pop(stream))
        if self._head is not None:
            yield from _read(self._head)
        for begin in range(0, self.dropped_lines, _BLANKS):
            yield b"\n" * min(_BLANKS, self.dropped_lines - begin)
        for file, _ in self._tail:
            yield from _read(file)

    def close(self) -> None:
        """Close the files."""
        for file in filter(None, (self._head, *(file for file, _ in self._tail))):
            # What could not be written to a full disk is dropped.
            with suppress(OSError):
                file.close()


def _read(file: IO[bytes]) -> Iterator[bytes]:
    try:
        file.seek(0)
    except OSError:
        return  # what could not be flushed to a full disk
    while piece := file.read(1 << 20):
        yield piece


class BufferStream:
    """The chunks as a stream to read from."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int, /) -> bytes:
        """Give at most `size` bytes, none at the end."""
        if not self._rest:
            # An empty piece is not the end.
            self._rest = next(filter(None, self._chunks), b"")
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece

    def close(self) -> None:
        """Stop reading."""
        self._chunks = iter(())
