"""The pool: tasks go to processes, and a process that dies or hangs takes nothing along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from service.schemas.errors import BusyError, WorkerLostError
from service.schemas.events import Progress, TriageFailed
from service.settings import Settings
from service.workers import pool as pools
from service.workers.pool import ProcessPool, WorkerMessage
from service.workers.tasks import Submission
from tests.service.workers import faulty
from tests.service.workers.faulty import UNTIL
from tests.waiting import PATIENCE, until


@pytest.fixture
def pool(make_settings: Callable[..., Settings]) -> Iterator[ProcessPool]:
    """A pool of one process that does as it is told, with room for two more tasks."""
    made = ProcessPool(replace(make_settings(), queue=2), 1, faulty.serve)
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPool]:
    """Such a pool for all tests that leave it as it was: a process takes most of a second to start."""
    settings = Settings(home=tmp_path_factory.mktemp("pool") / "home", embedding_model="hash", queue=2)
    made = ProcessPool(settings, 1, faulty.serve)
    made.start()
    yield made
    made.close()


def told(pool: ProcessPool, text: str, seconds: float = PATIENCE) -> list[WorkerMessage]:
    """Give all that a task answers."""
    return list(pool.submit(Submission("log", text, id="1"), seconds))


def pid(messages: list[WorkerMessage]) -> int:
    """Give the process that answered."""
    (message,) = messages
    assert isinstance(message, Progress)
    return message.bytes


def failure(messages: list[WorkerMessage]) -> TriageFailed:
    """Give the failure that a task ended with."""
    assert isinstance(messages[-1], TriageFailed)
    return messages[-1]


def test_that_one_process_answers_task_after_task(lasting: ProcessPool) -> None:
    assert pid(told(lasting, "one")) == pid(told(lasting, "two"))


@pytest.mark.long
def test_that_a_process_that_dies_ends_only_its_task(pool: ProcessPool) -> None:
    before = pid(told(pool, "one"))
    assert failure(told(pool, "die")).type == "WorkerLost"
    assert pid(told(pool, "two")) != before


@pytest.mark.long
def test_that_a_task_past_its_deadline_is_ended_and_the_next_is_answered(pool: ProcessPool) -> None:
    pid(told(pool, "one"))
    started = time.monotonic()
    failed = failure(told(pool, "hang", seconds=0.5))
    assert (failed.type, failed.status) == ("Late", 504)
    assert time.monotonic() - started < PATIENCE / 2
    assert pid(told(pool, "two"))


def test_that_waiting_counts_against_the_deadline(lasting: ProcessPool, tmp_path: Path) -> None:
    pid(told(lasting, "one"))
    first = lasting.submit(Submission("log", f"{UNTIL}{tmp_path / 'end'}", id="1"), PATIENCE)
    second = lasting.submit(Submission("log", "x", id="2"), 0.1)
    time.sleep(0.2)  # its deadline passes while it waits
    (tmp_path / "end").touch()
    assert failure(list(second)).type == "Late"
    assert pid(list(first))


def test_that_one_task_too_many_is_refused_with_the_time_to_wait_and_later_taken(
    lasting: ProcessPool, tmp_path: Path
) -> None:
    pid(told(lasting, "one"))
    running = [
        lasting.submit(Submission("log", f"{UNTIL}{tmp_path / 'end'}", id=str(number)), PATIENCE)
        for number in range(3)
    ]
    with pytest.raises(BusyError) as refused:
        lasting.submit(Submission("log", "x", id="4"), PATIENCE)
    assert refused.value.status == 429
    assert refused.value.wait is not None
    assert refused.value.wait >= 1
    (tmp_path / "end").touch()
    assert all(pid(list(handle)) for handle in running)
    assert pid(told(lasting, "x"))


def test_that_what_is_to_be_kept_is_kept_also_where_nobody_listens(lasting: ProcessPool) -> None:
    kept: list[WorkerMessage] = []
    lasting.submit(Submission("log", "one", id="1"), PATIENCE, kept.append)
    pid(told(lasting, "two"))  # the one process has done the first by then; a thread keeps what it said
    until(lambda: kept, "the first is kept")
    assert len(kept) == 1


def test_that_a_task_that_nobody_wants_any_more_gives_its_place_to_others(
    lasting: ProcessPool, tmp_path: Path
) -> None:
    pid(told(lasting, "one"))
    kept: list[WorkerMessage] = []
    seen: list[WorkerMessage] = []
    begun = lasting.submit(Submission("log", f"{UNTIL}{tmp_path / 'end'}", id="begun"), PATIENCE, seen.append)
    until(lambda: seen, "the task has begun")
    forsaken = lasting.submit(Submission("log", "x", id="forsaken"), PATIENCE, kept.append)
    other = lasting.submit(Submission("log", "x", id="other"), PATIENCE)
    for name in ("forsaken", "forsaken", "begun", "nobody"):
        lasting.withdraw(name)
    assert lasting.waiting == 2
    (tmp_path / "end").touch()
    assert pid(told(lasting, "x"))
    assert (failure(list(forsaken)).type, failure(kept).type) == ("Abandoned", "Abandoned")
    assert pid(list(begun)) == pid(list(other))
    assert lasting.waiting == 0


def test_that_closing_answers_the_task_that_runs(pool: ProcessPool) -> None:
    pid(told(pool, "one"))
    seen: list[WorkerMessage] = []
    handle = pool.submit(Submission("log", "hang", id="1"), PATIENCE, seen.append)
    until(lambda: seen, "the task has begun")
    pool.close()
    assert "stopping" in failure(list(handle)).error


def test_that_closing_answers_the_tasks_that_wait_and_takes_no_more(pool: ProcessPool) -> None:
    pid(told(pool, "one"))
    seen: list[WorkerMessage] = []
    handles = [
        pool.submit(Submission("log", "hang", id=str(number)), PATIENCE, seen.append) for number in range(3)
    ]
    until(lambda: seen, "a task has begun")
    pool.close()
    assert all("stopping" in failure(list(handle)).error for handle in handles)
    with pytest.raises(WorkerLostError):
        pool.submit(Submission("log", "x", id="4"), PATIENCE)


def test_that_a_pool_says_what_it_lacks(make_settings: Callable[..., Settings]) -> None:
    pool = ProcessPool(make_settings(), 1, faulty.unable)
    assert pool.failure
    pool.start()
    until(lambda: pool.failure == "There is no index.", "the pool says what it lacks")
    pool.close()


def test_that_the_pool_outlives_what_cannot_be_kept_and_what_cannot_be_sent(lasting: ProcessPool) -> None:
    def full(_message: WorkerMessage) -> None:
        raise ValueError("no room")

    assert pid(list(lasting.submit(Submission("log", "x", id="1"), PATIENCE, full)))
    lock = threading.Lock()
    unsendable = Submission("log", lock, id="2")  # type: ignore[arg-type]  # no process can be sent it
    assert failure(list(lasting.submit(unsendable, PATIENCE))).type == "Unexpected"
    assert pid(told(lasting, "x"))
    assert lasting.waiting == 0


def test_that_a_message_that_cannot_be_read_ends_nothing(lasting: ProcessPool) -> None:
    assert pid(told(lasting, "garble"))
    assert pid(told(lasting, "x"))


def test_that_a_process_that_died_in_its_idle_time_costs_no_task(pool: ProcessPool) -> None:
    before = pid(told(pool, "one"))
    os.kill(before, signal.SIGKILL)
    until(lambda: not runs(before), "the process is gone")
    assert pid(told(pool, "two")) != before


@pytest.mark.parametrize("serve", [faulty.missing, faulty.crashing])
def test_that_what_was_missing_at_the_start_is_looked_for_again_without_a_task(
    make_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch, serve: Callable[..., None]
) -> None:
    monkeypatch.setattr(pools, "AGAIN", 0.3)
    settings = make_settings()
    pool = ProcessPool(settings, 1, serve)
    pool.start()
    settings.home.mkdir()
    until(lambda: not pool.failure, "it comes to that")
    assert pid(told(pool, "x"))
    pool.close()


def test_that_a_pool_without_processes_does_not_hold_its_tasks(
    make_settings: Callable[..., Settings],
) -> None:
    pool = ProcessPool(make_settings(), 1, faulty.crashing)
    pool.start()
    failed = failure(told(pool, "x"))
    assert (failed.status, failed.retry_after) == (503, 5)
    pool.close()


def test_that_what_is_kept_slowly_holds_up_neither_other_tasks_nor_the_end_of_the_pool(
    pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "CLOSING", 0.5)
    held = threading.Event()

    def slow(_message: WorkerMessage) -> None:
        held.wait(PATIENCE)

    handle = pool.submit(Submission("log", "x", id="1"), PATIENCE, slow)
    assert pid(told(pool, "two"))
    assert pool.waiting == 1
    pool.close()
    held.set()
    assert pid(list(handle))
    assert pool.waiting == 0


def test_that_a_refusal_while_the_server_stops_may_be_tried_again(pool: ProcessPool) -> None:
    pool.close()
    with pytest.raises(WorkerLostError) as refused:
        pool.submit(Submission("log", "x", id="1"), PATIENCE)
    assert (refused.value.status, refused.value.wait) == (503, 5)


def test_that_a_worker_in_a_hopeless_log_goes_with_a_server_that_is_killed() -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.service.workers.faulty"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    worker = int(server.stdout.readline())
    server.kill()
    server.wait()
    server.stdout.close()
    until(lambda: not runs(worker), "the worker is gone")


def runs(process: int) -> bool:
    """Tell whether a process runs; one that only waits to be reaped does not.

    While threads of a killed process still end, its first thread is a zombie that nobody can reap yet.
    """
    folder = Path(f"/proc/{process}")
    try:
        state = (folder / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
        return state != "Z" or len(list((folder / "task").iterdir())) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False
