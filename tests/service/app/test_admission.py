"""Admission: every way in is let in by the same limits, in one place."""

from __future__ import annotations

import pytest

from corpus.message import Message
from service.app.admission import SCOPES, Admission, Caller, Principal, demand_live
from service.schemas.errors import BusyError, ForbiddenError
from service.schemas.records import Scope
from service.settings import Settings
from service.workers.pool import ProcessPool
from service.workers.tasks import Submission
from tests.tables import each_row


@pytest.fixture
def admission() -> Admission:
    """Two requests a minute, of a pool that takes one task and keeps one waiting."""
    settings = Settings(rate_limit=2, queue=1, workers=1)
    return Admission(settings, ProcessPool(settings))


def test_that_each_principal_is_counted_by_itself_over_all_ways_in(admission: Admission) -> None:
    """One limiter counts a key's requests and those of a Slack user, each in a bucket of its own."""
    key, person = Principal(Caller("api", "k1"), ("triage",), "key k1"), Principal.in_slack("T1:U1")
    for who in (key, key, person, person):
        assert admission.admit(who, "triage") is who
    for who in (key, person):
        with pytest.raises(BusyError) as refused:
            admission.admit(who, "triage")
        assert (refused.value.wait or 0) > 0
        assert isinstance(refused.value.args[0], Message)


@each_row(
    ("scopes", "wanted", "allowed"),
    [
        (("triage",), "triage", True),
        (("triage",), "batch", False),
        (("triage",), None, True),
        (("admin",), "batch", True),
        ((), "triage", False),
    ],
)
def test_that_what_is_asked_takes_its_scope(
    scopes: tuple[Scope, ...], wanted: Scope | None, allowed: bool
) -> None:
    settings = Settings(rate_limit=0, queue=1, workers=1)
    admission = Admission(settings, ProcessPool(settings))
    who = Principal(Caller("api", "k1"), scopes, "key k1")
    if allowed:
        assert admission.admit(who, wanted) is who
    else:
        with pytest.raises(ForbiddenError, match="takes"):
            admission.admit(who, wanted)


def test_that_a_person_in_slack_has_triages_and_nothing_else(admission: Admission) -> None:
    """Neither batches nor the server's own machine, which a key with the scope admin may have read."""
    person = Principal.in_slack("T1:U1")
    assert [scope for scope in SCOPES if person.may(scope)] == ["triage"]
    with pytest.raises(ForbiddenError):
        demand_live(person)


def test_that_a_full_queue_is_refused_before_anything_is_read() -> None:
    settings = Settings(queue=0, workers=1)
    pool = ProcessPool(settings)
    admission = Admission(settings, pool)
    admission.check_room()
    pool.submit(Submission("log", "x"), 60.0)
    with pytest.raises(BusyError):
        admission.check_room()
