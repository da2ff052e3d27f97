"""Watching an object store: each job once it is quiet, whatever lies beside it, a folder at a time."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ingest.logs.inputs.members import Skipped
from service.batches.sources.found import collect_jobs
from service.batches.sources.object_watch import ObjectWatch
from service.batches.sources.spool import open_spool
from service.monitoring import ended_jobs
from service.monitoring.ended_jobs import LONGEST_WRITE, WatchedPlace
from service.monitoring.known_jobs import KnownJobs
from service.monitoring.watcher import Watcher
from service.pipeline.triage import Triage
from service.schemas.errors import InvalidRequestError
from service.settings import Settings
from tests.service.batches.sources.handing import DIED, held
from tests.service.batches.sources.stores import UnreliableStore, unreliable
from tests.service.batches.sources.test_ray_history import shared_session
from tests.tables import each_row

LONG_AGO = datetime.now(UTC) - timedelta(days=300)
Place = Callable[[str], WatchedPlace]


def ago(**span: float) -> datetime:
    """Give a moment before now: the time when this file was read may lie minutes back."""
    return datetime.now(UTC) - timedelta(**span)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[UnreliableStore]]:
    with unreliable(monkeypatch) as made:
        yield made


@pytest.fixture
def watched(make_settings: Callable[..., Settings]) -> Place:
    """Watch an address; what was not written for ten minutes is over."""

    def at(url: str) -> WatchedPlace:
        return ended_jobs.find_in_objects(url, 600.0, make_settings())

    return at


def keys(place: WatchedPlace, since: datetime = LONG_AGO) -> dict[str, str]:
    """Give the keys of the jobs that a look finds, by their names."""
    return {job.name: job.key for job in place.find(since)}


def test_that_a_job_is_told_once_none_of_its_logs_is_written_any_more(
    watched: Place, store: type[UnreliableStore]
) -> None:
    """A folder is one job with all below it, and so are an object and its other stream."""
    store.put("runs/a.out", DIED, ago(hours=2))
    store.put("runs/a.err", "x\n", ago(hours=1))
    store.put("runs/two/rank0.log", DIED, ago(hours=2))
    store.put("runs/two/deep/rank1.log", "step 1\n", ago(minutes=1))
    store.put("runs/old.log", DIED, LONG_AGO - timedelta(days=1))
    store.put("runs/model.safetensors", "x", ago(hours=1))
    place = watched("unreliable://runs")
    assert set(keys(place)) == {"a"}
    store.put("runs/two/deep/rank1.log", "step 1\n", ago(minutes=11))
    assert set(keys(place)) == {"a", "two"}
    found = keys(place)
    store.put("runs/a.err", "x\nmore\n", ago(minutes=20))
    again = keys(place)
    assert (again["two"] == found["two"], again["a"] == found["a"]) == (True, False)


def test_that_a_job_keeps_its_key_whatever_comes_to_lie_beside_it(
    watched: Place, store: type[UnreliableStore]
) -> None:
    """A number is a rank's only where it is called one: others are told as they end."""
    store.put("runs/worker-0.log", DIED, ago(hours=3))
    store.put("runs/sft_rank0.log", DIED, ago(hours=3))
    place = watched("unreliable://runs")
    before = keys(place)
    store.put("runs/worker-1.log", DIED, ago(hours=2))
    store.put("runs/other/a.log", DIED, ago(hours=2))
    after = keys(place)
    assert set(before) == {"worker-0", "sft"}
    assert {name: key for name, key in after.items() if name in before} == before
    assert set(after) - set(before) == {"worker-1", "other"}


@each_row(
    ("names", "jobs"),
    [
        (("2026-11-30/a.log", "2026-11-30/b.log"), {"2026-11-30"}),
        (("2026-11-30/a/x.log", "2026-11-30/b/x.log"), {"2026-11-30/a", "2026-11-30/b"}),
        (
            ("2026-11-30/10-00-00/.hydra/config.yaml", "2026-11-30/10-00-00/train.log"),
            {"2026-11-30/10-00-00"},
        ),
        (("driver.log",), {"driver"}),
    ],
)
def test_that_a_folder_of_a_day_is_gone_into(
    names: tuple[str, ...], jobs: set[str], watched: Place, store: type[UnreliableStore]
) -> None:
    """Unless it has logs of its own, as in a batch."""
    root = f"runs{len(UnreliableStore.store)}"
    for name in names:
        store.put(f"{root}/{name}", DIED, ago(hours=1))
    assert set(keys(watched(f"unreliable://{root}"))) == jobs


