"""Triages with their excerpt, conversation and feedback."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import pytest
from sqlalchemy import event

from corpus.message import Message
from service.persistence.store import Store
from service.persistence.triages import INTERRUPTED
from service.schemas.errors import ConflictError, NotFoundError, RequestError
from service.schemas.records import Excerpt, FeedbackRecord, LineRange, MessageRecord, TriageState
from service.settings import Settings
from tests.service.factories import diagnosis
from tests.service.persistence.makers import NOW, later, triage

EXCERPT = Excerpt(stretches=(LineRange(file="rank0.log", begin=7, lines=("one", "", "three")),), whole=False)


def test_that_a_new_triage_is_given_as_it_was_added(store: Store) -> None:
    record = triage(language="zh", configs=(("a.yaml", "x: 1\n"),), telemetry='{"gpus": 8}')
    store.triages.add(record)
    assert store.triages.get("T1", NOW) == record


def test_that_a_triage_may_be_added_with_its_answer(store: Store) -> None:
    record = triage(state="done", diagnosis=diagnosis(), finished=later(1))
    store.triages.add(record)
    assert store.triages.get("T1", NOW) == record


def test_that_an_id_is_given_once(store: Store) -> None:
    store.triages.add(triage())
    with pytest.raises(ConflictError):
        store.triages.add(triage(source="other.log"))
    assert store.triages.get("T1", NOW).source == "train.log"


def test_that_the_first_answer_leaves_the_triage_running(store: Store) -> None:
    store.triages.add(triage())
    store.triages.answer("T1", diagnosis(), final=False, now=later(1), excerpt=EXCERPT)
    found = store.triages.get("T1", later(1))
    assert (found.state, found.diagnosis, found.finished) == ("running", diagnosis(), None)
    assert store.triages.excerpt("T1") == EXCERPT


def test_that_the_final_answer_ends_it(store: Store) -> None:
    store.triages.add(triage())
    store.triages.answer("T1", diagnosis(), final=False, now=later(1), excerpt=Excerpt(whole=True))
    final = diagnosis(headline="The host ran out of memory.")
    store.triages.answer(
        "T1", final, final=True, now=later(2), excerpt=EXCERPT, configs=[("b.sh", "run")], telemetry="{}"
    )
    found = store.triages.get("T1", later(90))
    assert (found.state, found.diagnosis, found.finished) == ("done", final, later(2))
    assert (found.configs, found.telemetry, store.triages.excerpt("T1")) == (
        (("b.sh", "run"),),
        "{}",
        EXCERPT,
    )


@pytest.mark.parametrize(("answered", "state"), [(True, "done"), (False, "failed")])
def test_that_an_end_without_an_answer_keeps_the_first_one(
    store: Store, answered: bool, state: TriageState
) -> None:
    store.triages.add(triage())
    if answered:
        store.triages.answer("T1", diagnosis(), final=False, now=NOW)
    store.triages.answer("T1", None, final=True, now=later(3), error="The log is no text.")
    found = store.triages.get("T1", later(3))
    assert (found.state, found.error, found.diagnosis is not None) == (state, "The log is no text.", answered)


@pytest.mark.parametrize(("answered", "state"), [(True, "done"), (False, "failed")])
def test_that_a_triage_whose_server_was_stopped_is_over_at_its_deadline(
    store: Store, answered: bool, state: TriageState
) -> None:
    store.triages.add(triage())
    if answered:
        store.triages.answer("T1", diagnosis(), final=False, now=NOW)
    found = store.triages.get("T1", later(61))
    assert (found.state, found.error, found.finished) == (state, Message(INTERRUPTED), later(60))
    assert store.triages.page(now=later(61))[0] == (found,)
    assert store.triages.get("T1", later(59)).state == "running"


def test_that_times_are_utc_from_whatever_zone_they_come(store: Store) -> None:
    shanghai = timezone(timedelta(hours=8))
    store.triages.add(triage(created=NOW.astimezone(shanghai), deadline=later(60).replace(tzinfo=None)))
    found = store.triages.get("T1", NOW)
    assert (found.created, found.created.tzinfo, found.deadline) == (NOW, UTC, later(60))


def test_that_pages_go_from_the_newest_to_the_oldest(store: Store) -> None:
    for number in range(1, 8):
        store.triages.add(triage(id=f"T{number}"))
    seen, after = [], None
    for _ in range(3):
        items, after = store.triages.page(after=after, limit=3)
        seen.append([item.id for item in items])
    assert (seen, after) == ([["T7", "T6", "T5"], ["T4", "T3", "T2"], ["T1"]], None)


def test_that_a_last_page_that_is_full_names_no_next_one(store: Store) -> None:
    store.triages.add(triage())
    assert store.triages.page(limit=1)[1] is None
    assert store.triages.page(after="T1") == ((), None)


def test_that_ids_are_ordered_byte_by_byte(store: Store) -> None:
    for key in ("a", "B", "_", "0"):
        store.triages.add(triage(id=key))
    assert [item.id for item in store.triages.page()[0]] == ["a", "_", "B", "0"]


def test_that_a_page_can_be_of_one_caller(store: Store) -> None:
    store.triages.add(triage(id="T1", caller="ann"))
    store.triages.add(triage(id="T2", caller="bob"))
    assert [item.id for item in store.triages.page(caller="ann")[0]] == ["T1"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("TRAIN", ["T2", "T1"]),
        ("straße", ["T2"]),
        ("STRASSE train", ["T2"]),
        ("nccl-timeout", ["T1"]),
        ("hung allreduce", ["T1"]),
        ("allreduce missing", []),
        ("100%", ["T2"]),
        ("%", ["T2"]),
        ("_", []),
        ("\\", []),
        ("log\nthe", ["T1"]),
        ("  ", ["T2", "T1"]),
        ("内存", ["T2"]),
        ("x\x00y", []),
    ],
)
def test_that_a_search_wants_every_word_in_source_headline_or_cause(
    store: Store, words: str, found: list[str]
) -> None:
    store.triages.add(triage(id="T1"))
    store.triages.answer(
        "T1", diagnosis(cause="nccl-timeout", headline="The AllReduce hung."), final=True, now=NOW
    )
    store.triages.add(triage(id="T2", source="Straße/train 100%.log"))
    store.triages.answer(
        "T2", diagnosis(cause="host-oom-kill", headline="主机内存 ran out"), final=True, now=NOW
    )
    assert [item.id for item in store.triages.page(words)[0]] == found


@pytest.mark.parametrize(
    "words", ["paste " * 3000, "a" * 100_000, "% " * 3000], ids=["many", "long", "signs"]
)
def test_that_a_search_for_a_whole_page_of_words_is_answered(store: Store, words: str) -> None:
    assert store.triages.page(words)[0] == ()


def test_that_a_turn_of_a_conversation_is_kept_whole_or_not_at_all(store: Store) -> None:
    store.triages.add(triage())
    question = MessageRecord(role="user", text="why?", created=NOW)
    with pytest.raises(RequestError):
        store.triages.add_messages("T1", question, question.model_copy(update={"role": None}))
    assert store.triages.messages("T1") == ()


def test_that_a_conversation_keeps_its_order(store: Store) -> None:
    store.triages.add(triage())
    roles: tuple[Literal["user", "assistant"], ...] = ("user", "assistant", "user")
    said = [MessageRecord(role=role, text=f"turn {number}", created=NOW) for number, role in enumerate(roles)]
    for message in said:
        store.triages.add_messages("T1", message)
    assert list(store.triages.messages("T1")) == said


def test_that_feedback_is_kept_as_it_was_given(store: Store) -> None:
    store.triages.add(triage())
    given = [
        FeedbackRecord(triage="T1", caller="ann", created=NOW, right=True),
        FeedbackRecord(
            triage="T1",
            caller="bob",
            created=later(1),
            right=False,
            cause="gpu-oom",
            fix="Less batch.",
            comment="Hm.",
        ),
    ]
    for feedback in given:
        store.triages.add_feedback(feedback)
    assert list(store.triages.feedback("T1")) == given


def test_that_a_deleted_triage_takes_everything_with_it(store: Store) -> None:
    store.triages.add(triage())
    store.triages.answer("T1", diagnosis(), final=False, now=NOW, excerpt=EXCERPT)
    store.triages.add_messages("T1", MessageRecord(role="user", text="why?", created=NOW))
    store.triages.add_feedback(FeedbackRecord(triage="T1", caller="ann", created=NOW, right=True))
    store.triages.delete("T1")
    store.triages.add(triage())
    assert (store.triages.excerpt("T1"), store.triages.messages("T1"), store.triages.feedback("T1")) == (
        Excerpt(),
        (),
        (),
    )


MESSAGE = MessageRecord(role="user", text="why?", created=NOW)
OPINION = FeedbackRecord(triage="T1", caller="ann", created=NOW, right=True)


@pytest.mark.parametrize(
    "ask",
    [
        lambda triages: triages.get("T1"),
        lambda triages: triages.answer("T1", diagnosis(), final=True, now=NOW),
        lambda triages: triages.excerpt("T1"),
        lambda triages: triages.delete("T1"),
        lambda triages: triages.messages("T1"),
        lambda triages: triages.add_messages("T1", MESSAGE),
        lambda triages: triages.feedback("T1"),
        lambda triages: triages.add_feedback(OPINION),
    ],
)
def test_that_a_triage_that_is_not_there_is_not_found(store: Store, ask: object) -> None:
    assert callable(ask)
    with pytest.raises(NotFoundError, match="There is no triage T1"):
        ask(store.triages)


def test_that_a_triage_without_a_moment_is_judged_by_the_clock(store: Store) -> None:
    store.triages.add(triage(deadline=datetime.now(UTC) + timedelta(hours=1)))
    assert store.triages.get("T1").state == "running"


@pytest.mark.parametrize("words", ["", "memory rank"])
@pytest.mark.parametrize("after", [None, "T5"])
@pytest.mark.parametrize(
    ("caller", "index"), [(None, "triages_by_words"), ("ann", "triages_by_caller_words")]
)
def test_that_a_search_reads_the_words_and_no_answers(
    file_settings: Settings, words: str, after: str | None, caller: str | None, index: str
) -> None:
    asked: list[tuple[str, Any]] = []
    with Store.open(file_settings) as store:
        event.listen(store.database.engine, "before_cursor_execute", lambda *given: asked.append(given[2:4]))
        store.triages.page(words, after, 200, caller)
        ((statement, values),) = [one for one in asked if one[0].startswith("SELECT")]
        with store.database.read() as connection:
            plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)]
    # The rows themselves are looked up by their ids, at most a page of them.
    assert plan[0].startswith("SEARCH triages USING INDEX sqlite_autoindex_triages_1 (id=?)")
    assert all("COVERING INDEX" in step for step in plan[2:])
    assert not words or f"COVERING INDEX {index}" in plan[2]
