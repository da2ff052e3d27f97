"""Whatever dies in mid-batch, every accepted job ends with a result or a recorded failure, and none twice."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from service.batches.batches import BatchService, open_store
from service.batches.engine import LEASE, BatchEngine
from service.batches.journal import journal_of
from service.persistence.errors import DamagedStoreError
from service.persistence.store import Store
from service.schemas.errors import DiskFullError
from service.schemas.records import JobRecord, JobSpec
from service.settings import Settings
from tests.service.batches.jobs import (
    accepted,
    crash,
    ends,
    engine_process,
    home_at,
    jobs,
    pipe,
    reader_of,
    settings_at,
    states,
    write,
)
from tests.waiting import until

pytestmark = pytest.mark.long

COUNT = 60


@pytest.fixture
def settings(tmp_path: Path, warm: Path) -> Settings:
    return settings_at(tmp_path / "home", warm)


def mixed(folder: Path, count: int = COUNT) -> list[str]:
    """Give logs of which each crash comes twice."""
    return [crash(number // 2) for number in range(count)]


def stuck(folder: Path) -> tuple[list[JobSpec], Path]:
    """Give the jobs of a batch that cannot end: in their middle is a log that nobody writes."""
    specs = write(folder / "logs", mixed(folder))
    path = folder / "never.log"
    return [*specs[: COUNT // 2], pipe(path), *specs[COUNT // 2 :]], path


def half_done(settings: Settings, batch: str) -> dict[int, JobRecord]:
    """Run an engine in a process, kill it with -9 when a third is done, and give the jobs that are."""
    with open_store(settings) as store, engine_process(settings, batch) as process:
        until(lambda: states(store, batch).get("done", 0) >= COUNT // 3, "a third is done")
        process.kill()
        process.wait()
        return {job.number: job for job in jobs(store, batch) if job.state == "done"}


def resumed(settings: Settings, store: Store, batch: str, path: Path) -> None:
    """Have the rest done, and the log written that was missing."""
    engine = BatchEngine(settings, store, batch=batch)
    engine.start()
    _, handle = reader_of(path)
    os.write(handle, crash(999).encode())
    os.close(handle)
    until(lambda: store.batches.get(batch).state == "done", "the batch is over")
    engine.stop()


def test_that_an_engine_that_is_killed_is_resumed_at_once_and_nothing_is_done_twice(
    settings: Settings, tmp_path: Path
) -> None:
    with open_store(settings) as store:
        specs, path = stuck(tmp_path)
        batch = accepted(settings, store, specs)
        done = half_done(settings, batch)
        assert states(store, batch).get("running", 0) > 0
        resumed(settings, store, batch, path)
        found = jobs(store, batch)
        assert {job.state for job in found} == {"done"}
        assert {number: job for number, job in enumerate(found, 1) if number in done} == done
        # Nothing is noted twice; what the store took in the moment of the kill may have missed the journal.
        noted = ends(settings, batch)
        assert set(noted.values()) == {1}
        assert {job.number for job in found} - set(noted) <= set(done)
        # It waited for no lease of the dead engine to run out.
        last = max(job.finished for job in found if job.finished)
        assert (last - max(job.finished for job in done.values() if job.finished)).total_seconds() < LEASE


def test_that_a_batch_whose_engine_is_always_killed_with_one_job_ends(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "takes-all-along.log"
    with open_store(settings) as store:
        batch = accepted(settings, store, [pipe(path), *write(tmp_path / "logs", [crash(1)])])
        for _ in range(6):
            store.batches.claim("host:1:1:dead", 2, 0.0, store.batches.get(batch).created, batch)
        BatchEngine(settings, store, batch=batch).run()
        assert states(store, batch) == {"failed": 2}
        assert "begun 6 times" in jobs(store, batch)[0].error


def damage(file: Path) -> None:
    """Overwrite the database's pages as a broken disk would, all but the header."""
    for end in ("-wal", "-shm"):
        file.with_name(file.name + end).unlink(missing_ok=True)
    with file.open("r+b") as stream:
        stream.seek(4096)
        stream.write(os.urandom(max(8192, file.stat().st_size - 8192)))


def test_that_a_damaged_database_is_replaced_and_filled_from_the_journals(
    settings: Settings, tmp_path: Path
) -> None:
    with open_store(settings) as store:
        specs, path = stuck(tmp_path)
        batch = accepted(settings, store, specs, left_out={"binary": "1: a.bin"})
    half_done(settings, batch)
    noted = ends(settings, batch)
    damage(settings.home / "whycrash.db")
    with open_store(settings) as store:
        assert store.replaced is not None
        assert store.replaced.exists()
        before = {job.number: job for job in jobs(store, batch) if job.state == "done"}
        # What leans on a job whose own end was not noted any more is done again with it.
        assert set(before) <= set(noted)
        assert len(before) >= len(noted) - 3
        record = store.batches.get(batch)
        assert (record.name, record.left_out, record.total) == ("a batch", {"binary": "1: a.bin"}, COUNT + 1)
        resumed(settings, store, batch, path)
        after = jobs(store, batch)
        assert {job.state for job in after} == {"done"}
        assert {job.number: job for job in after if job.number in before} == before
        assert len([job for job in after if job.same_as is None]) == COUNT // 2 + 1


