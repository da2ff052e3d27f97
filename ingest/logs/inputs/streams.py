"""Read what is compressed as a stream, as fast as its decoder, a cut or damaged one as far as it goes.

From the second piece on a thread decompresses ahead, so that scanning and decompressing overlap.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Queue
from threading import Event, Thread
from typing import Protocol

from ingest.errors import BombInputError, DamagedArchiveError, PartialInputError
from ingest.logs.inputs.compression import DEFLATE, ERRORS, Codec, Decoder

CHUNK = 1 << 20
# Small enough that many tiny members (each hands back what follows it) stay cheap, large enough for speed.
READ = 128 << 10
AHEAD = 3
# A stream that blocks (a pipe that nobody writes to) must not hold up whoever stops early.
JOIN_TIMEOUT_S = 2.0
# Repetitive logs shrink a thousandfold and are no bomb; the ratio counts from here on.
UNSUSPICIOUS = 256 << 20

Pieces = Generator[bytes, None, None]


class Readable(Protocol):
    """What is read from: `read` gives at most `size` bytes, none at the end."""

    def read(self, size: int, /) -> bytes:
        """Give the next bytes."""

    def close(self) -> None:
        """Let go of what is open."""


class Decompressed:
    """A compressed stream's content, to be read in pieces.

    Reading raises DamagedArchiveError where it breaks.

    All that stands before the damage is given first. `ratio` is how many times its size a stream may have.
    """

    def __init__(self, raw: Readable, codec: Codec, ratio: int) -> None:
        self._raw = raw
        self._pieces = _gathered(_members(raw, codec, ratio))
        self._piece = b""
        self._reads = 0

    def read(self, size: int, /) -> bytes:
        """Give at most `size` bytes, none at the end."""
        if not self._piece:
            self._piece = next(self._pieces, b"")
            self._reads += 1
            # What fits into one piece needs no thread.
            if self._reads == 1 and len(self._piece) >= CHUNK // 2:
                self._pieces = ahead(self._pieces)
        piece, self._piece = self._piece[:size], self._piece[size:]
        return piece

    def close(self) -> None:
        """Stop decompressing and close what is read from."""
        self._pieces.close()
        self._raw.close()


def ahead(pieces: Pieces) -> Pieces:
    """Run a generator in a thread that keeps AHEAD pieces ready; closing this one ends the thread."""
    queue: Queue[bytes | Exception | None] = Queue(AHEAD)
    stopped = Event()
    thread = Thread(target=_fill, args=(pieces, queue, stopped), name="whycrash-decompress", daemon=True)
    thread.start()
    try:
        while (item := queue.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        stopped.set()
        # Make room for what the thread is about to put.
        with suppress(Empty):
            while True:
                queue.get_nowait()
        thread.join(JOIN_TIMEOUT_S)


def _fill(pieces: Pieces, queue: Queue[bytes | Exception | None], stopped: Event) -> None:
    end: Exception | None = None
    try:
        if not _put(pieces, queue, stopped):
            return
    except Exception as error:  # noqa: BLE001 - whoever reads the queue gets it
        end = error
    queue.put(end)


def _put(pieces: Pieces, queue: Queue[bytes | Exception | None], stopped: Event) -> bool:
    """Put pieces into the queue; tells whether all were wanted."""
    for piece in pieces:
        queue.put(piece)
        if stopped.is_set():
            return False
    return True


def _gathered(pieces: Iterator[bytes]) -> Pieces:
    """Join small pieces, so that a stream of many short members is no rain of drops."""
    end: PartialInputError | None = None
    more = True
    while more:
        held: list[bytes] = []
        try:
            more = _fetched(pieces, held)
        except PartialInputError as error:
            more, end = False, error
        if held:
            yield b"".join(held)
    if end:
        raise end


def _fetched(pieces: Iterator[bytes], held: list[bytes]) -> bool:
    """Put pieces into `held` up to half a chunk; tells whether more may follow."""
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= CHUNK // 2:
            return True
    return False


@dataclass
class _Input:
    """What is read of the compressed stream, counted."""

    raw: Readable
    codec: Codec
    taken: int = 0

    def more(self) -> bytes:
        """Read on; raises DamagedArchiveError where what is read from fails."""
        try:
            data = self.raw.read(READ)
        except ERRORS as error:
            raise DamagedArchiveError(f"the {self.codec.name} stream cannot be read on: {error}") from error
        self.taken += len(data)
        return data

    def following(self, data: bytes) -> bytes:
        """Give the next member's beginning after the last one's end; tools pad with NUL bytes."""
        data = data.lstrip(b"\0")
        while len(data) < 10 and (more := self.more()):
            data = (data + more).lstrip(b"\0")
        if data and not self.codec.begins.match(data):
            raise DamagedArchiveError(
                f"what follows the end of the {self.codec.name} stream is no {self.codec.name}"
            )
        return data


def _members(raw: Readable, codec: Codec, ratio: int) -> Iterator[bytes]:
    """Unpack one member after the other; raises DamagedArchiveError where the stream is cut or damaged."""
    source = _Input(raw, codec)
    given = 0
    data = source.more()
    while data:
        decoder = codec.decoder()
        for piece in _member(source, decoder, data):
            given += len(piece)
            if given > max(UNSUSPICIOUS, ratio * source.taken):
                raise BombInputError(f"the {codec.name} stream holds more than {ratio} times its size")
            yield piece
        if codec is DEFLATE:
            return
        data = source.following(decoder.unused_data)


def _member(source: _Input, decoder: Decoder, data: bytes) -> Iterator[bytes]:
    while not decoder.eof:
        if decoder.needs_input and not data and not (data := source.more()):
            raise DamagedArchiveError(f"the {source.codec.name} stream is cut: it ends before its end mark")
        try:
            piece = decoder.decompress(data, source.codec.step)
        except ERRORS as error:
            raise DamagedArchiveError(f"the {source.codec.name} stream is damaged: {error}") from error
        data = b""
        if piece:
            yield piece
