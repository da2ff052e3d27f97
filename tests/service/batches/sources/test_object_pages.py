"""A giant folder of an object store: page by page, a window at a time, from where a page failed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from service.batches.sources import object_pages, object_reading, object_window
from service.batches.sources.object_pages import read_pages
from service.batches.sources.object_watch import ObjectWatch
from service.settings import Settings
from tests.service.batches.sources.paged_stores import (
    HOUR_AGO,
    SIZE,
    AlibabaPaged,
    AzurePaged,
    GooglePaged,
    PagedStore,
    S3Paged,
)
from tests.tables import each_row

# What is held here is small, so that little is much.
PER_PAGE, WINDOW, OPEN = 20, 100, 10


# As each store's driver is asked.
STORES = [S3Paged, GooglePaged, AzurePaged, AlibabaPaged]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold little, and ask again without a pause."""
    monkeypatch.setattr(object_reading, "PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr(object_pages, "PAGE", PER_PAGE)
    monkeypatch.setattr(object_window, "WINDOW", WINDOW)
    monkeypatch.setattr(object_window, "OPEN", OPEN)


@pytest.fixture
def watch(make_settings: Callable[..., Settings]) -> ObjectWatch:
    return ObjectWatch("s3://b/runs", timedelta(minutes=10), make_settings())


def found(watch: ObjectWatch, store: PagedStore) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Give the jobs below runs/, each with its logs."""
    for _, jobs in watch._units(store, "b/runs"):
        for job in jobs:
            yield job.name, job.logs


def test_that_of_a_giant_folder_a_window_is_held(watch: ObjectWatch) -> None:
    """Five times as many logs and folders in it, and no more is held."""

    def most_held(count: int) -> int:
        logs = [f"runs/job-{number:07d}.log" for number in range(count)]
        store = S3Paged([*logs, *(f"runs/of-{number:07d}/a.log" for number in range(count // 5))])
        tracemalloc.start()
        assert sum(1 for _ in found(watch, store)) == count + count // 5
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert most_held(15 * WINDOW) < 1.5 * most_held(3 * WINDOW)


@each_row("kind", STORES)
def test_that_a_page_that_fails_is_asked_again_from_where_the_last_one_ended(kind: type[PagedStore]) -> None:
    store = kind(f"runs/{number:07d}.log" for number in range(3 * PER_PAGE))
    pages = read_pages(store, "b/runs", "b/runs")
    assert len(next(pages).files) == PER_PAGE
    store.left = 3
    assert [len(page.files) for page in pages] == [PER_PAGE, PER_PAGE]
    assert store.asked == ["", *[f"{PER_PAGE}"] * 4, f"{2 * PER_PAGE}"]


@each_row("kind", STORES)
def test_that_a_folder_is_listed_with_its_folders_and_without_its_mark(kind: type[PagedStore]) -> None:
    """Only what lies in it, with sizes and times; an object of its own name says that it is there."""
    store = kind(
        ["other/z.log", "runs/", "runs/a.log", "runs/job/b.log", "runs/job/deep/c.log", "runs2/d.log"]
    )
    (page,) = read_pages(store, "b/runs", "b/runs")
    ((name, path, written, size),) = page.files
    assert (name, path, size) == ("a.log", "b/runs/a.log", SIZE)
    assert written is not None
    assert abs(written - HOUR_AGO) < timedelta(seconds=1)
    assert page.folders == ["b/runs/job"]
    (page,) = read_pages(kind(["a.log", "runs/b.log"]), "b", "b")
    assert ([file.path for file in page.files], page.folders) == (["b/a.log"], ["b/runs"])


def test_that_a_blob_that_stands_for_a_folder_is_no_log() -> None:
    """Azure's stores with real folders have one of the folder's name beside what lies in it."""
    store = AzurePaged(["runs/a.log", "runs/job.log", "runs/job.log/b.log"], marks=["runs/job.log"])
    (page,) = read_pages(store, "b/runs", "b/runs")
    assert ([file.name for file in page.files], page.folders) == (["a.log"], ["b/runs/job.log"])


def test_that_a_container_that_is_not_there_is_told_by_the_driver() -> None:
    store = AzurePaged(["runs/a.log"])
    store.is_there = False
    with pytest.raises(FileNotFoundError):
        list(read_pages(store, "b/runs", "b/runs"))


def test_that_a_store_that_stays_away_ends_the_listing() -> None:
    store = S3Paged(["runs/a.log"])
    store.left = 9
    with pytest.raises(ConnectionResetError):
        list(read_pages(store, "b/runs", "b/runs"))


@each_row("shift", [0, 1, 2, 3])
def test_that_a_job_is_whole_wherever_a_window_ends(shift: int, watch: ObjectWatch) -> None:
    """Its streams and ranks stand beside each other; so does its configuration."""
    pad = [f"runs/a{number}.log" for number in range(shift)]
    ends = ("err", "out", "sh")
    names = [f"runs/job-{number:06d}.{end}" for number in range(2 * WINDOW) for end in ends]
    jobs = {name: logs for name, logs in found(watch, S3Paged([*pad, *names])) if name.startswith("job-")}
    assert len(jobs) == 2 * WINDOW
    assert {len(logs) for logs in jobs.values()} == {2}


def test_that_a_job_of_very_many_ranks_is_one(watch: ObjectWatch) -> None:
    """More than a window holds, and others before and after it."""
    ranks = [f"runs/sft_rank{number}.log" for number in range(WINDOW + OPEN)]
    jobs = dict(found(watch, S3Paged([*ranks, "runs/a.log", "runs/z.log"])))
    assert {name: len(logs) for name, logs in jobs.items()} == {"a": 1, "sft": WINDOW + OPEN, "z": 1}


def test_that_a_folder_of_a_day_is_one_job_where_its_log_stands_on_a_later_page(watch: ObjectWatch) -> None:
    folders = [f"runs/2026-11-30/{number:05d}/x.log" for number in range(PER_PAGE)]
    assert len(list(found(watch, S3Paged(folders)))) == PER_PAGE
    jobs = dict(found(watch, S3Paged([*folders, "runs/2026-11-30/train.log"])))
    assert {name: len(logs) for name, logs in jobs.items()} == {"2026-11-30": PER_PAGE + 1}


def test_that_a_name_below_which_nothing_lies_is_asked_of_the_driver() -> None:
    """One object's, or nobody's."""
    with pytest.raises(FileNotFoundError):
        list(read_pages(S3Paged(["other/a.log"]), "b/runs", "b/runs"))
