"""Vectors in Chroma: a collection of this home's own, or one on a server that several machines share.

On a server, a collection holds one generation of an index whole: vectors, and with them the documents, so
that a machine with an empty home can take the index over. A collection is named after its content and never
changed, but that what is forgotten goes; a small one beside it names the collection that stands now, for each
pair of model and corpus. One more holds a mark for each team that was forgotten: each home that shares the
server forgets what it took in for that team before it met the mark.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import numpy as np

from corpus.message import Message
from ingest.documents import Document
from ingest.embedder import Vectors
from ingest.errors import ChromaServerError
from ingest.extras import advice

COLLECTION = "documents"
# How the names of collections begin that hold a generation; that of the marks, and those of pointers, do not.
_GENERATION, _FORGOTTEN = "whycrash-", "forgotten-whycrash"
_PAGE = 100
BATCH = 2000
# Seconds that a server may take for one request, and that one which failed is left alone.
REQUEST_TIMEOUT = 20.0
PAUSE = 30.0
# The graph is built by threads, another one each time; sparser ones missed a neighbour in one build of three.
_GRAPH = {"hnsw:space": "cosine", "hnsw:construction_ef": 400, "hnsw:search_ef": 1000, "hnsw:M": 48}
_FIELDS = (
    "kind",
    "owner",
    "title",
    "language",
    "origin",
    "cause",
    "fix",
    "heading",
    "jobs",
    "last",
    "home",
    "team",
)

Report = Callable[[str, int, int], None]


@dataclass(frozen=True)
class CollectionContents:
    """What a collection holds: documents in the order of their rows, and their vectors."""

    documents: tuple[Document, ...]
    vectors: Vectors


def is_installed() -> bool:
    """Tell whether Chroma can be used at all; a light installation has it not."""
    return find_spec("chromadb") is not None


def write_folder(folder: Path, documents: Sequence[Document], vectors: Vectors, report: Report) -> None:
    """Fill a new collection in a folder of this machine."""
    collection = _opened(folder).create_collection(COLLECTION, embedding_function=None, metadata=_GRAPH)
    _fill(collection, documents, vectors, BATCH, report)


def nearest_in_folder(
    folder: Path, vector: Vectors, count: int, teams: Sequence[str] = ()
) -> list[tuple[str, float]]:
    """Give the ids nearest to a unit vector in a folder's collection, with their cosines, best first.

    Only documents of these teams, where there are any.
    """
    collection = _opened(folder).get_collection(COLLECTION, embedding_function=None)
    return _nearest(collection, vector, count, teams)


def name_of(model: str, documents: Sequence[Document]) -> str:
    """Name a collection after what it holds, in whatever order."""
    rows = sorted(repr(tuple(document.record().items())) for document in documents)
    return _GENERATION + hashlib.sha256("\n".join([model, *rows]).encode()).hexdigest()[:24]


def team_key(team: str) -> str:
    """Name a team where it is not to be read that there was one of this name."""
    return hashlib.sha256(f"whycrash team {team}".encode()).hexdigest()[:32]


class ChromaServer:
    """A Chroma server under its URL. Every method raises ChromaServerError where it does not answer."""

    def __init__(self, url: str, timeout: float = REQUEST_TIMEOUT, pause: float = PAUSE) -> None:
        self.url = url
        self._timeout = timeout
        self.pause = pause
        self.failed_at = -pause
        # Why the last request failed; empty where it did not.
        self.trouble = ""
        self._collections: dict[str, Any] = {}

    @property
    def is_resting(self) -> bool:
        """Tell whether it failed a moment ago and is not asked again yet."""
        return monotonic() - self.failed_at < self.pause

    def standing(self, model: str, corpus: str) -> str:
        """Name the collection that stands for a model and a corpus; empty where there is none."""
        with self._translated():
            found = _find(self._client, _pointer(model, corpus))
            return str((found.metadata or {}).get("collection", "")) if found else ""

    def publish(self, name: str, documents: Sequence[Document], vectors: Vectors, report: Report) -> None:
        """Store a generation under its name; one that is there whole already is left as it is."""
        with self._translated():
            collection = self._client.get_or_create_collection(name, embedding_function=None, metadata=_GRAPH)
            if collection.count() != len(documents):
                _fill(
                    collection, documents, vectors, min(BATCH, int(self._client.get_max_batch_size())), report
                )

    def point(self, model: str, corpus: str, name: str) -> None:
        """Let a published generation be the one that stands.

        The one before it stays for who reads it, older ones go.
        """
        with self._translated():
            pointer = self._client.get_or_create_collection(_pointer(model, corpus), embedding_function=None)
            facts = dict(pointer.metadata or {})
            if facts.get("collection") == name:
                return
            pointer.modify(
                metadata={
                    "collection": name,
                    "before": facts.get("collection", ""),
                    "model": model,
                    "corpus": corpus,
                }
            )
            before = facts.get("before")
            if before and before != name and _find(self._client, str(before)):
                self._client.delete_collection(before)

    def forget_before(self, model: str, corpus: str) -> None:
        """Delete the generation before the one that stands; who still reads it asks its own copy instead."""
        with self._translated():
            pointer = _find(self._client, _pointer(model, corpus))
            before = str((pointer.metadata or {}).get("before", "")) if pointer else ""
            if before and _find(self._client, before):
                self._client.delete_collection(before)

    def forget(self, team: str) -> dict[str, str]:
        """Mark a team as forgotten for all homes, and delete what all generations hold of it.

        Gives the mark by the team's key.
        """
        mark = {team_key(team): uuid4().hex}
        with self._translated():
            marks = self._client.get_or_create_collection(_FORGOTTEN, embedding_function=None)
            marks.upsert(ids=[*mark], embeddings=[[1.0]], metadatas=[{"mark": one} for one in mark.values()])
            its, begin = {"team": team}, 0
            while page := self._client.list_collections(limit=_PAGE, offset=begin):
                begin += len(page)
                for held in page:
                    if held.name.startswith(_GENERATION) and held.get(where=its, limit=1, include=[])["ids"]:
                        held.delete(where=its)
        return mark

    def forgotten(self) -> dict[str, str]:
        """Give the marks of the teams that were forgotten, by the teams' keys."""
        with self._translated():
            marks = _find(self._client, _FORGOTTEN)
            held = marks.get(include=["metadatas"]) if marks else {"ids": [], "metadatas": []}
            pairs = zip(held["ids"], held["metadatas"], strict=True)
            return {key: str(facts.get("mark", "")) for key, facts in pairs}

    def fetch(self, name: str) -> CollectionContents:
        """Load a whole generation."""
        with self._translated():
            collection = self._client.get_collection(name, embedding_function=None)
            pages = [
                collection.get(limit=BATCH, offset=begin, include=["embeddings", "documents", "metadatas"])
                for begin in range(0, collection.count(), BATCH)
            ]
        documents = tuple(
            Document(id=name, text=text, **{key: facts[key] for key in _FIELDS if key in facts})
            for page in pages
            for name, text, facts in zip(page["ids"], page["documents"], page["metadatas"], strict=True)
        )
        vectors = [np.asarray(page["embeddings"], dtype=np.float32) for page in pages]
        return CollectionContents(
            documents, np.concatenate(vectors) if vectors else np.zeros((0, 0), dtype=np.float32)
        )

    def nearest(
        self, name: str, vector: Vectors, count: int, teams: Sequence[str] = ()
    ) -> list[tuple[str, float]]:
        """Give the ids nearest to a unit vector with their cosines, best first.

        Only documents of these teams, where there are any.
        """
        with self._translated():
            if name not in self._collections:
                self._collections[name] = self._client.get_collection(name, embedding_function=None)
            return _nearest(self._collections[name], vector, count, teams)

    def close(self) -> None:
        """Close the connections; they are opened again when they are needed."""
        client = self.__dict__.pop("_client", None)
        self._collections.clear()
        if client is not None:
            sessions = _sessions(client)
            client.close()
            for session in sessions:
                session.close()

    @cached_property
    def _client(self) -> Any:
        import httpx

        chromadb = _chromadb()

        # Chroma's client waits for ever by itself; an answer must not.
        httpx.get(f"{self.url.rstrip('/')}/api/v2/heartbeat", timeout=self._timeout).raise_for_status()
        parts = urlsplit(self.url)
        client = chromadb.HttpClient(
            host=parts.hostname or "127.0.0.1",
            port=parts.port or 8000,
            ssl=parts.scheme == "https",
            settings=_quiet(),
        )
        for session in _sessions(client):
            session.timeout = self._timeout
        return client

    @contextmanager
    def _translated(self) -> Iterator[None]:
        _chromadb()
        from chromadb.errors import ChromaError
        from httpx import HTTPError

        try:
            yield
        except (ChromaError, HTTPError, ValueError, OSError) as error:
            self.failed_at = monotonic()
            self._collections.clear()
            self.trouble = Message(
                "errors.chroma-gives-no-answer", url=self.url, reason=str(error)[:200] or type(error).__name__
            )
            raise ChromaServerError(self.trouble) from error
        self.trouble = ""


