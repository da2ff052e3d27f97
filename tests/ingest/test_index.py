"""The index: written whole, read fast, never half."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ingest import index
from ingest.documents import Document, of_case
from ingest.embedder import HashEmbedder, Vectors
from ingest.errors import NewerIndexError, SearchIndexError
from ingest.index import FORMAT, PART, STEP, Index, IngestedFile, Manifest
from tests.factories import document, silent, whole_corpus
from tests.tables import each_row

WORDS = [
    "cuda",
    "memory",
    "rollout",
    "rank",
    "shard",
    "nccl",
    "timeout",
    "watchdog",
    "ray",
    "actor",
    "worker",
    "killed",
    "leak",
    "cache",
    "engine",
    "vllm",
    "token",
    "batch",
]
DOCUMENTS = [
    document("oom", "cuda out of memory"),
    document("hang", "nccl watchdog timeout"),
    document("kill", "ray worker killed 内存不足"),
]


class Counting(HashEmbedder):
    """Hash words, and note every text that was asked for."""

    def __init__(self, name: str = "hash") -> None:
        super().__init__()
        self.name = name
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked.extend(texts)
        return super().embed(texts)


def write(
    home: Path, documents: Sequence[Document] = DOCUMENTS, embedder: HashEmbedder | None = None
) -> Index:
    """Write an index."""
    used = embedder or HashEmbedder()
    manifest = Manifest(used.name, "corpus", len(documents), roots=("/",))
    return index.write(
        home,
        documents,
        used,
        manifest,
        silent,
        taken=[IngestedFile("/a", "1"), IngestedFile("/b", "2", DOCUMENTS[0])],
    )


def opened(home: Path) -> Index:
    """Open the index that must be there."""
    found = index.current(home)
    assert found is not None
    return found


def edit_manifest(home: Path, **facts: object) -> None:
    """Change what the manifest says."""
    path = opened(home).folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | facts), encoding="utf-8")


def test_an_index_is_read_back_as_written(home: Path) -> None:
    """Documents, vectors and manifest survive, in order."""
    write(home)
    found = opened(home)
    assert found.documents == tuple(DOCUMENTS)
    assert found.manifest == Manifest("hash", "corpus", 3, roots=("/",))
    assert found.taken == (IngestedFile("/a", "1"), IngestedFile("/b", "2", DOCUMENTS[0]))
    np.testing.assert_allclose(found.vectors, HashEmbedder().embed([one.embedded for one in DOCUMENTS]))


def test_no_index_is_none(home: Path) -> None:
    """Before the first run there is nothing, and that is no error."""
    assert index.current(home) is None


@pytest.mark.parametrize(
    ("query", "best"), [("out of memory", "oom"), ("watchdog timeout", "hang"), ("worker killed", "kill")]
)
def test_each_search_finds_its_document_first(home: Path, query: str, best: str) -> None:
    """Words, vectors and Chroma agree where the case is clear."""
    found = write(home)
    vector = HashEmbedder().embed([query])[0]
    for hits in (found.words(query, 3), found.dense(vector, 3), found.dense_chroma(vector, 3)):
        assert hits[0].document.owner == best
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_what_shares_nothing_is_no_hit(home: Path) -> None:
    """A score of zero is not an answer; the count bounds the rest."""
    found = write(home)
    assert found.words("zebra", 3) == []
    assert len(found.words("memory timeout killed", 2)) == 2
    assert len(found.dense(HashEmbedder().embed(["memory timeout killed"])[0], 2)) == 2


@each_row("seed", range(4))
def test_comparing_all_vectors_gives_chromas_neighbours(tmp_path: Path, seed: int) -> None:
    """The array and the graph rank the same documents with the same scores."""
    random = np.random.default_rng(seed)
    documents = [document(f"d{number}", " ".join(random.choice(WORDS, 8))) for number in range(300)]
    found = write(tmp_path / "home", documents)
    for query in ("cuda memory rollout", " ".join(random.choice(WORDS, 5))):
        vector = HashEmbedder().embed([query])[0]
        exact, graph = found.dense(vector, 10), found.dense_chroma(vector, 10)
        np.testing.assert_allclose([hit.score for hit in exact], [hit.score for hit in graph], atol=1e-5)
        sure = {hit.document.id for hit in exact if hit.score > exact[-1].score + 1e-5}
        assert sure <= {hit.document.id for hit in graph}


@pytest.mark.long
def test_the_corpus_gives_the_same_neighbours_both_ways(home: Path) -> None:
    """On the documents that ship, too."""
    found = write(home, [one for case in whole_corpus().cases.values() for one in of_case(case)])
    vector = HashEmbedder().embed(["ray worker killed because the node is low on memory"])[0]
    exact, graph = found.dense(vector, 15), found.dense_chroma(vector, 15)
    np.testing.assert_allclose([hit.score for hit in exact], [hit.score for hit in graph], atol=1e-5)
    assert exact[0].score > 0.2


def test_vectors_of_unchanged_documents_are_taken_over(home: Path) -> None:
    """Only what is new is embedded; what is gone leaves."""
    write(home)
    embedder = Counting()
    new = document("new", "loss is nan")
    found = write(home, [new, *DOCUMENTS[:2]], embedder)
    assert embedder.asked == [new.embedded]
    assert [one.owner for one in found.documents] == ["new", "oom", "hang"]
    np.testing.assert_allclose(found.vectors, HashEmbedder().embed([one.embedded for one in found.documents]))
    assert found.words("killed", 3) == []


def test_vectors_of_another_model_are_not_taken_over(home: Path) -> None:
    """Two models never mix in one index."""
    write(home)
    embedder = Counting("other")
    write(home, DOCUMENTS, embedder)
    assert len(embedder.asked) == len(DOCUMENTS)
    assert opened(home).manifest.model == "other"


def test_equal_documents_are_both_found(home: Path) -> None:
    """Two notes of the same words share a vector, not a place."""
    found = write(home, [document("a", "same words", title="t"), document("b", "same words", title="t")])
    np.testing.assert_array_equal(found.vectors[0], found.vectors[1])
    assert {hit.document.owner for hit in found.words("same words", 3)} == {"a", "b"}


@pytest.mark.parametrize("stage", ["vectors", "words", "store"])
def test_an_interrupted_write_leaves_the_old_index(home: Path, stage: str) -> None:
    """Wherever the run is stopped, readers see the last whole index, and the next run works."""
    write(home)

    def stop(reached: str, done: int, total: int) -> None:
        if reached == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.write(home, [document("new", "loss is nan")], HashEmbedder(), Manifest("hash", "c", 1), stop)
    assert opened(home).documents == tuple(DOCUMENTS)
    assert opened(home).words("watchdog", 1)[0].document.owner == "hang"
    write(home, [document("new", "loss is nan")])
    assert [one.owner for one in opened(home).documents] == ["new"]


def test_vectors_that_were_made_are_not_made_again_after_a_kill(home: Path) -> None:
    """A run that is stopped while it embeds leaves what it had, and the next one goes on from there."""
    documents = [
        document(f"d{number}", f"word{number} " * (number % 7 + 1)) for number in range(PART + 3 * STEP)
    ]
    first, second = Counting(), Counting()

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "vectors" and done >= PART + STEP:
            raise KeyboardInterrupt

    manifest = Manifest("hash", "corpus", len(documents))
    with pytest.raises(KeyboardInterrupt):
        index.write(home, documents, first, manifest, stop)
    found = index.write(home, documents, second, manifest, silent)
    assert (len(first.asked), len(second.asked)) == (PART + STEP, 3 * STEP)
    np.testing.assert_allclose(
        found.vectors, HashEmbedder().embed([one.embedded for one in documents]), atol=1e-6
    )
    assert not list((home / "index" / "parts").rglob("*.npz"))


def test_equal_texts_are_embedded_once_and_the_longest_first(home: Path) -> None:
    """So that the batches of a model hold texts of like length."""
    embedder = Counting()
    write(
        home,
        [document(f"d{number}", "word " * (number % 5 + 1), title="t") for number in range(50)],
        embedder,
    )
    lengths = [len(text) for text in embedder.asked]
    assert len(lengths) == 5
    assert lengths == sorted(lengths, reverse=True)


def test_progress_is_told_step_by_step(home: Path) -> None:
    """Also while the vectors are made, which takes longest."""
    told: list[tuple[str, int, int]] = []
    documents = [document(f"d{number}", f"word{number}") for number in range(2 * STEP + 1)]
    index.write(
        home, documents, HashEmbedder(), Manifest("hash", "c", len(documents)), lambda *row: told.append(row)
    )
    assert [row[1] for row in told if row[0] == "vectors"] == [0, STEP, 2 * STEP, 2 * STEP + 1]


def test_an_open_index_stays_readable_while_the_next_is_written(home: Path) -> None:
    """A reader is not pulled away from under by one rewrite; older generations go."""
    write(home)
    reader = opened(home)
    write(home, [document("new", "loss is nan")])
    assert reader.words("watchdog", 1)[0].document.owner == "hang"
    for _ in range(3):
        write(home, [document("newer", "x y")])
    assert len([path for path in (home / "index").iterdir() if path.is_dir()]) == 2


def test_two_writers_take_turns(home: Path) -> None:
    """Both runs finish, and the index is one of theirs, whole."""
    failures: list[BaseException] = []

    def run(name: str) -> None:
        try:
            write(home, [document(f"{name}{number}", f"{name} text {number}") for number in range(50)])
        except BaseException as error:  # noqa: BLE001 - a thread's failure must reach the test
            failures.append(error)

    threads = [threading.Thread(target=run, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len({one.owner[0] for one in opened(home).documents}) == 1
    assert len(opened(home).documents) == 50


def test_an_index_of_a_newer_program_is_refused(home: Path) -> None:
    """It is not rewritten silently: the message says what to do."""
    write(home)
    edit_manifest(home, format=FORMAT + 1)
    with pytest.raises(NewerIndexError, match=rf"has format {FORMAT + 1}, .* or set WHYCRASH_HOME"):
        index.current(home)
    with pytest.raises(NewerIndexError):
        write(home)


def test_an_index_of_a_newer_program_with_new_facts_is_refused_too(home: Path) -> None:
    """A manifest may have fields that this program does not know."""
    write(home)
    edit_manifest(home, format=FORMAT + 1, shards=4)
    with pytest.raises(NewerIndexError):
        index.current(home)


def test_an_index_of_an_older_program_is_built_anew(home: Path) -> None:
    """It counts as none."""
    write(home)
    edit_manifest(home, format=0)
    assert index.current(home) is None
    write(home)
    assert opened(home).documents == tuple(DOCUMENTS)


@pytest.mark.parametrize(
    "manifest", ["not json", "[]", "{}", '{"format": 1}', '{"format": 1, "model": "hash", "colour": "red"}']
)
def test_a_damaged_manifest_says_what_to_remove(home: Path, manifest: str) -> None:
    """No traceback: the index under that folder cannot be read, or counts as none."""
    folder = write(home).folder
    (folder / "manifest.json").write_text(manifest, encoding="utf-8")
    if manifest == "{}":
        assert index.current(home) is None
        return
    with pytest.raises(SearchIndexError, match=r"cannot be read .*; remove "):
        index.current(home)


def test_a_home_that_cannot_be_written_is_an_error_with_advice(tmp_path: Path) -> None:
    """A file where the folder should be, say."""
    (tmp_path / "home").write_text("a file")
    with pytest.raises(SearchIndexError, match="WHYCRASH_HOME"):
        write(tmp_path / "home")
