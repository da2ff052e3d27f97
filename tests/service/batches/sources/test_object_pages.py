"""A giant folder of an object store: page by page, a window at a time, from where a page failed."""

from __future__ import annotations

import tracemalloc
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from service.batches.sources import object_pages, object_reading, object_window
from service.batches.sources.object_pages import read_pages
from service.batches.sources.object_watch import ObjectWatch
from service.settings import Settings
from tests.tables import each_row

HOUR_AGO = datetime.now(UTC) - timedelta(hours=1)
# What is held here is small, so that little is much.
PER_PAGE, WINDOW, OPEN = 20, 100, 10


class PagedStore:
    """Speaks as S3 does over names in their order; `left` of its next pages fail, `asked` are the tokens."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted(names)
        self.asked: list[str] = []
        self.left = 0

    def call_s3(self, method: str, **asked: Any) -> dict[str, Any]:
        """Give one page of a folder, as `list_objects_v2` does."""
        assert (method, asked["Bucket"], asked["Delimiter"]) == ("list_objects_v2", "b", "/")
        self.asked.append(asked.get("ContinuationToken", ""))
        if self.left:
            self.left -= 1
            raise ConnectionResetError("reset by peer")
        prefix = asked["Prefix"]
        place, last = (bisect_left(self._names, f"{prefix}{end}") for end in ("", chr(0x10FFFF)))
        place = int(asked.get("ContinuationToken", place))
        told: dict[str, Any] = {"Contents": [], "CommonPrefixes": []}
        while place < last and sum(map(len, told.values())) < asked["MaxKeys"]:
            first, mark, _ = self._names[place].removeprefix(prefix).partition("/")
            if mark:
                told["CommonPrefixes"].append({"Prefix": f"{prefix}{first}/"})
                place = bisect_left(self._names, f"{prefix}{first}0")  # what comes after the slash
            else:
                told["Contents"].append({"Key": f"{prefix}{first}", "Size": 9, "LastModified": HOUR_AGO})
                place += 1
        return {**told, "IsTruncated": place < last, "NextContinuationToken": str(place)}

    def ls(self, path: str, **_more: object) -> list[dict[str, Any]]:
        """Say that nothing lies below a name."""
        raise FileNotFoundError(path)


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
        store = PagedStore([*logs, *(f"runs/of-{number:07d}/a.log" for number in range(count // 5))])
        tracemalloc.start()
        assert sum(1 for _ in found(watch, store)) == count + count // 5
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert most_held(15 * WINDOW) < 1.5 * most_held(3 * WINDOW)


def test_that_a_page_that_fails_is_asked_again_from_where_the_last_one_ended() -> None:
    store = PagedStore(f"runs/{number:07d}.log" for number in range(3 * PER_PAGE))
    pages = read_pages(store, "b/runs", "b/runs")
    assert len(next(pages).files) == PER_PAGE
    store.left = 3
    assert [len(page.files) for page in pages] == [PER_PAGE, PER_PAGE]
    assert store.asked == ["", *[f"{PER_PAGE}"] * 4, f"{2 * PER_PAGE}"]


def test_that_a_store_that_stays_away_ends_the_listing() -> None:
    store = PagedStore(["runs/a.log"])
    store.left = 9
    with pytest.raises(ConnectionResetError):
        list(read_pages(store, "b/runs", "b/runs"))


@each_row("shift", [0, 1, 2, 3])
def test_that_a_job_is_whole_wherever_a_window_ends(shift: int, watch: ObjectWatch) -> None:
    """Its streams and ranks stand beside each other; so does its configuration."""
    pad = [f"runs/a{number}.log" for number in range(shift)]
    ends = ("err", "out", "sh")
    names = [f"runs/job-{number:06d}.{end}" for number in range(2 * WINDOW) for end in ends]
    jobs = {name: logs for name, logs in found(watch, PagedStore([*pad, *names])) if name.startswith("job-")}
    assert len(jobs) == 2 * WINDOW
    assert {len(logs) for logs in jobs.values()} == {2}


def test_that_a_job_of_very_many_ranks_is_one(watch: ObjectWatch) -> None:
    """More than a window holds, and others before and after it."""
    ranks = [f"runs/sft_rank{number}.log" for number in range(WINDOW + OPEN)]
    jobs = dict(found(watch, PagedStore([*ranks, "runs/a.log", "runs/z.log"])))
    assert {name: len(logs) for name, logs in jobs.items()} == {"a": 1, "sft": WINDOW + OPEN, "z": 1}


def test_that_a_folder_of_a_day_is_one_job_where_its_log_stands_on_a_later_page(watch: ObjectWatch) -> None:
    folders = [f"runs/2026-11-30/{number:05d}/x.log" for number in range(PER_PAGE)]
    assert len(list(found(watch, PagedStore(folders)))) == PER_PAGE
    jobs = dict(found(watch, PagedStore([*folders, "runs/2026-11-30/train.log"])))
    assert {name: len(logs) for name, logs in jobs.items()} == {"2026-11-30": PER_PAGE + 1}


def test_that_a_name_below_which_nothing_lies_is_asked_of_the_driver() -> None:
    """One object's, or nobody's."""
    with pytest.raises(FileNotFoundError):
        list(read_pages(PagedStore(["other/a.log"]), "b/runs", "b/runs"))
