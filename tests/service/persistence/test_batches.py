"""Batches: accepted whole or not at all, read in order, ended, deleted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from service.persistence.outcomes import JobResult
from service.persistence.store import Store
from service.schemas.errors import ConflictError, NotFoundError
from service.schemas.records import BatchOptions, JobPlace, JobSpec
from tests.service.factories import diagnosis
from tests.service.persistence.makers import NOW, add, batch, claim, later, numbers, specs

SPEC = JobSpec(
    name="train",
    place=JobPlace(
        paths=("/logs/a b.log",),
        configs=("/logs/run.sh",),
        ray_dashboard="http://h:8265",
        ray_job="j1",
        spooled=True,
    ),
    nodes=4,
    gpus=32,
    gpu_hours=12.5,
    started=NOW,
    ended=later(5400),
    node_names=("gpu-1", "gpu-2"),
)


def test_that_a_batch_is_given_as_it_was_added(store: Store) -> None:
    record = batch(
        options=BatchOptions(language="zh", model=True), left_out={"too large": 3, "why": "no text"}
    )
    store.batches.add(record, specs(3))
    assert store.batches.get("B1") == record.model_copy(update={"counts": {"queued": 3}})


def test_that_a_job_is_given_as_it_was_added(store: Store) -> None:
    (key,) = store.batches.add(batch(), [SPEC])
    found = store.batches.job(key)
    assert (found.batch, found.number, found.state, found.attempts) == ("B1", 1, "queued", 0)
    assert JobSpec(**{name: getattr(found, name) for name in JobSpec.model_fields}) == SPEC


def test_that_jobs_are_numbered_from_one_in_their_order(store: Store) -> None:
    assert add(store, 3) == ["B1-1", "B1-2", "B1-3"]
    assert [job.name for job in store.batches.jobs("B1")[0]] == ["job 1", "job 2", "job 3"]


@pytest.mark.parametrize("name", ["caf\udce9.log", "a\nb.log", "日志.log", "nul\x00.log"])
def test_that_any_path_survives(store: Store, name: str) -> None:
    (key,) = store.batches.add(batch(), [JobSpec(name="job", place=JobPlace(paths=(name,)))])
    assert store.batches.job(key).place.paths == (name,)


def test_that_a_batch_without_jobs_is_done_at_once(store: Store) -> None:
    assert add(store, 0) == []
    assert store.batches.settle("B1", NOW)
    assert store.batches.get("B1").total == 0


def test_that_a_batch_whose_jobs_break_off_is_not_there(store: Store) -> None:
    def broken() -> Iterator[JobSpec]:
        yield from specs(2500)
        raise OSError("the archive is cut off")

    with pytest.raises(OSError, match="cut off"):
        store.batches.add(batch(), broken())
    with pytest.raises(NotFoundError):
        store.batches.get("B1")
    assert add(store, 1) == ["B1-1"]


def test_that_a_batch_is_not_there_before_it_is_whole(store: Store) -> None:
    seen = []

    def watched() -> Iterator[JobSpec]:
        yield from specs(1500)
        seen.append((store.batches.page()[0], claim(store), store.batches.running()))
        with pytest.raises(NotFoundError):
            store.batches.get("B1")

    store.batches.add(batch(), watched())
    assert seen == [((), [], ())]
    assert store.batches.get("B1").total == 1500


def test_that_an_id_is_given_once(store: Store) -> None:
    add(store, 2)
    with pytest.raises(ConflictError):
        add(store, 5)
    assert store.batches.get("B1").total == 2


def test_that_pages_of_batches_go_from_the_newest_to_the_oldest(store: Store) -> None:
    for number in range(1, 6):
        store.batches.add(batch(id=f"B{number}", caller="ann" if number % 2 else "bob"), specs(number))
    items, after = store.batches.page(limit=2)
    assert ([(item.id, item.total) for item in items], after) == ([("B5", 5), ("B4", 4)], "B4")
    assert [item.id for item in store.batches.page(after=after, limit=9)[0]] == ["B3", "B2", "B1"]
    assert [item.id for item in store.batches.page(caller="bob")[0]] == ["B4", "B2"]


def test_that_pages_of_jobs_go_by_number_and_state(store: Store) -> None:
    keys = add(store, 5)
    claim(store, 5)
    store.batches.finish_many("me", [JobResult(keys[1]), JobResult(keys[3])], NOW)
    items, after = store.batches.jobs("B1", limit=3)
    assert (numbers(list(items)), after) == ([1, 2, 3], 3)
    assert store.batches.jobs("B1", after=3, limit=3)[1] is None
    assert numbers(list(store.batches.jobs("B1", state="done")[0])) == [2, 4]


def test_that_results_come_in_order_and_only_of_jobs_that_are_over(store: Store) -> None:
    keys = add(store, 450)
    claim(store, 450)
    store.batches.finish_many(
        "me", [JobResult(key, diagnosis=diagnosis(headline=key)) for key in reversed(keys[:430])], NOW
    )
    store.batches.fail(keys[440], "me", "no text", None, NOW)
    found = list(store.batches.results("B1"))
    assert numbers(found) == [*range(1, 431), 441]
    assert [job.diagnosis.headline for job in found if job.diagnosis] == keys[:430]


def test_that_a_batch_settles_once_no_job_is_open(store: Store) -> None:
    keys = add(store, 2)
    claim(store, 2)
    assert store.batches.finish(keys[0], "me", now=NOW)
    assert not store.batches.settle("B1", NOW)
    store.batches.fail(keys[1], "me", "no text", None, NOW)
    assert store.batches.settle("B1", later(5))
    assert not store.batches.settle("B1", later(6))
    found = store.batches.get("B1")
    assert (found.state, found.finished, found.counts) == ("done", later(5), {"done": 1, "failed": 1})


def test_that_a_cancelled_batch_keeps_what_is_done_and_ends_the_rest(store: Store) -> None:
    keys = add(store, 3)
    claim(store, 2)
    store.batches.finish(keys[0], "me", now=NOW)
    record = store.batches.cancel("B1", later(1))
    assert (record.state, record.finished, record.counts) == (
        "cancelled",
        later(1),
        {"done": 1, "cancelled": 2},
    )
    assert store.batches.renew("me", keys, 60, later(2)) == frozenset()
    assert not store.batches.finish(keys[1], "me", now=later(2))
    assert claim(store, at=later(999)) == []
    assert store.batches.cancel("B1", later(3)).finished == later(1)


def test_that_a_batch_that_is_done_cannot_be_cancelled(store: Store) -> None:
    add(store, 0)
    store.batches.settle("B1", NOW)
    assert store.batches.cancel("B1").state == "done"


def test_that_a_deleted_batch_takes_its_jobs_with_it(store: Store) -> None:
    keys = add(store, 1200)
    claim(store, 1)
    store.batches.represent("B1", "crash", keys[0])
    store.batches.delete("B1")
    assert not store.batches.finish(keys[0], "me", now=NOW)
    assert add(store, 1) == ["B1-1"]
    assert store.batches.represent("B1", "crash", "B1-1") == "B1-1"


@pytest.mark.parametrize(
    "ask",
    [
        lambda batches: batches.get("B9"),
        lambda batches: batches.cancel("B9"),
        lambda batches: batches.delete("B9"),
        lambda batches: batches.counts("B9"),
        lambda batches: batches.jobs("B9"),
        lambda batches: list(batches.results("B9")),
        lambda batches: batches.job("B9-1"),
        lambda batches: batches.job("B1-3"),
        lambda batches: batches.job("B1-³"),
        lambda batches: batches.job("B1-99999999999999999999"),
        lambda batches: batches.job("B1"),
        lambda batches: batches.job(""),
    ],
)
def test_that_what_is_not_there_is_not_found(store: Store, ask: object) -> None:
    add(store, 2)
    assert callable(ask)
    with pytest.raises(NotFoundError):
        ask(store.batches)


def test_that_a_batch_is_restored_from_its_journal_as_it_was(store: Store) -> None:
    keys = add(store, 4)
    claim(store, 3)
    store.batches.represent("B1", "crash", keys[0])
    same = JobResult(
        keys[1], fingerprint="crash", same_as=keys[0], root_line=7, root_file="a.log", root_text="Killed"
    )
    store.batches.finish_many(
        "me", [JobResult(keys[0], fingerprint="crash", diagnosis=diagnosis()), same], NOW
    )
    store.batches.fail(keys[2], "me", "no text", None, NOW)
    jobs = list(store.batches.jobs("B1")[0])
    store.batches.delete("B1")
    assert store.batches.restore(batch(), jobs) == keys
    assert list(store.batches.jobs("B1")[0]) == jobs
    assert store.batches.represent("B1", "crash", keys[3]) == keys[0]
    assert numbers(claim(store, 9)) == [4]


def test_that_a_batch_that_was_over_is_restored_as_over(store: Store) -> None:
    record = batch(state="done", finished=later(9))
    assert store.batches.restore(record, []) == []
    assert store.batches.get("B1") == record
