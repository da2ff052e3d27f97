"""Batches as the faces see them: accepted whole or not at all, resumed, deleted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from ulid import ULID

from service.batches.batches import BatchService, open_store
from service.batches.journal import BatchAccepted, journal_of
from service.persistence.store import Store
from service.schemas.errors import InvalidRequestError, NotFoundError, TooLargeError
from service.schemas.records import BatchOptions, JobPlace, JobSpec
from service.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", embedding_model="hash", max_jobs=5)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with open_store(settings) as opened:
        yield opened


@pytest.fixture
def batches(settings: Settings, store: Store) -> BatchService:
    return BatchService(settings, store)


def specs(count: int) -> list[JobSpec]:
    return [
        JobSpec(name=f"job {number}", place=JobPlace(paths=(f"/logs/{number}",)), gpu_hours=0.5)
        for number in range(count)
    ]


def folders(settings: Settings) -> list[str]:
    return sorted(path.name for path in (settings.home / "batches").iterdir() if path.is_dir())


def test_that_an_accepted_batch_is_in_the_database_and_in_its_journal(
    settings: Settings, store: Store, batches: BatchService
) -> None:
    woken = []
    batches = BatchService(settings, store, lambda: woken.append(True))
    left_out: dict[str, int | str] = {}

    def found() -> Iterator[JobSpec]:
        yield from specs(3)
        left_out["empty"] = 2  # known once all was looked at

    record = batches.accept(
        "night", "upload", found(), BatchOptions(language="zh"), "key-1", left_out=left_out
    )
    assert batches.get(record.id) == record
    assert (record.name, record.caller, record.total, record.left_out, record.options.language) == (
        "night",
        "key-1",
        3,
        {"empty": 2},
        "zh",
    )
    journal = journal_of(settings.home, record.id)
    assert list(journal.specs()) == specs(3)
    assert BatchAccepted(jobs=3, left_out={"empty": 2}) in list(journal.entries())
    assert woken == [True]


def test_that_a_batchs_name_keeps_no_secret(settings: Settings, batches: BatchService) -> None:
    secret = "hf_" + "QwErTyUiOpAsDfGhJkLzXcVbNmQwErTyUi"
    record = batches.accept(f"run with {secret}", "folder", specs(1))
    assert secret not in record.name
    assert secret.encode() not in (settings.home / "batches" / record.id / "journal.jsonl").read_bytes()


@pytest.mark.parametrize(("count", "error"), [(0, InvalidRequestError), (6, TooLargeError)])
def test_that_a_batch_of_none_or_too_many_jobs_is_refused_and_leaves_nothing(
    settings: Settings, store: Store, batches: BatchService, count: int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        batches.accept("night", "folder", specs(count))
    assert folders(settings) == []
    assert store.batches.page() == ((), None)


def test_that_a_source_that_fails_midway_leaves_nothing(
    settings: Settings, store: Store, batches: BatchService
) -> None:
    def broken() -> Iterator[JobSpec]:
        yield from specs(2)
        raise InvalidRequestError("line 3 is no JSON")

    batch = batches.begin()
    batches.spool(batch).mkdir(parents=True)
    with pytest.raises(InvalidRequestError, match="line 3"):
        batches.accept("night", "lines", broken(), batch=batch)
    assert folders(settings) == []
    assert store.batches.page() == ((), None)


def test_that_a_batch_that_is_gone_from_the_database_comes_back(
    settings: Settings, store: Store, batches: BatchService
) -> None:
    record = batches.accept("night", "folder", specs(3), left_out={"empty": 2})
    store.batches.delete(record.id)
    assert batches.resume() == 1
    assert batches.get(record.id) == record
    assert [job.name for job in store.batches.jobs(record.id)[0]] == [item.name for item in specs(3)]
    assert batches.resume() == 0


def test_that_a_deleted_batch_does_not_come_back(
    settings: Settings, store: Store, batches: BatchService
) -> None:
    record = batches.accept("night", "folder", specs(3))
    journal = journal_of(settings.home, record.id)
    kept = (journal.folder / "journal.jsonl").read_bytes()
    batches.delete(record.id)
    assert folders(settings) == []
    with pytest.raises(NotFoundError):
        batches.get(record.id)
    with pytest.raises(NotFoundError):
        batches.delete(record.id)
    # A process that died between the two steps of a deletion left this.
    journal.folder.mkdir()
    (journal.folder / "journal.jsonl").write_bytes(kept)
    journal.retire()
    assert batches.resume() == 0
    assert folders(settings) == []


def test_that_a_cancelled_batch_comes_back_cancelled(
    settings: Settings, store: Store, batches: BatchService
) -> None:
    record = batches.accept("night", "folder", specs(3))
    assert batches.cancel(record.id).state == "cancelled"
    store.batches.delete(record.id)
    assert batches.resume() == 1
    assert batches.get(record.id).counts == {"cancelled": 3}


@pytest.mark.parametrize(
    ("age", "kept"), [(timedelta(hours=1), True), (timedelta(days=2), False)], ids=["arriving", "left behind"]
)
def test_that_what_was_never_accepted_goes_once_nobody_can_be_handing_it_in(
    settings: Settings, store: Store, batches: BatchService, age: timedelta, kept: bool
) -> None:
    batch = str(ULID.from_datetime(datetime.now(UTC) - age))
    record = batches.accept("night", "folder", specs(1))
    journal_of(settings.home, batch).begin(record.model_copy(update={"id": batch}), specs(2), 5)
    assert batches.resume() == 0
    assert (batch in folders(settings)) is kept
    with pytest.raises(NotFoundError):
        batches.get(batch)


def test_that_a_batch_older_than_the_retention_does_not_come_back(settings: Settings, store: Store) -> None:
    batch = str(ULID.from_datetime(datetime.now(UTC) - timedelta(days=100)))
    BatchService(settings, store).accept("old", "folder", specs(1), batch=batch)
    for days, count in ((0, 1), (90, 0)):
        store.batches.delete(batch)
        assert BatchService(replace(settings, retention_days=days), store).resume() == count
    assert folders(settings) == []


def test_that_journals_of_forgotten_batches_are_swept(
    settings: Settings, store: Store, batches: BatchService
) -> None:
    now = datetime.now(UTC)
    old, kept = (str(ULID.from_datetime(now - timedelta(days=100))) for _ in range(2))
    for batch in (old, kept):
        batches.accept("old", "folder", specs(1), batch=batch)
    young = batches.accept("young", "folder", specs(1)).id
    store.batches.delete(old)
    store.batches.delete(young)
    assert batches.sweep(now - timedelta(days=90)) == 1
    assert folders(settings) == sorted([kept, young])


def test_that_a_batch_that_is_cancelled_again_and_again_lets_its_journal_be(
    settings: Settings, batches: BatchService
) -> None:
    batch = batches.accept("night", "folder", specs(1)).id
    sizes = []
    for _ in range(3):
        assert batches.cancel(batch).state == "cancelled"
        sizes.append((journal_of(settings.home, batch).folder / "journal.jsonl").stat().st_size)
    assert sizes[0] == sizes[1] == sizes[2]


def test_that_a_clock_that_leaps_removes_no_journal(
    settings: Settings, store: Store, batches: BatchService
) -> None:
    kept = batches.accept("night", "folder", specs(1)).id
    arriving = batches.begin()
    batches.spool(arriving).mkdir(parents=True)
    leapt = datetime.now(UTC) + timedelta(days=3000)
    store.clock.observe(leapt)
    assert batches.sweep(leapt - timedelta(days=90), leapt) == 0
    assert folders(settings) == sorted([kept, arriving])


def test_that_a_batch_that_a_damaged_database_lost_comes_back_whatever_the_clock_says(
    settings: Settings, store: Store
) -> None:
    batch = str(ULID.from_datetime(datetime.now(UTC) - timedelta(days=100)))
    BatchService(settings, store).accept("old", "folder", specs(1), batch=batch)
    store.close()
    (settings.home / "whycrash.db").write_bytes(b"no database at all" * 1000)
    with open_store(settings) as mended:
        assert mended.batches.get(batch).name == "old"


def test_that_of_a_shared_database_only_a_wholly_empty_one_is_filled(
    settings: Settings, store: Store, batches: BatchService
) -> None:
    # Another machine may have deleted the batch; its journal here is no proof that it was lost.
    gone, there = (batches.accept("night", "folder", specs(1)).id for _ in range(2))
    shared = BatchService(
        replace(settings, database=SecretStr(f"sqlite:///{settings.home / 'whycrash.db'}")), store
    )
    store.batches.delete(gone)
    assert shared.resume() == 0
    store.batches.delete(there)
    assert shared.resume() == 2


def test_that_spooled_copies_of_a_batch_that_is_over_are_removed_at_the_next_start(
    settings: Settings, store: Store, batches: BatchService
) -> None:
    batch = batches.begin()
    spool = batches.spool(batch)
    spool.mkdir(parents=True)
    batches.accept("night", "upload", specs(1), batch=batch)
    batches.resume()
    assert spool.exists()
    store.batches.cancel(batch)
    batches.resume()
    assert not spool.exists()
    assert [path.name for path in spool.parent.iterdir()] == ["journal.jsonl"]
