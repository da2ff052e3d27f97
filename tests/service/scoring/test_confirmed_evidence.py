"""What a person confirmed of the same crash is a sign beside the others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ingest.logs.report import CrashReport
from service.composition.composer import compose
from service.composition.diagnosis_view import diagnosis_view
from service.pipeline.triage import Triage
from service.schemas.confirmations import ConfirmedCause
from service.schemas.diagnosis import UNKNOWN_CAUSE
from service.scoring.assessment import Assessment, assess
from tests.service.factories import NOTHING_FOUND, failed, report

NOVEMBER = datetime(2026, 11, 14, tzinfo=UTC)


def told(crash: CrashReport, cause: str) -> ConfirmedCause:
    """Say that a cause was confirmed for a crash."""
    return ConfirmedCause(fingerprint=crash.fingerprint, cause=cause, on=NOVEMBER)


def weighed(triage: Triage, crash: CrashReport, *known: ConfirmedCause) -> Assessment:
    """Assess a crash with what was confirmed before."""
    return assess(crash, NOTHING_FOUND, triage.library, known=known)


def suggested(**fields: Any) -> CrashReport:
    """Give a crash whose log suggests a cause and states none."""
    return report(failed(**{"cause": "disk-full", "strength": "hints", **fields}))


def test_a_confirmed_cause_of_the_same_crash_is_likelier_and_told(triage: Triage) -> None:
    """The probabilities still come to one; the answer names the date, and is no more than a hypothesis."""
    crash = suggested(cause=None)
    before, after = weighed(triage, crash), weighed(triage, crash, told(crash, "port-in-use"))
    assert {item.cause for item in before.candidates} == set()
    (first,) = after.candidates
    assert (first.cause, first.standing) == ("port-in-use", "hypothesis")
    assert first.probability + first.doubt == pytest.approx(1.0)
    answer = compose(after, triage.library, "en")
    assert answer.confirmed is not None
    assert (answer.confirmed.cause, answer.confirmed.counted) == ("port-in-use", True)
    assert diagnosis_view(answer).standing_words.endswith("confirmed on 2026-11-14 for the same crash")
    assert "On 2026-11-14 a person confirmed" in answer.explanation
    assert compose(before, triage.library, "en").confirmed is None


def test_a_cause_that_the_log_states_is_never_turned(triage: Triage) -> None:
    """Neither its place nor any probability changes; that somebody said otherwise is told."""
    crash = report(failed(cause="disk-full", strength="states"))
    before, after = weighed(triage, crash), weighed(triage, crash, told(crash, "port-in-use"))
    assert after.candidates == before.candidates
    answer = compose(after, triage.library, "en")
    assert (answer.cause, answer.confirmed and answer.confirmed.counted) == ("disk-full", False)
    assert "this log states its cause itself" in answer.explanation


def test_what_was_confirmed_of_another_crash_or_of_no_cause_says_nothing(triage: Triage) -> None:
    crash = suggested()
    others = (
        told(report(failed(body="something else")), "port-in-use"),
        told(crash, UNKNOWN_CAUSE),
        told(crash, "no-such-cause"),
    )
    assert weighed(triage, crash, *others) == weighed(triage, crash)


def test_one_sign_leaves_the_rules_in_doubt_where_they_are_firm(triage: Triage) -> None:
    """A confirmed cause that the log speaks against is one of two, not the answer."""
    crash = suggested(strength="suggests")
    rules = weighed(triage, crash).candidates[0]
    after = {item.cause: item for item in weighed(triage, crash, told(crash, "port-in-use")).candidates}
    assert after["disk-full"].probability == pytest.approx(rules.probability / 2)
    assert after["port-in-use"].probability == pytest.approx(0.5)
