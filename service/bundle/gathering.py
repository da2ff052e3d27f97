"""Gather what tells of a job: commands of the allow-list and files, each without its secrets."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from corpus.bundle_items import BundleItem, BundleTable
from ingest.artefacts.file_heads import HEAD, artefact_kind
from ingest.redaction.redactor import Redactor
from service.bundle.job_processes import JobProcess

# Of one file or one command's output, and of all together.
MOST_BYTES, MOST_OF_BUNDLE = 64 << 20, 1 << 30
MOST_FILES = 2048
_CHUNK = 1 << 20
# Dumps that are no text and hold paths, numbers and code's lines, which a reader of the bundle needs whole.
_BINARY = frozenset(("flight-recorder", "memory", "series"))


@dataclass(frozen=True, slots=True)
class Subject:
    """What is gathered about: a job's kind, its id in parts, its live processes, and from when on.

    `wanted` are the causes and categories that the answer leaves open; None where there is no answer yet.
    """

    kind: str
    parts: Mapping[str, str]
    processes: tuple[JobProcess, ...]
    since: datetime
    wanted: frozenset[str] | None = None
    home: Path = field(default_factory=Path.home)


@dataclass(frozen=True, slots=True)
class BundleEntry:
    """One thing that was gathered, or why it was not.

    `source` is the command or path; `masked` counts its secrets, None where it went in as it is; `note` says
    what was left out or went wrong. `content` is a file to be read and removed, None where there is none.
    """

    name: str
    source: str
    content: Path | None = None
    exit_code: int | None = None
    seconds: float = 0.0
    masked: int | None = 0
    note: str = ""

    @property
    def told(self) -> dict[str, object]:
        """Its row of the manifest."""
        size = self.content.stat().st_size if self.content is not None else None
        told = {
            "name": self.name if self.content is not None else None,
            "source": self.source,
            "bytes": size,
            "exit_code": self.exit_code,
            "seconds": round(self.seconds, 2) or None,
            "masked": self.masked if self.content is not None else None,
            "note": self.note or None,
        }
        return {key: value for key, value in told.items() if value is not None}


def gather(table: BundleTable, subject: Subject, logs: Sequence[Path], work: Path) -> Iterator[BundleEntry]:
    """Gather the job's own logs and each item that serves; `work` holds what is written meanwhile."""
    left = MOST_OF_BUNDLE
    for entry in _entries(table, subject, logs, work):
        size = entry.content.stat().st_size if entry.content is not None else 0
        if size > left and entry.content is not None:
            entry.content.unlink()
            yield BundleEntry(entry.name, entry.source, note="left out: the bundle is full")
            continue
        left -= size
        yield entry


def _entries(table: BundleTable, subject: Subject, logs: Sequence[Path], work: Path) -> Iterator[BundleEntry]:
    for path in logs:
        if path.is_file():
            yield from _copies((path,), "logs", path.parent, work)
        else:
            files = (Path(root) / name for root, _, names in os.walk(path) for name in sorted(names))
            yield from _copies(files, "logs", path, work)
    for item in table.items:
        if not item.serves(subject.wanted) or (item.kind and item.kind != subject.kind):
            continue
        for blanks in _blanks(item, subject):
            if item.run:
                yield _of_command(item, blanks, work)
            else:
                yield from _copies(_found(item, blanks, subject), item.to.format(**blanks), None, work)


def _blanks(item: BundleItem, subject: Subject) -> Iterator[dict[str, str]]:
    plain = {"home": str(subject.home), "since": subject.since.strftime("%Y-%m-%d %H:%M:%S")}
    if item.each == "process":
        for process in subject.processes:
            yield {**plain, "pid": str(process.pid), "rank": process.rank or "none"}
    else:
        yield {**plain, **(subject.parts if item.each == "job" else {})}


def _of_command(item: BundleItem, blanks: Mapping[str, str], work: Path) -> BundleEntry:
    """Run a command of the list without a shell, for so long, and keep so much of what it prints."""
    words = [word.format(**blanks) for word in item.run]
    name, told = item.to.format(**blanks), " ".join(words)
    program = shutil.which(words[0])
    if program is None:
        return BundleEntry(name, told, note=f"{words[0]} is not installed")
    began = time.monotonic()
    with tempfile.TemporaryFile(dir=work) as output, tempfile.TemporaryFile(dir=work) as trouble:
        process = subprocess.Popen(  # noqa: S603 - no shell; a row of the corpus, its blanks of checked forms
            [program, *words[1:]], stdin=subprocess.DEVNULL, stdout=output, stderr=trouble
        )
        try:
            code: int | None = process.wait(item.seconds)
            note = ""
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code, note = None, f"stopped after {item.seconds:g} s"
        trouble.seek(0)
        said = Redactor().clean(trouble.read(2000).decode("utf-8", "replace").strip())
        note = note or (said[:300] if code else "")
        output.seek(0)
        content, masked, cut = _clean(_chunks(output), work)
    if content.stat().st_size == 0:
        content.unlink()
        note = note or "it printed nothing"
        return BundleEntry(name, told, exit_code=code, seconds=time.monotonic() - began, note=note)
    return BundleEntry(name, told, content, code, time.monotonic() - began, masked, note or cut)


