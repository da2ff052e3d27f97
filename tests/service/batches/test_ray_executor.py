"""The engine on a real Ray: what dies of it costs time, and no job."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.workers import ray_folders, ray_pool
from ingest.workers.ray_pool import RayPool
from service.batches.batches import open_store
from service.batches.engine import BatchEngine
from service.batches.pool_executor import DEPTH, PoolExecutor
from service.persistence.store import Store
from service.settings import Settings
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


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnCluster]:
    """A head and a node; whatever else of Ray runs on this machine, or ran in this process, has no part in
    it.
    """
    for name in set(os.environ) - set(surroundings()):
        monkeypatch.delenv(name)
    with own_cluster() as made:
        yield made


@pytest.mark.long
def test_that_a_batch_survives_the_end_of_a_node_of_a_cluster(
    tmp_path: Path, warm: Path, cluster: OwnCluster
) -> None:
    settings = settings_at(tmp_path / "home", warm, ray_from=1, ray_address=cluster.address, workers=2)
    paths = [tmp_path / "one.log", tmp_path / "two.log"]
    with open_store(settings) as store:
        logs = write(tmp_path / "logs", [crash(number // 2) for number in range(COUNT)])
        # What one worker takes ahead stands between the two: the second is for the other worker, however late
        # it is.
        specs = [pipe(paths[0]), *logs[:DEPTH], pipe(paths[1]), *logs[DEPTH:]]
        batch = accepted(settings, store, specs)
        engine = BatchEngine(settings, store, batch=batch)
        engine.start()
        readers = [reader_of(path) for path in paths]
        cluster.lose_node()
        until(
            lambda: not all(Path(f"/proc/{number}").exists() for number, _ in readers),
            "what ran on the node is gone",
        )
        for _, handle in readers:
            os.close(handle)
        for path in paths:
            if not store.batches.get(batch).counts.get("failed"):
                _feed(path, store, batch)
        until(lambda: store.batches.get(batch).state == "done", "the batch is over")
        engine.stop()
        assert sum(states(store, batch).values()) == COUNT + 2
        assert all(job.state == "done" or job.error for job in jobs(store, batch))
        assert ends(settings, batch) == dict.fromkeys(range(1, COUNT + 3), 1)


def _feed(path: Path, store: Store, batch: str) -> None:
    """Give a pipe's reader its log, unless the job ended without."""
    number = (1 + DEPTH) * (path.name == "two.log")

    def is_over() -> bool:
        return jobs(store, batch)[number].state in ("done", "failed")

    while not is_over():
        try:
            _, handle = reader_of(path, 2)
        except AssertionError:
            continue
        os.write(handle, crash(99).encode())
        os.close(handle)
