"""Bring the index up to date with the corpus, people's write-ups and past crashes."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from corpus import library
from corpus.message import Message
from ingest import (
    bulk_ingest,
    chroma,
    default_model,
    documents,
    forgotten_marks,
    index,
    ingest_tasks,
    shipped,
    writeups,
)
from ingest.chroma import ChromaServer, CollectionContents, server_at
from ingest.documents import Document
from ingest.embedder import Embedder, Vectors
from ingest.errors import ChromaServerError, MissingInputError
from ingest.index import Index, IngestedFile, Manifest, OutdatedError, Report
from ingest.ingest_tasks import IngestedContent, IngestTask
from ingest.logs.reader import Reader

_LOG_SUFFIXES = frozenset({".log", ".out", ".err", ".txt", ".gz", ""})


@dataclass
class IngestOutcome:
    """What one run did with the files it was given."""

    index: Index
    added: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: list[str] = field(default_factory=list)
    rebuilt: bool = True


@dataclass(frozen=True)
class IndexPlaces:
    """Where an index is kept besides the home, and where many logs are read; empty is this machine."""

    chroma_url: str = ""
    ray_address: str = ""
    workers: int = 0

    @property
    def server(self) -> ChromaServer | None:
        """The Chroma server, if there is one."""
        return server_at(self.chroma_url) if self.chroma_url else None


HERE = IndexPlaces()


def opened(home: Path, embedder_name: str, places: IndexPlaces = HERE) -> Index | None:
    """Open the index, if it is of this corpus and model and, with a Chroma server, the one that stands there.

    None as well where another home has forgotten a team that this one may have files of.

    A server that gives no answer does not matter where this machine has the index itself; the index's note
    says so.
    """
    server = places.server
    found = index.current(home, server)
    if found is None or not is_current(found, embedder_name):
        return None
    if server is None:
        return found
    try:
        standing = server.standing(embedder_name, library.digest())
        if forgotten_marks.unmet(home, server.forgotten()):
            return None
    except ChromaServerError as error:
        return found if found.manifest.collection else Index(found.folder, found.manifest, note=str(error))
    return found if standing and standing == found.manifest.collection else None


def refresh(home: Path, embedder: Embedder, report: Report, places: IndexPlaces = HERE) -> IngestOutcome:
    """Rebuild the index if corpus, model, a known file or what a Chroma server holds changed."""
    return ingest(home, embedder, report, notes=[], logs=[], reader=None, places=places)


def is_current(found: Index | None, embedder_name: str) -> bool:
    """Tell whether an index was made of this corpus with this model."""
    return (
        found is not None
        and found.manifest.corpus == library.digest()
        and found.manifest.model == embedder_name
    )


def ingest(
    home: Path,
    embedder: Embedder,
    report: Report,
    *,
    notes: Sequence[Path],
    logs: Sequence[Path],
    reader: Reader | None,
    places: IndexPlaces = HERE,
    team: str | None = None,
) -> IngestOutcome:
    """Take in write-ups and logs, besides the corpus.

    Files whose content is unchanged are not read again; files of an ingested folder that are gone
    leave the index. `team` alone will find these files, everybody where it is empty; without one, a file
    that was taken in before stays whose it is, and a new one is theirs whose all others of its folder are.
    Raises MissingInputError, SearchIndexError, ModelError.
    """
    # First: what is taken in from here on is not what another home has forgotten.
    _forget_as_others(home, places.server)
    old = index.current(home)
    before = _before(old)
    tasks = list(_tasks_of(notes, logs, before, team))
    pool = bulk_ingest.BulkReader(home, places.ray_address, places.workers)
    outcome = IngestOutcome(index=None)  # type: ignore[arg-type]  # set below
    changed: dict[str, IngestedContent] = {}
    for made in _ingest_files(tasks, reader, pool, report):
        outcome.unchanged += made.unchanged
        outcome.added += bool(made.documents)
        if made.reason:
            outcome.skipped.append(made.reason)
        if made.content and not made.unchanged:
            changed[made.file] = made
    run = _Run(
        home, embedder, report, places, pool, tuple(str(path.resolve()) for path in (*notes, *logs)), changed
    )
    while not run.settle(old, outcome):
        # Another run has put its index in place meanwhile: what this one took in comes on top of that.
        old = index.current(home)
    pool.finish()
    # Again: another home may have forgotten what this run has just put on the server.
    if _forget_as_others(home, places.server):
        outcome.index = index.current(home, places.server) or outcome.index
    return outcome


class _KnownVectors:
    """Stands for a model where each text's vector is known."""

    def __init__(self, name: str) -> None:
        self.name = name

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Refuse: there is nothing to embed."""
        raise AssertionError(f"{len(texts)} texts have no vector")


def forget_team(home: Path, team: str, places: IndexPlaces = HERE) -> int:
    """Take what is a team's out of the index, for all who share it; gives how many files of it were known.

    The generation that held it goes too; whose the files were stays known. Other homes that share the server
    forget what they took in for the team when they next look at it. Raises SearchIndexError, also where a
    server cannot be told.
    """
    server = places.server
    if server is None:
        return _forget_here(home, {team}, None)
    # Told first: where it is away, what stays there must not be told as gone.
    mark = server.forget(team)
    gone = _forget_here(home, {team}, server)
    forgotten_marks.note(home, mark)
    return gone


def _forget_here(home: Path, teams: Collection[str], server: ChromaServer | None) -> int:
    """Write the index without what this home took in for teams; gives how many files that were.

    Of other homes' files a server's word counts: they may have been taken in anew.
    """
    gone = 0
    while (old := index.current(home, server)) is not None:
        standing = server.standing(old.manifest.model, old.manifest.corpus) if server else ""
        held = server.fetch(standing) if server and standing else None
        own = ("", _mark(home)) if server else ()
        left = [one for one in old.documents if one.team not in teams and (one.home in own or server is None)]
        left += [one for one in (held.documents if held else ()) if one.home not in own]
        # A later run over the same folder must not take them in for everybody.
        taken = [replace(item, content="", crash=None) if item.team in teams else item for item in old.taken]
        gone = sum(item.team in teams and bool(item.content) for item in old.taken)
        is_same = {one.id for one in left} == {one.id for one in old.documents}
        if not gone and is_same and old.manifest.collection == standing:
            break
        try:
            made = index.write(
                home,
                left,
                _KnownVectors(old.manifest.model),
                replace(old.manifest, documents=len(left), files={}, format=index.FORMAT, collection=""),
                lambda _stage, _done, _total: None,
                taken=taken,
                server=server,
                known=_SharedCollections(server, held).vectors,
                upon=old.folder.name,
            )
        except OutdatedError:
            continue
        shutil.rmtree(old.folder, ignore_errors=True)
        if made.note:
            raise ChromaServerError(made.note)
        break
    if server is not None and old is not None:
        # Also where nothing was left to forget: a run before may have been broken off here.
        server.forget_before(old.manifest.model, old.manifest.corpus)
    return gone


def _forget_as_others(home: Path, server: ChromaServer | None) -> bool:
    """Forget the teams that another home has forgotten since this one looked; tells whether there were any.

    Where the server is away, that is for the next look.
    """
    try:
        if server is None or not (new := forgotten_marks.unmet(home, server.forgotten())):
            return False
        old = index.current(home, server)
        known = {*(item.team for item in old.taken), *(one.team for one in old.documents)} if old else set()
        if teams := {team for team in known if team and chroma.team_key(team) in new}:
            _forget_here(home, teams, server)
    except ChromaServerError:
        return False
    forgotten_marks.note(home, new)
    return True


def _before(old: Index | None) -> dict[str, IngestedFile]:
    return {item.file: item for item in old.taken} if old else {}


@dataclass(frozen=True)
class _Run:
    """What one run has taken in, and where it is to go.

    `given` are the files and folders that it was given.
    """

    home: Path
    embedder: Embedder
    report: Report
    places: IndexPlaces
    pool: bulk_ingest.BulkReader
    given: tuple[str, ...]
    changed: Mapping[str, IngestedContent]

    def settle(self, old: Index | None, outcome: IngestOutcome) -> bool:
        """Put an index in place of the old one, if there is anything to change.

        Tells whether the old one stood until then.
        """
        before = _before(old)
        # What was taken in earlier stays, as long as its file does.
        kept = {name: item for name, item in before.items() if Path(name).exists()}
        outcome.removed = len(before) - len(kept)
        shared = _shared(self.places.server, self.embedder.name, old)
        if (
            old
            and not (self.changed or outcome.removed or shared.differs)
            and is_current(old, self.embedder.name)
        ):
            outcome.rebuilt = False
            outcome.index = opened(self.home, self.embedder.name, self.places) or old
            return True
        try:
            outcome.index = self._written(old, kept, shared)
        except OutdatedError:
            return False
        return True

    def _written(
        self, old: Index | None, kept: Mapping[str, IngestedFile], shared: _SharedCollections
    ) -> Index:
        name = self.embedder.name
        taken = [
            *(item for file, item in kept.items() if file not in self.changed),
            *(
                IngestedFile(
                    made.file,
                    made.content,
                    next((item for item in made.documents if item.kind == "report"), None),
                    made.team,
                )
                for made in self.changed.values()
            ),
        ]
        roots = sorted({*(old.manifest.roots if old else ()), *self.given})
        crashes = documents.collapsed(item.crash for item in taken if item.crash)
        everything = [
            *cases(self.home / "cache"),
            *shared.documents(self.home, [*_notes(self.home, old, kept, self.changed), *crashes]),
        ]
        manifest = Manifest(name, library.digest(), len(everything), roots=tuple(roots))
        return index.write(
            self.home,
            everything,
            self.embedder,
            manifest,
            self.report,
            taken=taken,
            server=shared.server,
            known=(shipped.vectors() if name == default_model.NAME else {}) | shared.vectors,
            compute=self.pool.compute(name),
            upon=old.folder.name if old else "",
        )


def _tasks_of(
    notes: Sequence[Path], logs: Sequence[Path], before: Mapping[str, IngestedFile], team: str | None
) -> Iterator[IngestTask]:
    wanted = {str(path): "note" for path in _files(notes, writeups.SUFFIXES)}
    wanted |= {str(path): "report" for path in _files(logs, _LOG_SUFFIXES)}
    teams: dict[Path, set[str]] = {}
    for file in before.values():
        teams.setdefault(Path(file.file).parent, set()).add(file.team)
    for name, kind in wanted.items():
        # What is put beside a team's files is not shown to everybody because a run did not name the team.
        beside = teams.get(Path(name).parent, {""})
        known = before.get(name, IngestedFile(name, "", team=min(beside) if len(beside) == 1 else ""))
        yield IngestTask(name, kind, known.content, known.team if team is None else team)


def _files(paths: Iterable[Path], suffixes: frozenset[str]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise MissingInputError(Message("errors.no-file-folder", path=path))
        if path.is_file():
            yield path.resolve()
            continue
        shown = (child for child in sorted(path.resolve().rglob("*")) if not child.name.startswith("."))
        yield from (child for child in shown if child.is_file() and child.suffix.lower() in suffixes)


def _ingest_files(
    tasks: Sequence[IngestTask], reader: Reader | None, pool: bulk_ingest.BulkReader, report: Report
) -> Iterator[IngestedContent]:
    """Take in files here, or many logs with a pool."""
    if sum(ingest_task.kind == "report" for ingest_task in tasks) < bulk_ingest.FROM:
        for number, ingest_task in enumerate(tasks):
            report("files", number, len(tasks))
            yield ingest_tasks.ingest_file(ingest_task, reader)
        report("files", len(tasks), len(tasks))
        return
    yield from (
        ingest_tasks.ingest_file(ingest_task, reader) for ingest_task in tasks if ingest_task.kind == "note"
    )
    yield from pool.ingested(
        [bulk_ingest.sized(ingest_task) for ingest_task in tasks if ingest_task.kind == "report"], report
    )


def cases(cache: Path | None = None) -> Iterator[Document]:
    """Give the documents of the corpus's cases; `cache` is where the checked corpus is kept, if anywhere."""
    corpus = library.load(cache=cache)
    return (document for case in corpus.cases.values() for document in documents.of_case(case))