def _found(item: BundleItem, blanks: Mapping[str, str], subject: Subject) -> Iterator[Path]:
    """Give the files of an item that were written since the job's time."""
    told = {process.variables.get(name) for process in subject.processes for name in item.variables}
    told |= {os.environ.get(name) for name in item.variables}
    # The rank, or nothing, follows what a variable names.
    named = [f"{glob.escape(value)}*" for value in sorted(filter(None, told))]
    for pattern in (*named, *(text.format(**blanks) for text in item.files)):
        # A pattern is absolute, which Path's own search does not take.
        for found in sorted(glob.glob(pattern)):  # noqa: PTH207
            path = Path(found)
            is_kept = path.is_file() and (
                path.is_relative_to("/sys") or path.stat().st_mtime >= subject.since.timestamp()
            )
            if is_kept:
                yield path


def _copies(paths: Iterable[Path], folder: str, base: Path | None, work: Path) -> Iterator[BundleEntry]:
    """Copy files, under their names below `base`; of links only those that lead to files of the job."""
    seen: set[str] = set()
    for path in islice(paths, MOST_FILES):
        below = path.relative_to(base).as_posix() if base is not None else path.name
        name = f"{folder}/{below}"
        if name in seen:
            continue
        seen.add(name)
        try:
            yield _entry_of_file(path, name, work)
        except OSError as error:
            yield BundleEntry(name, str(path), note=error.strerror or type(error).__name__)


def _entry_of_file(path: Path, name: str, work: Path) -> BundleEntry:
    """Give a file as an entry `name` without secrets, or the reason why it is left out."""
    if path.is_symlink() and not path.resolve().is_relative_to(path.parent.resolve()):
        return BundleEntry(name, str(path), note="left out: a link that leads elsewhere")
    with path.open("rb") as stream:
        head = stream.read(HEAD)
        stream.seek(0)
        if artefact_kind(head) in _BINARY and not head.lstrip().startswith((b"{", b"[")):
            return _dump(stream.read(MOST_BYTES + 1), path, name, work)
        if b"\0" in head:
            return BundleEntry(name, str(path), note="left out: no text")
        size = path.stat().st_size
        content, masked, cut = _clean(_head_and_tail(stream.fileno(), size), work)
    return BundleEntry(name, str(path), content, masked=masked, note=cut)


def _dump(data: bytes, path: Path, name: str, work: Path) -> BundleEntry:
    if len(data) > MOST_BYTES:
        return BundleEntry(name, str(path), note=f"left out: larger than {MOST_BYTES >> 20} MiB")
    with tempfile.NamedTemporaryFile(dir=work, delete=False) as target:
        target.write(data)
    return BundleEntry(
        name, str(path), Path(target.name), masked=None, note="a dump, as it is: not searched for secrets"
    )


def _head_and_tail(descriptor: int, size: int) -> Iterator[bytes]:
    """Give a file whole, or its beginning and end around a line that says how much was left out."""
    if size <= MOST_BYTES:
        yield from _pieces(descriptor, 0, size)
        return
    head = MOST_BYTES // 8
    yield from _pieces(descriptor, 0, head)
    yield f"\n[{size - MOST_BYTES} bytes left out]\n".encode()
    yield from _pieces(descriptor, size - (MOST_BYTES - head), size)


def _pieces(descriptor: int, begin: int, end: int) -> Iterator[bytes]:
    while begin < end and (piece := os.pread(descriptor, min(_CHUNK, end - begin), begin)):
        begin += len(piece)
        yield piece


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    left = MOST_BYTES
    while left > 0 and (piece := stream.read(min(_CHUNK, left))):
        left -= len(piece)
        yield piece


def _clean(chunks: Iterable[bytes], work: Path) -> tuple[Path, int, str]:
    """Write text without its secrets; gives the file, how many there were, and whether it was cut."""
    redactor = Redactor()
    size = 0
    with tempfile.NamedTemporaryFile(dir=work, delete=False) as target:
        for piece in redactor.stream(chunks):
            size += len(piece)
            target.write(piece)
    return Path(target.name), redactor.count, "cut" if size >= MOST_BYTES else ""
