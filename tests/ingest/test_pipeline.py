"""Bringing the index up to date."""

from __future__ import annotations

import gzip
import json
import resource
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest

from ingest import index, pipeline
from ingest.documents import Document
from ingest.embedder import HashEmbedder
from ingest.errors import MissingInputError, SearchIndexError
from ingest.index import Index
from ingest.logs.reader import Reader
from ingest.pipeline import IngestOutcome
from tests.factories import OOM, STRANGE, silent, steps, traceback, whole_corpus
from tests.waiting import PATIENCE

NOTE = "# Ranks hang after a while\nOne rank waits in a zebra barrier that the others never reach.\n"
Ingest = Callable[..., IngestOutcome]


@pytest.fixture
def ingest(home: Path, reader: Reader, small_corpus: None) -> Ingest:
    """Run the pipeline on this test's home with the hash embedder."""

    def run(notes: list[Path] | None = None, logs: list[Path] | None = None) -> IngestOutcome:
        return pipeline.ingest(
            home, HashEmbedder(), silent, notes=notes or [], logs=logs or [], reader=reader
        )

    return run


def write(path: Path, text: str | bytes) -> Path:
    """Write a file and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def owned(outcome: IngestOutcome, kind: str) -> list[Document]:
    """Give the index's documents of a kind."""
    return [document for document in outcome.index.documents if document.kind == kind]


def numbers(outcome: IngestOutcome) -> tuple[int, int, int, bool]:
    """Give added, unchanged, removed, rebuilt."""
    return outcome.added, outcome.unchanged, outcome.removed, outcome.rebuilt


@pytest.mark.long
def test_the_first_run_indexes_the_corpus(home: Path) -> None:
    """Every case is in, in both languages; a second run has nothing to do."""
    outcome = pipeline.refresh(home, HashEmbedder(), silent)
    cases = owned(outcome, "case")
    assert {document.owner for document in cases} == set(whole_corpus().cases)
    assert {document.language for document in cases} == {"en", "zh"}
    assert not pipeline.is_current(None, "hash")
    assert pipeline.is_current(outcome.index, "hash")
    assert not pipeline.is_current(outcome.index, "another")
    assert pipeline.refresh(home, HashEmbedder(), silent).rebuilt is False


def test_unchanged_files_are_skipped_by_content(tmp_path: Path, ingest: Ingest) -> None:
    """A touched file is not read again, a changed one replaces its old text."""
    note = write(tmp_path / "notes/a.md", NOTE)
    assert numbers(ingest([note.parent])) == (1, 0, 0, True)
    write(note, NOTE)
    assert numbers(ingest([note.parent])) == (0, 1, 0, False)
    write(note, NOTE.replace("zebra", "giraffe"))
    outcome = ingest([note.parent])
    assert numbers(outcome) == (1, 0, 0, True)
    assert outcome.index.words("zebra", 3) == []
    assert [hit.document.kind for hit in outcome.index.words("giraffe", 3)] == ["note"]


def test_a_file_that_is_gone_leaves_the_index(tmp_path: Path, ingest: Ingest) -> None:
    """The next run of any kind notices."""
    first, second = (
        write(tmp_path / f"notes/{name}.md", NOTE.replace("zebra", name)) for name in ("lion", "tiger")
    )
    ingest([first.parent])
    first.unlink()
    outcome = ingest()
    assert numbers(outcome)[2:] == (1, True)
    assert {document.origin for document in owned(outcome, "note")} == {str(second)}
    assert str(first) not in {item.file for item in outcome.index.taken}
    assert numbers(ingest())[2:] == (0, False)


def test_what_was_taken_in_before_stays(tmp_path: Path, ingest: Ingest) -> None:
    """A run with other files does not forget the earlier ones."""
    ingest([write(tmp_path / "a.md", NOTE)])
    outcome = ingest(logs=[write(tmp_path / "job.log", traceback(OOM))])
    assert (len(owned(outcome, "note")), len(owned(outcome, "report"))) == (1, 1)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("job.log", "job.label.yaml"),
        ("job.log", "job.yaml"),
        ("job.log", "job.log.yaml"),
        ("job.log", "label.yaml"),
        ("job.log.gz", "job.label.yaml"),
        ("job.out.gz", "job.yaml"),
        ("job", "job.label.yaml"),
    ],
)
def test_a_label_beside_a_log_is_kept_with_it(tmp_path: Path, ingest: Ingest, name: str, label: str) -> None:
    """People's knowledge of a past crash: its cause, its fix, its job."""
    content = traceback(OOM).encode()
    log = write(tmp_path / "logs" / name, gzip.compress(content) if name.endswith(".gz") else content)
    write(log.parent / label, "cause: gpu-oom-training\nfix: half the batch\njob: nightly\n")
    (document,) = owned(ingest(logs=[log.parent]), "report")
    assert (document.owner, document.cause, document.fix) == (
        "job/nightly",
        "gpu-oom-training",
        "half the batch",
    )


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("{}\n", ("job/job", "", "")),
        ("causes: [host-oom-kill, host-memory-leak]\n", ("job/job", "host-oom-kill", "")),
        ("causes: []\nfix: null\n", ("job/job", "", "")),
    ],
)
def test_parts_of_a_label_may_be_missing(
    tmp_path: Path, ingest: Ingest, label: str, expected: tuple[str, str, str]
) -> None:
    """Of several causes the first counts; the file names the job, with a mark of its place."""
    log = write(tmp_path / "job.log", traceback(OOM))
    write(tmp_path / "job.yaml", label)
    (document,) = owned(ingest(logs=[log]), "report")
    assert (document.owner.rpartition("-")[0], document.cause, document.fix) == expected


