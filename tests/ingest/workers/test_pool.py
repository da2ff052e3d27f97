"""The worker pool: tasks, their limits, and what becomes of them when a worker ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from ingest.errors import PoolLostError
from ingest.workers import pool as pools
from ingest.workers.messages import (
    ExitReason,
    PoolEvent,
    TaskAnswered,
    TaskDied,
    TaskLate,
    TaskMessage,
    TaskReturned,
)
from ingest.workers.pool import WorkerPool
from ingest.workers.process import WorkerProgram
from ingest.workers.processes import LocalWorker, open_processes
from tests.ingest.workers.obedient import Obedient
from tests.waiting import PATIENCE, until


@contextmanager
def opened(size: int = 1, depth: int = 1, *, memory: int = 0, wrong: str = "") -> Iterator[WorkerPool]:
    """Open a pool of obedient processes."""
    pool = open_processes(WorkerProgram(Obedient, (wrong,), memory), size, "obedient", depth=depth)
    try:
        yield pool
    finally:
        pool.close()


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    """A pool of one process, which has up to three keys."""
    with opened(depth=3) as made:
        ready(made)
        yield made


def ready(pool: WorkerPool, count: int = 1) -> None:
    """Wait until workers are ready, and the pool owes no event."""

    def are_ready() -> bool:
        assert not pool.events(0.05)
        return pool.ready >= count

    until(are_ready, "workers are ready")


def events(pool: WorkerPool, count: int) -> list[PoolEvent]:
    """Wait for so many events."""
    found: list[PoolEvent] = []

    def are_there() -> bool:
        found.extend(pool.events(0.2))
        return len(found) >= count

    until(are_there, f"{count} events")
    return found


def answer(pool: WorkerPool, task: str, **options: bool) -> tuple[int, tuple[str, ...]]:
    """Have a task done, and give the worker's number and what it remembers."""
    pool.submit(task, task, PATIENCE, **options)
    (event,) = events(pool, 1)
    assert isinstance(event, TaskAnswered)
    assert event.key == task
    return event.answer  # type: ignore[return-value]  # what the handler gives


def test_one_worker_does_task_after_task(pool: WorkerPool) -> None:
    """What it says before its answer arrives first."""
    first, _ = answer(pool, "one")
    pool.submit("two", "say hello", PATIENCE)
    assert events(pool, 2) == [TaskMessage("two", "hello"), TaskAnswered("two", (first, ()))]


def test_a_held_key_stays_with_its_worker() -> None:
    """Its next task goes where the first one was done, until the key is released with a notice."""
    with opened(size=2) as pool:
        ready(pool, 2)
        process, _ = answer(pool, "remember x", hold=True)
        other, remembered = answer(pool, "elsewhere")
        assert (other != process, remembered) == (True, ())
        pool.follow_up("remember x", "more")
        assert events(pool, 1) == [TaskAnswered("remember x", (process, ("x",)))]
        again, _ = answer(pool, "remember y", hold=True)
        pool.release("remember y", "forget y")
        assert pool.capacity == 2
        pool.follow_up("remember y", "more")
        found = {answer(pool, f"{number}") for number in range(4)}
        assert all("y" not in remembered for _, remembered in found)
        assert again in (process, other)


@pytest.mark.parametrize(
    ("task", "reason"), [("die", ExitReason(signal=signal.SIGKILL)), ("exit 3", ExitReason(code=3))]
)
def test_only_the_task_at_work_is_lost_with_its_worker(
    pool: WorkerPool, task: str, reason: ExitReason
) -> None:
    """What waited behind it is returned, and another worker takes its place."""
    before, _ = answer(pool, "before")
    pool.submit("fatal", task, PATIENCE)
    pool.submit("behind", "behind", PATIENCE)
    assert set(events(pool, 2)) == {TaskDied("fatal", reason), TaskReturned("behind")}
    ready(pool)
    assert answer(pool, "after")[0] != before


def test_a_task_past_its_seconds_is_ended_with_its_worker(pool: WorkerPool) -> None:
    """The seconds count from when the worker begins it."""
    pool.submit("late", "hang", 0.3)
    pool.submit("behind", "behind", PATIENCE)
    late, returned = events(pool, 2)
    assert isinstance(late, TaskLate)
    assert (late.key, round(late.seconds, 3), returned) == ("late", 0.3, TaskReturned("behind"))
    ready(pool)


