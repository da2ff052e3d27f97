"""How jobs end: once, by the word of their owner, and in the place of others of the same crash."""

from __future__ import annotations

import pytest

from service.persistence.outcomes import MOST_FAILURES, JobResult
from service.persistence.store import Store
from service.schemas.errors import NotFoundError
from service.schemas.records import JobPlace, JobRecord
from tests.service.factories import diagnosis, proposal
from tests.service.persistence.makers import NOW, add, batch, claim, later, numbers, triage


def lean(store: Store, count: int = 4) -> list[str]:
    """Let all of a batch's jobs but the first end as the same crash as the first, which still runs."""
    keys = add(store, count)
    claim(store, count)
    assert {store.batches.represent("B1", "crash", key) for key in keys} == {keys[0]}
    others = [JobResult(key, fingerprint="crash", same_as=keys[0]) for key in keys[1:]]
    assert store.batches.finish_many("me", others, NOW) == frozenset(keys[1:])
    return keys


def test_that_a_result_is_kept_as_it_was_given(store: Store) -> None:
    (key,) = add(store, 1)
    claim(store)
    assert store.batches.finish(
        key,
        "me",
        fingerprint="f1",
        root_line=5_000_000_000,
        root_file="rank0.log",
        root_text="Killed",
        diagnosis=diagnosis(),
        now=later(2),
    )
    job = store.batches.job(key)
    assert (job.state, job.fingerprint, job.same_as, job.diagnosis) == ("done", "f1", None, diagnosis())
    assert (job.root_line, job.root_file, job.root_text) == (5_000_000_000, "rank0.log", "Killed")
    assert (job.finished, job.owner, job.leased_until, job.attempts) == (later(2), "", None, 1)


def test_that_nothing_ends_before_it_began_where_a_clock_was_set_back(store: Store) -> None:
    """The batch was handed in while the clock ran ahead; its jobs end in each way there is."""
    keys = add(store, 5)
    claim(store, 5)
    assert store.batches.finish(keys[0], "me", diagnosis=diagnosis(), now=later(-900))
    assert store.batches.fail(keys[1], "me", "late", None, later(-900))
    followers = [JobResult(key, fingerprint="crash", same_as=keys[2]) for key in keys[3:]]
    store.batches.represent("B1", "crash", keys[2])
    store.batches.finish_many("me", followers[:1], later(-900))
    assert [store.batches.job(key).finished for key in (keys[0], keys[1], keys[3])] == [NOW] * 3
    cancelled = store.batches.cancel("B1", later(-900))
    assert cancelled.finished == cancelled.created == NOW
    assert {store.batches.job(key).finished for key in keys} == {NOW}
    store.triages.add(triage())
    store.triages.answer("T1", diagnosis(), final=True, now=later(-900))
    assert store.triages.get("T1").finished == NOW
    assert store.triages.page()[0][0].finished == NOW


def test_that_no_result_is_written_twice(store: Store) -> None:
    (key,) = add(store, 1)
    claim(store)
    assert store.batches.finish(key, "me", diagnosis=diagnosis(), now=NOW)
    assert not store.batches.finish(key, "me", diagnosis=diagnosis(headline="Other."), now=later(1))
    assert not store.batches.fail(key, "me", "late", None, later(1))
    assert store.batches.job(key).diagnosis == diagnosis()


def test_that_only_the_owner_ends_a_job(store: Store) -> None:
    (key,) = add(store, 1)
    assert not store.batches.finish(key, "", now=NOW)
    claim(store)
    assert not store.batches.finish(key, "you", now=NOW)
    assert not store.batches.fail(key, "you", "late", None, NOW)
    assert store.batches.job(key).state == "running"


def test_that_of_many_results_those_that_are_held_are_kept(store: Store) -> None:
    keys = add(store, 1200, "B1") + add(store, 3, "B2")
    claim(store, 2000)
    store.batches.give_back("me", keys[5:6])
    kept = store.batches.finish_many("me", [JobResult(key, fingerprint=key) for key in [*keys, "B9-1"]], NOW)
    assert kept == frozenset(keys) - {keys[5]}
    assert store.batches.job("B2-3").fingerprint == "B2-3"
    assert store.batches.finish_many("me", [], NOW) == frozenset()


def test_that_a_failure_is_recorded_with_its_reason(store: Store) -> None:
    (key,) = add(store, 1)
    claim(store)
    assert store.batches.fail(key, "me", "The log is no text.", None, later(4))
    job = store.batches.job(key)
    assert (job.state, job.error, job.finished, job.diagnosis) == (
        "failed",
        "The log is no text.",
        later(4),
        None,
    )


def test_that_a_success_takes_the_reason_of_an_earlier_failure_away(store: Store) -> None:
    (key,) = add(store, 1)
    claim(store)
    store.batches.fail(key, "me", "the worker died", NOW, NOW)
    claim(store)
    store.batches.finish(key, "me", now=NOW)
    assert store.batches.job(key).error == ""