def test_a_changed_label_is_read_again(tmp_path: Path, ingest: Ingest) -> None:
    """A log's content is also its label's."""
    log = write(tmp_path / "job.log", traceback(OOM))
    assert numbers(ingest(logs=[log])) == (1, 0, 0, True)
    write(tmp_path / "job.label.yaml", "cause: gpu-oom-rollout\n")
    outcome = ingest(logs=[log])
    assert numbers(outcome) == (1, 0, 0, True)
    assert [document.cause for document in owned(outcome, "report")] == ["gpu-oom-rollout"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.log", b"", "is empty"),
        ("b.log", b"\x7fELF\x00", "a compiled program"),
        ("c.log", steps(1, 2, 3), "no failure found"),
        ("d.gz", b"\x1f\x8bbroken", "the gzip stream is damaged"),
    ],
)
def test_a_log_that_cannot_be_used_is_skipped_with_its_reason(
    tmp_path: Path, ingest: Ingest, name: str, content: str | bytes, reason: str
) -> None:
    """One bad file does not end the run."""
    write(tmp_path / "logs" / name, content)
    write(tmp_path / "logs/good.log", traceback(STRANGE))
    outcome = ingest(logs=[tmp_path / "logs"])
    assert outcome.added == 1
    assert [reason in text and name in text for text in outcome.skipped] == [True], outcome.skipped
    assert len(owned(outcome, "report")) == 1


@pytest.mark.parametrize("label", ["- a list\n", "cause: [unclosed\n"])
def test_a_broken_label_is_told_by_its_name(tmp_path: Path, ingest: Ingest, label: str) -> None:
    """The log is not taken in with half a label."""
    write(tmp_path / "job.log", traceback(OOM))
    write(tmp_path / "job.yaml", label)
    outcome = ingest(logs=[tmp_path / "job.log"])
    assert (outcome.added, len(outcome.skipped)) == (0, 1)
    assert "job.yaml" in outcome.skipped[0]


def test_only_logs_and_write_ups_of_a_folder_are_taken(tmp_path: Path, ingest: Ingest) -> None:
    """Pictures, hidden files and code are passed over; folders are searched deep."""
    for name in ("deep/er/a.md", ".hidden.md", "picture.png", "train.py", "b.HTML"):
        write(tmp_path / "notes" / name, NOTE)
    outcome = ingest([tmp_path / "notes"])
    assert sorted(Path(name).name for name in (item.file for item in outcome.index.taken)) == [
        "a.md",
        "b.HTML",
    ]


def oom(gib: float, **frames: str) -> str:
    """Write a crash whose numbers differ from job to job."""
    return traceback(OOM.replace("2.00 GiB", f"{gib:.2f} GiB"), **frames)


def test_the_same_crash_of_many_jobs_is_one_document(tmp_path: Path, ingest: Ingest) -> None:
    """It counts them, has the first one's place and names the last; another crash stays apart."""
    for number in range(4):
        write(tmp_path / f"logs/job-{number}.log", oom(number + 1))
    write(tmp_path / "logs/other.log", traceback(STRANGE))
    outcome = ingest(logs=[tmp_path / "logs"])
    same, other = sorted(owned(outcome, "report"), key=lambda document: -document.jobs)
    assert (outcome.added, same.jobs, other.jobs) == (5, 4, 1)
    assert (Path(same.origin).name, same.last.rpartition("-")[0], other.last) == (
        "job-0.log",
        "job/job-3",
        "",
    )
    assert numbers(ingest(logs=[tmp_path / "logs"])) == (0, 5, 0, False)


def test_people_s_words_on_a_crash_keep_it_apart(tmp_path: Path, ingest: Ingest) -> None:
    """A cause that was given for one job is not said of the others."""
    for number in range(3):
        write(tmp_path / f"logs/job-{number}.log", oom(number + 1))
    write(tmp_path / "logs/job-1.yaml", "cause: gpu-oom-rollout\n")
    found = owned(ingest(logs=[tmp_path / "logs"]), "report")
    assert sorted((document.cause, document.jobs) for document in found) == [("", 2), ("gpu-oom-rollout", 1)]


