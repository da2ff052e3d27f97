"""The search index: vectors in Chroma, words in BM25, both over the same documents.

An index is written as a whole new generation beside the old one and put in place by renaming one small
file, so an interrupted run leaves the old index as it was. Vectors of unchanged documents are taken over,
and those that an interrupted run had made.
Beside Chroma, a generation holds its vectors as one array: a single command reads that in milliseconds,
where importing Chroma's client alone takes over a second. Where a Chroma server is set, it is asked instead,
and the array answers while the server does not.
Where Chroma is not installed, the array is all there is.
"""

from __future__ import annotations

import fcntl
import json
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corpus.message import Message
from ingest import chroma, word_index
from ingest.chroma import ChromaServer
from ingest.documents import Document
from ingest.embedder import Embedder, Vectors
from ingest.errors import ChromaServerError, NewerIndexError, SearchIndexError
from ingest.stored_parts import VectorParts

FORMAT = 3
# What this program can also read: the first knew of no crash that several jobs had, the second of no teams.
READABLE = frozenset({1, 2, FORMAT})
# Up to here all vectors are compared; beyond, Chroma's graph is the faster way.
EXACT_LIMIT = 50_000
# Documents that are embedded between two reports of progress, and between two writes of what was embedded.
STEP = 128
PART = 2048

Report = Callable[[str, int, int], None]
# Computes the vectors of each list of texts, in their order.
Compute = Callable[[Iterable[Sequence[str]]], Iterable[Vectors]]

_LOG = logging.getLogger("whycrash.index")


class OutdatedError(Exception):
    """The index that a new one was made from stands no more."""


@dataclass(frozen=True)
class Manifest:
    """What a generation was made of.

    `collection` names it on the Chroma server, and is empty where it is on none. `files` maps ingested files
    to their hashes in format 1 only; later ones keep them apart, as there may be many.
    """

    model: str
    corpus: str
    documents: int
    files: Mapping[str, str] = field(default_factory=dict)
    roots: tuple[str, ...] = ()
    collection: str = ""
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class IngestedFile:
    """A file that was taken in: the hash of its content, and, of a log, its crash as it is by itself.

    `team` is the one that it was taken in for, empty for everybody. The hash is empty where all else was
    forgotten.
    """

    file: str
    content: str
    crash: Document | None = None
    team: str = ""

    def record(self) -> dict[str, object]:
        """Give the fields for storage."""
        return {
            "file": self.file,
            "content": self.content,
            "crash": self.crash.record() if self.crash else None,
            "team": self.team,
        }


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A document with its score; scores of two retrievers are not comparable."""

    document: Document
    score: float


class Index:
    """One generation, opened for reading."""

    def __init__(
        self, folder: Path, manifest: Manifest, server: ChromaServer | None = None, note: str = ""
    ) -> None:
        self.folder = folder
        self.manifest = manifest
        self._note = note
        self.server = server if manifest.collection else None

    @property
    def note(self) -> str:
        """What is not as it should be, for people; empty where all is well."""
        trouble = self.server.trouble if self.server else ""
        return f"{trouble} Until then the vectors on this machine answer." if trouble else self._note

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """All documents, in the order of their vectors."""
        try:
            with (self.folder / "documents.jsonl").open(encoding="utf-8") as stream:
                return tuple(Document(**json.loads(row)) for row in stream)
        except (OSError, ValueError, TypeError) as error:
            raise _unreadable(self.folder.parent.parent, error) from error

    @cached_property
    def taken(self) -> tuple[IngestedFile, ...]:
        """All files that were taken in on this machine."""
        if self.manifest.format == 1:
            crashes = {document.origin: document for document in self.documents if document.kind == "report"}
            return tuple(
                IngestedFile(name, content, crashes.get(name))
                for name, content in self.manifest.files.items()
            )
        try:
            with (self.folder / "taken.jsonl").open(encoding="utf-8") as stream:
                return tuple(
                    IngestedFile(
                        row["file"],
                        row["content"],
                        Document(**row["crash"]) if row["crash"] else None,
                        row.get("team", ""),
                    )
                    for row in map(json.loads, stream)
                )
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise _unreadable(self.folder.parent.parent, error) from error

    @cached_property
    def vectors(self) -> Vectors:
        """All vectors; shape (documents, dimensions)."""
        try:
            return np.load(self.folder / "vectors.npy", mmap_mode="r")  # type: ignore[no-any-return]
        except (OSError, ValueError, EOFError) as error:
            raise _unreadable(self.folder.parent.parent, error) from error

    @cached_property
    def _words(self) -> word_index.WordIndex:
        try:
            return word_index.WordIndex(self.folder / "words")
        except (OSError, ValueError, EOFError, KeyError) as error:
            raise _unreadable(self.folder.parent.parent, error) from error

    @cached_property
    def _by_id(self) -> dict[str, Document]:
        return {document.id: document for document in self.documents}

    @cached_property
    def _owners(self) -> NDArray[np.str_]:
        """Whose each document is."""
        return np.array([document.team for document in self.documents], dtype=np.str_)

    @cached_property
    def _teams(self) -> frozenset[str]:
        """Whose documents there are beside everybody's."""
        return frozenset(document.team for document in self.documents) - {""}

    def _readers(self, team: str) -> tuple[str, ...]:
        """Name whose documents a team may find; empty where it may find all that there are."""
        return ("", team) if self._teams - {team} else ()

    def dense(self, vector: NDArray[np.float32], count: int, team: str = "") -> list[SearchHit]:
        """Give the documents nearest to a unit vector that a team may find, by cosine, best first."""
        readers = self._readers(team)
        if self.server is not None and not self.server.is_resting:
            try:
                return self._hits(self.server.nearest(self.manifest.collection, vector, count, readers))
            except ChromaServerError as error:
                _LOG.warning("%s", error)
        if (
            self.server is None
            and len(self.documents) > EXACT_LIMIT
            # A generation that was written without Chroma has no folder of it.
            and (self.folder / "chroma").is_dir()
            and chroma.is_installed()
        ):
            return self.dense_chroma(vector, count, team)
        return self._top(np.asarray(self.vectors @ vector), count, team)

    def dense_chroma(self, vector: NDArray[np.float32], count: int, team: str = "") -> list[SearchHit]:
        """Give what Chroma holds nearest to a unit vector, by cosine, best first."""
        readers = self._readers(team)
        return self._hits(chroma.nearest_in_folder(self.folder / "chroma", vector, count, readers))

    def _hits(self, nearest: Iterable[tuple[str, float]]) -> list[SearchHit]:
        return [SearchHit(self._by_id[name], score) for name, score in nearest if score > 0]

    def words(self, query: str, count: int, team: str = "") -> list[SearchHit]:
        """Give the documents with the query's rarest words that a team may find, by BM25, best first."""
        return self._top(self._words.scores(query), count, team)

    def _top(self, scores: NDArray[np.float32], count: int, team: str) -> list[SearchHit]:
        if readers := self._readers(team):
            # Before the best are chosen: else what may not be found would take the places of what may.
            scores = np.where(np.isin(self._owners, readers), scores, 0)
        order = np.argsort(-scores, kind="stable")[:count]
        return [
            SearchHit(self.documents[place], float(scores[place])) for place in order if scores[place] > 0
        ]