def test_that_the_first_job_of_a_crash_stands_for_it_in_its_batch(store: Store) -> None:
    keys, others = add(store, 3, "B1"), add(store, 1, "B2")
    assert store.batches.represent("B1", "crash", keys[1]) == keys[1]
    assert store.batches.represent("B1", "crash", keys[0]) == keys[1]
    assert store.batches.represent("B1", "crash", keys[1]) == keys[1]
    assert store.batches.represent("B1", "other", keys[2]) == keys[2]
    assert store.batches.represent("B2", "crash", others[0]) == others[0]


def test_that_nobody_stands_for_a_crash_of_a_deleted_batch(store: Store) -> None:
    (key,) = add(store, 1)
    store.batches.delete("B1")
    with pytest.raises(NotFoundError):
        store.batches.represent("B1", "crash", key)


def test_that_a_job_does_not_lean_on_itself(store: Store) -> None:
    (key,) = add(store, 1)
    claim(store)
    assert store.batches.finish(key, "me", same_as=key, diagnosis=diagnosis(), now=NOW)
    assert store.batches.job(key).same_as is None


def test_that_one_that_failed_is_replaced_by_the_next_that_asks(store: Store) -> None:
    keys = add(store, 3)
    claim(store, 3)
    store.batches.represent("B1", "crash", keys[0])
    store.batches.fail(keys[0], "me", "the worker died", None, NOW)
    assert store.batches.represent("B1", "crash", keys[1]) == keys[1]
    assert store.batches.represent("B1", "crash", keys[2]) == keys[1]


def test_that_one_that_waits_for_its_retry_still_stands(store: Store) -> None:
    keys = add(store, 2)
    claim(store, 2)
    store.batches.represent("B1", "crash", keys[0])
    store.batches.fail(keys[0], "me", "the worker died", later(5), NOW)
    assert store.batches.represent("B1", "crash", keys[1]) == keys[0]


def test_that_one_that_reads_differently_when_tried_again_is_replaced(store: Store) -> None:
    keys = add(store, 3)
    claim(store, 3)
    store.batches.represent("B1", "crash", keys[0])
    store.batches.finish(keys[0], "me", fingerprint="other", now=NOW)
    assert store.batches.represent("B1", "crash", keys[1]) == keys[1]


def test_that_where_one_fails_the_first_that_leans_on_it_takes_its_place(store: Store) -> None:
    keys = lean(store)
    store.batches.fail(keys[0], "me", "the worker died", None, NOW)
    jobs = [store.batches.job(key) for key in keys]
    assert [job.state for job in jobs] == ["failed", "queued", "done", "done"]
    assert [job.same_as for job in jobs] == [None, None, keys[1], keys[1]]
    assert not store.batches.settle("B1", NOW)
    assert numbers(claim(store, 9)) == [2]
    assert store.batches.represent("B1", "crash", keys[1]) == keys[1]
    assert store.batches.finish(
        keys[1], "me", fingerprint="crash", same_as=keys[1], diagnosis=diagnosis(), now=NOW
    )
    assert store.batches.settle("B1", NOW)


def test_that_a_crash_that_nobody_can_answer_does_not_go_through_all_its_jobs(store: Store) -> None:
    keys = lean(store, 10)
    for key in keys[: MOST_FAILURES - 1]:
        store.batches.fail(key, "me", "the worker died", None, NOW)
        assert len(claim(store, 9)) == 1
    store.batches.fail(keys[MOST_FAILURES - 1], "me", "the worker died", None, NOW)
    assert store.batches.counts("B1") == {"failed": 10}
    assert (
        store.batches.job(keys[9]).error
        == "3 jobs of the same crash could not be answered; the last: the worker died"
    )
    assert store.batches.settle("B1", NOW)


def test_that_a_job_that_leans_on_one_that_failed_meanwhile_is_queued_again(store: Store) -> None:
    keys = add(store, 3)
    claim(store, 3)
    for key in keys:
        store.batches.represent("B1", "crash", key)
    store.batches.fail(keys[0], "me", "the worker died", None, NOW)
    results = [
        JobResult(keys[1], fingerprint="crash", same_as=keys[0]),
        JobResult(keys[2], fingerprint="else"),
    ]
    assert store.batches.finish_many("me", results, NOW) == frozenset(keys[2:])
    (again,) = claim(store, 9)
    assert (again.id, again.attempts) == (keys[1], 1)
    assert store.batches.represent("B1", "crash", keys[1]) == keys[1]


def test_that_an_answer_is_one_step_away(store: Store) -> None:
    keys = lean(store)
    claimed = add(store, 1, "B0")
    store.batches.fail(keys[0], "me", "the worker died", None, NOW)
    # The log of the second was written on since it was first read, and tells another crash now.
    claim(store, 9)
    assert store.batches.finish(keys[1], "me", fingerprint="else", same_as=keys[2], now=NOW) is False
    assert claimed
    claim(store, 9)
    assert store.batches.finish(keys[1], "me", fingerprint="else", diagnosis=diagnosis(), now=NOW)
    assert [store.batches.job(key).same_as for key in keys] == [None, None, keys[1], keys[1]]


