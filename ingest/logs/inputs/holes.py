"""Holes of NUL bytes in a log.

Left where a file was cut while it was written to, or where a node lost its last blocks.

`logrotate` with `copytruncate` cuts a file to nothing while its writer goes on at its old place: the file
system fills what lies between with NULs. A machine that loses power leaves blocks that were reserved and
never written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ingest.logs.inputs.encodings import HOLE

_NULS = re.compile(rb"\0{%d,}" % HOLE)


@dataclass
class Holes:
    """Takes the holes out of a log, and counts them."""

    size: int = 0
    count: int = 0
    is_at_end: bool = False
    _held: int = 0
    _last: bytes = b"\n"

    def begin(self, size: int) -> None:
        """Note a hole before the first line, most of which was skipped already.

        What is left of it may follow.
        """
        self._held = size

    def without(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Give the chunks without their holes.

        Where one stood inside a line, a carriage return parts what it joins.

        That starts no line, so that all lines keep their numbers.
        """
        for chunk in chunks:
            if not self._held and 0 not in chunk:
                self._last = chunk[-1:]
                yield chunk
            elif text := self._closed(chunk):
                yield text
        if self._held >= HOLE:
            self._note(self._held)
            self.is_at_end = True
        elif self._held:
            yield bytes(self._held)

    def _closed(self, chunk: bytes) -> bytes:
        """Give a chunk without its holes; NULs at its end wait for what follows."""
        text = chunk.rstrip(b"\0")
        held, self._held = self._held, len(chunk) - len(text) + (0 if text else self._held)
        if not text:
            return b""
        if held:
            inner = text.lstrip(b"\0")
            text = self._joined(held + len(text) - len(inner), inner[:1]) + inner
        text = _NULS.sub(
            lambda hole: self._joined(
                hole.end() - hole.start(),
                text[hole.end() : hole.end() + 1],
                text[max(0, hole.start() - 1) : hole.start()],
            ),
            text,
        )
        self._last = text[-1:]
        return text

    def _joined(self, size: int, after: bytes, before: bytes = b"") -> bytes:
        """Give what stands where NULs stood."""
        if size < HOLE:
            return bytes(size)
        self._note(size)
        return b"" if (before or self._last) in b"\r\n" or after in b"\r\n" else b"\r"

    def _note(self, size: int) -> None:
        self.size += size
        self.count += 1

    def __str__(self) -> str:
        """Say what was left out, in words."""
        places = "one place" if self.count == 1 else f"{self.count} places"
        why = "its last blocks were lost" if self.is_at_end else "the file was cut while it was written to"
        return f"{self.size} NUL bytes in {places}: {why}"
