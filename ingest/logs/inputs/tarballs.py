"""What a tar holds, read forward only, so that it may come from a pipe or be compressed.

Cut or damaged, too.
"""

from __future__ import annotations

import tarfile
import tempfile
from functools import partial
from tarfile import EOFHeaderError, InvalidHeaderError  # type: ignore[attr-defined]  # the stubs lack them
from typing import IO, BinaryIO, cast

from corpus.message import Message
from ingest.artefacts.file_heads import HEAD, is_dump
from ingest.errors import BinaryInputError, BombInputError, BrokenArchiveError, PartialInputError
from ingest.logs.inputs.archives import Contents
from ingest.logs.inputs.compression import codec_of
from ingest.logs.inputs.encodings import refuse_binary
from ingest.logs.inputs.files import FileSlice
from ingest.logs.inputs.streams import CHUNK, Readable

# A name or an extended header is never as long; a hostile one is not read into memory.
LONGEST_HEADER = 1 << 20
# How far a damaged tar is searched for its next member.
RESYNC = 64 << 20
IN_MEMORY = 32 << 20

_DAMAGE = (
    tarfile.TarError,
    PartialInputError,
    OSError,
    EOFError,
    ValueError,
    RecursionError,
    ArithmeticError,
)
_EXTENDED = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)


class _Header(tarfile.TarInfo):
    """A member's header that refuses sizes made to fill the memory or to go in circles."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        made = super().frombuf(buf, encoding, errors)
        if made.size < 0 or (made.type in _EXTENDED and made.size > LONGEST_HEADER):
            raise InvalidHeaderError("a header of impossible size")
        return made

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> _Header:
        raw = cast("_TarStream", tarfile.fileobj)
        raw.blocks += 1
        try:
            made = super().fromtarfile(tarfile)
        except EOFHeaderError:
            raw.ended = True
            raise
        except InvalidHeaderError:
            raw.damaged += 1
            raise
        raw.blocks, raw.ended = 0, False
        return made


class _TarStream:
    """A stream as tarfile reads it.

    Forward only, and in a damaged archive so far as a member may still follow.

    With a file that can seek, what is not read is not even decompressed.
    """

    def __init__(self, raw: Readable, file: BinaryIO | None) -> None:
        self._raw = raw
        self.file = file
        self._place = 0
        self._error: PartialInputError | None = None
        self.blocks = 0  # read in search of the next header
        self.damaged = 0
        self.ended = False  # the last block was the empty one that ends a tar

    def tell(self) -> int:
        return self._place

    def seek(self, place: int) -> int:
        if self.file is not None:
            self.file.seek(place)
            self._place = place
        while self._place < place and self.read(min(CHUNK, place - self._place)):
            pass
        return self._place

    def read(self, size: int) -> bytes:
        if self.blocks > RESYNC // tarfile.BLOCKSIZE:
            return b""
        data = b""
        while len(data) < size and (piece := self._piece(size - len(data), is_first=not data)):
            data += piece
        self._place += len(data)
        return data

    def _piece(self, size: int, *, is_first: bool) -> bytes:
        """Give some of the next bytes; damage behind bytes that were given is raised by the next read."""
        try:
            if self._error:
                raise self._error
            return (self.file or self._raw).read(size)
        except PartialInputError as error:
            self._error = error
            if is_first:
                raise
            return b""


def is_tar(head: bytes) -> bool:
    """Tell whether a stream's first 512 bytes are a tar archive's first header."""
    try:
        _Header.frombuf(head[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError):
        return False
    return True


def read_tar(name: str, raw: Readable, file: BinaryIO | None, contents: Contents) -> None:
    """Find a tar's members.

    In `file` where it can seek, else in passing, copying logs into a temporary file.
    """
    stream = _TarStream(raw, file)
    # It is closed with the job.
    spool = None if file else cast("BinaryIO", tempfile.SpooledTemporaryFile(IN_MEMORY))  # noqa: SIM115
    if spool:
        contents.close = spool.close
    try:
        with tarfile.open(
            fileobj=cast("IO[bytes]", stream), mode="r:", tarinfo=_Header, ignore_zeros=True
        ) as archive:
            _members(archive, stream, spool, contents)
    except _DAMAGE as error:
        if not contents.seen:
            raise BrokenArchiveError(
                Message("errors.no-readable-tar-archive", name=name, reason=error)
            ) from error
        contents.skipped.add("damaged_archive", str(error))


def _members(
    archive: tarfile.TarFile, stream: _TarStream, spool: BinaryIO | None, contents: Contents
) -> None:
    while member := archive.next():
        # It keeps each header, of which there may be millions.
        archive.members = []  # type: ignore[attr-defined]
        if contents.full:
            contents.stop(member.name)
            return
        if _is_wanted(member, contents):
            _add_member(member, stream, spool, contents)
    if stream.damaged or not stream.ended:
        told = (
            f"{stream.damaged} headers cannot be read"
            if stream.damaged
            else "the archive is cut: it ends before its end mark"
        )
        contents.skipped.add("damaged_archive", told)


def _is_wanted(member: tarfile.TarInfo, contents: Contents) -> bool:
    kinds = (
        ("link", member.issym() or member.islnk()),
        ("sparse", member.issparse()),
        ("device", not member.isreg()),
        # A flood of such ones takes no log's place.
        ("empty", member.isreg() and not member.size),
    )
    reason = next((reason for reason, is_so in kinds if is_so), None)
    if reason is None:
        return contents.wants(member.name)
    contents.seen += 1
    if not member.isdir():
        contents.skipped.add(reason, member.name)
    return False


def _add_member(
    member: tarfile.TarInfo, stream: _TarStream, spool: BinaryIO | None, contents: Contents
) -> None:
    if spool is None:
        contents.add(
            member.name, partial(FileSlice, cast("BinaryIO", stream.file), member.offset_data, member.size)
        )
        return
    start = spool.tell()
    stream.seek(member.offset_data)
    try:
        if not _copy(stream, spool, member.size, contents.limits.spool):
            contents.skipped.add("binary", member.name)
            return
    finally:
        # What came of it before the archive broke is the job's last words.
        if spool.tell() > start or not member.size:
            contents.add(member.name, partial(FileSlice, spool, start, member.size))


def _copy(stream: _TarStream, spool: BinaryIO, size: int, limit: int) -> bool:
    """Copy a member; tell whether it may be a log."""
    left = size
    while left and (piece := stream.read(min(CHUNK, left))):
        if left == size and _is_binary(piece):
            return False
        if spool.tell() + len(piece) > limit:
            raise BombInputError(
                f"unpacked it is larger than the {limit >> 20} MiB that are kept in a temporary file"
            )
        spool.write(piece)
        left -= len(piece)
    return True


def _is_binary(head: bytes) -> bool:
    if codec_of(head) or is_dump(head[:HEAD]):
        return False
    try:
        refuse_binary("", head)
    except BinaryInputError:
        return True
    return False
