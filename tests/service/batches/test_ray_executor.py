"""The engine on a real Ray: what dies of it costs time, and no job."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from ingest.workers import ray_folders, ray_pool
from ingest.workers.ray_pool import RayPool
from service.batches.batches import open_store
from service.batches.engine import BatchEngine
from service.batches.pool_executor import DEPTH, PoolExecutor
from service.persistence.store import Store
from service.settings import Settings
from tests.pipes import reader_now
from tests.processes import command, descendants
from tests.service.batches.jobs import (
    accepted,
    crash,
    ends,
    jobs,
    pipe,
    reader_of,
    settings_at,
    states,
    surroundings,
    write,
)
from tests.service.batches.own_cluster import OwnCluster, own_cluster
from tests.waiting import until

COUNT = 30


@pytest.fixture
def settings(tmp_path: Path, warm: Path) -> Settings:
    return settings_at(tmp_path / "home", warm, ray_from=1)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with open_store(settings) as opened:
        yield opened


def named(number: int, name: str) -> int:
    """Find a process by its name below another one."""
    return next(child for child in descendants(number) if name.encode() in command(child))


def driver_of(engine: BatchEngine) -> int:
    """Give the process that speaks with Ray."""
    executor = engine.executor_slots["ray"].executor
    assert isinstance(executor, PoolExecutor)
    assert isinstance(executor.pool, RayPool)
    return executor.pool.pid


@pytest.mark.long
def test_that_a_batch_survives_the_end_of_a_worker_and_of_rays_head(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.log", tmp_path / "second.log"
    specs = [
        pipe(first),
        pipe(second),
        *write(tmp_path / "logs", [crash(number // 2) for number in range(COUNT)]),
    ]
    batch = accepted(settings, store, specs)
    engine = BatchEngine(settings, store, batch=batch)
    engine.start()
    # A worker dies with -9: its job is tried again.
    worker, handle = reader_of(first)
    os.kill(worker, signal.SIGKILL)
    os.close(handle)
    until(lambda: not Path(f"/proc/{worker}").exists(), "the worker is gone")
    # The head dies with -9 in mid-batch: all of Ray is started anew, and nobody's try counts.
    worker, handle = reader_of(second)
    driver = driver_of(engine)
    os.kill(named(driver, "gcs_server"), signal.SIGKILL)
    until(
        lambda: not any(Path(f"/proc/{number}").exists() for number in (driver, worker)),
        "what lost its head ended",
    )
    os.close(handle)
    for path in (second, first):
        _, handle = reader_of(path)
        os.write(handle, crash(99).encode())
        os.close(handle)
    until(lambda: store.batches.get(batch).state == "done", "the batch is over")
    engine.stop()
    assert states(store, batch) == {"done": COUNT + 2}
    assert [job.attempts for job in jobs(store, batch)][:2] == [2, 1]
    assert ends(settings, batch) == dict.fromkeys(range(1, COUNT + 3), 1)
    assert not list(Path(ray_folders.place()).glob(f"{ray_pool.PREFIX}{os.getpid()}-*"))


@pytest.fixture(autouse=True)
def _no_other_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else of Ray runs on this machine, or ran in this process, has no part in these tests."""
    for name in set(os.environ) - set(surroundings()):
        monkeypatch.delenv(name)


@dataclass
class Under:
    """A batch that a cluster works on: its workers wait for pipes, and have taken some jobs ahead."""

    settings: Settings
    store: Store
    batch: str
    paths: list[Path]

    def readers(self, count: int = 2) -> list[tuple[int, int]]:
        """Wait until so many workers wait for pipes; gives their numbers and our ends of the pipes."""
        found: dict[int, int] = {}

        def are_there() -> bool:
            for path in self.paths:
                for worker, handle in reader_now(path):
                    if worker in found:
                        os.close(handle)
                    found.setdefault(worker, handle)
            return len(found) == count

        until(are_there, f"{count} workers wait for pipes")
        return list(found.items())

    def feed_until(self, done: int) -> None:
        """Give each pipe that is read its log, until so many jobs ended."""

        def are_done() -> bool:
            for path in self.paths:
                for _, handle in reader_now(path):
                    # It was gone since, or stands still before a pipe that is full of logs.
                    with suppress(BrokenPipeError, BlockingIOError):
                        os.write(handle, crash(99).encode())
                    os.close(handle)
            counts = self.store.batches.get(self.batch).counts
            return counts.get("done", 0) + counts.get("failed", 0) >= done

        until(are_done, f"{done} jobs ended")

    @property
    def total(self) -> int:
        """How many jobs it has."""
        return COUNT + len(self.paths)

    def check(self) -> None:
        """Wait for the end: each job has one, and one alone."""
        self.feed_until(self.total)
        until(lambda: self.store.batches.get(self.batch).state == "done", "the batch is over")
        assert sum(states(self.store, self.batch).values()) == self.total
        assert all(job.state == "done" or job.error for job in jobs(self.store, self.batch))
        assert ends(self.settings, self.batch) == dict.fromkeys(range(1, self.total + 1), 1)


