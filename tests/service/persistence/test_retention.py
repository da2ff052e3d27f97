"""What is old goes, with all below it; what is not, or not over, stays."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from service.persistence import retention
from service.persistence.schema import METADATA
from service.persistence.store import Store
from service.schemas.records import AuditRecord, Excerpt, MessageRecord
from tests.service.persistence.makers import NOW, add, batch, later, triage

DAY = 24 * 3600


def held(store: Store) -> dict[str, int]:
    """Count the rows of each table that has any."""
    with store.database.read() as connection:
        counts = {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in METADATA.sorted_tables
        }
    return {name: count for name, count in counts.items() if count}


def test_that_everything_old_goes(store: Store) -> None:
    store.triages.add(triage(state="done"))
    store.triages.answer("T1", None, final=True, now=NOW, excerpt=Excerpt(whole=True))
    store.triages.add_messages("T1", MessageRecord(role="user", text="why?", created=NOW))
    store.audit.add(AuditRecord(at=NOW, actor="ann", action="ask", target="T1"))
    keys = add(store, 1500)
    store.batches.represent("B1", "crash", keys[0])
    store.batches.cancel("B1", NOW)
    store.requests.begin("idem", "ann", "d1", NOW)
    store.seen.is_first("slack", "Ev1", NOW)
    assert store.retention.forget(later(1), later(DAY)) == 2
    assert held(store) == {}


def test_that_nothing_young_or_unfinished_goes(store: Store) -> None:
    store.triages.add(triage(id="young", state="done", created=later(5)))
    store.triages.add(triage(id="running", deadline=later(2 * DAY)))
    store.triages.add(triage(id="old", state="done"))
    store.triages.add(triage(id="stopped", deadline=later(9)))
    store.audit.add(AuditRecord(at=later(5), actor="ann", action="ask", target="T1"))
    add(store, 2, "B1")
    store.batches.restore(batch(id="B2", state="done", finished=later(5)), [])
    store.batches.restore(batch(id="B3", state="done", finished=later(0)), [])
    store.requests.begin("idem", "ann", "d1", later(5))
    store.seen.is_first("slack", "Ev1", later(5))
    assert store.retention.forget(later(5), later(DAY)) == 3
    assert [item.id for item in store.triages.page()[0]] == ["young", "running"]
    assert [item.id for item in store.batches.page()[0]] == ["B2", "B1"]
    assert held(store) == {"triages": 2, "audit": 1, "batches": 2, "jobs": 2, "requests": 1, "seen": 1}


def test_that_more_than_one_step_of_triages_goes(store: Store) -> None:
    for number in range(30):
        store.triages.add(triage(id=f"T{number}", state="done"))
    assert (
        store.retention.delete_older(
            METADATA.tables["triages"], METADATA.tables["triages"].c.created < later(1)
        )
        == 30
    )


def test_that_others_write_while_much_is_forgotten(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "CHUNK", 2)
    for number in range(60):
        store.triages.add(triage(id=f"T{number}", state="done"))
    turns: list[float] = []

    def pause(seconds: float) -> None:
        store.audit.add(AuditRecord(at=later(9), actor="ann", action="ask", target="T"))
        turns.append(seconds)

    monkeypatch.setattr(retention, "sleep", pause)
    store.retention.forget(later(1), later(0))
    assert len(turns) >= 30
    assert min(turns) > 0