def current(home: Path, server: ChromaServer | None = None) -> Index | None:
    """Open the index under `home`; None where there is none yet. Raises NewerIndexError."""
    pointer = home / "index" / "CURRENT"
    try:
        folder = home / "index" / pointer.read_text(encoding="utf-8").strip()
        facts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _unreadable(home, error) from error
    if not isinstance(facts, dict):
        raise _unreadable(home, "its manifest is no object")
    if facts.get("format", 0) > FORMAT:
        raise NewerIndexError(
            Message("errors.index-format-whycrash-reads", home=home, value=facts["format"], value_2=FORMAT)
        )
    if facts.get("format") not in READABLE:
        return None
    try:
        return Index(folder, Manifest(**{**facts, "roots": tuple(facts["roots"])}), server)
    except (KeyError, TypeError) as error:
        raise _unreadable(home, error) from error


def _unreadable(home: Path, reason: object) -> SearchIndexError:
    return SearchIndexError(
        Message("errors.index-cannot-read-remove", home=home, reason=reason, home_2=home / "index")
    )


def write(
    home: Path,
    documents: Sequence[Document],
    embedder: Embedder,
    manifest: Manifest,
    report: Report,
    *,
    taken: Sequence[IngestedFile] = (),
    server: ChromaServer | None = None,
    known: Mapping[str, Vectors] | None = None,
    compute: Compute | None = None,
    upon: str | None = None,
) -> Index:
    """Write a new generation, put it in place, and give it opened.

    With a server, the generation is published there too; where that fails, the index says so in its note, and
    the next run tries again. `known` are vectors by their documents' digests; `compute` embeds in place of
    the embedder. `upon` names the generation that must still stand, empty for none at all; raises
    OutdatedError where another one does.
    """
    with _locked(home):
        old = current(home)
        if upon not in (None, old.folder.name if old else ""):
            raise OutdatedError
        vectors = _vectors(documents, _Source(embedder, compute, old, known or {}), VectorParts(home), report)
        with _next_folder(home) as folder:
            np.save(folder / "vectors.npy", vectors)
            _write_rows(folder / "documents.jsonl", documents)
            _write_rows(folder / "taken.jsonl", taken)
            report("words", 0, 1)
            word_index.build([document.embedded for document in documents], folder / "words")
            report("words", 1, 1)
            manifest, note = _searchable(folder, server, documents, vectors, manifest, report)
            facts = asdict(manifest) | {"roots": list(manifest.roots)}
            (folder / "manifest.json").write_text(
                json.dumps(facts, ensure_ascii=False, indent=1), encoding="utf-8"
            )
            _switch(home, folder)
        VectorParts(home).clear()
    return Index(folder, manifest, server, note)


