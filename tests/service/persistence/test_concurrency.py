"""Many at once: threads of a process, and processes."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import pytest
from sqlalchemy import Connection, update

from service.persistence.schema import JOBS
from service.persistence.store import Store
from service.schemas.records import AuditRecord, MessageRecord
from service.settings import Settings
from tests.service.persistence.contenders import at_once, open_once, work_off
from tests.service.persistence.makers import NOW, add, triage
from tests.waiting import PATIENCE

# Servers and processes of their own: `make test-all` runs them.
pytestmark = pytest.mark.long


def test_that_processes_share_the_work_and_nothing_is_done_twice(settings: Settings) -> None:
    with Store.open(settings) as store:
        keys = add(store, 300, "B1") + add(store, 60, "B2")
        answers = at_once(work_off, [(settings, "a"), (settings, "b"), (settings, "c")])
        done = [key for finished, _, _ in answers for key in finished]
        assert sorted(done) == sorted(keys)
        assert store.batches.settle("B1", NOW)
        assert store.batches.settle("B2", NOW)
        assert sum(sum(first) for _, first, _ in answers) == 40
        jobs = [*store.batches.results("B1"), *store.batches.results("B2")]
        assert len([job for job in jobs if job.diagnosis]) == 20
        answered = {job.id for job in jobs if job.diagnosis}
        assert {job.same_as for job in jobs if job.same_as} == answered


def test_that_processes_that_start_at_once_migrate_once(file_settings: Settings) -> None:
    assert at_once(open_once, [(file_settings,)] * 3) == [""] * 3
    with closing(sqlite3.connect(file_settings.home / "whycrash.db")) as connection:
        assert connection.execute("SELECT count(*) FROM alembic_version").fetchone() == (1,)


def test_that_processes_that_start_at_once_migrate_a_server_once(server_settings: Settings) -> None:
    assert at_once(open_once, [(server_settings,)] * 3) == [""] * 3


def test_that_threads_write_and_read_together(store: Store) -> None:
    def chat(number: int) -> None:
        key = f"T{number:03}"
        store.triages.add(triage(id=key))
        for turn in range(5):
            store.triages.add_messages(key, MessageRecord(role="user", text=f"{key} {turn}", created=NOW))
            store.audit.add(AuditRecord(at=NOW, actor=key, action="ask", target=key))
            store.triages.page(limit=3, now=NOW)

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(chat, range(24)))
    assert len(store.triages.page(limit=99)[0]) == 24
    assert [
        [message.text for message in store.triages.messages(f"T{number:03}")] for number in range(24)
    ] == [[f"T{number:03} {turn}" for turn in range(5)] for number in range(24)]
    assert len(store.audit.page(limit=999)[0]) == 120


def test_that_threads_agree_on_who_stands_for_a_crash(settings: Settings) -> None:
    with Store.open(settings) as first, Store.open(settings) as second:
        keys = add(first, 40)
        with ThreadPoolExecutor(8) as pool:
            asked = pool.map(
                lambda pair: pair[0].batches.represent("B1", "crash", pair[1]),
                zip([first, second] * 20, keys, strict=True),
            )
            standing = set(asked)
    assert len(standing) == 1


def test_that_changes_that_wait_for_each_other_are_made_again(server_settings: Settings) -> None:
    with Store.open(server_settings) as store:
        keys = add(store, 2)
        both = Barrier(2, timeout=PATIENCE)
        tries = []

        def cross(order: list[int]) -> None:
            def work(connection: Connection) -> None:
                tries.append(order)
                for number in order:
                    connection.execute(
                        update(JOBS).where(JOBS.c.number == number).values(attempts=JOBS.c.attempts + 1)
                    )
                    if len(tries) <= 2 and number == order[0]:
                        both.wait()

            store.database.change(work)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(cross, [[1, 2], [2, 1]]))
        # The server ends one of the two; on a busy machine its second try may meet the other again.
        assert len(tries) >= 3
        assert [store.batches.job(key).attempts for key in keys] == [2, 2]


def test_that_a_reader_does_not_wait_for_a_writer(store: Store) -> None:
    store.triages.add(triage())
    with store.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM triages")
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(store.triages.get, "T1", NOW).result(PATIENCE).id == "T1"
