"""Claims: under a lease, in order, fair between batches."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from service.persistence.leases import BatchLoad, shares
from service.persistence.store import Store
from service.settings import Settings
from tests.service.persistence.makers import NOW, add, batch, claim, later, numbers, specs
from tests.tables import each_row


def test_that_a_claim_takes_the_first_queued_jobs_for_its_owner(store: Store) -> None:
    add(store, 5)
    jobs = claim(store, 3, lease=30)
    assert numbers(jobs) == [1, 2, 3]
    assert {(job.state, job.owner, job.attempts, job.leased_until) for job in jobs} == {
        ("running", "me", 1, later(30))
    }
    assert jobs == [store.batches.job(job.id) for job in jobs]
    assert numbers(claim(store, 3, owner="you")) == [4, 5]
    assert claim(store, 3) == []


@pytest.mark.parametrize("count", [0, -1])
def test_that_a_claim_of_nothing_takes_nothing(store: Store, count: int) -> None:
    add(store, 1)
    assert claim(store, count) == []


def test_that_a_claim_can_be_of_one_batch(store: Store) -> None:
    add(store, 2, "B1")
    add(store, 2, "B2")
    assert {job.batch for job in store.batches.claim("me", 9, 60, NOW, batch="B2")} == {"B2"}
    assert store.batches.claim("me", 9, 60, NOW, batch="B9") == []


def test_that_a_claim_reads_none_of_the_jobs_of_batches_that_are_over(file_settings: Settings) -> None:
    """It comes every few jobs and keeps other writers waiting, and old batches hold most of the jobs."""
    asked: list[tuple[str, Any]] = []
    with Store.open(file_settings) as store:
        add(store, 3)
        event.listen(store.database.engine, "before_cursor_execute", lambda *given: asked.append(given[2:4]))
        assert numbers(claim(store, 2)) == [1, 2]
        with store.database.read() as connection:
            plans = [
                row[3]
                for statement, values in list(asked)
                if statement.startswith(("SELECT", "UPDATE"))
                for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
            ]
    assert [row for row in plans if "SEARCH jobs" in row]
    assert not [row for row in plans if "SCAN jobs" in row]


def test_that_a_job_whose_lease_ran_out_is_claimed_again_before_queued_ones(store: Store) -> None:
    keys = add(store, 3)
    claim(store, 1, lease=10)
    assert numbers(claim(store, 1, owner="you", at=later(9))) == [2]
    (again,) = claim(store, 1, owner="you", at=later(10))
    assert (again.id, again.owner, again.attempts) == (keys[0], "you", 2)
    assert not store.batches.finish(keys[0], "me", now=later(11))
    assert store.batches.finish(keys[0], "you", now=later(11))


def test_that_a_renewed_lease_runs_from_then(store: Store) -> None:
    keys = add(store, 3)
    claim(store, 2, lease=10)
    assert store.batches.renew("me", keys, 10, later(8)) == frozenset(keys[:2])
    assert numbers(claim(store, 3, owner="you", at=later(12))) == [3]
    assert numbers(claim(store, 3, owner="you", at=later(18))) == [1, 2]
    assert store.batches.renew("me", keys, 10, later(19)) == frozenset()
    assert store.batches.renew("me", [], 10, later(19)) == frozenset()


def test_that_a_lease_that_ran_out_is_renewed_while_nobody_took_the_job(store: Store) -> None:
    keys = add(store, 1)
    claim(store, 1, lease=10)
    assert store.batches.renew("me", keys, 10, later(50)) == frozenset(keys)


def test_that_a_job_waits_until_its_retry_is_due(store: Store) -> None:
    (key,) = add(store, 1)
    claim(store)
    assert store.batches.fail(key, "me", "the worker died", later(30), NOW)
    assert claim(store, at=later(29)) == []
    (again,) = claim(store, at=later(30))
    assert (again.attempts, again.not_before, again.error) == (2, None, "the worker died")


def test_that_what_is_given_back_is_queued_as_if_not_tried(store: Store) -> None:
    keys = add(store, 3)
    claim(store, 2)
    claim(store, 1, owner="you")
    assert store.batches.give_back("me", [keys[0], keys[2]]) == 1
    assert store.batches.give_back("me") == 1
    assert [(job.number, job.attempts) for job in claim(store, 9)] == [(1, 1), (2, 1)]


@each_row(
    ("loads", "count", "given"),
    [
        ([("B1", 9, 0, 0)], 4, {"B1": 4}),
        ([("B1", 9, 0, 0), ("B2", 9, 0, 0)], 4, {"B1": 2, "B2": 2}),
        ([("B1", 9, 0, 0), ("B2", 9, 0, 0)], 1, {"B1": 1}),
        ([("B1", 9, 0, 1), ("B2", 9, 0, 0)], 1, {"B2": 1}),
        ([("B1", 9, 0, 8), ("B2", 9, 0, 0)], 4, {"B2": 4}),
        ([("B1", 9, 0, 8), ("B2", 1, 0, 0)], 4, {"B1": 3, "B2": 1}),
        ([("B1", 9, 0, 8), ("B2", 0, 1, 0)], 4, {"B1": 3, "B2": 1}),
        ([("B1", 0, 0, 0), ("B2", 9, 0, 0)], 4, {"B2": 4}),
        ([("B1", 1, 0, 0), ("B2", 1, 0, 0)], 4, {"B1": 1, "B2": 1}),
        ([], 4, {}),
    ],
)
def test_that_the_next_job_goes_to_the_batch_that_holds_least(
    loads: list[tuple[str, int, int, int]], count: int, given: dict[str, int]
) -> None:
    assert shares([BatchLoad(*row) for row in loads], count) == given


def test_that_a_small_batch_does_not_wait_for_a_large_one(store: Store) -> None:
    add(store, 1000, "B1")
    first = claim(store, 8)
    add(store, 3, "B2")
    second = claim(store, 8)
    assert {job.batch for job in first} == {"B1"}
    assert numbers([job for job in second if job.batch == "B2"]) == [1, 2, 3]


def test_that_what_a_lost_owner_holds_does_not_count_against_its_batch(store: Store) -> None:
    add(store, 9, "B1")
    claim(store, 4, owner="lost", lease=10)
    add(store, 9, "B2")
    assert [job.id for job in claim(store, 2, at=later(60))] == ["B1-1", "B2-1"]


def test_that_a_batch_that_is_over_is_not_claimed_from(store: Store) -> None:
    store.batches.add(batch(state="cancelled"), specs(2))
    assert claim(store) == []


def test_that_running_batches_are_given_oldest_first(store: Store) -> None:
    for key in ("B3", "B1", "B2"):
        add(store, 1, key)
    store.batches.cancel("B2")
    assert store.batches.running() == ("B1", "B3")