def test_the_next_job_stands_for_a_crash_whose_first_log_is_gone(tmp_path: Path, ingest: Ingest) -> None:
    """Its count goes down, and its place is one that exists."""
    for number in range(3):
        write(tmp_path / f"logs/job-{number}.log", oom(number + 1))
    ingest(logs=[tmp_path / "logs"])
    (tmp_path / "logs/job-0.log").unlink()
    outcome = ingest()
    (document,) = owned(outcome, "report")
    assert (outcome.removed, document.jobs, Path(document.origin).name) == (1, 2, "job-1.log")
    assert "4.00 GiB" not in document.text
    assert "2.00 GiB" in document.text


def test_an_index_of_the_first_format_is_read_on(tmp_path: Path, home: Path, ingest: Ingest) -> None:
    """Its files are known, its crashes stay, and the next write is of today's format."""
    write(tmp_path / "logs/job.log", traceback(OOM))
    made = ingest([write(tmp_path / "notes/a.md", NOTE)], [tmp_path / "logs"]).index
    manifest = json.loads((made.folder / "manifest.json").read_text(encoding="utf-8"))
    old = manifest | {"format": 1, "files": {item.file: item.content for item in made.taken}}
    del old["collection"]
    (made.folder / "manifest.json").write_text(json.dumps(old), encoding="utf-8")
    rows = [
        json.loads(row) for row in (made.folder / "documents.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    kept = [{key: value for key, value in row.items() if key not in ("jobs", "last", "home")} for row in rows]
    (made.folder / "documents.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8"
    )
    (made.folder / "taken.jsonl").unlink()
    outcome = ingest([tmp_path / "notes"], [tmp_path / "logs"])
    assert numbers(outcome) == (0, 2, 0, False)
    write(tmp_path / "logs/next.log", oom(5))
    outcome = ingest(logs=[tmp_path / "logs"])
    assert (outcome.index.manifest.format, [document.jobs for document in owned(outcome, "report")]) == (
        index.FORMAT,
        [2],
    )
    assert len(owned(outcome, "note")) == 1


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path, home: Path, ingest: Ingest) -> None:
    """Nothing is written for a mistyped path."""
    with pytest.raises(MissingInputError, match=r"no file or folder .*nowhere"):
        ingest([tmp_path / "nowhere"])
    assert index.current(home) is None


def test_a_report_in_the_index_holds_no_secret(tmp_path: Path, home: Path, ingest: Ingest) -> None:
    """Not in its documents, nor in any file under the home."""
    secret = "hunter22verylongsecret"  # noqa: S105 - made up
    log = traceback(f"ValueError: login failed for password={secret}", code=f'login(password="{secret}")')
    outcome = ingest(logs=[write(tmp_path / "job.log", log)])
    assert outcome.added == 1
    assert [path for path in home.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()] == []


def test_two_runs_at_once_lose_nothing_of_each_other(
    tmp_path: Path, home: Path, ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have read the index that stands before either writes the next one."""
    ingest()
    notes = [write(tmp_path / f"{name}.md", NOTE.replace("zebra", name)) for name in ("gnu", "okapi")]
    both, write_index = Barrier(2), index.write

    def together(*given: Any, **named: Any) -> Index:
        with suppress(BrokenBarrierError):
            both.wait(PATIENCE)
            both.abort()
        return write_index(*given, **named)

    monkeypatch.setattr(index, "write", together)
    with ThreadPoolExecutor(2) as threads:
        outcomes = list(threads.map(lambda note: ingest(notes=[note]), notes))
    found = index.current(home)
    assert found is not None
    assert {item.file for item in found.taken} == {str(note.resolve()) for note in notes}
    assert {str(note.resolve()) for note in notes} <= set(found.manifest.roots)
    assert [outcome.added for outcome in outcomes] == [1, 1]


@pytest.fixture
def full() -> Iterator[None]:
    """Let no file grow beyond what a full disk would take."""
    usual, limits = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, usual)


def test_a_full_disk_is_told_and_leaves_what_stood(
    tmp_path: Path, home: Path, ingest: Ingest, request: pytest.FixtureRequest
) -> None:
    """And nothing of the new index, which would keep the disk full."""
    first = ingest()
    request.getfixturevalue("full")
    with pytest.raises(SearchIndexError, match="make room"):
        ingest(notes=[write(tmp_path / "a.md", NOTE)])
    found = index.current(home)
    assert found is not None
    assert found.folder == first.index.folder
    assert {path.parent for path in (home / "index").glob("0*/*")} == {first.index.folder}
