"""Bring the index up to date with the corpus, people's write-ups and past crashes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus import library
from corpus.errors import InvalidCorpusError
from ingest import documents, index, writeups
from ingest.documents import Document
from ingest.embedder import Embedder
from ingest.errors import IngestError, MissingInputError
from ingest.index import Index, Manifest, Report
from ingest.logs import sources
from ingest.logs.lines import printable
from ingest.logs.reader import Reader
from ingest.redact import Redactor

LABELS = ("{stem}.label.yaml", "{stem}.yaml", "{name}.yaml", "label.yaml")
_LOG_SUFFIXES = frozenset({".log", ".out", ".err", ".txt", ".gz", ""})


@dataclass
class Outcome:
    """What one run did with the files it was given."""

    index: Index
    added: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: list[str] = field(default_factory=list)
    rebuilt: bool = True


@dataclass(frozen=True)
class Label:
    """What people know of a past crash: cause, fix, and the job's name; each may be empty."""

    cause: str = ""
    fix: str = ""
    job: str = ""


def refresh(home: Path, embedder: Embedder, report: Report) -> Outcome:
    """Rebuild the index if corpus, model or a known file changed."""
    return ingest(home, embedder, report, notes=[], logs=[], reader=None)


def is_current(found: Index | None, embedder_name: str) -> bool:
    """Tell whether an index was made of this corpus with this model."""
    return found is not None and found.manifest.corpus == library.digest() and found.manifest.model == embedder_name


def ingest(
    home: Path, embedder: Embedder, report: Report, *, notes: Sequence[Path], logs: Sequence[Path], reader: Reader | None
) -> Outcome:
    """Take in write-ups and logs, besides the corpus.

    Files whose content is unchanged are not read again; files of an ingested folder that are gone
    leave the index. Raises MissingInputError, SearchIndexError, ModelError.
    """
    old = index.current(home)
    before = dict(old.manifest.files) if old else {}
    kept = [document for document in (old.documents if old else ()) if document.kind != "case"]
    roots = sorted({*(old.manifest.roots if old else ()), *(str(path.resolve()) for path in (*notes, *logs))})
    wanted = {str(path): "note" for path in _files(notes, writeups.SUFFIXES)}
    wanted |= {str(path): "report" for path in _files(logs, _LOG_SUFFIXES)}
    # What was taken in earlier stays, as long as its file does.
    gone = {name for name in before if not Path(name).exists()}
    hashes = {name: before[name] for name in before if name not in gone}
    outcome = Outcome(old, removed=len(gone)) if old else Outcome(index=None)  # type: ignore[arg-type]  # set below
    fresh: list[Document] = []
    changed: set[str] = set(gone)
    for number, (name, kind) in enumerate(wanted.items()):
        report("files", number, len(wanted))
        try:
            content = _hash(Path(name), kind)
        except OSError as error:
            outcome.skipped.append(f"{name}: {error.strerror}")
            continue
        if before.get(name) == content:
            outcome.unchanged += 1
            continue
        made = _read(Path(name), kind, reader, outcome)
        changed.add(name)
        hashes[name] = content
        outcome.added += bool(made)
        fresh.extend(made)
    report("files", len(wanted), len(wanted))
    if old and not changed and is_current(old, embedder.name):
        outcome.rebuilt = False
        return outcome
    held = [document for document in kept if document.origin not in changed]
    cases = [document for case in library.load().cases.values() for document in documents.of_case(case)]
    everything = [*cases, *held, *fresh]
    manifest = Manifest(embedder.name, library.digest(), len(everything), hashes, tuple(roots))
    outcome.index = index.write(home, everything, embedder, manifest, report)
    return outcome


def _files(paths: Iterable[Path], suffixes: frozenset[str]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise MissingInputError(f"There is no file or folder {path}.")
        if path.is_file():
            yield path.resolve()
            continue
        for child in sorted(path.resolve().rglob("*")):
            if child.is_file() and child.suffix.lower() in suffixes and not child.name.startswith("."):
                yield child


def _hash(path: Path, kind: str) -> str:
    total = hashlib.sha256(kind.encode())
    for part in [path, *([_label_path(path)] if kind == "report" else [])]:
        if part is not None:
            with part.open("rb") as stream:
                total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def _read(path: Path, kind: str, reader: Reader | None, outcome: Outcome) -> list[Document]:
    if kind == "note":
        try:
            made = writeups.read(path)
        except IngestError as error:
            outcome.skipped.append(str(error))
            return []
        if not made:
            outcome.skipped.append(f"{path}: holds no text")
        return made
    assert reader is not None  # noqa: S101 - logs are only given together with a reader
    try:
        report = reader.read(sources.from_path(path))
        label = _label(path)
    except (IngestError, InvalidCorpusError) as error:
        outcome.skipped.append(str(error))
        return []
    # Two jobs' logs may both be called worker.log.
    owner = label.job or Redactor().clean(printable(f"{path.stem}-{hashlib.sha256(str(path).encode()).hexdigest()[:6]}"))
    made_one = documents.of_report(report, f"job/{owner}", str(path), label.cause, label.fix)
    if made_one is None:
        outcome.skipped.append(f"{path}: no failure found in it")
    return [made_one] if made_one else []


def _label_path(path: Path) -> Path | None:
    stem = path.name.removesuffix(".gz").rsplit(".", 1)[0]
    for form in LABELS:
        candidate = path.parent / form.format(stem=stem, name=path.name)
        if candidate.exists():
            return candidate
    return None


def _label(path: Path) -> Label:
    found = _label_path(path)
    data: Any = library.read_yaml(found) if found else {}
    if not isinstance(data, dict):
        raise InvalidCorpusError(f"{found}: a label is a mapping with cause, fix and job")
    cause = data.get("cause") or next(iter(data.get("causes") or ()), "")
    clean = Redactor().clean
    return Label(*(clean(printable(str(text or ""))) for text in (cause, data.get("fix"), data.get("job"))))