def test_that_a_database_that_is_damaged_under_an_engine_is_replaced(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "slow.log"
    with open_store(settings) as store:
        batch = accepted(settings, store, [pipe(path), *write(tmp_path / "logs", mixed(tmp_path, 10))])
        engine = BatchEngine(settings, store)
        engine.start()
        worker, handle = reader_of(path)
        # All of it is in the file then, and none of it remembered.
        store.close()
        damage(settings.home / "whycrash.db")
        store.close()
        until(lambda: store.replaced, "another database is there")
        until(lambda: not Path(f"/proc/{worker}").exists(), "who read for the old one is ended")
        os.close(handle)
        _, handle = reader_of(path)
        os.write(handle, crash(99).encode())
        os.close(handle)
        until(lambda: store.batches.get(batch).state == "done", "the batch is over")
        engine.stop()
        assert states(store, batch) == {"done": 11}


def test_that_a_locked_database_holds_up_a_batch_and_loses_nothing(
    settings: Settings, tmp_path: Path
) -> None:
    with open_store(settings) as store:
        batch = accepted(settings, store, write(tmp_path / "logs", mixed(tmp_path)))
        engine = BatchEngine(settings, store, batch=batch)
        engine.start()
        until(lambda: states(store, batch).get("done", 0) > 0, "the first are done")
        with closing(sqlite3.connect(settings.home / "whycrash.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            held = states(store, batch)
            # Longer than a writer's patience: the engine's own writes fail, and are done again.
            with pytest.raises(Exception, match=r"locked|at once"):
                store.seen.is_first("a", "b", store.batches.get(batch).created)
            assert states(store, batch) == held
            other.execute("ROLLBACK")
        until(lambda: store.batches.get(batch).state == "done", "the batch is over")
        engine.stop()
        assert states(store, batch) == {"done": COUNT}
        assert ends(settings, batch) == dict.fromkeys(range(1, COUNT + 1), 1)


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """Mount a disk of its own."""
    place.mkdir()
    told = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True, check=False
    )
    if told.returncode:
        pytest.skip("this user may mount no disk of its own")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path) -> Path:
    """Leave no room on a disk."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as stream:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    stream.write(b"x" * size)
            except OSError:
                continue
    return filler


def test_that_a_full_disk_holds_up_a_batch_and_loses_nothing(tmp_path: Path, warm: Path) -> None:
    with small_disk(tmp_path / "disk", "8m") as disk:
        settings = settings_at(disk / "home", warm)
        path = tmp_path / "slow.log"
        with open_store(settings) as store:
            batch = accepted(settings, store, [pipe(path), *write(tmp_path / "logs", mixed(tmp_path))])
            engine = BatchEngine(settings, store, batch=batch)
            engine.start()
            _, handle = reader_of(path)
            filler = fill(disk)
            os.write(handle, crash(99).encode())
            os.close(handle)
            until(
                lambda: any(pause.failures for pause in engine.pauses.values()),
                "the engine met the full disk",
            )
            filler.unlink()
            until(lambda: store.batches.get(batch).state == "done", "the batch is over")
            engine.stop()
            assert states(store, batch) == {"done": COUNT + 1}
            # The journal may miss what found no room, but has nothing twice.
            assert set(ends(settings, batch).values()) == {1}


def test_that_a_batch_that_finds_no_room_is_refused_and_leaves_nothing(tmp_path: Path, warm: Path) -> None:
    with small_disk(tmp_path / "disk", "4m") as disk:
        settings = settings_at(disk / "home", warm)
        with open_store(settings) as store:
            specs = write(tmp_path / "logs", mixed(tmp_path, 4))
            filler = fill(disk)
            batches = BatchService(settings, store)
            batch = batches.begin()
            with pytest.raises(DiskFullError, match="no room"):
                batches.accept("a batch", "folder", specs, batch=batch)
            filler.unlink()
            assert store.batches.running() == ()
            assert not journal_of(settings.home, batch).folder.exists()


def test_that_a_damaged_database_is_told_as_such_where_none_may_replace_it(
    settings: Settings, tmp_path: Path
) -> None:
    with open_store(settings) as store:
        accepted(settings, store, write(tmp_path / "logs", mixed(tmp_path, 4)))
    damage(settings.home / "whycrash.db")
    with pytest.raises(DamagedStoreError, match="damaged"):
        Store.open(settings)


def test_that_batches_come_back_from_their_journals_into_an_empty_database(
    settings: Settings, tmp_path: Path, warm: Path
) -> None:
    with open_store(settings) as store:
        batch = accepted(settings, store, write(tmp_path / "logs", mixed(tmp_path, 6)))
        BatchEngine(settings, store, batch=batch).run()
        before = jobs(store, batch)
    other = settings_at(tmp_path / "other", warm)
    shutil.copytree(settings.home / "batches", home_at(other.home, warm) / "batches")
    with open_store(other) as store:
        assert jobs(store, batch) == [job.model_copy(update={"attempts": 1}) for job in before]
        BatchEngine(other, store, batch=batch).run()
        assert store.batches.get(batch).state == "done"
        assert jobs(store, batch) == before