def _notes(
    home: Path, old: Index | None, kept: Mapping[str, IngestedFile], changed: Mapping[str, IngestedContent]
) -> Iterator[Document]:
    """Give the notes of this machine: those from before, then those of this run."""
    for document in old.documents if old else ():
        still = document.kind == "note" and document.origin in kept and document.origin not in changed
        if still and (not document.home or document.home == _mark(home)):
            yield document
    for made in changed.values():
        yield from (document for document in made.documents if document.kind == "note")


@dataclass(frozen=True)
class _SharedCollections:
    """What a Chroma server holds for this corpus and model.

    `differs` where this machine's index is another.
    """

    server: ChromaServer | None = None
    held: CollectionContents | None = None
    differs: bool = False

    @property
    def vectors(self) -> dict[str, Vectors]:
        """Give its vectors by their documents' digests."""
        return (
            {
                document.digest: vector
                for document, vector in zip(self.held.documents, self.held.vectors, strict=True)
            }
            if self.held
            else {}
        )

    def documents(self, home: Path, own: Sequence[Document]) -> Iterator[Document]:
        """Give other homes' notes and crashes, then this one's, marked as its own."""
        if self.server is None:
            yield from own
            return
        mark = _mark(home)
        for document in self.held.documents if self.held else ():
            if document.kind != "case" and document.home != mark:
                yield document
        for document in own:
            # Two machines may have files of the same path.
            yield document if document.home else replace(document, id=f"{document.id}@{mark}", home=mark)


def _shared(server: ChromaServer | None, model: str, old: Index | None) -> _SharedCollections:
    if server is None:
        return _SharedCollections(differs=bool(old and old.manifest.collection))
    try:
        standing = server.standing(model, library.digest())
        if not standing:
            return _SharedCollections(server, differs=True)
        if old is None or standing != old.manifest.collection:
            return _SharedCollections(server, server.fetch(standing), differs=True)
    except ChromaServerError:
        if old is None:
            raise
    return _SharedCollections(server, CollectionContents(old.documents, old.vectors))


def _mark(home: Path) -> str:
    """Name this home, in words that no other home has."""
    path = home / "index" / "HOME"
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(uuid4().hex[:12], encoding="utf-8")
        return path.read_text(encoding="utf-8").strip()
