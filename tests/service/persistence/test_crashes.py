"""Crashes of a kind among the triages: counted, noted, and held against new logs."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, insert, select

from service.persistence.crashes import EVERYBODY, TriageScope
from service.persistence.schema import TRIAGES
from service.persistence.store import Store
from service.schemas.diagnosis import UNKNOWN_CAUSE
from service.schemas.records import CrashNoteRecord, CrashState, FeedbackRecord, Recurrence
from service.settings import Settings
from tests.service.factories import diagnosis
from tests.service.persistence.makers import NOW, later, triage


def test_that_earlier_triages_of_a_crash_are_counted(store: Store) -> None:
    """Those before it alone, of all or of one caller; the fix that was noted last is told."""
    crash = diagnosis(fingerprint="ab12")
    for number, caller in enumerate(("ann", "ann", "bob", "ann"), 1):
        store.triages.add(triage(id=f"T{number}", caller=caller, created=later(number), diagnosis=crash))
    store.triages.add(triage(id="T0", created=later(-9), diagnosis=diagnosis(fingerprint="other")))
    for name, fix in (("T1", "more memory"), ("T2", ""), ("T3", "a newer driver")):
        store.triages.add_feedback(
            FeedbackRecord(triage=name, caller="ann", created=NOW, right=True, fix=fix)
        )
    of_all = Recurrence(
        times=3,
        first=later(1),
        last=later(3),
        triage="T3",
        fix="a newer driver",
        judged="disk-full",
        job="train.log",
    )
    assert store.crashes.earlier("T4", "ab12") == of_all
    more = {"times": 2, "last": later(2), "triage": "T2", "fix": "more memory"}
    assert store.crashes.earlier("T4", "ab12", TriageScope("ann")) == of_all.model_copy(update=more)
    assert store.crashes.earlier("T1", "ab12") is None
    assert store.crashes.earlier("T4", "") is None
    wrong = FeedbackRecord(triage="T2", caller="ann", created=NOW, right=False, cause="disk-slow")
    store.triages.add_feedback(wrong)
    store.triages.add_feedback(wrong.model_copy(update={"cause": None}))
    found = store.crashes.earlier("T4", "ab12")
    assert found is not None
    assert found.judged == "disk-slow"


def test_that_a_final_answer_is_found_by_its_crash(store: Store) -> None:
    """The first answer's fingerprint gives way to the final one's."""
    store.triages.add(triage())
    store.triages.answer("T1", diagnosis(fingerprint="ab12"), final=False, now=NOW)
    store.triages.answer("T1", diagnosis(fingerprint="cd34"), final=True, now=NOW)
    assert store.crashes.earlier("T2", "ab12") is None
    found = store.crashes.earlier("T2", "cd34")
    assert found is not None
    assert (found.times, found.triage) == (1, "T1")


def noted(state: CrashState, minute: float, caller: str = "ann") -> CrashNoteRecord:
    """Make a note on the crash `ab12`."""
    return CrashNoteRecord(
        fingerprint="ab12", caller=caller, created=later(minute), state=state, owner="bob", fixed_by="#812"
    )


def test_that_the_latest_note_on_a_crash_holds_and_one_that_comes_again_is_back(store: Store) -> None:
    """What was called fixed and came again is told so; who may not see its triages sees no note either."""
    crash = diagnosis(fingerprint="ab12")
    store.triages.add(triage(id="T1", caller="ann", created=later(1), diagnosis=crash))
    store.crashes.note(noted("ignored", 2))
    store.crashes.note(noted("fixed", 3))
    found = store.crashes.get("ab12")
    assert found is not None
    assert (found.note, found.is_back) == (noted("fixed", 3), False)
    store.triages.add(triage(id="T2", caller="ann", created=later(9), source="b.log", diagnosis=crash))
    found = store.crashes.get("ab12", TriageScope("ann"))
    assert found is not None
    assert (found.times, found.jobs, found.is_back) == (2, ("b.log", "train.log"), True)
    seen = store.crashes.earlier("T2", "ab12")
    assert seen is not None
    assert (seen.note, seen.is_back) == (noted("fixed", 3), True)
    assert store.crashes.get("ab12", TriageScope("eve")) is None


def test_that_crashes_are_listed_once_each_the_latest_first(store: Store) -> None:
    """A page goes on where the last one stopped; what failed of nothing is none."""
    for number, crash in enumerate(("a1", "b2", "a1", "", "c3"), 1):
        store.triages.add(
            triage(id=f"T{number}", created=later(number), diagnosis=diagnosis(fingerprint=crash))
        )
    page, following = store.crashes.page(limit=2)
    assert [(crash.fingerprint, crash.times) for crash in page] == [("c3", 1), ("a1", 2)]
    rest, end = store.crashes.page(following, limit=2)
    assert ([crash.fingerprint for crash in rest], end) == (["b2"], None)
    assert [crash.fingerprint for crash in store.crashes.since(later(3), TriageScope())] == ["c3", "a1"]
    assert set(store.crashes.among(["a1", "zz", ""])) == {"a1"}


def test_that_a_channel_sees_its_own_crashes_alone(store: Store) -> None:
    """What was asked in one channel of Slack is nothing to another, whoever asked."""
    crash = diagnosis(fingerprint="ab12")
    for number, channel in enumerate(("C1", "C2", "C1"), 1):
        store.triages.add(triage(id=f"T{number}", caller=f"U{number}", channel=channel, diagnosis=crash))
    found = store.crashes.get("ab12", TriageScope(channel="C1"))
    assert found is not None
    assert found.times == 2
    store.crashes.note(noted("fixed", 3), "C2")
    again = store.crashes.get("ab12", TriageScope(channel="C1"))
    assert again is not None
    assert again.note is None


def test_that_what_persons_confirmed_is_given_once_a_crash(store: Store) -> None:
    """The last word on a crash counts; that the log does not tell is no cause."""
    for number, (crash, cause) in enumerate(
        (("a1", "disk-full"), ("a1", "disk-full"), ("b2", UNKNOWN_CAUSE)), 1
    ):
        store.triages.add(triage(id=f"T{number}", diagnosis=diagnosis(fingerprint=crash, cause=cause)))
    for name, right, cause in (("T1", True, None), ("T2", False, "disk-slow"), ("T3", True, None)):
        store.triages.add_feedback(
            FeedbackRecord(triage=name, caller="ann", created=NOW, right=right, cause=cause)
        )
    found = store.crashes.confirmed(TriageScope())
    assert [(item.fingerprint, item.cause, item.on) for item in found] == [("a1", "disk-slow", NOW)]
    assert store.crashes.confirmed(TriageScope("eve")) == ()


def confirmed_steps(store: Store, scope: TriageScope) -> int:
    """Count SQLite's own steps for what persons confirmed, by hundreds."""
    steps: list[None] = []

    def watch(_run: object, cursor: sqlite3.Cursor, *_rest: object) -> None:
        # What it gives is whether to break off.
        cursor.connection.set_progress_handler(lambda: steps.append(None), 100)

    event.listen(store.database.engine, "before_cursor_execute", watch)
    store.crashes.confirmed(scope)
    event.remove(store.database.engine, "before_cursor_execute", watch)
    return len(steps)


