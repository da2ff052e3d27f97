"""The pool: tasks go to processes, and a process that dies or hangs takes nothing along."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from service.errors import BusyError, WorkerLostError
from service.events import Failed, Progress
from service.settings import Settings
from service.workers.pool import Message, Pool
from service.workers.tasks import TriageTask
from tests.service.workers import faulty


@pytest.fixture
def pool(make_settings: Callable[..., Settings]) -> Iterator[Pool]:
    """A pool of one process that does as it is told, with room for two more tasks."""
    made = Pool(replace(make_settings(), queue=2), 1, faulty.serve)
    made.start()
    yield made
    made.close()


def told(pool: Pool, text: str, seconds: float = 30) -> list[Message]:
    """Give all that a task answers."""
    return list(pool.submit(TriageTask("1", "log", text), seconds))


def pid(messages: list[Message]) -> int:
    """Give the process that answered."""
    (message,) = messages
    assert isinstance(message, Progress)
    return message.bytes


def failure(messages: list[Message]) -> Failed:
    """Give the failure that a task ended with."""
    assert isinstance(messages[-1], Failed)
    return messages[-1]


def test_that_one_process_answers_task_after_task(pool: Pool) -> None:
    assert pid(told(pool, "one")) == pid(told(pool, "two"))


def test_that_a_process_that_dies_ends_only_its_task(pool: Pool) -> None:
    before = pid(told(pool, "one"))
    assert failure(told(pool, "die")).type == "WorkerLost"
    assert pid(told(pool, "two")) != before


def test_that_a_task_past_its_deadline_is_ended_and_the_next_is_answered(pool: Pool) -> None:
    pid(told(pool, "one"))
    started = time.monotonic()
    failed = failure(told(pool, "hang", seconds=0.5))
    assert (failed.type, failed.status) == ("Late", 504)
    assert time.monotonic() - started < 10
    assert pid(told(pool, "two"))


def test_that_waiting_counts_against_the_deadline(pool: Pool) -> None:
    pid(told(pool, "one"))
    first = pool.submit(TriageTask("1", "log", "slow"), 30)
    second = pool.submit(TriageTask("2", "log", "x"), 0.1)
    assert failure(list(second)).type == "Late"
    assert pid(list(first))


def test_that_one_task_too_many_is_refused_with_the_time_to_wait_and_later_taken(pool: Pool) -> None:
    pid(told(pool, "one"))
    running = [pool.submit(TriageTask(str(number), "log", "slow"), 30) for number in range(3)]
    with pytest.raises(BusyError) as refused:
        pool.submit(TriageTask("4", "log", "x"), 30)
    assert refused.value.status == 429
    assert refused.value.wait is not None
    assert refused.value.wait >= 1
    assert all(pid(list(ticket)) for ticket in running)
    assert pid(told(pool, "x"))


def test_that_what_is_to_be_kept_is_kept_also_where_nobody_listens(pool: Pool) -> None:
    kept: list[Message] = []
    pool.submit(TriageTask("1", "log", "one"), 30, kept.append)
    pid(told(pool, "two"))  # the one process has done the first by then
    assert len(kept) == 1


def test_that_closing_answers_the_task_that_runs(pool: Pool) -> None:
    pid(told(pool, "one"))
    ticket = pool.submit(TriageTask("1", "log", "hang"), 30)
    time.sleep(0.2)
    pool.close()
    assert "stopping" in failure(list(ticket)).error


def test_that_closing_answers_the_tasks_that_wait_and_takes_no_more(pool: Pool) -> None:
    pid(told(pool, "one"))
    tickets = [pool.submit(TriageTask(str(number), "log", "hang"), 30) for number in range(3)]
    time.sleep(0.2)
    pool.close()
    assert all("stopping" in failure(list(ticket)).error for ticket in tickets)
    with pytest.raises(WorkerLostError):
        pool.submit(TriageTask("4", "log", "x"), 30)


def test_that_a_pool_says_what_it_lacks(make_settings: Callable[..., Settings]) -> None:
    pool = Pool(make_settings(), 1, faulty.unable)
    assert pool.wrong
    pool.start()
    deadline = time.monotonic() + 20
    while pool.wrong != "There is no index." and time.monotonic() < deadline:
        time.sleep(0.05)
    assert pool.wrong == "There is no index."
    pool.close()
