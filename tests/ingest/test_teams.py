"""Write-ups and past crashes of one team: it finds them, and nobody else does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ingest import bulk_ingest, index, pipeline
from ingest.chroma import is_installed
from ingest.documents import collapsed
from ingest.embedder import HashEmbedder
from ingest.index import Index, Manifest
from ingest.ingest_tasks import IngestTask
from ingest.logs.reader import Reader
from ingest.pipeline import IngestOutcome
from tests.factories import OOM, document, silent, traceback

NOTE = "# Ranks hang after a while\nOne rank waits in a zebra barrier that the others never reach.\n"
Ingest = Callable[..., IngestOutcome]


@pytest.fixture
def ingest(home: Path, reader: Reader, small_corpus: None) -> Ingest:
    """Take files in with the hash embedder."""

    def run(*notes: Path, logs: tuple[Path, ...] = (), team: str | None = None) -> IngestOutcome:
        given = {"notes": notes, "logs": logs, "reader": reader, "team": team}
        return pipeline.ingest(home, HashEmbedder(), silent, **given)  # type: ignore[arg-type]

    return run


def _written(path: Path, text: str = NOTE) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _found(opened: Index, words: str, team: str) -> set[str]:
    """Give the files of what is found by any of the retrievers."""
    vector = HashEmbedder().embed([words])[0]
    hits = [*opened.words(words, 20, team), *opened.dense(vector, 20, team)]
    if is_installed():
        hits += opened.dense_chroma(vector, 20, team)
    return {Path(hit.document.origin).name for hit in hits if hit.document.kind != "case"}


def test_that_a_teams_files_are_found_by_it_alone(tmp_path: Path, ingest: Ingest) -> None:
    """Write-ups and logs, by words and by vectors; everybody's are found by all."""
    ingest(_written(tmp_path / "all.md"))
    ingest(_written(tmp_path / "rl.md"), logs=(_written(tmp_path / "rl.log", traceback(OOM)),), team="rl")
    opened = ingest(_written(tmp_path / "nlp.md"), team="nlp").index
    words = "zebra barrier OutOfMemoryError CUDA out of memory"
    found = {team: _found(opened, words, team) for team in ("rl", "nlp", "", "other")}
    assert found == {
        "rl": {"all.md", "rl.md", "rl.log"},
        "nlp": {"all.md", "nlp.md"},
        "": {"all.md"},
        "other": {"all.md"},
    }


def test_that_what_may_not_be_found_takes_no_place(home: Path) -> None:
    """A hundred better ones of another team leave a search for one result its result."""
    documents = [document(f"theirs{number}", "cuda memory", team="nlp") for number in range(100)]
    documents += [document("mine", "cuda memory and more of other words", team="rl")]
    made = index.write(home, documents, HashEmbedder(), Manifest("hash", "corpus", 101), silent)
    vector = HashEmbedder().embed(["cuda memory"])[0]
    assert [hit.document.owner for hit in made.words("cuda memory", 1, "rl")] == ["mine"]
    assert [hit.document.owner for hit in made.dense(vector, 1, "rl")] == ["mine"]
    if is_installed():
        assert [hit.document.owner for hit in made.dense_chroma(vector, 1, "rl")] == ["mine"]


def test_that_a_file_stays_its_teams_until_it_is_given_to_another(tmp_path: Path, ingest: Ingest) -> None:
    """A run over the folder that it lies in shows it to nobody; an empty team does."""
    note = _written(tmp_path / "rl.md")
    ingest(note, team="rl")
    again = ingest(tmp_path)
    assert (again.unchanged, again.rebuilt, _found(again.index, "zebra", "")) == (1, False, set())
    _written(note, NOTE.replace("One rank", "Rank 7"))
    assert _found(ingest(tmp_path).index, "zebra", "") == set()
    moved = ingest(tmp_path, team="nlp").index
    assert [_found(moved, "zebra", team) for team in ("rl", "nlp")] == [set(), {"rl.md"}]
    assert _found(ingest(tmp_path, team="").index, "zebra", "") == {"rl.md"}


def test_that_a_new_file_in_a_teams_folder_is_the_teams(tmp_path: Path, ingest: Ingest) -> None:
    """A run that names no team shows it to nobody else; beside files of everybody it is everybody's."""
    _written(tmp_path / "rl" / "old.md")
    ingest(tmp_path / "rl", team="rl")
    _written(tmp_path / "rl" / "new.md", NOTE + "\nSeen again.\n")
    _written(tmp_path / "all" / "other.md", NOTE + "\nSeen here too.\n")
    made = ingest(tmp_path).index
    assert _found(made, "zebra", "") == {"other.md"}
    assert _found(made, "zebra", "rl") == {"old.md", "new.md", "other.md"}


def test_that_the_same_crash_of_two_teams_stays_two(tmp_path: Path, ingest: Ingest) -> None:
    """One document of both would tell each team of the other's job."""
    for team in ("rl", "nlp"):
        folder = tmp_path / team
        folder.mkdir()
        for number in "12":
            _written(folder / f"{team}{number}.log", traceback(OOM))
        outcome = ingest(logs=(folder,), team=team)
    crashes = [one for one in outcome.index.documents if one.kind == "report"]
    assert sorted((one.team, one.jobs, one.last[4:6]) for one in crashes) == [
        ("nlp", 2, "nl"),
        ("rl", 2, "rl"),
    ]
    same = [document(name, "boom", heading="f00d", origin=name, team=name) for name in ("a", "b")]
    assert list(collapsed(same)) == same


def test_that_a_forgotten_team_leaves_nothing_behind(home: Path, tmp_path: Path, ingest: Ingest) -> None:
    """Neither in the index nor in the generation before it; the others stay, without a vector made anew."""
    ingest(_written(tmp_path / "all.md"), _written(tmp_path / "other.md"))
    ingest(_written(tmp_path / "rl.md", NOTE.replace("zebra", "giraffe")), team="rl")
    assert pipeline.forget_team(home, "rl") == 1
    opened = index.current(home)
    assert opened is not None
    assert _found(opened, "giraffe barrier", "rl") == {"all.md", "other.md"}
    assert opened.manifest.documents == len(opened.documents)
    kept = [path for path in home.rglob("*") if path.is_file() and path.suffix in (".jsonl", ".json")]
    assert not [path for path in kept if "giraffe" in path.read_text(encoding="utf-8")]
    assert pipeline.forget_team(home, "rl") == 0
    assert pipeline.is_current(opened, "hash")
    # It is not taken in again by itself, and by a run over its folder for nobody else.
    assert ingest().rebuilt is False
    assert _found(ingest(tmp_path).index, "giraffe barrier", "") == {"all.md", "other.md"}
    assert pipeline.forget_team(home, "rl") == 1


def test_that_nothing_is_forgotten_where_there_is_no_index(tmp_path: Path) -> None:
    assert pipeline.forget_team(tmp_path, "rl") == 0


@pytest.mark.usefixtures("small_corpus")
def test_that_a_broken_off_run_for_another_team_is_not_gone_on_with(
    tmp_path: Path, home: Path, pattern_cache: Path
) -> None:
    """What it had read is marked as that team's."""
    home.mkdir()
    (home / "cache").symlink_to(pattern_cache)
    log = _written(tmp_path / "a.log", traceback(OOM))
    tasks = {team: IngestTask(str(log), "report", team=team) for team in ("rl", "nlp")}
    for team, expected in (("rl", "rl"), ("nlp", "nlp")):
        (made,) = bulk_ingest.BulkReader(home, workers=1, with_ray=False).ingested([tasks[team]], silent)
        assert [one.team for one in made.documents] == [expected]
