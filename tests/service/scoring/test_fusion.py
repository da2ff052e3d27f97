"""Fusion: what a vote may change, and what it may not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ingest.logs.progress import LogEnd
from ingest.logs.report import CrashReport
from service.pipeline.triage import Triage
from service.schemas.diagnosis import UNKNOWN_CAUSE, Outcome
from service.scoring.assessment import CERTAINTIES, Assessment, Vote, assess
from service.scoring.fusion import SOUND, fuse, rule_shares, vote_signs
from service.scoring.verdict import conclude
from tests.service.factories import NOTHING_FOUND, failed, report


def assessed(triage: Triage, told: CrashReport, outcome: Outcome | None = None) -> Assessment:
    """Assess a report without a search."""
    return assess(told, NOTHING_FOUND, triage.library, outcome=outcome)


def decided(triage: Triage, assessment: Assessment, vote: Vote) -> str:
    """Name what is concluded with a vote: a cause, `insufficient-evidence` or `no-failure`."""
    cause = conclude(fuse(assessment, vote, triage.library), triage.library).cause
    return SOUND if cause is None else cause.id


@pytest.fixture
def hinted(triage: Triage) -> Assessment:
    """A failure whose line only hints at its cause."""
    return assessed(triage, report(failed(5, cause="disk-full", strength="hints")))


def test_a_quoted_vote_that_is_sure_decides(triage: Triage, hinted: Assessment) -> None:
    """Against rules that only guess; the shares add up to one, and the quoted line leads."""
    vote = Vote("port-in-use", "high", (5,))
    fused = fuse(hinted, vote, triage.library)
    total = sum(item.probability for item in fused.candidates) + fused.doubt + fused.sound
    assert total == pytest.approx(1.0)
    assert decided(triage, hinted, vote) == "port-in-use"
    assert fused.report.root is not None
    assert fused.report.root.line == 5


def test_a_vote_that_may_not_count_changes_nothing(triage: Triage, hinted: Assessment) -> None:
    """Without a quote, with one of a line that does not fail, for what there is not, against a known end."""
    follower = report(failed(5, pattern_role="wrapper", cause="disk-full", strength="hints"))
    killed = assessed(triage, follower, Outcome(state="OUT_OF_MEMORY"))
    stated = assessed(triage, report(failed(5, cause="disk-full", strength="states")))
    rows = [
        (hinted, Vote("port-in-use", "high")),
        (hinted, Vote("port-in-use", "high", (77,))),
        (hinted, Vote("cosmic-rays", "high", (5,))),
        (killed, Vote("port-in-use", "high", (5,))),
        (stated, Vote(SOUND, "high", (5,))),
    ]
    for found, vote in rows:
        assert fuse(found, vote, triage.library).candidates == found.candidates, vote
        assert decided(triage, found, vote) == conclude_id(triage, found), vote


def test_a_failure_that_seemed_survived_may_be_voted_for(triage: Triage) -> None:
    """Where no good end was seen, and the quoted line says that very cause; it becomes the root then."""
    survived = failed(5, role="recovered", cause="gpu-oom-training", strength="suggests")
    told = replace(report(survived), root=None, log_end=LogEnd("open", 9))
    vote = Vote("gpu-oom-training", "high", (5,))
    fused = fuse(assessed(triage, told), vote, triage.library)
    assert decided(triage, assessed(triage, told), vote) == "gpu-oom-training"
    assert fused.report.root is not None
    assert (fused.report.root.line, fused.report.root.role) == (5, "root")
    ended = replace(told, log_end=LogEnd("closed", 9))
    others = [
        (told, Vote("port-in-use", "high", (5,))),
        (told, Vote("gpu-oom-training", "high", (4,))),
        (ended, vote),
    ]
    for other, said in others:
        assert decided(triage, assessed(triage, other), said) == SOUND, said


def test_a_survived_failure_may_lie_behind_a_standing_one(triage: Triage) -> None:
    """What was caught counts for a vote of its own kind beside a later failure, even one that the log states.

    A vote for a failure of another kind counts for nothing there: only the rules' own failure may speak for
    it.
    """
    caught = failed(5, role="recovered", cause="gpu-memory-fragmentation", strength="suggests")
    later = failed(9, cause="file-missing-or-denied", strength="states")
    both = assessed(triage, report(caught, later))
    fused = fuse(both, Vote("gpu-memory-not-released", "high", (4, 5)), triage.library)
    assert conclude_id(triage, fused) == "gpu-memory-not-released"
    assert fused.report.root is not None
    assert fused.report.root.line == 5
    assert [event.role for event in fused.report.events] == ["root", "collateral"]
    for said in (Vote("port-in-use", "high", (5,)), Vote("gpu-memory-not-released", "high", (4,))):
        assert decided(triage, both, said) == "file-missing-or-denied", said


def conclude_id(triage: Triage, assessment: Assessment) -> str:
    """Name what the rules alone conclude."""
    cause = conclude(assessment, triage.library).cause
    return SOUND if cause is None else cause.id


def test_a_known_failure_is_never_called_sound(triage: Triage, hinted: Assessment) -> None:
    """Whatever a model says of a job that its caller knows to have failed."""
    for told in (hinted.report, report()):
        failed_job = assessed(triage, told, Outcome(exit_code=1))
        assert decided(triage, failed_job, Vote(SOUND, "high")) != SOUND


def test_a_vote_may_say_that_nothing_failed_or_that_the_log_does_not_tell(
    triage: Triage, hinted: Assessment
) -> None:
    """Both weigh against a guess; a run that only a model calls sound is never established as one."""
    assert decided(triage, hinted, Vote(UNKNOWN_CAUSE, "high")) == UNKNOWN_CAUSE
    sound = conclude(fuse(hinted, Vote(SOUND, "high"), triage.library), triage.library)
    assert (sound.verdict, sound.standing) == ("no-failure", "none")


def test_agreement_makes_a_cause_more_certain(triage: Triage, hinted: Assessment) -> None:
    """Its standing rises from a hypothesis to a cause that several signs support."""
    first = hinted.candidates[0]
    fused = fuse(hinted, Vote(first.cause, "high", (5,)), triage.library).candidates[0]
    assert (first.standing, fused.cause, fused.standing) == ("hypothesis", first.cause, "supported")
    assert fused.probability > first.probability


def test_agreement_adds_no_more_than_the_certainty_claims(triage: Triage, hinted: Assessment) -> None:
    """Who agrees has seen the rules' answer: one who is half sure makes it hardly more certain."""
    first = hinted.candidates[0]
    likelihoods = [
        fuse(hinted, Vote(first.cause, certainty, (5,)), triage.library).candidates[0].probability
        for certainty in ("low", "medium", "high")
    ]
    assert likelihoods == sorted(set(likelihoods))
    signs = [vote_signs(hinted, Vote(first.cause, sure, (5,)), triage.library) for sure in ("medium", "high")]
    assert signs == [{"agrees-medium": 1.0}, {"agrees-high": 1.0}]