@cache
def server_at(url: str) -> ChromaServer:
    """Give the server under a URL; one for this process, so that its connections and its rest are shared."""
    return ChromaServer(url)


def _sessions(client: Any) -> list[Any]:
    """Give the HTTP sessions of a client, which it keeps to itself and does not close."""
    owners = (client, getattr(client, "_admin_client", None))
    found = (getattr(getattr(owner, "_server", None), "_session", None) for owner in owners)
    return [session for session in found if session is not None]


def _pointer(model: str, corpus: str) -> str:
    # Of its own form: programs that know of no teams would show one team's documents to all.
    return "whycrash-teams-" + hashlib.sha256(f"{model}\n{corpus}".encode()).hexdigest()[:16]


def _find(client: Any, name: str) -> Any:
    from chromadb.errors import NotFoundError

    try:
        return client.get_collection(name, embedding_function=None)
    except NotFoundError:
        return None


def _quiet() -> Any:
    _chromadb()
    from chromadb.config import Settings

    # Also where to send traces: only what we say counts, and never a file in the current folder.
    return Settings(_env_file=None, anonymized_telemetry=False)  # type: ignore[call-arg]


@cache
def _chromadb() -> Any:
    """Import chromadb without the `.env` of the current folder.

    Its settings are read from there at import, and that folder may be a log's: the file could name a server
    for traces, break the import, or be a pipe that is waited for.
    """
    if not is_installed():
        raise ChromaServerError(advice("chromadb"))
    # Imported here: it takes over a second, and a single command does without it.
    from pydantic_settings import DotEnvSettingsSource

    usual = DotEnvSettingsSource._load_env_vars
    DotEnvSettingsSource._load_env_vars = lambda _self: {}  # type: ignore[assignment, method-assign]
    try:
        import chromadb
        from chromadb.config import Settings
    finally:
        DotEnvSettingsSource._load_env_vars = usual  # type: ignore[method-assign]
    Settings.model_config["env_file"] = None
    return chromadb


def _opened(folder: Path) -> Any:
    return _chromadb().PersistentClient(path=str(folder), settings=_quiet())


def _fill(
    collection: Any, documents: Sequence[Document], vectors: Vectors, most: int, report: Report
) -> None:
    for begin in range(0, len(documents), most):
        report("store", begin, len(documents))
        batch = documents[begin : begin + most]
        collection.upsert(
            ids=[document.id for document in batch],
            embeddings=vectors[begin : begin + most],
            documents=[document.text for document in batch],
            metadatas=[{name: getattr(document, name) for name in _FIELDS} for document in batch],
        )
    report("store", len(documents), len(documents))


def _nearest(collection: Any, vector: Vectors, count: int, teams: Sequence[str]) -> list[tuple[str, float]]:
    found = collection.query(
        query_embeddings=[vector.tolist()],
        n_results=count,
        where={"team": {"$in": list(teams)}} if teams else None,
        include=["distances"],
    )
    pairs = zip(found["ids"][0], found["distances"][0], strict=True)
    return [(name, 1.0 - float(distance)) for name, distance in pairs]
