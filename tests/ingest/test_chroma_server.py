"""An index on a Chroma server that several homes share; the server is a real one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import chromadb
import numpy as np
import pytest

from ingest import chroma, index, pipeline
from ingest.chroma import ChromaServer, server_at
from ingest.documents import Document
from ingest.embedder import HashEmbedder, Vectors
from ingest.errors import ChromaServerError
from ingest.index import Index
from ingest.logs.reader import Reader
from ingest.pipeline import IndexPlaces, IngestOutcome
from tests.factories import OOM, STRANGE, document, silent, traceback
from tests.ingest.chroma_server import Chroma, chroma_server
from tests.ports import free_port

# Chroma's own dependencies warn where they are imported.
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]
QUERIES = (
    "ray worker killed, the node is low on memory",
    "CUDA out of memory in the rollout",
    "NCCL watchdog timeout",
    "磁盘已满",
)
NOTE = "# Ranks hang after a while\nOne rank waits in a zebra barrier that the others never reach.\n"


class Counting(HashEmbedder):
    """Hash words, and note how many texts were asked for."""

    asked = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += len(texts)
        return super().embed(texts)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Chroma]:
    """A server that runs."""
    with chroma_server(tmp_path) as running:
        yield running


Ingest = Callable[..., IngestOutcome]


@pytest.fixture
def ingest(tmp_path: Path, reader: Reader, server: Chroma, small_corpus: None) -> Ingest:
    """Run the pipeline for a home, with the server."""

    def run(
        home: str,
        *logs: Path,
        notes: Sequence[Path] = (),
        embedder: HashEmbedder | None = None,
        team: str | None = None,
    ) -> IngestOutcome:
        return pipeline.ingest(
            tmp_path / home,
            embedder or HashEmbedder(),
            silent,
            notes=list(notes),
            logs=list(logs),
            reader=reader,
            places=IndexPlaces(chroma_url=server.url),
            team=team,
        )

    return run


def log(path: Path, text: str) -> Path:
    """Write a log and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def found(opened: Index, query: str) -> list[str]:
    """Give the ids nearest to a query."""
    return [hit.document.id for hit in opened.dense(HashEmbedder().embed([query])[0], 10)]


def same_neighbours(one: Index, other: Index) -> None:
    """Check that two indexes rank alike; equal scores may change places."""
    for query in QUERIES:
        vector = HashEmbedder().embed([query])[0]
        first, second = one.dense(vector, 10), other.dense(vector, 10)
        np.testing.assert_allclose([hit.score for hit in first], [hit.score for hit in second], atol=1e-5)
        sure = {hit.document.id for hit in first if hit.score > first[-1].score + 1e-5}
        assert sure <= {hit.document.id for hit in second}


def test_a_second_machine_with_an_empty_home_has_the_same_index(
    tmp_path: Path, ingest: Ingest, server: Chroma, reader: Reader
) -> None:
    """It computes no vector, and finds what a local index of the same files finds, past crashes too."""
    logs = log(tmp_path / "logs/job.log", traceback(OOM)).parent
    first = ingest("one", logs).index
    counting = Counting()
    second = ingest("two", embedder=counting).index
    assert counting.asked == 0
    assert second.manifest.collection == first.manifest.collection != ""
    assert {one.origin for one in second.documents if one.kind == "report"} == {str(logs / "job.log")}
    alone = pipeline.ingest(
        tmp_path / "alone", HashEmbedder(), silent, notes=[], logs=[logs], reader=reader
    ).index
    for shared in (first, second):
        assert (shared.note, (shared.folder / "chroma").exists()) == ("", False)
    assert [hit.document.title for hit in second.words("OutOfMemoryError", 3)] == [
        hit.document.title for hit in alone.words("OutOfMemoryError", 3)
    ]
    same_neighbours(second, first)
    same_neighbours(replaced_ids(alone), replaced_ids(first))


def replaced_ids(opened: Index) -> Index:
    """Take the home off the ids: an index of one machine alone has none."""
    opened.__dict__["documents"] = tuple(
        replace(one, id=one.id.partition("@")[0]) for one in opened.documents
    )
    opened.server = None
    return opened