def test_an_abandoned_key_is_told_no_more(pool: WorkerPool, tmp_path: Path) -> None:
    """Its worker goes on where the task ends soon, and is ended where it does not."""
    before, _ = answer(pool, "before")
    pool.submit("short", f"wait {tmp_path / 'end'}", PATIENCE)
    pool.abandon("short")
    (tmp_path / "end").touch()
    assert answer(pool, "between")[0] == before
    pool.submit("long", "hang", PATIENCE)
    pool.abandon("long")
    until(lambda: not pool.events(0.1) and pool.ready == 0, "the worker that hangs is ended")
    ready(pool)
    assert answer(pool, "after")[0] != before


def test_a_worker_that_died_in_its_idle_time_costs_no_task(pool: WorkerPool) -> None:
    """The task that is handed over before its end is noticed goes to another, or comes back."""
    process, _ = answer(pool, "before")
    os.kill(process, signal.SIGKILL)
    (worker,) = pool.workers
    until(lambda: not worker.alive, "it is gone")
    pool.submit("task", "task", PATIENCE)
    assert events(pool, 1) == [TaskReturned("task")]
    ready(pool)


def test_a_task_that_cannot_be_sent_is_refused_and_the_next_is_done(pool: WorkerPool) -> None:
    """Nothing of it stays in the pool."""
    with pytest.raises(TypeError):
        pool.submit("lock", threading.Lock(), PATIENCE)
    assert pool.capacity == 3
    assert answer(pool, "next")


def test_a_large_task_waits_for_its_worker_in_a_thread_of_its_own(pool: WorkerPool, tmp_path: Path) -> None:
    """A worker that does not read keeps nobody waiting, and the order stays."""
    pool.submit("first", f"wait {tmp_path / 'end'}", PATIENCE)
    pool.submit("large", "x" * (8 << 20), PATIENCE)
    pool.submit("last", "last", PATIENCE)
    (tmp_path / "end").touch()
    assert [event.key for event in events(pool, 3)] == ["first", "large", "last"]


def test_memory_is_bounded_for_tasks() -> None:
    """A request beyond fails in the task, and the worker lives on."""
    with opened(memory=64 << 20) as pool:
        ready(pool)
        pool.submit("large", f"fill {512 << 20}", PATIENCE)
        pool.submit("small", f"fill {1 << 20}", PATIENCE)
        answered = [event.answer for event in events(pool, 2) if isinstance(event, TaskAnswered)]
        assert answered == ["no memory", 1 << 20]


def test_the_wait_for_events_ends_when_another_thread_wakes_it(pool: WorkerPool) -> None:
    """So that what was queued meanwhile is handed over at once."""
    waker = threading.Timer(0.2, pool.wake)
    waker.start()
    began = time.monotonic()
    assert not pool.events(PATIENCE)
    assert time.monotonic() - began < PATIENCE / 2
    waker.join()


@pytest.mark.parametrize(
    ("wrong", "said"), [("no index", "No worker can work: no index"), ("die", "No worker can be started")]
)
def test_a_pool_whose_workers_cannot_load_is_lost(
    monkeypatch: pytest.MonkeyPatch, wrong: str, said: str
) -> None:
    """At once where one says what it lacks, after some tries where they die."""
    monkeypatch.setattr(pools, "MAX_STARTS", 2)
    with opened(wrong=wrong) as pool, pytest.raises(PoolLostError, match=said):
        until(lambda: pool.events(0.2), "it never comes to that")


def test_the_first_worker_loads_alone_where_it_makes_what_the_others_find() -> None:
    """The others are started once it is ready."""
    program = WorkerProgram(Obedient)
    pool = open_processes(program, 3, "obedient", first_alone=True)
    pool.events(0.0)
    assert len(pool.workers) == 1
    ready(pool, 3)
    workers: Sequence[object] = pool.workers
    assert len({worker.pid for worker in workers if isinstance(worker, LocalWorker)}) == 3
    pool.close()
