"""Forms of compression, told by their content: gzip, zstd, xz, bzip2; each unpacked in bounded pieces."""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import zstandard

# What xz -9 asks for is a tenth of this.
XZ_MEMORY = 512 << 20
# What the decoders raise on damaged data; bz2 raises OSError.
ERRORS = (zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError, EOFError, ValueError)

_STEP = 512 << 10
# xz and bzip2 lose the piece that they break in, and are slow enough for small steps to cost nothing.
_SLOW_STEP = 128 << 10
_ZSTD_BLOCK = 128 << 10
_ZSTD_HEADER = 18
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")


class Decoder(Protocol):
    """One member of a compressed stream, as the standard library's decoders are used."""

    @property
    def eof(self) -> bool:
        """Tell whether the member's end was reached."""

    @property
    def needs_input(self) -> bool:
        """Tell whether it can give nothing without more input."""

    @property
    def unused_data(self) -> bytes:
        """Give what follows the member's end."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Give at most `max_length` bytes; what is left of `data` is kept."""


class _ZlibDecompressor:
    """A zlib decompressor with the interface of those of bz2 and lzma.

    Of damaged data, what stands before the damage is given first.
    """

    def __init__(self, window: int) -> None:
        self._zlib = zlib.decompressobj(window)
        self._full = False
        self._error: zlib.error | None = None

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not (self._full or self._zlib.unconsumed_tail or self._error)

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        if self._error:
            raise self._error
        data = self._zlib.unconsumed_tail + data
        before = self._zlib.copy()
        try:
            piece = self._zlib.decompress(data, max_length)
        except zlib.error as error:
            # zlib drops what the failing call had already unpacked; small steps get it back.
            self._error = error
            pieces = []
            with suppress(zlib.error):
                while piece := before.decompress(data, 64):
                    pieces.append(piece)
                    data = before.unconsumed_tail
            return b"".join(pieces)
        self._full = len(piece) == max_length
        return piece


class _ZstdFrame:
    """Unpack one zstd frame block by block.

    The package's own objects give all that an input holds, which may be gigabytes from one read, and do not
    tell a cut frame from a whole one. A block unpacks to 128 KiB at most and says where the next begins:
    https://datatracker.ietf.org/doc/html/rfc8878#section-3.1.1
    """

    def __init__(self) -> None:
        self._decoder = zstandard.ZstdDecompressor().decompressobj()
        self._held = b""
        self._next = 0  # where, in what is held, the next block begins
        self._begun = self._last = self._skippable = self._checksum = False

    @property
    def eof(self) -> bool:
        return self._begun and self._last and self._next == 0

    @property
    def needs_input(self) -> bool:
        return not self._begun or len(self._held) < (self._next or 3)

    @property
    def unused_data(self) -> bytes:
        return self._held if self.eof else b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        held = self._held + data
        self._begun = self._begun or self._begin(held)
        stop = min(self._ends(held, max_length // _ZSTD_BLOCK - 1), len(held)) if self._begun else 0
        self._next -= stop
        self._held = held[stop:]
        return b"" if self._skippable or not stop else self._decoder.decompress(held[:stop])

    def _begin(self, held: bytes) -> bool:
        if self._skippable or _SKIPPABLE.match(held):
            self._skippable = self._last = True
            self._next = 8 + int.from_bytes(held[4:8], "little")
            return len(held) >= 8
        try:
            self._next = zstandard.frame_header_size(held)
            self._checksum = zstandard.get_frame_parameters(held).has_checksum
        except zstandard.ZstdError:
            if len(held) >= _ZSTD_HEADER:
                raise
            return False
        return True

    def _ends(self, held: bytes, count: int) -> int:
        """Give where `count` blocks end at most; beyond what is held where the last is not whole."""
        place = self._next
        while count and not self._last and place + 3 <= len(held):
            header = int.from_bytes(held[place : place + 3], "little")
            # A block of one repeated byte (type 1) has that byte alone.
            place += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
            self._last = bool(header & 1)
            place += 4 * (self._last and self._checksum)
            count -= 1
        self._next = place
        return place


@dataclass(frozen=True, slots=True)
class Codec:
    """A form of compression: how it begins, how one member of it is unpacked, in pieces of which size."""

    name: str
    begins: re.Pattern[bytes]
    decoder: Callable[[], Decoder]
    step: int = _STEP


CODECS = (
    Codec("gzip", re.compile(rb"\x1f\x8b"), partial(_ZlibDecompressor, 16 + zlib.MAX_WBITS)),
    Codec("zstd", re.compile(re.escape(_ZSTD) + rb"|" + _SKIPPABLE.pattern), _ZstdFrame),
    Codec(
        "xz",
        re.compile(rb"\xfd7zXZ\x00"),
        partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, XZ_MEMORY),
        _SLOW_STEP,
    ),
    Codec("bzip2", re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), bz2.BZ2Decompressor, _SLOW_STEP),
)
# Inside a zip archive, deflated data has no frame of its own.
DEFLATE = Codec("zip", re.compile(rb"(?!)"), partial(_ZlibDecompressor, -zlib.MAX_WBITS))


def codec_of(head: bytes) -> Codec | None:
    """Tell by its first bytes how a stream is compressed, if it is."""
    return next((codec for codec in CODECS if codec.begins.match(head)), None)


def packed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Pack bytes that come in pieces as one zstd frame."""
    packer = zstandard.ZstdCompressor().compressobj()
    for chunk in chunks:
        if piece := packer.compress(chunk):
            yield piece
    yield packer.flush()
