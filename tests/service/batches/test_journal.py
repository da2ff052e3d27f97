"""The journal of a batch: appended to, read whatever was cut off, put together again."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.batches.journal import BatchAccepted, JobEnded, JobListed, Journal, journal_of, journals
from service.schemas.records import BatchRecord, JobPlace, JobSpec

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
RECORD = BatchRecord(
    id="01J0000000000000000000000A", name="night", caller="me", source="folder", state="running", created=NOW
)


def spec(number: int) -> JobSpec:
    return JobSpec(name=f"job {number}", place=JobPlace(paths=(f"/logs/{number}",)), nodes=number)


def end(number: int, error: str = "") -> JobEnded:
    return JobEnded(number=number, state="failed", error=error or f"number {number}", finished=NOW)


def begun(folder: Path, count: int = 3) -> Journal:
    journal = Journal(folder)
    journal.begin(RECORD, map(spec, range(count)), 100)
    return journal


def test_that_a_journal_gives_back_what_was_written(tmp_path: Path) -> None:
    journal = begun(tmp_path / "batch")
    journal.append([BatchAccepted(jobs=3, left_out={"binary": "1: a"})], durable=True)
    journal.append([end(1), end(3)])
    assert list(journal.specs()) == [spec(0), spec(1), spec(2)]
    assert [entry.kind for entry in journal.entries()] == [
        "batch",
        "job",
        "job",
        "job",
        "accepted",
        "end",
        "end",
    ]
    assert [journal.at(place) for place, entry in journal.placed() if isinstance(entry, JobEnded)] == [
        end(1),
        end(3),
    ]


def test_that_a_path_with_any_bytes_is_given_back(tmp_path: Path) -> None:
    """A file's name need be no UTF-8, and its job is as good as another."""
    odd = JobSpec(
        name="caf",
        place=JobPlace(paths=(os.fsdecode(b"/logs/caf\xe9.log"),)),
        started=NOW,
        node_names=("n1",),
    )
    journal = Journal(tmp_path / "batch")
    journal.begin(RECORD, [spec(0), odd, spec(2)], 100)
    assert list(journal.specs()) == [spec(0), odd, spec(2)]


def test_that_no_more_jobs_are_written_than_one_beyond_the_limit(tmp_path: Path) -> None:
    asked = []
    specs = (asked.append(number) or spec(number) for number in range(1000))  # type: ignore[func-returns-value]
    assert Journal(tmp_path / "batch").begin(RECORD, specs, 5) == 6
    assert len(asked) == 6


def test_that_only_its_owner_may_read_it(tmp_path: Path) -> None:
    journal = begun(tmp_path / "batch")
    journal.append([end(1)])
    assert journal.folder.stat().st_mode & 0o777 == 0o700
    assert (journal.folder / "journal.jsonl").stat().st_mode & 0o777 == 0o600


@given(cut=st.integers(min_value=0, max_value=10_000), later=st.integers(min_value=1, max_value=3))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_that_what_was_cut_off_costs_its_own_line_only(
    tmp_path_factory: pytest.TempPathFactory, cut: int, later: int
) -> None:
    journal = begun(tmp_path_factory.mktemp("cut") / "batch")
    path = journal.folder / "journal.jsonl"
    whole = list(journal.placed())
    size = path.stat().st_size
    kept = min(cut, size)
    os.truncate(path, kept)
    journal.append([end(number) for number in range(later)])
    # An entry is whole once its last brace is there, with or without its line end.
    ends = [place for place, _ in whole[1:]] + [size]
    survivors = [entry for (_, entry), stop in zip(whole, ends, strict=True) if stop - 1 <= kept]
    assert list(journal.entries()) == [*survivors, *(end(number) for number in range(later))]


def test_that_jobs_names_with_line_ends_stay_in_their_lines(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "batch")
    odd = JobSpec(name='a\nb"\u2028\x00', place=JobPlace(paths=("/a\nb",)))
    journal.begin(RECORD, [odd, spec(1)], 10)
    assert list(journal.specs()) == [odd, spec(1)]


def test_that_journals_come_oldest_first_and_files_beside_them_do_not_matter(tmp_path: Path) -> None:
    for name in ("01B", "01A"):
        begun(journal_of(tmp_path, name).folder)
    (tmp_path / "batches" / "LOCK").touch()
    assert [journal.folder.name for journal in journals(tmp_path)] == ["01A", "01B"]
    assert journals(tmp_path / "nothing") == []


def test_that_a_journal_that_was_removed_tells_nothing(tmp_path: Path) -> None:
    journal = begun(tmp_path / "batch")
    journal.remove()
    assert (journal.exists(), list(journal.entries())) == (False, [])
    assert not any(isinstance(entry, JobListed) for entry in journal.entries())
