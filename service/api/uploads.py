"""Multipart bodies, read as they arrive.

Files go into a spool without names, fields stay in memory, both within limits.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from corpus.message import Message
from ingest.logs.lines import printable
from ingest.redaction.redactor import Redactor
from service.api.intake import MIB
from service.persistence.spool import Spool, SpooledUpload
from service.schemas.errors import InvalidRequestError, TooLargeError

_HEADER_BYTES = 8192
# What is held back before it is written in a thread.
_HELD = MIB
Threaded = Callable[..., Any]


@dataclass(frozen=True)
class MultipartLimits:
    """How much one multipart body may hold: files, fields, and bytes of all fields together."""

    files: int = 1000
    fields: int = 64
    field_bytes: int = 32 * MIB


@dataclass
class MultipartUpload:
    """What came: fields by name, and files by the name of their field, in the order in which they came."""

    spool: Spool
    fields: dict[str, str] = field(default_factory=dict)
    files: list[tuple[str, SpooledUpload]] = field(default_factory=list)
    digest: str = ""

    def named(self, name: str) -> list[SpooledUpload]:
        """Give the files of a field."""
        return [file for key, file in self.files if key == name]


class _MultipartReader:
    """Takes the parser's calls; what is to be written is kept until `flush`."""

    def __init__(self, upload: MultipartUpload, limits: MultipartLimits) -> None:
        self._upload = upload
        self._limits = limits
        self._hash = sha256()
        self._header: tuple[bytearray, bytearray] = (bytearray(), bytearray())
        self._headers: dict[bytes, bytes] = {}
        self._name = ""
        self._file: SpooledUpload | None = None
        self._value = bytearray()
        self._held: list[tuple[SpooledUpload, bytes]] = []
        self.held = 0
        self._left = limits.field_bytes
        self.ended = False

    def callbacks(self) -> Mapping[str, Callable[..., None]]:
        """Give what the parser calls."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._grow(self._header[0], data[start:end]),
            "on_header_value": lambda data, start, end: self._grow(self._header[1], data[start:end]),
            "on_header_end": self._header_end,
            "on_headers_finished": self._open,
            "on_part_data": self._data,
            "on_part_end": self._close,
            "on_end": self._end,
        }

    def _begin(self) -> None:
        self._headers, self._header = {}, (bytearray(), bytearray())
        self._name, self._file, self._value = "", None, bytearray()

    def _grow(self, into: bytearray, data: bytes) -> None:
        into += data
        if len(into) > _HEADER_BYTES or len(self._headers) > 16:
            raise InvalidRequestError(Message("errors.headers-part-long"))

    def _header_end(self) -> None:
        name, value = self._header
        self._headers[bytes(name).lower()] = bytes(value)
        self._header = (bytearray(), bytearray())

    def _open(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        if b"name" not in options:
            raise InvalidRequestError(Message("errors.part-no-name-content"))
        self._name = _text(options[b"name"])
        self._hash.update(b"\0" + self._name.encode() + b"\0")
        if b"filename" not in options:
            return
        if len(self._upload.files) >= self._limits.files:
            raise TooLargeError(Message("errors.more-files-request", files=self._limits.files))
        name = _text(options[b"filename"])
        self._hash.update(b"file\0" + name.encode() + b"\0")
        self._file = self._upload.spool.add(name)

    def _data(self, data: bytes, start: int, end: int) -> None:
        piece = data[start:end]
        self._hash.update(piece)
        if self._file is not None:
            self._held.append((self._file, piece))
            self.held += len(piece)
            return
        self._left -= len(piece)
        if self._left < 0:
            raise TooLargeError(Message("errors.fields-long-send-log"))
        self._value += piece

    def _close(self) -> None:
        upload = self._upload
        if self._file is not None:
            upload.files.append((self._name, self._file))
            return
        if self._name in upload.fields or len(upload.fields) >= self._limits.fields:
            raise InvalidRequestError(Message("errors.field-comes-twice-many", name=repr(self._name)))
        upload.fields[self._name] = self._value.decode("utf-8", "replace")

    def _end(self) -> None:
        self.ended = True

    def flush(self) -> None:
        """Write what was held back; raises DiskFullError."""
        for file, piece in self._held:
            file.write(piece)
        self._held, self.held = [], 0

    def finish(self) -> None:
        """Write the rest and go to the begin of each file."""
        self.flush()
        for _, file in self._upload.files:
            file.rewind()
        self._upload.digest = self._hash.hexdigest()


def _text(raw: bytes) -> str:
    return printable(Redactor().clean(raw.decode("utf-8", "replace")))[:300]


async def read_multipart(
    content_type: str, chunks: AsyncIterator[bytes], spool: Spool, limits: MultipartLimits, threaded: Threaded
) -> MultipartUpload:
    """Read a multipart body into a spool; raises InvalidRequestError, TooLargeError or DiskFullError."""
    upload = MultipartUpload(spool)
    reader = _MultipartReader(upload, limits)
    try:
        _, options = parse_options_header(content_type)
        boundary = options.get(b"boundary", b"")
        if not 0 < len(boundary) <= 200:
            raise InvalidRequestError(Message("errors.content-type-names-no"))
        # Its type names each key of the callbacks.
        parser = MultipartParser(boundary, reader.callbacks())  # type: ignore[arg-type]
        await _feed(parser, chunks, reader, threaded)
    except FormParserError as error:
        raise InvalidRequestError(Message("errors.multipart-body-damaged")) from error
    if not reader.ended:
        raise InvalidRequestError(Message("errors.multipart-body-cut-off"))
    await threaded(reader.finish)
    return upload


async def _feed(
    parser: MultipartParser, chunks: AsyncIterator[bytes], reader: _MultipartReader, threaded: Threaded
) -> None:
    async for chunk in chunks:
        parser.write(chunk)
        if reader.held > _HELD:
            await threaded(reader.flush)
    parser.finalize()


def media_type(content_type: str) -> str:
    """Give the media type of a Content-Type header, without its parameters."""
    return content_type.partition(";")[0].strip().lower()
