"""What a zip holds: by its directory, or, where that was cut off, by the headers before its files."""

from __future__ import annotations

import re
import stat
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import BinaryIO

from corpus.message import Message
from ingest.errors import ArchiveInputError, BinaryInputError, BrokenArchiveError
from ingest.logs.inputs.archives import Contents
from ingest.logs.inputs.compression import CODECS, DEFLATE, Codec
from ingest.logs.inputs.files import FileSlice
from ingest.logs.inputs.streams import Decompressed, Readable

BEGINS = b"PK\x03\x04"
# The directory is read whole; a hundred bytes a file are usual.
LARGEST_DIRECTORY = 64 << 20

_ENDS = b"PK\x05\x06"
_ENDS_64 = b"PK\x06\x06"
_ENCRYPTED = 1
_SIZES_FOLLOW = 8
# https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.4.5; zipfile's own unpacking of bzip2 is
# unbounded.
_BY_NAME = {codec.name: codec for codec in CODECS}
_METHODS: dict[int, Codec | None] = {
    0: None,
    8: DEFLATE,
    12: _BY_NAME["bzip2"],
    93: _BY_NAME["zstd"],
    95: _BY_NAME["xz"],
}
_LOCAL = struct.Struct("<4s5H3L2H")
_PIECE = 1 << 20
FOREIGN = (
    (re.compile(r"(?:^|/)data\.pkl$"), "files.pytorch-checkpoint"),
    (re.compile(r"^\[Content_Types\]\.xml$"), "files.office-document"),
    (re.compile(r"^META-INF/MANIFEST\.MF$"), "files.java-archive"),
    (re.compile(r"^[^/]+\.dist-info/WHEEL$"), "files.python-wheel"),
)


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """One file of a zip: where its header stands, how long its packed bytes are, and how they are packed."""

    name: str
    start: int
    size: int
    method: int
    flags: int
    mode: int = 0


def read_zip(name: str, file: BinaryIO, contents: Contents) -> None:
    """Find a zip's files.

    Raises BinaryInputError for what only looks like an archive of logs, or ArchiveInputError.
    """
    entries = _listed(name, file, contents)
    for entry in entries:
        what = next((what for expression, what in FOREIGN if expression.search(entry.name)), None)
        if what:
            raise BinaryInputError(Message("errors.not-job-logs", name=name, what=Message(what)))
    for entry in entries:
        if contents.full:
            contents.stop(entry.name)
            break
        if not entry.name.endswith("/") and _is_wanted(entry, contents):
            contents.add(entry.name, partial(_open, file, entry, contents.limits.ratio))


def _is_wanted(entry: ZipEntry, contents: Contents) -> bool:
    # What surely holds nothing: a flood of such entries takes no log's place.
    least = 2 if entry.method == zipfile.ZIP_DEFLATED else 0
    is_empty = not entry.flags & _SIZES_FOLLOW and entry.size <= least
    kinds = (
        ("link", stat.S_ISLNK(entry.mode)),
        ("encrypted", bool(entry.flags & _ENCRYPTED)),
        ("unknown_compression", entry.method not in _METHODS),
        ("empty", is_empty),
    )
    reason = next((reason for reason, is_so in kinds if is_so), None)
    if reason is None:
        return contents.wants(entry.name)
    contents.seen += 1
    contents.skipped.add(reason, entry.name)
    return False


def _listed(name: str, file: BinaryIO, contents: Contents) -> list[ZipEntry]:
    size = _directory_size(file)
    if size > LARGEST_DIRECTORY:
        raise ArchiveInputError(Message("errors.zip-archive-directory-mib", name=name, size=size >> 20))
    try:
        # NotImplementedError, struct.error and others come from damaged directories; all mean the same.
        with zipfile.ZipFile(file) as archive:
            return [_entry(info) for info in archive.infolist()]
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        struct.error,
        OSError,
        EOFError,
        ValueError,
        OverflowError,
    ) as error:
        found = list(_headers(file, contents))
        if not found:
            raise BrokenArchiveError(
                Message("errors.no-readable-zip-archive", name=name, reason=error)
            ) from error
        contents.skipped.add(
            "damaged_archive",
            "the zip archive's directory is cut off or damaged; files were found without it",
        )
        return found


def _entry(info: zipfile.ZipInfo) -> ZipEntry:
    return ZipEntry(
        info.filename,
        info.header_offset,
        info.compress_size,
        info.compress_type,
        info.flag_bits,
        info.external_attr >> 16,
    )


def _directory_size(file: BinaryIO) -> int:
    """Give how many bytes of directory the archive's end claims, 0 where it has no end."""
    whole = file.seek(0, 2)
    file.seek(max(0, whole - (66 << 10)))
    tail = file.read(66 << 10)
    sizes = [0]
    for mark, layout, offset in ((_ENDS, "<L", 12), (_ENDS_64, "<Q", 40)):
        place = tail.rfind(mark)
        if place >= 0 and len(tail) >= place + offset + 8:
            sizes.append(struct.unpack_from(layout, tail, place + offset)[0])
    return min(max(size for size in sizes if size != 0xFFFFFFFF), whole)


def _headers(file: BinaryIO, contents: Contents) -> Iterator[ZipEntry]:
    """Find files by their own headers; packed data ends by itself, stored data at the next header."""
    places = [*_places(file, 10 * contents.limits.files), file.seek(0, 2)]
    for place, following in pairwise(places):
        file.seek(place)
        raw = file.read(_LOCAL.size)
        if len(raw) < _LOCAL.size:
            continue
        _, _, flags, method, _, _, _, size, _, length, _ = _LOCAL.unpack(raw)
        name = file.read(length).decode("utf-8", "replace")
        if name and method in _METHODS and len(name) == len(name.strip("\0")):
            unknown = flags & _SIZES_FOLLOW or size == 0xFFFFFFFF
            yield ZipEntry(name, place, following - place if unknown else size, method, flags)


def _places(file: BinaryIO, most: int) -> list[int]:
    found: list[int] = []
    start = 0
    file.seek(0)
    held = b""
    while len(found) < most and (data := file.read(_PIECE)):
        held += data
        found += [start + match.start() for match in re.finditer(re.escape(BEGINS), held)]
        keep = len(BEGINS) - 1
        start += len(held) - min(keep, len(held))
        held = held[-keep:]
    return found[:most]


def _open(file: BinaryIO, entry: ZipEntry, ratio: int) -> Readable:
    file.seek(entry.start)
    header = file.read(_LOCAL.size)
    if len(header) < _LOCAL.size or not header.startswith(BEGINS):
        raise BrokenArchiveError(Message("errors.no-header-archive", name=entry.name))
    *_, name, extra = _LOCAL.unpack(header)
    packed = FileSlice(file, entry.start + _LOCAL.size + name + extra, entry.size)
    codec = _METHODS[entry.method]
    return Decompressed(packed, codec, ratio) if codec else packed