def test_each_machine_adds_what_it_has_and_takes_away_its_own_only(
    tmp_path: Path, ingest: Ingest, server: Chroma
) -> None:
    """Files of the same path on two machines stay two; a file that is gone leaves everywhere."""
    mine, yours = (
        log(tmp_path / "mine/job.log", traceback(OOM)),
        log(tmp_path / "yours/job.log", traceback(STRANGE)),
    )
    note = tmp_path / "note.md"
    note.write_text(NOTE)
    ingest("one", mine, notes=[note])
    ingest("two", yours)

    def origins(home: str) -> set[str]:
        return {one.origin for one in ingest(home).index.documents if one.kind != "case"}

    assert origins("one") == origins("two") == {str(mine), str(yours), str(note)}
    mine.unlink()
    # The other machine's index holds it until its own machine has said that it is gone.
    assert origins("two") == {str(mine), str(yours), str(note)}
    assert origins("one") == origins("two") == {str(yours), str(note)}
    assert pipeline.opened(tmp_path / "one", "hash", IndexPlaces(server.url)) is not None


def test_a_team_finds_its_own_on_the_server_and_no_other_teams(
    tmp_path: Path, ingest: Ingest, server: Chroma
) -> None:
    """On every machine that shares it; what is forgotten on one leaves the server, old generation too."""
    notes = {team: tmp_path / f"{team}.md" for team in ("rl", "nlp")}
    for team, note in notes.items():
        note.write_text(NOTE.replace("zebra", team))
        ingest("one", notes=[note], team=team)
    shared = ingest("two").index
    vector = HashEmbedder().embed(["rl nlp barrier that the others never reach"])[0]

    def nearest(team: str) -> set[str]:
        hits = shared.dense(vector, 20, team)
        assert not server_at(server.url).is_resting
        return {hit.document.origin for hit in hits if hit.document.kind == "note"}

    assert [nearest(team) for team in ("rl", "nlp", "")] == [{str(notes["rl"])}, {str(notes["nlp"])}, set()]
    assert pipeline.forget_team(tmp_path / "one", "rl", IndexPlaces(server.url)) == 1
    client = server_at(server.url)
    held = client.fetch(client.standing("hash", shared.manifest.corpus)).documents
    assert {one.team for one in held} == {"", "nlp"}
    with pytest.raises(ChromaServerError):
        client.fetch(shared.manifest.collection)