def test_that_a_job_with_files_of_its_own_leans_on_one_with_the_same(store: Store) -> None:
    keys = add(store, 7)
    claim(store, 7)
    files = ("", "a", "b", "a", "b", "", "c")
    found = [
        store.batches.representatives("B1", "crash", config, key)
        for config, key in zip(files, keys, strict=True)
    ]
    assert {crash for crash, _ in found} == {keys[0]}
    # The one that stands for the crash has none, so the first with each stands for those.
    assert [keys.index(answer) for _, answer in found] == [0, 1, 2, 1, 2, 0, 6]


def test_that_the_one_that_stands_for_a_crash_stands_for_its_files_too(store: Store) -> None:
    keys = add(store, 3)
    claim(store, 3)
    assert store.batches.representatives("B1", "crash", "a", keys[0]) == (keys[0], keys[0])
    assert store.batches.finish(
        keys[0], "me", fingerprint="crash", config="a", diagnosis=diagnosis(), now=NOW
    )
    assert store.batches.representatives("B1", "crash", "a", keys[1]) == (keys[0], keys[0])
    assert store.batches.representatives("B1", "crash", "b", keys[2]) == (keys[0], keys[2])


def test_that_one_whose_files_were_others_when_tried_again_stands_for_the_crash_alone(store: Store) -> None:
    keys = add(store, 2)
    claim(store, 2)
    store.batches.representatives("B1", "crash", "a", keys[0])
    assert store.batches.finish(
        keys[0], "me", fingerprint="crash", config="b", diagnosis=diagnosis(), now=NOW
    )
    assert store.batches.representatives("B1", "crash", "a", keys[1]) == (keys[0], keys[1])


def test_that_those_with_other_files_than_the_one_that_takes_the_place_are_queued_again(store: Store) -> None:
    keys = add(store, 4)
    claim(store, 4)
    for key, config in zip(keys, ("a", "", "a", ""), strict=True):
        assert store.batches.representatives("B1", "crash", config, key) == (keys[0], keys[0])
    store.batches.finish_many(
        "me",
        [
            JobResult(key, fingerprint="crash", same_as=keys[0], config=config)
            for key, config in zip(keys[1:], ("", "a", ""), strict=True)
        ],
        NOW,
    )
    store.batches.fail(keys[0], "me", "the worker died", None, NOW)
    found = [store.batches.job(key) for key in keys]
    assert [(job.state, job.same_as) for job in found] == [
        ("failed", None),
        ("queued", None),
        ("queued", None),
        ("done", keys[1]),
    ]
    claim(store, 9)
    assert store.batches.representatives("B1", "crash", "", keys[1]) == (keys[1], keys[1])
    assert store.batches.representatives("B1", "crash", "a", keys[2]) == (keys[1], keys[2])


def test_that_a_batch_put_together_again_knows_who_stands_for_which_files(store: Store) -> None:
    made = [
        JobRecord(
            id=f"B3-{number}",
            batch="B3",
            number=number,
            name="x",
            place=JobPlace(),
            state="done",
            fingerprint="crash",
            config=config,
            diagnosis=diagnosis(),
        )
        for number, config in ((1, "a"), (2, "b"))
    ] + [JobRecord(id="B3-3", batch="B3", number=3, name="x", place=JobPlace())]
    store.batches.restore(batch(id="B3"), made)
    assert store.batches.representatives("B3", "crash", "b", "B3-3") == ("B3-1", "B3-2")
    assert store.batches.representatives("B3", "crash", "", "B3-3") == ("B3-1", "B3-1")


def test_that_a_summary_reads_what_it_needs_and_no_answer(store: Store) -> None:
    keys = add(store, 4)
    claim(store, 3)
    secret = "ghp_" + "e5F6" * 9
    answer = diagnosis(headline=f"The token {secret} was used", changes=(proposal("a.b", 2), proposal("c")))
    store.batches.finish_many(
        "me",
        [
            JobResult(keys[0], fingerprint="f", diagnosis=answer),
            JobResult(keys[1], fingerprint="f", same_as=keys[0]),
        ],
        NOW,
    )
    store.batches.fail(keys[2], "me", "no text", None, NOW)
    first, second, third = store.batches.lines("B1")
    assert first.gist is not None
    assert first.gist.proposal == answer.changes[0]
    assert (first.gist.cause, first.gist.engine, secret in first.gist.headline) == (
        "disk-full",
        "composer",
        False,
    )
    assert (second.gist, second.same_as, second.number, second.finished) == (None, 1, 2, NOW)
    assert (third.state, third.error) == ("failed", "no text")
