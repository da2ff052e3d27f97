"""The search index: vectors in Chroma, words in BM25, both over the same documents.

An index is written as a whole new generation beside the old one and put in place by renaming one small
file, so an interrupted run leaves the old index as it was. Vectors of unchanged documents are taken over.
Beside Chroma, a generation holds its vectors as one array: a single command reads that in milliseconds,
where importing Chroma's client alone takes over a second.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest import lexical
from ingest.documents import Document
from ingest.embedder import Embedder, Vectors
from ingest.errors import NewerIndexError, SearchIndexError

FORMAT = 1
COLLECTION = "documents"
CHROMA_BATCH = 2000
# Up to here all vectors are compared; beyond, Chroma's graph is the faster way.
EXACT_LIMIT = 50_000

Report = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Manifest:
    """What a generation was made of. `files` maps each ingested file to its content's hash."""

    model: str
    corpus: str
    documents: int
    files: Mapping[str, str] = field(default_factory=dict)
    roots: tuple[str, ...] = ()
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class Hit:
    """A document with its score; scores of two retrievers are not comparable."""

    document: Document
    score: float


class Index:
    """One generation, opened for reading."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """All documents, in the order of their vectors."""
        try:
            with (self.folder / "documents.jsonl").open(encoding="utf-8") as stream:
                return tuple(Document(**json.loads(row)) for row in stream)
        except (OSError, ValueError, TypeError) as error:
            raise _unreadable(self.folder.parent.parent, error) from error

    @cached_property
    def vectors(self) -> Vectors:
        """All vectors; shape (documents, dimensions)."""
        try:
            return np.load(self.folder / "vectors.npy", mmap_mode="r")  # type: ignore[no-any-return]
        except (OSError, ValueError, EOFError) as error:
            raise _unreadable(self.folder.parent.parent, error) from error

    @cached_property
    def _words(self) -> lexical.WordIndex:
        try:
            return lexical.WordIndex(self.folder / "words")
        except (OSError, ValueError, EOFError, KeyError) as error:
            raise _unreadable(self.folder.parent.parent, error) from error

    def dense(self, vector: NDArray[np.float32], count: int) -> list[Hit]:
        """Give the documents nearest to a unit vector, by cosine, best first."""
        if len(self.documents) > EXACT_LIMIT:
            return self.dense_chroma(vector, count)
        return self._top(np.asarray(self.vectors @ vector), count)

    def dense_chroma(self, vector: NDArray[np.float32], count: int) -> list[Hit]:
        """Give what Chroma holds nearest to a unit vector, by cosine, best first."""
        known = {document.id: document for document in self.documents}
        found = _collection(self.folder / "chroma").query(query_embeddings=[vector.tolist()], n_results=count)
        pairs = zip(found["ids"][0], found["distances"][0], strict=True)
        return [Hit(known[name], 1.0 - float(distance)) for name, distance in pairs]

    def words(self, query: str, count: int) -> list[Hit]:
        """Give the documents that share the rarest words with the query, by BM25, best first."""
        return self._top(self._words.scores(query), count)

    def _top(self, scores: NDArray[np.float32], count: int) -> list[Hit]:
        order = np.argsort(-scores, kind="stable")[:count]
        return [Hit(self.documents[place], float(scores[place])) for place in order if scores[place] > 0]


def current(home: Path) -> Index | None:
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
            f"The index under {home} has format {facts['format']}, this whycrash reads up to {FORMAT}: "
            "get a newer whycrash, or set WHYCRASH_HOME to another folder."
        )
    if facts.get("format") != FORMAT:
        return None
    try:
        return Index(folder, Manifest(**{**facts, "roots": tuple(facts["roots"])}))
    except (KeyError, TypeError) as error:
        raise _unreadable(home, error) from error


def _unreadable(home: Path, reason: object) -> SearchIndexError:
    return SearchIndexError(f"The index under {home} cannot be read ({reason}); remove {home / 'index'}.")


def write(home: Path, documents: Sequence[Document], embedder: Embedder, manifest: Manifest, report: Report) -> Index:
    """Write a new generation and put it in place; returns it opened."""
    with _locked(home):
        old = current(home)
        folder = _next_folder(home)
        vectors = _vectors(documents, embedder, old, report)
        np.save(folder / "vectors.npy", vectors)
        with (folder / "documents.jsonl").open("w", encoding="utf-8") as stream:
            stream.writelines(json.dumps(document.record(), ensure_ascii=False) + "\n" for document in documents)
        report("words", 0, 1)
        lexical.build([document.embedded for document in documents], folder / "words")
        report("words", 1, 1)
        _fill_chroma(folder / "chroma", documents, vectors, report)
        facts = {**manifest.__dict__, "roots": list(manifest.roots)}
        (folder / "manifest.json").write_text(json.dumps(facts, ensure_ascii=False, indent=1), encoding="utf-8")
        _switch(home, folder)
    return Index(folder, manifest)


def _vectors(documents: Sequence[Document], embedder: Embedder, old: Index | None, report: Report) -> Vectors:
    known: dict[str, Vectors] = {}
    if old is not None and old.manifest.model == embedder.name:
        known = dict(zip((document.digest for document in old.documents), old.vectors, strict=True))
    digests = [document.digest for document in documents]
    fresh = [place for place, digest in enumerate(digests) if digest not in known]
    for begin in range(0, len(fresh), 256):
        report("vectors", begin, len(fresh))
        places = fresh[begin : begin + 256]
        made = embedder.embed([documents[place].embedded for place in places])
        known.update(zip((digests[place] for place in places), made, strict=True))
    report("vectors", len(fresh), len(fresh))
    return np.stack([known[digest] for digest in digests]).astype(np.float32)


def _next_folder(home: Path) -> Path:
    base = home / "index"
    taken = [int(path.name) for path in base.iterdir() if path.is_dir() and path.name.isdigit()]
    folder = base / f"{max(taken, default=0) + 1:06d}"
    folder.mkdir()
    return folder


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
        raise SearchIndexError(f"{base} cannot be written; set WHYCRASH_HOME to a folder of yours.") from error


def _client(folder: Path) -> Any:
    # Imported here: see the top of this file.
    import chromadb
    from chromadb.config import Settings

    return chromadb.PersistentClient(path=str(folder), settings=Settings(anonymized_telemetry=False))


def _collection(folder: Path) -> Any:
    return _client(folder).get_collection(COLLECTION, embedding_function=None)


def _fill_chroma(folder: Path, documents: Sequence[Document], vectors: Vectors, report: Report) -> None:
    # The graph is built by threads, another one each time; sparser ones missed a neighbour in one build of three.
    graph = {"hnsw:space": "cosine", "hnsw:construction_ef": 400, "hnsw:search_ef": 1000, "hnsw:M": 48}
    collection = _client(folder).create_collection(COLLECTION, embedding_function=None, metadata=graph)
    for begin in range(0, len(documents), CHROMA_BATCH):
        report("store", begin, len(documents))
        batch = documents[begin : begin + CHROMA_BATCH]
        collection.add(
            ids=[document.id for document in batch],
            embeddings=vectors[begin : begin + CHROMA_BATCH],
            documents=[document.embedded for document in batch],
            metadatas=[{"kind": item.kind, "owner": item.owner, "language": item.language, "cause": item.cause,
                        "origin": item.origin} for item in batch],
        )
    report("store", len(documents), len(documents))
