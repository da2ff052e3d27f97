"""Keys, idempotent requests, events that were seen, the audit."""

from __future__ import annotations

import pytest

from service.persistence.store import Store
from service.schemas.errors import ConflictError, NotFoundError
from service.schemas.records import AuditRecord, KeyRecord
from service.settings import Settings
from tests.service.persistence.contenders import at_once, use_quota
from tests.service.persistence.makers import NOW, later

KEY = KeyRecord(id="k1", name="ci", hash="ab" * 32, scopes=("triage", "batch"), created=NOW)
DAY = 24 * 3600


def test_that_a_key_is_given_as_it_was_added(store: Store) -> None:
    store.keys.add(KEY)
    assert (store.keys.get("k1"), store.keys.all()) == (KEY, (KEY,))


def test_that_keys_come_oldest_first(store: Store) -> None:
    store.keys.add(KEY.model_copy(update={"id": "a", "created": later(5), "scopes": ()}))
    store.keys.add(KEY)
    assert [key.id for key in store.keys.all()] == ["k1", "a"]


def test_that_a_key_is_revoked_once(store: Store) -> None:
    store.keys.add(KEY)
    store.keys.revoke("k1", later(5))
    store.keys.revoke("k1", later(9))
    assert store.keys.get("k1").revoked == later(5)


def test_that_an_unknown_key_is_not_found(store: Store) -> None:
    for ask in (store.keys.get, lambda key: store.keys.revoke(key, NOW)):
        with pytest.raises(NotFoundError):
            ask("k9")


@pytest.mark.parametrize(("after", "noted"), [(0, 0), (59, 0), (60, 60), (3600, 3600)])
def test_that_a_keys_use_is_noted_once_a_minute(settings: Settings, after: int, noted: int) -> None:
    with Store.open(settings) as first, Store.open(settings) as second:
        first.keys.add(KEY)
        first.keys.used("k1", NOW)
        second.keys.used("k1", later(after))
        assert second.keys.get("k1").last_used == later(noted)


def test_that_a_request_is_answered_as_the_first_time(store: Store) -> None:
    assert store.requests.begin("idem", "ann", "d1", NOW) is None
    store.requests.finish("idem", "ann", 200, '{"id": "T1"}')
    assert store.requests.begin("idem", "ann", "d1", later(DAY - 1)) == (200, b'{"id": "T1"}')


def test_that_a_key_is_not_for_two_requests(store: Store) -> None:
    store.requests.begin("idem", "ann", "d1", NOW)
    for _ in range(2):
        with pytest.raises(ConflictError, match="another request"):
            store.requests.begin("idem", "ann", "d2", later(700))
        store.requests.finish("idem", "ann", 200, b"")


def test_that_a_request_waits_for_the_first_one(store: Store) -> None:
    store.requests.begin("idem", "ann", "d1", NOW)
    with pytest.raises(ConflictError, match="still worked on") as caught:
        store.requests.begin("idem", "ann", "d1", later(599))
    assert caught.value.wait


@pytest.mark.parametrize(("answered", "after"), [(True, DAY), (False, 600)])
def test_that_a_request_may_be_made_again_once_the_first_is_forgotten_or_lost(
    store: Store, answered: bool, after: int
) -> None:
    store.requests.begin("idem", "ann", "d1", NOW)
    if answered:
        store.requests.finish("idem", "ann", 200, b"old")
    assert store.requests.begin("idem", "ann", "d1", later(after)) is None
    store.requests.finish("idem", "ann", 201, b"new")
    assert store.requests.begin("idem", "ann", "d1", later(after)) == (201, b"new")


def test_that_an_abandoned_request_may_be_made_again_at_once(store: Store) -> None:
    store.requests.begin("idem", "ann", "d1", NOW)
    store.requests.abandon("idem", "ann")
    assert store.requests.begin("idem", "ann", "d2", NOW) is None
    store.requests.finish("idem", "ann", 200, b"kept")
    store.requests.abandon("idem", "ann")
    assert store.requests.begin("idem", "ann", "d2", NOW) == (200, b"kept")


@pytest.mark.parametrize(
    ("key", "caller"),
    [("idem", "bob"), ("IDEM", "ann"), ("x" * 10_000, "ann"), ("\x00\ud800", "ann"), ("nidem", "an")],
)
def test_that_each_caller_has_its_own_keys(store: Store, key: str, caller: str) -> None:
    store.requests.begin("idem", "ann", "d1", NOW)
    assert store.requests.begin(key, caller, "d2", NOW) is None


def test_that_an_event_comes_first_once_in_a_day(settings: Settings) -> None:
    with Store.open(settings) as store:
        assert [store.seen.is_first("slack", "Ev1", later(second)) for second in (0, 1, DAY - 1)] == [
            True,
            False,
            False,
        ]
        assert store.seen.is_first("slack", "Ev2", NOW)
        assert store.seen.is_first("other", "Ev1", NOW)
    with Store.open(settings) as store:
        assert not store.seen.is_first("slack", "Ev1", later(2))
        assert store.seen.is_first("slack", "Ev1", later(DAY))
        assert not store.seen.is_first("slack", "Ev1", later(DAY + 1))


def test_that_the_audit_is_given_newest_first(store: Store) -> None:
    rows = [
        AuditRecord(at=later(number), actor="ann", action="delete", target=f"T{number}", detail="x")
        for number in range(5)
    ]
    for row in rows:
        store.audit.add(row)
    items, after = store.audit.page(limit=3)
    assert list(items) == rows[:1:-1]
    assert store.audit.page(after=after, limit=3) == ((rows[1], rows[0]), None)


def test_that_a_quota_counts_a_day_that_ends_now(store: Store) -> None:
    """What was handed in counts until a day after, no other caller's; what does not fit is not counted."""
    assert store.usage.take("ann", 2, 3, NOW) is None
    assert store.usage.take("bob", 3, 3, NOW) is None
    assert store.usage.take("ann", 2, 3, later(60)) == 2
    assert store.usage.take("ann", 1, 3, later(DAY - 1)) is None
    assert store.usage.take("ann", 1, 3, later(DAY - 1)) == 3
    assert store.usage.take("ann", 2, 3, later(DAY + 1200)) is None


def test_that_a_quotas_jobs_are_given_back_and_forgotten(store: Store) -> None:
    """Only what no day counts any more goes."""
    store.usage.take("ann", 3, 3, NOW)
    store.usage.give_back("ann", 1, NOW)
    store.usage.forget(later(DAY - 1))
    assert store.usage.take("ann", 1, 2, later(60)) == 2
    store.usage.forget(later(2 * DAY))
    assert store.usage.take("ann", 3, 3, NOW) is None


def test_that_a_quota_holds_however_many_servers_ask_at_once(settings: Settings) -> None:
    """Each counts within the transaction in which it looked."""
    Store.open(settings).close()
    assert sum(at_once(use_quota, [(settings, 15, 20)] * 3)) == 20
