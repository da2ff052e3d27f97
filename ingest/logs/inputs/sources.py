"""Open one log wherever it is: a file, compressed or not, standard input, or text at hand.

Bytes come out, bounded.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from corpus.message import Message
from corpus.paths import base_name
from ingest.errors import (
    ArchiveInputError,
    BrokenArchiveError,
    EmptyInputError,
    FolderInputError,
    MissingInputError,
    PartialInputError,
)
from ingest.logs.inputs.compression import codec_of
from ingest.logs.inputs.encodings import HOLE, MARKS, encoding_of, refuse_binary
from ingest.logs.inputs.files import BorrowedStream, GrowingFile, PeekedStream, open_given, regular_size
from ingest.logs.inputs.holes import Holes
from ingest.logs.inputs.members import LIMITS, JobLimits
from ingest.logs.inputs.notebooks import LONGEST_FILE, as_output, is_notebook
from ingest.logs.inputs.streams import CHUNK, Decompressed, Readable
from ingest.logs.inputs.tarballs import is_tar
from ingest.logs.inputs.zips import BEGINS

__all__ = [
    "CHUNK",
    "Budget",
    "LogSource",
    "from_path",
    "from_stdin",
    "from_text",
    "refuse_binary",
    "standard_input",
]


@dataclass
class Budget:
    """How many bytes of a job may still be read; its parts share it."""

    left: int

    def take(self, chunk: bytes) -> bytes:
        """Give as much of a chunk as may be read."""
        chunk = chunk[: self.left] if len(chunk) > self.left else chunk
        self.left -= len(chunk)
        return chunk


@dataclass
class LogSource:
    """A log's name and its bytes, in chunks of at most CHUNK bytes (1.5 times that where transcoded).

    Compressed bytes come out unpacked, UTF-16, UTF-32 and GB 18030 as UTF-8 with the same lines, without
    holes of NUL bytes. `omitted` gathers what could not be read (a damaged tail, say), so that the report can
    say it.
    """

    name: str
    stream: Readable
    omitted: dict[str, int | str] = field(default_factory=dict)
    limits: JobLimits = LIMITS
    budget: Budget | None = None
    _head: bytes | None = field(default=None, init=False, repr=False)
    # The file of a notebook, as far as it is kept.
    _notebook: list[bytes] = field(default_factory=list, init=False, repr=False)
    _holes: Holes = field(default_factory=Holes, init=False, repr=False)

    def head(self) -> bytes:
        """Give the first chunk as it is stored; raises InputError where this is no log that can be read."""
        if self._head is None:
            stream = self.stream if isinstance(self.stream, PeekedStream) else PeekedStream(self.stream)
            codec = codec_of(stream.head)
            self.stream = Decompressed(stream, codec, self.limits.ratio) if codec else stream
            self._head = self._begin()
        return self._head

    def _begin(self) -> bytes:
        first = self._after_hole()
        if not first or first in MARKS:
            raise EmptyInputError(Message("errors.empty-nothing-written-wrong", name=self.name))
        refuse_archive(self.name, first)
        refuse_binary(self.name, first)
        return first

    def _after_hole(self) -> bytes:
        """Give the first piece that holds more than NULs, from its first character on."""
        try:
            first = piece = self.stream.read(CHUNK)
        except PartialInputError as error:
            raise BrokenArchiveError(Message("errors.nothing-read", name=self.name, reason=error)) from error
        size = 0
        while piece and piece.count(0) == len(piece) and size < self.limits.bytes:
            size += len(piece)
            piece = self._read()
        text = piece.lstrip(b"\0")
        if not text:
            return first
        # A character of UTF-16 or UTF-32 may itself begin with NULs: whole ones are taken off.
        skipped = (len(piece) - len(text)) // 4 * 4
        if size + skipped < HOLE:
            return piece
        self._holes.begin(size + skipped)
        return piece[skipped:]

    def _read(self) -> bytes:
        if self.budget and self.budget.left <= 0:
            self.omitted["beyond_limit"] = "the job's output is larger than what is read of it"
            return b""
        try:
            return self.stream.read(CHUNK)
        except PartialInputError as error:
            # A job that is killed leaves a cut archive; what was read up to there still counts.
            self.omitted[error.omits] = str(error)
            return b""

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes, then close.

        Raises InputError at the start where this is no log that can be read.
        """
        try:
            first = self.head()
            encoding = encoding_of(first)
            read = self._holes.without(
                _transcoded(self._raw(first), encoding) if encoding else self._raw(first)
            )
            # As it reads once it is decoded: a mark of the encoding may stand before it.
            begin = next(filter(None, read), b"")
            whole = chain([begin], read) if begin else read
            yield from as_output(self._kept(whole)) if is_notebook(begin) else whole
        finally:
            if self._holes.count:
                self.omitted["hole_at_end" if self._holes.is_at_end else "hole"] = str(self._holes)
            self.close()

    def _kept(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Give a notebook's chunks and keep them; none of one that is larger than what is kept."""
        self._notebook.clear()
        size = 0
        for chunk in chunks:
            size += len(chunk)
            if size <= LONGEST_FILE:
                self._notebook.append(chunk)
            else:
                self._notebook.clear()
            yield chunk

    @property
    def notebooks(self) -> list[tuple[str, bytes]]:
        """Give name and bytes of the notebook that was read, whose cells are the job's program."""
        plain = base_name(self.name)
        name = plain if plain.endswith(".ipynb") else f"{plain.partition('.')[0] or 'notebook'}.ipynb"
        return [(name, b"".join(self._notebook))] if self._notebook else []

    def _raw(self, chunk: bytes) -> Iterator[bytes]:
        while chunk:
            yield self.budget.take(chunk) if self.budget else chunk
            chunk = self._read()

    def close(self) -> None:
        """Stop reading: no thread and no file stays."""
        self.stream.close()


def _transcoded(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for chunk in chunks:
        if text := decoder.decode(chunk):
            yield text.encode("utf-8", "replace")
    if text := decoder.decode(b"", final=True):
        yield text.encode()


def refuse_archive(name: str, head: bytes) -> None:
    """Raise ArchiveInputError if `head`, the first bytes, begins an archive of several files."""
    if head.startswith(BEGINS):
        raise ArchiveInputError(Message("errors.zip-archive-pytorch-checkpoint", name=name))
    if is_tar(head):
        raise ArchiveInputError(Message("errors.tar-archive-not-text", name=name))


def from_path(path: Path) -> LogSource:
    """Open a file, decompressing it by its content; raises MissingInputError or FolderInputError."""
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where a name is too long
        raise FolderInputError(Message("errors.folder-give-log-file", path=path))
    raw = open_given(path)
    stream = PeekedStream(GrowingFile(raw, regular_size(raw)))
    try:
        refuse_archive(str(path), stream.head)
    except ArchiveInputError:
        raw.close()
        raise
    return LogSource(str(path), stream)


def from_stdin() -> LogSource:
    """Read standard input as it comes.

    Raises MissingInputError where there is none, ArchiveInputError for a tar.
    """
    stream = standard_input()
    refuse_archive("stdin", stream.head)
    return LogSource("stdin", stream)


def standard_input() -> PeekedStream:
    """Open standard input; raises MissingInputError where there is none."""
    if sys.stdin is None:
        raise MissingInputError(Message("errors.standard-input-closed-give"))
    buffer = sys.stdin.buffer
    # A thread that waits inside the buffer holds its lock, and Python dies of that when it ends.
    return PeekedStream(GrowingFile(BorrowedStream(getattr(buffer, "raw", buffer))))


def from_text(text: str, name: str = "paste") -> LogSource:
    """Wrap text that is at hand."""
    return LogSource(name, io.BytesIO(text.encode("utf-8", "surrogateescape")))