@contextmanager
def working(folder: Path, warm: Path, cluster: OwnCluster, workers: int = 2) -> Iterator[Under]:
    """Have a cluster work on a batch with two workers, of which so many soon wait for a pipe."""
    settings = settings_at(
        folder / "home", warm, ray_from=1, ray_address=cluster.address, workers=2, request_deadline=1200
    )
    # Who waits for one pipe may have taken others ahead, whichever worker was ready first: there is one more
    # than that, so that another worker meets one too.
    paths = [folder / f"{number}.log" for number in range(1 + DEPTH if workers > 1 else 1)]
    with open_store(settings) as store:
        logs = write(folder / "logs", [crash(number // 2) for number in range(COUNT)])
        batch = accepted(settings, store, [*map(pipe, paths), *logs])
        engine = BatchEngine(settings, store, batch=batch)
        engine.start()
        try:
            yield Under(settings, store, batch, paths)
        finally:
            engine.stop()


@pytest.mark.long
@pytest.mark.parametrize("deed", ["lose", "leave"])
def test_that_a_batch_survives_the_end_of_a_node_of_a_cluster(deed: str, tmp_path: Path, warm: Path) -> None:
    """With or without notice."""
    with own_cluster() as cluster, working(tmp_path, warm, cluster) as under:
        readers = under.readers()
        cluster.tell(deed)
        until(
            lambda: not all(Path(f"/proc/{number}").exists() for number, _ in readers),
            "what ran on the node is gone",
        )
        for _, handle in readers:
            os.close(handle)
        under.check()


@pytest.mark.long
def test_that_a_node_that_joins_takes_its_part_of_a_batch_that_runs(tmp_path: Path, warm: Path) -> None:
    """The first node's worker is held up: what it did not take is done by the other's."""
    with own_cluster(1) as cluster, working(tmp_path, warm, cluster, 1) as under:
        [(_, handle)] = under.readers(1)
        assert not under.store.batches.get(under.batch).counts.get("done")
        cluster.tell("join")
        until(
            lambda: under.store.batches.get(under.batch).counts.get("done", 0) >= COUNT - DEPTH,
            "the other's are done",
        )
        os.write(handle, crash(99).encode())
        os.close(handle)
        under.check()


@pytest.mark.long
def test_that_a_node_that_stands_still_holds_no_other(tmp_path: Path, warm: Path) -> None:
    """But for what its worker has taken ahead, which it does once it goes on."""
    with own_cluster() as cluster, working(tmp_path, warm, cluster) as under:
        readers = under.readers()
        cluster.tell("stop")
        for _, handle in readers:
            os.write(handle, crash(99).encode())
            os.close(handle)
        under.feed_until(under.total - DEPTH)
        assert under.store.batches.get(under.batch).state == "running"
        cluster.tell("go on")
        under.check()


@pytest.mark.long
def test_that_a_batch_goes_on_where_an_object_store_spills(tmp_path: Path, warm: Path) -> None:
    """Another job has filled the store of a node that works on the batch, so that Ray writes to its disk."""
    with own_cluster() as cluster, working(tmp_path, warm, cluster) as under:
        cluster.tell("spill")
        under.check()
        assert states(under.store, under.batch) == {"done": under.total}


@pytest.mark.long
def test_that_a_batch_survives_a_head_that_is_started_anew(tmp_path: Path, warm: Path) -> None:
    """Its state is in Redis, so that the nodes come back to it."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("Redis is not installed")
    with own_cluster(2, program) as cluster, working(tmp_path, warm, cluster) as under:
        readers = under.readers()
        cluster.tell("restart the head")
        for _, handle in readers:
            os.close(handle)
        under.check()