def test_that_the_failed_jobs_of_a_ray_session_are_told_and_its_events_are_read_once(
    watched: Place, store: type[UnreliableStore]
) -> None:
    """Also where the address is that of a folder above; a further log has them read again."""
    for name, content in shared_session().items():
        store.put(f"bucket/{name}", content, ago(hours=1))
    for address in ("unreliable://bucket", "unreliable://bucket/cluster-history/raycluster"):
        place = watched(address)
        names = {name.rpartition("/")[2] for name in keys(place)}
        assert names == {"sft", "rl"}
        assert [name for name in store.opened if "events" in name]
        store.opened.clear()
        assert {name.rpartition("/")[2] for name in keys(place)} == names
        assert store.opened == []
    (first, *_) = (name for name in shared_session() if name.endswith("job-driver-rl.log"))
    before = keys(place)
    store.put(f"bucket/{first}", f"{DIED}again\n", ago(minutes=30))
    after = keys(place)
    assert [name.rpartition("/")[2] for name in before if before[name] != after[name]] == ["rl"]


def test_that_a_look_at_many_folders_takes_the_memory_of_one(make_settings: Callable[..., Settings]) -> None:
    """Five times as many folders, and the most that is held grows with the list of them alone."""

    def most_held(folders: int) -> int:
        watch = ObjectWatch("unreliable://x", timedelta(minutes=10), make_settings())
        tracemalloc.start()
        count = sum(1 for _ in watch._units(_Many(folders), "x"))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == folders + 1
        return most

    assert most_held(50) < 2 * most_held(10)


class _Many:
    """Folders of two hundred logs each."""

    def __init__(self, folders: int) -> None:
        self._folders = folders

    def ls(self, path: str, **_more: object) -> list[dict[str, Any]]:
        if path == "x":
            return [{"name": f"x/{number}", "type": "directory"} for number in range(self._folders)]
        return [
            {"name": f"{path}/{number}.log", "type": "file", "size": 9, "created": ago()}
            for number in range(200)
        ]


def test_that_logs_are_fetched_redacted_once_they_are_asked_for(
    watched: Place, store: type[UnreliableStore], tmp_path: Path, make_settings: Callable[..., Settings]
) -> None:
    """And none before: a job that was told costs no log."""
    store.put("runs/a.log", DIED + "hf_" + "aB3" * 12, ago(hours=1))
    (job,) = watched("unreliable://runs").find(LONG_AGO)
    assert store.opened == []
    watch = ObjectWatch("unreliable://runs", timedelta(minutes=10), make_settings())
    (candidate,) = watch.candidates(LONG_AGO)
    spec = candidate.fetched(open_spool(tmp_path / "copies", make_settings()), Skipped())
    assert spec is not None
    assert spec.place.source_key == candidate.key == job.key
    (text,) = held(collect_jobs([spec]))["a"].values()
    assert (DIED in text, "aB3" in text) == (True, False)


def test_that_a_store_that_is_away_is_asked_again_in_the_next_round(
    triage: Triage, watched: Place, store: type[UnreliableStore], tmp_path: Path
) -> None:
    """And tells each job once, also after a restart, a week later, and of what was written before."""
    store.put("runs/a.log", DIED, ago(hours=1))
    seen: list[str] = []
    begun = datetime.now(UTC)
    since = begun - timedelta(days=1)

    def watcher() -> Watcher:
        known = KnownJobs(tmp_path, "runs")
        shown = lambda _diagnosis, spec: seen.append(spec.name)  # noqa: E731 - as short as it can be said
        return Watcher(triage, watched("unreliable://runs"), known, (), shown)

    first = watcher()
    first.known.since = since
    store.left = 1000
    assert (first.run_once(), first.reached) == (0, False)
    store.left = 0
    assert (first.run_once(), first.reached, first.known.since) == (1, True, since)
    first.known.since = ago(days=20)
    first.known.save()
    second = watcher()
    assert (second.run_once(), seen) == (0, ["a"])
    assert second.known.since >= begun - LONGEST_WRITE


@each_row("url", ["http://127.0.0.1/logs/", "https://logs.example.org/"])
def test_that_a_web_server_is_not_watched(url: str, watched: Place) -> None:
    with pytest.raises(InvalidRequestError, match="does not tell when files were written"):
        watched(url)
