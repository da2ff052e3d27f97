"""Write a patch into the files of this machine, and take it back to the byte.

Before the first file is touched, a record says of each what changes, by hashes of its bytes before and after.
Whether a file was written yet is told by its bytes alone, so a record is true after a crash at any point.
"""

from __future__ import annotations

import difflib
import os
import stat
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from corpus.message import Message
from service.patching.patches import FileEdit
from service.schemas.errors import PatchError

# The folder of the records, below the home.
RECORDS = "applied"


class Replacement(BaseModel):
    """Bytes of a file that went, at an offset of the old text, and those that came there; in base64."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    start: int
    old: str
    new: str


class FileRecord(BaseModel):
    """One file of a patch: where it lies, the SHA-256 of its bytes before and after, and what differs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path
    before: str
    after: str
    replaced: tuple[Replacement, ...]


class PatchRecord(BaseModel):
    """A patch that is applied, or was about to be."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    files: tuple[FileRecord, ...]


class FileWrite(NamedTuple):
    """A file with its bytes now and those that it is to have."""

    path: Path
    now: bytes
    then: bytes


def name_in_repository(path: Path) -> str:
    """Name a file as a patch does: from the root of its repository, else from the current folder.

    Where it lies in neither, by its own name.
    """
    whole = path.resolve()
    root = next((folder for folder in whole.parents if (folder / ".git").exists()), Path.cwd())
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else whole.name


def apply_edits(edits: Sequence[FileEdit], home: Path) -> None:
    """Write the edits into their files, so that `take_back` can undo it.

    Raises PatchError where a file is not at hand, not writable or no longer as it was read; then nothing is
    changed.
    """
    writes = [_write_of(edit) for edit in edits]
    record = home / RECORDS / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}.json"
    told = PatchRecord(files=tuple(_recorded(write) for write in writes))
    try:
        record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(record, told.model_dump_json(indent=1).encode(), 0o600)
    except OSError as error:
        raise PatchError(Message("errors.file-not-written", path=record)) from error
    try:
        _write_all(writes)
    except PatchError:
        # Of a file that could not get its bytes back, the record is what is left of them.
        if all(_bytes_of(write.path) == write.now for write in writes):
            record.unlink()
        raise


def _write_of(edit: FileEdit) -> FileWrite:
    if edit.file.path is None:
        raise PatchError(Message("errors.file-not-here-apply", name=edit.file.name))
    path = edit.file.path.resolve()
    now = _bytes_of(path)
    if now != edit.file.written.encode():
        raise PatchError(Message("errors.file-changed-apply", path=path))
    return FileWrite(path, now, edit.written.encode())


def take_back(home: Path, path: Path | None = None) -> tuple[Path, ...]:
    """Undo the latest patch that was applied, or the latest one of a file; gives the files it had reached.

    Raises PatchError where there is none, or where one of its files is neither as the patch left it nor as it
    was before; then nothing is changed.
    """
    wanted = path.resolve() if path else None
    for record in sorted((home / RECORDS).glob("*.json"), reverse=True):
        try:
            files = PatchRecord.model_validate_json(record.read_bytes()).files
        except (OSError, ValidationError) as error:
            raise PatchError(Message("errors.record-not-read", path=record)) from error
        if wanted is None or any(file.path == wanted for file in files):
            writes = [write for file in files for write in _undone(file, record)]
            _write_all(writes)
            record.unlink()
            return tuple(write.path for write in writes)
    raise PatchError(Message("errors.nothing-applied"))


def _undone(file: FileRecord, record: Path) -> Iterator[FileWrite]:
    """Give the write that undoes a file's part, none where the patch did not reach it."""
    now = _bytes_of(file.path)
    if _hash(now) == file.before:
        return
    if _hash(now) != file.after:
        raise PatchError(Message("errors.file-changed-undo", path=file.path, record=record))
    then, at, shift = bytearray(), 0, 0
    for part in file.replaced:
        old, new = b64decode(part.old), b64decode(part.new)
        begin = part.start + shift
        then += now[at:begin] + old
        at = begin + len(new)
        shift += len(new) - len(old)
    yield FileWrite(file.path, now, bytes(then + now[at:]))


def _recorded(write: FileWrite) -> FileRecord:
    """Tell what a write changes, row by row; of other rows, which may hold secrets, nothing is kept."""
    before, after = write.now.splitlines(keepends=True), write.then.splitlines(keepends=True)
    offsets = [0]
    for row in before:
        offsets.append(offsets[-1] + len(row))
    replaced = [
        Replacement(
            start=offsets[begin],
            old=b64encode(b"".join(before[begin:end])).decode(),
            new=b64encode(b"".join(after[first:last])).decode(),
        )
        for kind, begin, end, first, last in difflib.SequenceMatcher(
            None, before, after, autojunk=False
        ).get_opcodes()
        if kind != "equal"
    ]
    return FileRecord(
        path=write.path, before=_hash(write.now), after=_hash(write.then), replaced=tuple(replaced)
    )


def _write_all(writes: Sequence[FileWrite]) -> None:
    """Write all files or none: where one cannot be written, those before it get their bytes back."""
    done: list[FileWrite] = []
    try:
        for write in writes:
            _replace(write.path, write.then)
            done.append(write)
    except OSError as error:
        for write in done:
            with suppress(OSError):
                _replace(write.path, write.now)
        raise PatchError(Message("errors.file-not-written", path=writes[len(done)].path)) from error


def _replace(path: Path, content: bytes, mode: int | None = None) -> None:
    """Put a file's new content in its place in one step: a crash leaves the old one or the new one."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".whycrash", dir=path.parent)
    made = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        made.chmod(stat.S_IMODE(path.stat().st_mode) if mode is None else mode)
        made.replace(path)
    except BaseException:
        with suppress(OSError):
            made.unlink()
        raise


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PatchError(Message("errors.file-gone", path=path)) from error


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()
