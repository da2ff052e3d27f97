"""Take in one file, a write-up or a log, wherever it is read: in this process or in one of many."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from corpus import library
from corpus.errors import InvalidCorpusError
from ingest import documents, writeups
from ingest.documents import Document
from ingest.errors import IngestError
from ingest.logs.inputs import sources
from ingest.logs.lines import printable
from ingest.logs.reader import Reader
from ingest.redaction.redactor import Redactor

LABELS = ("{stem}.label.yaml", "{stem}.yaml", "{name}.yaml", "label.yaml")


@dataclass(frozen=True)
class Label:
    """What people know of a past crash: cause, fix, and the job's name; each may be empty."""

    cause: str = ""
    fix: str = ""
    job: str = ""


@dataclass(frozen=True)
class IngestedContent:
    """What a file gave. `content` is its hash, empty where it could not be read.

    `reason` says why nothing came of it; `team` is the one that it was taken in for.
    """

    file: str
    content: str = ""
    documents: tuple[Document, ...] = ()
    reason: str = ""
    unchanged: bool = False
    team: str = ""

    def record(self) -> dict[str, Any]:
        """Give the fields for storage."""
        return {
            "file": self.file,
            "content": self.content,
            "reason": self.reason,
            "unchanged": self.unchanged,
            "team": self.team,
            "documents": [document.record() for document in self.documents],
        }


@dataclass(frozen=True)
class IngestTask:
    """A file to take in: its kind, its hash when it was last taken in, and the team that it is for."""

    file: str
    kind: str
    known: str = ""
    team: str = ""
    bytes: int = field(default=0, compare=False)


def restored(record: dict[str, Any]) -> IngestedContent:
    """Read an Intake back from its record."""
    return IngestedContent(**{**record, "documents": tuple(Document(**item) for item in record["documents"])})


def ingest_file(ingest_task: IngestTask, reader: Reader | None) -> IngestedContent:
    """Take in a file, unless it is as it was; what is wrong with it becomes its reason."""
    path, team = Path(ingest_task.file), ingest_task.team
    try:
        content = content_of(path, ingest_task.kind, team)
    except OSError as error:
        return IngestedContent(ingest_task.file, reason=f"{path}: {error.strerror}", team=team)
    if content == ingest_task.known:
        return IngestedContent(ingest_task.file, content, unchanged=True, team=team)
    try:
        if ingest_task.kind == "note":
            made = writeups.read_writeup(path)
            reason = "" if made else f"{path}: holds no text"
        else:
            made, reason = _crash(path, reader)
    except (IngestError, InvalidCorpusError) as error:
        return IngestedContent(ingest_task.file, content, reason=str(error), team=team)
    except OSError as error:
        return IngestedContent(ingest_task.file, reason=f"{path}: {error.strerror}", team=team)
    owned = tuple(replace(document, team=team) for document in made)
    return IngestedContent(ingest_task.file, content, owned, reason, team=team)


def content_of(path: Path, kind: str, team: str = "") -> str:
    """Hash a file as it is, its label with it, and whose it is; raises OSError."""
    total = hashlib.sha256(f"{kind}@{team}".encode() if team else kind.encode())
    for part in [path, *([found] if kind == "report" and (found := label_path(path)) else [])]:
        with part.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def label_path(path: Path) -> Path | None:
    """Find the file beside a log that says what people know of it."""
    stem = path.name.removesuffix(".gz").rsplit(".", 1)[0]
    candidates = (path.parent / form.format(stem=stem, name=path.name) for form in LABELS)
    return next((candidate for candidate in candidates if candidate.exists()), None)


def _crash(path: Path, reader: Reader | None) -> tuple[list[Document], str]:
    assert reader is not None  # noqa: S101 - logs are only given together with a reader
    report = reader.read(sources.from_path(path))
    label = _label(path)
    # Two jobs' logs may both be called worker.log.
    owner = label.job or Redactor().clean(
        printable(f"{path.stem}-{hashlib.sha256(str(path).encode()).hexdigest()[:6]}")
    )
    made = documents.of_report(report, f"job/{owner}", str(path), label.cause, label.fix)
    return ([made], "") if made else ([], f"{path}: no failure found in it")


def _label(path: Path) -> Label:
    found = label_path(path)
    data: Any = library.read_yaml(found) if found else {}
    if not isinstance(data, dict):
        raise InvalidCorpusError(f"{found}: a label is a mapping with cause, fix and job")
    cause = data.get("cause") or next(iter(data.get("causes") or ()), "")
    clean = Redactor().clean
    return Label(*(clean(printable(str(text or ""))) for text in (cause, data.get("fix"), data.get("job"))))
