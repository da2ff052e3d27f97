"""Open a log wherever it is: a file, a .gz, standard input, or text at hand; bytes come out, bounded."""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ingest.errors import (
    BinaryInputError,
    BrokenArchiveError,
    EmptyInputError,
    FolderInputError,
    MissingInputError,
)

CHUNK = 1 << 20
GZIP = b"\x1f\x8b"

_MAGIC = {
    b"\x7fELF": "a compiled program",
    b"\x89PNG": "an image",
    b"PK\x03\x04": "a zip archive or a PyTorch checkpoint",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"\xfd7zXZ": "an xz archive",
    b"BZh": "a bzip2 archive",
    b"SQLite format 3": "a database",
    b"\x80\x02": "a pickle",
    b"\x80\x04": "a pickle",
    b"%PDF": "a PDF",
}


@dataclass
class LogSource:
    """A log's name and its bytes, in chunks of at most CHUNK bytes.

    `omitted` gathers what could not be read (a damaged tail, say), so that the report can say it.
    """

    name: str
    stream: BinaryIO
    omitted: dict[str, int | str] = field(default_factory=dict)

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes, then close; raises EmptyInputError, BinaryInputError or BrokenArchiveError at the start."""
        with self.stream:
            yield from self._chunks()

    def _chunks(self) -> Iterator[bytes]:
        first = self._read()
        if not first or first in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF8):
            raise EmptyInputError(f"{self.name} is empty: nothing was written, or it is the wrong file.")
        if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            yield from self._transcoded(first)
            return
        refuse_binary(self.name, first)
        yield first
        while chunk := self._read():
            yield chunk

    def _read(self) -> bytes:
        try:
            return self.stream.read(CHUNK)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            # A job that is killed leaves a cut archive; what was read up to there still counts.
            if self.stream.tell() == 0:
                raise BrokenArchiveError(f"{self.name} is no readable gzip file ({error}).") from error
            self.omitted["damaged_archive"] = str(error)
            return b""

    def _transcoded(self, first: bytes) -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
        chunk = first
        while chunk:
            yield decoder.decode(chunk).encode()
            chunk = self._read()


def refuse_binary(name: str, head: bytes) -> None:
    """Raise BinaryInputError if `head`, the first bytes, is not text; a few stray NULs are."""
    for magic, what in _MAGIC.items():
        if head.startswith(magic):
            raise BinaryInputError(f"{name} is {what}, not a text log.")
    sample = head[: 1 << 16]
    if sample.decode("utf-8", "replace").count("\ufffd") > len(sample) // 5 and not _is_chinese(sample):
        raise BinaryInputError(f"{name} is not text: most of its bytes are no characters.")
    strange = sum(sample.count(bytes([code])) for code in (0, 1, 2, 3, 4, 5, 6, 14, 15, 16))
    if strange > len(sample) // 10:
        raise BinaryInputError(f"{name} is not text: {100 * strange // len(sample)} % of its first bytes are control codes.")


def _is_chinese(sample: bytes) -> bool:
    """Tell whether bytes that are no UTF-8 are GB 18030, as older Chinese tools write."""
    decoder = codecs.getincrementaldecoder("gb18030")()
    try:
        decoder.decode(sample)
    except UnicodeDecodeError:
        return False
    return True


def from_path(path: Path) -> LogSource:
    """Open a file, decompressing .gz by its content; raises MissingInputError or FolderInputError."""
    try:
        there = path.exists()
    except OSError as error:
        raise MissingInputError(f"{str(path)[:80]}... is no file: {error.strerror}.") from error
    if not there:
        raise MissingInputError(f"There is no file {path}.")
    if path.is_dir():
        raise FolderInputError(f"{path} is a folder; give one log file, or use `whycrash ingest --logs {path}`.")
    try:
        stream = path.open("rb")
    except OSError as error:
        raise MissingInputError(f"{path} cannot be opened: {error.strerror}.") from error
    # Peeked at, not read and rewound: a shell's process substitution is a pipe.
    compressed = stream.peek(2)[:2] == GZIP
    return LogSource(str(path), _cut_tolerant(stream) if compressed else stream)


def from_stdin() -> LogSource:
    """Read standard input as it comes; raises MissingInputError where there is none."""
    if sys.stdin is None:
        raise MissingInputError("Standard input is closed; give a file.")
    stream = sys.stdin.buffer
    compressed = isinstance(stream, io.BufferedReader) and stream.peek(2)[:2] == GZIP
    return LogSource("stdin", _cut_tolerant(stream) if compressed else stream)


def from_text(text: str, name: str = "paste") -> LogSource:
    """Wrap text that is at hand."""
    return LogSource(name, io.BytesIO(text.encode("utf-8", "surrogateescape")))


def _cut_tolerant(raw: BinaryIO) -> BinaryIO:
    archive = _CutGzip(fileobj=raw, mode="rb")
    archive.myfileobj = raw  # type: ignore[assignment]  # any stream that closes; closed together
    return archive  # type: ignore[return-value]  # GzipFile is a binary stream


class _CutGzip(gzip.GzipFile):
    """Give back what a cut archive holds before complaining: GzipFile.read drops it."""

    def read(self, size: int | None = -1) -> bytes:
        parts: list[bytes] = []
        wanted = CHUNK if size is None or size < 0 else size
        try:
            while wanted > 0 and (part := self.read1(wanted)):
                parts.append(part)
                wanted -= len(part)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            if not parts:
                raise
        return b"".join(parts)
