"""The journal of a batch: an append-only file beside the database, from which a batch can be restored.

`batches/<id>/journal.jsonl` under the home folder holds the batch, then its jobs, then that it was accepted,
then what became of each job. A line that was cut off, by a full disk or a lost machine, is passed over.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter
from pydantic_core import PydanticSerializationError, to_jsonable_python

from corpus.message import Message, MessageText, References, Translatable
from service.schemas.diagnosis import Diagnosis
from service.schemas.errors import DiskFullError
from service.schemas.parts import Part
from service.schemas.records import BatchRecord, JobSpec, JobState

FILE = "journal.jsonl"
SPOOL = "spool"
RETIRED = "deleted"


class BatchBegan(Part):
    """The batch as it was handed in."""

    kind: Literal["batch"] = "batch"
    record: BatchRecord


class JobListed(Part):
    """One of its jobs; they stand in the order of their numbers."""

    kind: Literal["job"] = "job"
    spec: JobSpec


class BatchAccepted(Part):
    """All jobs are listed; the client may be told that the batch is accepted."""

    kind: Literal["accepted"] = "accepted"
    jobs: int
    left_out: dict[str, int | str] = Field(default_factory=dict)


class JobEnded(Translatable, Part):
    """What became of a job; `same_as` is the number of the job that was triaged in its stead."""

    kind: Literal["end"] = "end"
    number: int
    state: JobState
    attempts: int = 1
    fingerprint: str = ""
    config: str = ""
    same_as: int | None = None
    root_line: int | None = None
    root_file: str | None = None
    root_text: str = ""
    diagnosis: Diagnosis | None = None
    error: MessageText = ""
    finished: datetime
    messages: References = Field(default={})


class BatchClosed(Part):
    """The batch is over: all jobs have ended, or somebody cancelled it."""

    kind: Literal["closed"] = "closed"
    why: Literal["done", "cancelled"]


Entry = Annotated[
    BatchBegan | JobListed | BatchAccepted | JobEnded | BatchClosed, Field(discriminator="kind")
]
# A disk, a quota, or this process's own limit on the size of files.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry)


class Journal:
    """The journal of one batch.

    Its methods raise DiskFullError, or OSError where the disk cannot be written otherwise.
    """

    # Appends of several threads of a process must not mix; those of several processes do not, as each is one
    # write.
    _turn = threading.Lock()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / FILE

    @property
    def spool(self) -> Path:
        """The folder of the batch's redacted copies."""
        return self.folder / SPOOL

    def exists(self) -> bool:
        """Tell whether anything was written."""
        return self._path.exists()

    def begin(self, record: BatchRecord, specs: Iterable[JobSpec], most: int) -> int:
        """Write the batch and its jobs, at most `most` of them and one more; gives how many."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        count = 0
        with (
            _disk_full_as_error(),
            open(self._path, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream,
        ):
            stream.write(_line(BatchBegan(record=record)))
            for spec in specs:
                stream.write(_line(JobListed(spec=spec)))
                count += 1
                if count > most:
                    break
        return count

    def append(self, entries: Sequence[Entry], *, durable: bool = False) -> None:
        """Write entries; `durable` waits until they, and all before, would survive a power cut."""
        # A line end first: an entry that a full disk truncated must not absorb the next one.
        data = b"\n" + b"".join(_line(entry) for entry in entries)
        with self._turn, _disk_full_as_error():
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(handle, view) :]
                if durable:
                    _sync(handle, self.folder)
            finally:
                os.close(handle)

    def close(self, why: Literal["done", "cancelled"]) -> None:
        """Note that the batch is over, where that can be written, and delete the spooled copies."""
        with suppress(OSError, DiskFullError):
            if self.exists():
                self.append([BatchClosed(why=why)])
        self.remove_spool()

    def specs(self) -> Iterator[JobSpec]:
        """Give the jobs in their order."""
        return (entry.spec for entry in self.entries() if isinstance(entry, JobListed))

    def entries(self) -> Iterator[Entry]:
        """Give all that is legible; nothing where there is no journal."""
        return (entry for _, entry in self.placed())

    def placed(self) -> Iterator[tuple[int, Entry]]:
        """Give all that is legible, with the place in the file at which it stands."""
        try:
            stream = self._path.open("rb")
        except FileNotFoundError:
            return
        place = 0
        with stream:
            for line in stream:
                if line.strip() and (entry := _entry(line)):
                    yield place, entry
                place += len(line)

    def at(self, place: int) -> Entry | None:
        """Give the entry at a place; None where it is not legible."""
        with self._path.open("rb") as stream:
            stream.seek(place)
            return _entry(stream.readline())

    def settle(self) -> None:
        """Wait until what was begun, the spooled copies too, would survive a power cut."""
        if self.spool.exists():
            # One call for perhaps a hundred thousand small files.
            os.sync()
        handle = os.open(self._path, os.O_RDONLY)
        try:
            _sync(handle, self.folder)
        finally:
            os.close(handle)

    def retire(self) -> None:
        """Mark it as deleted, so that it is never read again even if it cannot be removed now."""
        if self.exists():
            with _disk_full_as_error():
                (self.folder / RETIRED).touch(mode=0o600)

    @property
    def is_retired(self) -> bool:
        """Tell whether it was marked as deleted."""
        return (self.folder / RETIRED).exists()

    def remove(self) -> None:
        """Delete it with the spooled copies."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def remove_spool(self) -> None:
        """Delete the spooled copies."""
        shutil.rmtree(self.spool, ignore_errors=True)


def journals(home: Path) -> list[Journal]:
    """Give the journals under a home folder, oldest batch first."""
    base = home / "batches"
    return [Journal(folder) for folder in sorted(base.iterdir()) if folder.is_dir()] if base.is_dir() else []


def journal_of(home: Path, batch: str) -> Journal:
    """Give the journal of a batch, which need not exist."""
    return Journal(home / "batches" / batch)


def _line(entry: Entry) -> bytes:
    try:
        return entry.model_dump_json(by_alias=True).encode() + b"\n"
    except PydanticSerializationError:
        # A path with bytes that are no UTF-8, which pydantic neither writes nor reads as JSON, and json does.
        return json.dumps(entry.model_dump(by_alias=True), default=to_jsonable_python).encode() + b"\n"


def _entry(line: bytes) -> Entry | None:
    try:
        return _ENTRY.validate_python(json.loads(line)) if b"\\ud" in line else _ENTRY.validate_json(line)
    except ValueError:
        return None


def _sync(handle: int, folder: Path) -> None:
    os.fsync(handle)
    # The names as well: of the file in its folder, and of the folder in its own.
    for place in (folder, folder.parent):
        opened = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


@contextmanager
def _disk_full_as_error() -> Iterator[None]:
    """Raise DiskFullError where the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFullError(Message("errors.no-room-disk-batch")) from error
        raise