def test_a_vote_against_rules_that_abstain_weighs_by_its_certainty(
    hinted: Assessment, triage: Triage
) -> None:
    """It is the only witness then: one that is half sure is not shown as near certain."""
    first = replace(hinted.candidates[0], probability=0.2, doubt=0.6)
    bare = replace(hinted, candidates=(first,))
    assert conclude_id(triage, bare) == UNKNOWN_CAUSE
    likelihoods = {
        certainty: fuse(bare, Vote(first.cause, certainty, (5,)), triage.library).candidates[0].probability
        for certainty in ("low", "medium", "high")
    }
    assert likelihoods["low"] < likelihoods["medium"] < likelihoods["high"]
    guess = replace(first, doubt=0.1)
    others = replace(hinted, candidates=(replace(guess, cause="port-in-use", probability=0.7), guess))
    other = fuse(others, Vote(first.cause, "medium", (5,)), triage.library).candidates
    against_a_cause = next(item.probability for item in other if item.cause == first.cause)
    assert likelihoods["medium"] < against_a_cause


def test_a_cause_is_foreign_only_to_a_job_of_other_frameworks(triage: Triage) -> None:
    """To one that shows some, and none of those that the cause is known of; not to one that shows none."""
    voted = Vote("object-store-full", "high", (5,))
    told = failed(5, cause="disk-full", strength="hints")
    for shown, expected in (((("ray", "2.9"),), 0.0), ((("jax", "0.4"),), 1.0), ((), 0.0)):
        found = assessed(triage, report(told, frameworks=shown))
        assert vote_signs(found, voted, triage.library)["other-framework"] == expected, shown


def test_a_silent_log_may_be_said_to_tell_nothing(triage: Triage) -> None:
    """Where the rules found nothing, a vote weighs against their silence."""
    silent = assessed(triage, replace(report(), root=None))
    assert set(rule_shares(silent)) == {UNKNOWN_CAUSE, SOUND}
    assert decided(triage, silent, Vote(UNKNOWN_CAUSE, "high")) == UNKNOWN_CAUSE


def test_only_a_sure_vote_calls_a_run_sound_whose_end_is_not_seen(triage: Triage) -> None:
    """The rules abstain there, and who is half sure of a run that just stops says no more than they."""
    unseen = assessed(triage, replace(report(), root=None))
    opened = assessed(triage, replace(report(), root=None, log_end=LogEnd("open", 9)))
    assert conclude_id(triage, unseen) == UNKNOWN_CAUSE
    for certainty in CERTAINTIES[1:]:
        assert decided(triage, unseen, Vote(SOUND, certainty, (5,))) == UNKNOWN_CAUSE
        assert decided(triage, opened, Vote(SOUND, certainty, (5,))) == SOUND
        assert decided(triage, opened, Vote(UNKNOWN_CAUSE, certainty)) == UNKNOWN_CAUSE
    assert decided(triage, unseen, Vote(SOUND, "high", (5,))) == SOUND