@pytest.mark.parametrize("scope", [TriageScope("key-1"), TriageScope(channel="C1"), EVERYBODY])
def test_that_what_persons_confirmed_costs_no_more_the_more_triages_there_are(
    file_settings: Settings, scope: TriageScope
) -> None:
    """Each log that is handed in asks for it: read through, the triages would fill memory, and take time."""
    with Store.open(file_settings) as store:
        for number in range(400):
            crash = diagnosis(fingerprint=f"{number:02}")
            store.triages.add(triage(id=f"T{number:03}", channel="C1", diagnosis=crash))
        store.triages.add_feedback(FeedbackRecord(triage="T007", caller="ann", created=NOW, right=True))
        assert len(store.crashes.confirmed(scope)) == 1
        assert confirmed_steps(store, scope) <= 5


# How often one crash came, among how many triages.
TIMES, TRIAGES_KEPT = 1500, 6000


@pytest.fixture
def crowded(store: Store) -> Store:
    """A store of many triages, a fourth of them of the crash `ab12`, one of which was judged."""
    store.triages.add(triage(id="T0000", channel="C1", diagnosis=diagnosis(fingerprint="ab12")))
    with store.database.write() as connection:
        row = connection.execute(select(TRIAGES)).mappings().one()
        of_it = range(0, TRIAGES_KEPT, TRIAGES_KEPT // TIMES)
        rows = [
            {**row, "id": f"T{number:04}", "fingerprint": "ab12" if number in of_it else f"{number}"}
            for number in range(1, TRIAGES_KEPT)
        ]
        connection.execute(insert(TRIAGES), rows)
    store.triages.add_feedback(
        FeedbackRecord(triage="T0004", caller="ann", created=NOW, right=True, fix="more memory")
    )
    if not store.database.file:
        options = {"isolation_level": "AUTOCOMMIT"}
        with store.database.engine.connect().execution_options(**options) as connection:
            # As the server itself does by and by.
            connection.exec_driver_sql("VACUUM ANALYZE")
    return store


def triages_read(store: Store, ask: Callable[[], object]) -> float:
    """Count the rows of triages that are read for an answer: by PostgreSQL itself, or by SQLite's pages."""
    if store.database.file:
        # Connections that hold no page yet.
        store.database.engine.dispose()
        before = bytes_read()
        ask()
        return (bytes_read() - before) / 4096
    counts: list[int] = []

    def watch(connection: Connection, *_rest: object) -> None:
        cursor = connection.connection.cursor()
        cursor.execute(
            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'triages'"
        )
        counts.extend(count for (count,) in cursor.fetchall())

    for moment in ("before_cursor_execute", "after_cursor_execute"):
        event.listen(store.database.engine, moment, watch)
    ask()
    for moment in ("before_cursor_execute", "after_cursor_execute"):
        event.remove(store.database.engine, moment, watch)
    # What earlier transactions of the connection read may be among them.
    return counts[-1] - counts[0]


def bytes_read() -> int:
    """Give how many bytes this thread has read so far."""
    told = Path("/proc/thread-self/io").read_text()
    return int(told.split("rchar:")[1].split()[0])


@pytest.mark.parametrize("scope", [TriageScope("key-1"), TriageScope(channel="C1"), EVERYBODY])
def test_that_of_a_crash_that_came_often_few_triages_are_read(crowded: Store, scope: TriageScope) -> None:
    """They are counted in an index; of the rows, each of which holds an answer, the newest are read."""
    found = crowded.crashes.earlier("T9999", "ab12", scope)
    assert found is not None
    assert (found.times, found.fix, found.judged) == (TIMES, "more memory", "disk-full")
    assert crowded.crashes.among(["ab12"], scope)["ab12"].times == TIMES
    assert triages_read(crowded, lambda: crowded.crashes.earlier("T9999", "ab12", scope)) < TIMES / 10
    assert triages_read(crowded, lambda: crowded.crashes.among(["ab12"], scope)) < TIMES / 10


def test_that_feedback_goes_with_its_triage_to_another_crash(store: Store) -> None:
    """What was said of the first answer stands where the final one is of another crash."""
    store.triages.add(triage())
    store.triages.answer("T1", diagnosis(fingerprint="ab12"), final=False, now=NOW)
    store.triages.add_feedback(
        FeedbackRecord(triage="T1", caller="ann", created=NOW, right=True, fix="more memory")
    )
    store.triages.answer("T1", diagnosis(fingerprint="cd34"), final=True, now=NOW)
    found = store.crashes.earlier("T2", "cd34")
    assert found is not None
    assert found.fix == "more memory"
    assert store.triages.feedback("T1")[0].fix == "more memory"


def test_that_a_note_goes_with_the_last_triage_of_its_crash(store: Store) -> None:
    store.triages.add(triage(id="T1", state="done", diagnosis=diagnosis(fingerprint="ab12")))
    store.crashes.note(noted("fixed", 3))
    store.retention.forget(NOW, later(1))
    assert store.crashes.get("ab12") is not None
    store.retention.forget(later(5), later(6))
    store.triages.add(triage(id="T2", diagnosis=diagnosis(fingerprint="ab12")))
    again = store.crashes.get("ab12")
    assert again is not None
    assert again.note is None