def _write_rows(path: Path, rows: Iterable[Document | IngestedFile]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row.record(), ensure_ascii=False) + "\n" for row in rows)


def _searchable(
    folder: Path,
    server: ChromaServer | None,
    documents: Sequence[Document],
    vectors: Vectors,
    manifest: Manifest,
    report: Report,
) -> tuple[Manifest, str]:
    """Give the vectors to the server, or write them beside the words where there is none."""
    if server is not None:
        return _published(server, documents, vectors, manifest, report)
    if chroma.is_installed():
        chroma.write_folder(folder / "chroma", documents, vectors, report)
    return manifest, ""


def _published(
    server: ChromaServer, documents: Sequence[Document], vectors: Vectors, manifest: Manifest, report: Report
) -> tuple[Manifest, str]:
    name = chroma.name_of(manifest.model, documents)
    try:
        server.publish(name, documents, vectors, report)
        server.point(manifest.model, manifest.corpus, name)
    except ChromaServerError as error:
        _LOG.warning("%s", error)
        return manifest, f"{error} The index stands on this machine alone."
    return replace(manifest, collection=name), ""


@dataclass(frozen=True)
class _Source:
    """Where vectors come from: those known already, else the model."""

    embedder: Embedder
    compute: Compute | None
    old: Index | None
    known: Mapping[str, Vectors]

    def held(self) -> dict[str, Vectors]:
        """Give the known vectors by digest."""
        held = dict(self.known)
        if self.old is not None and self.old.manifest.model == self.embedder.name:
            held.update(
                zip((document.digest for document in self.old.documents), self.old.vectors, strict=True)
            )
        return held

    def computed(self, texts: Iterable[Sequence[str]]) -> Iterable[Vectors]:
        """Compute vectors, list by list."""
        return self.compute(texts) if self.compute else map(self.embedder.embed, texts)


def _vectors(documents: Sequence[Document], source: _Source, parts: VectorParts, report: Report) -> Vectors:
    known = source.held() | parts.load(source.embedder.name)
    digests = [document.digest for document in documents]
    texts = {
        digest: document.embedded
        for digest, document in zip(digests, documents, strict=True)
        if digest not in known
    }
    # Texts of like length go together; the long ones first, so that the end comes sooner than it seems.
    fresh = sorted(texts, key=lambda digest: -len(texts[digest].encode()))
    steps = [fresh[begin : begin + STEP] for begin in range(0, len(fresh), STEP)]
    report("vectors", 0, len(fresh))
    done = saved = 0
    for step, made in zip(
        steps, source.computed([texts[digest] for digest in step] for step in steps), strict=True
    ):
        known.update(zip(step, made, strict=True))
        done += len(step)
        if done - saved >= PART:
            parts.add(
                source.embedder.name,
                fresh[saved:done],
                np.stack([known[digest] for digest in fresh[saved:done]]),
            )
            saved = done
        report("vectors", done, len(fresh))
    return np.stack([known[digest] for digest in digests]).astype(np.float32)


@contextmanager
def _next_folder(home: Path) -> Iterator[Path]:
    """Make the next generation's folder, and empty it if it cannot be filled, else a full disk stays full."""
    base = home / "index"
    taken = [int(path.name) for path in base.iterdir() if path.is_dir() and path.name.isdigit()]
    folder = base / f"{max(taken, default=0) + 1:06d}"
    try:
        folder.mkdir()
        yield folder
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        # Chroma holds on to a database by its path as long as this process lives: no other may come to lie
        # there.
        with suppress(OSError):
            folder.mkdir()
        if isinstance(error, OSError):
            raise SearchIndexError(
                Message("errors.index-cannot-written-make", base=base, reason=error.strerror or error)
            ) from error
        raise


def _switch(home: Path, folder: Path) -> None:
    base = home / "index"
    part = base / "CURRENT.part"
    part.write_text(folder.name, encoding="utf-8")
    part.replace(base / "CURRENT")
    # A reader that has just opened the last generation may still read it; older ones go.
    for path in base.iterdir():
        if path.is_dir() and path.name.isdigit() and int(path.name) < int(folder.name) - 1:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    base = home / "index"
    try:
        base.mkdir(parents=True, exist_ok=True)
        with (base / "LOCK").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except (PermissionError, NotADirectoryError, FileExistsError, FileNotFoundError) as error:
        raise SearchIndexError(Message("errors.cannot-written-set-whycrash-home", base=base)) from error