def test_that_a_server_that_cannot_be_told_is_not_said_to_have_forgotten(
    tmp_path: Path, ingest: Ingest, server: Chroma, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where it is away nor where it goes away meanwhile; told again, it forgets."""
    note, home, places = tmp_path / "rl.md", tmp_path / "one", IndexPlaces(server.url)
    note.write_text(NOTE)
    ingest("one", notes=[note], team="rl")
    client = server_at(server.url)
    monkeypatch.setattr(client, "pause", 0.0)
    server.stop()
    with pytest.raises(ChromaServerError):
        pipeline.forget_team(home, "rl", places)
    server.start()
    with monkeypatch.context() as patched:
        patched.setattr(client, "publish", _away)
        with pytest.raises(ChromaServerError):
            pipeline.forget_team(home, "rl", places)
    # What the server holds is not what this home has: it does not count as the same.
    assert pipeline.opened(home, "hash", places) is None
    pipeline.forget_team(home, "rl", places)
    opened = pipeline.opened(home, "hash", places)
    assert opened is not None
    held = client.fetch(client.standing("hash", opened.manifest.corpus)).documents
    assert {one.team for one in (*held, *opened.documents)} == {""}


def _texts(home: Path) -> str:
    """Give all that a home keeps of its index, as text."""
    kept = [path for path in home.rglob("*") if path.suffix in (".jsonl", ".json")]
    return "".join(path.read_text(encoding="utf-8") for path in kept)


def _held_by(url: str, team: str) -> list[str]:
    """Name the collections of a server in which anything is a team's."""
    parts = urlsplit(url)
    client = chromadb.HttpClient(host=parts.hostname or "", port=parts.port or 0)
    return [held.name for held in client.list_collections() if held.get(where={"team": team})["ids"]]


def test_that_a_team_that_is_forgotten_on_one_home_is_forgotten_by_all(
    tmp_path: Path, ingest: Ingest, server: Chroma
) -> None:
    """At once on the server, in old generations too; on each home when it next looks, and not told again."""
    places = IndexPlaces(server.url)
    notes = {home: tmp_path / home / "rl" / "note.md" for home in ("one", "two")}
    for home, note in notes.items():
        note.parent.mkdir(parents=True)
        note.write_text(NOTE.replace("zebra", f"giraffe-{home}"))
        ingest(home, notes=[note], team="rl")
    other = tmp_path / "other.md"
    other.write_text(NOTE)
    ingest("two", notes=[other], team="nlp")
    assert _held_by(server.url, "rl")
    assert pipeline.forget_team(tmp_path / "one", "rl", places) == 1
    assert _held_by(server.url, "rl") == []
    assert "giraffe" not in _texts(tmp_path / "one" / "index")
    # The other home looks: what it serves is not the current one, and nothing brings the team back.
    assert pipeline.opened(tmp_path / "two", "hash", places) is None
    shared = pipeline.refresh(tmp_path / "two", HashEmbedder(), silent, places).index
    assert {one.team for one in shared.documents} == {"", "nlp"}
    assert (_held_by(server.url, "rl"), "giraffe" in _texts(tmp_path / "two" / "index")) == ([], False)
    assert pipeline.opened(tmp_path / "two", "hash", places) is not None
    assert ingest("two").rebuilt is False
    # What is taken in afterwards is kept, on either home and by a home that is new.
    ingest("two", notes=[notes["two"]], team="rl")
    ingest("three", notes=[notes["one"]], team="rl")
    for home in ("one", "two", "three"):
        found = ingest(home).index.documents
        assert {one.origin for one in found if one.team == "rl"} == {str(note) for note in notes.values()}


def test_that_a_home_from_a_backup_forgets_again(tmp_path: Path, ingest: Ingest, server: Chroma) -> None:
    """It was copied before a team was forgotten, by itself or by another home."""
    note = tmp_path / "rl.md"
    note.write_text(NOTE)
    ingest("one", notes=[note], team="rl")
    shutil.copytree(tmp_path / "one", tmp_path / "backup")
    pipeline.forget_team(tmp_path / "one", "rl", IndexPlaces(server.url))
    shutil.rmtree(tmp_path / "one")
    shutil.copytree(tmp_path / "backup", tmp_path / "one")
    assert {one.team for one in ingest("one").index.documents} == {""}
    assert _held_by(server.url, "rl") == []


def test_that_a_run_that_meets_a_deletion_does_not_bring_it_back(
    tmp_path: Path, ingest: Ingest, server: Chroma, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another home forgets the team while this one puts it on the server."""
    note = tmp_path / "rl.md"
    note.write_text(NOTE)
    ingest("one")
    client = server_at(server.url)
    point = client.point

    def forgotten_meanwhile(*given: str) -> None:
        monkeypatch.setattr(client, "point", point)
        pipeline.forget_team(tmp_path / "one", "rl", IndexPlaces(server.url))
        point(*given)

    monkeypatch.setattr(client, "point", forgotten_meanwhile)
    made = ingest("two", notes=[note], team="rl").index
    assert {one.team for one in made.documents} == {""}
    assert _held_by(server.url, "rl") == []
    assert {one.team for one in ingest("one").index.documents} == {""}


def _away(*_given: object) -> NoReturn:
    raise ChromaServerError("it is away")


def test_an_index_that_another_machine_changed_is_not_the_current_one(
    tmp_path: Path, ingest: Ingest, server: Chroma
) -> None:
    """`opened` says so, and the next refresh takes the new one over."""
    places = IndexPlaces(server.url)
    ingest("one")
    ingest("two", log(tmp_path / "logs/job.log", traceback(OOM)))
    assert pipeline.opened(tmp_path / "one", "hash", places) is None
    assert pipeline.refresh(tmp_path / "one", HashEmbedder(), silent, places).rebuilt
    assert pipeline.opened(tmp_path / "one", "hash", places) is not None
    assert pipeline.refresh(tmp_path / "one", HashEmbedder(), silent, places).rebuilt is False
    assert pipeline.opened(tmp_path / "one", "another model", places) is None


def test_a_server_that_is_down_leaves_the_vectors_of_this_machine(
    tmp_path: Path, ingest: Ingest, server: Chroma, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is the same, the note says why, and the server is asked again when it is back."""
    made = ingest("one").index
    before = {query: found(made, query) for query in QUERIES}
    server.stop()
    for opened in (made, pipeline.opened(tmp_path / "one", "hash", IndexPlaces(server.url))):
        assert opened is not None
        assert {query: set(found(opened, query)) for query in QUERIES} == {
            query: set(ids) for query, ids in before.items()
        }
        assert server.url in opened.note
        assert "gives no answer" in opened.note
    outcome = ingest("one")
    assert (outcome.rebuilt, server.url in outcome.index.note) == (False, True)
    server.start()
    monkeypatch.setattr(server_at(server.url), "pause", 0.0)
    again = Index(made.folder, made.manifest, server_at(server.url))
    assert (found(again, QUERIES[0]), again.note) == (before[QUERIES[0]], "")


def test_a_server_that_is_down_is_not_asked_for_every_query(tmp_path: Path) -> None:
    """It rests for a while after it failed."""
    documents = [document("oom", "cuda out of memory"), document("hang", "nccl watchdog timeout")]
    index.write(tmp_path / "home", documents, HashEmbedder(), index.Manifest("hash", "c", 2), silent)
    made = index.current(tmp_path / "home")
    assert made is not None
    nowhere = ChromaServer(f"http://127.0.0.1:{free_port()}")
    lost = Index(made.folder, replace(made.manifest, collection="whycrash-x"), nowhere)
    assert [hit.document.owner for hit in lost.dense(HashEmbedder().embed(["cuda memory"])[0], 2)] == ["oom"]
    assert nowhere.is_resting
    failed = nowhere.failed_at
    lost.dense(HashEmbedder().embed(["cuda memory"])[0], 2)
    assert (nowhere.failed_at, nowhere.url in lost.note) == (failed, True)


def test_an_empty_home_without_its_server_says_what_to_do(tmp_path: Path, small_corpus: None) -> None:
    """There is nothing to answer from."""
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(
        ChromaServerError,
        match=rf"The Chroma server at {url} gives no answer .*; start it, or set WHYCRASH_CHROMA_URL",
    ):
        pipeline.refresh(tmp_path / "home", HashEmbedder(), silent, IndexPlaces(url))


def test_an_index_of_one_machine_is_published_when_a_server_is_set(
    tmp_path: Path, ingest: Ingest, server: Chroma, reader: Reader
) -> None:
    """Its vectors are taken over, not made again; without the setting, it is a local one again."""
    logs = [log(tmp_path / "logs/job.log", traceback(OOM))]
    pipeline.ingest(tmp_path / "one", HashEmbedder(), silent, notes=[], logs=logs, reader=reader)
    assert pipeline.opened(tmp_path / "one", "hash", IndexPlaces(server.url)) is None
    counting = Counting()
    published = ingest("one", embedder=counting)
    assert (counting.asked, published.rebuilt, published.index.manifest.collection != "") == (0, True, True)
    alone = pipeline.refresh(tmp_path / "one", counting, silent)
    assert (counting.asked, alone.rebuilt, alone.index.manifest.collection) == (0, True, "")
    assert (alone.index.folder / "chroma").exists()


def test_the_server_keeps_the_last_two_generations(tmp_path: Path, server: Chroma) -> None:
    """One that is read stays for whoever reads it; the same one is not stored twice."""
    client = server_at(server.url)
    names: list[str] = []
    for count in (2, 3, 4):
        documents = [document(f"d{number}", f"word{number}") for number in range(count)]
        names.append(chroma.name_of("hash", documents))
        for _ in range(2):
            client.publish(
                names[-1], documents, HashEmbedder().embed([one.embedded for one in documents]), silent
            )
            client.point("hash", "corpus", names[-1])
    assert client.standing("hash", "corpus") == names[-1]
    assert client.standing("hash", "another corpus") == ""
    assert [len(client.fetch(name).documents) for name in names[1:]] == [3, 4]
    with pytest.raises(ChromaServerError):
        client.fetch(names[0])


def test_what_is_fetched_is_what_was_published(server: Chroma) -> None:
    """Every field of a document, and its vector."""
    full = Document(
        "report:1",
        "report",
        "job/a",
        "title",
        "text 文本",
        "en",
        "/logs/a",
        "gpu-oom-training",
        "fix it",
        "f00d",
        7,
        "job/z",
        "h",
        "rl",
    )
    documents = [full, document("plain", "cuda memory")]
    vectors = HashEmbedder().embed([one.embedded for one in documents])
    client = server_at(server.url)
    client.publish("whycrash-test", documents, vectors, silent)
    held = server_at(server.url).fetch("whycrash-test")
    assert set(held.documents) == set(documents)
    by_id = dict(zip((one.id for one in held.documents), held.vectors, strict=True))
    for one, vector in zip(documents, vectors, strict=True):
        np.testing.assert_allclose(by_id[one.id], vector, atol=1e-6)
