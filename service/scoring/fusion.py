"""Fusion: the rules' probabilities and a model's vote, weighed into one decision.

A vote multiplies the odds of what it is for. By how much follows from signs of the vote: what it is for,
how sure the model says it is, what its quoted lines tell of. Each has a weight, fitted on
incidents with recorded answers (`python -m eval.votes`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from corpus.library import Library
from corpus.schema import Record
from service.schemas.diagnosis import UNKNOWN_CAUSE
from service.scoring.assessment import Assessment, Vote
from service.scoring.retrieval import SignatureMatch
from service.scoring.scoring import Candidate, candidate_of
from service.scoring.verdict import conclude

FILE = Path(__file__).parent / "fusion.json"
# What a vote is for that says that nothing failed.
SOUND = "no-failure"
# The part of what the rules leave open that one cause has which they do not name.
UNNAMED = 0.1
# The probability that nothing failed where the rules found no failure: the log shows a good end, works on to
# its last lines, or shows neither.
SOUND_CLOSED, SOUND_OPEN, SOUND_UNSEEN = 0.9, 0.6, 0.15
# The part of the rest in which the log does not tell; where it shows no end, it is most of it.
SILENT, SILENT_UNSEEN = 0.2, 0.8


class VoteWeights(Record):
    """What each sign of a vote adds to the log odds of its choice, and what that was learned from.

    `right` is the share of right votes by the certainty that the model gave.
    """

    signs: Mapping[str, float]
    right: Mapping[str, float]
    incidents: int = 0


@cache
def vote_weights(path: Path = FILE) -> VoteWeights:
    """Load the weights."""
    return VoteWeights.model_validate_json(path.read_bytes())


def fuse(assessment: Assessment, vote: Vote, library: Library) -> Assessment:
    """Weigh a vote into an assessment; a vote that may not count leaves it as it is.

    The candidates come in their new order with new probabilities. Where the choice is not that of the rules,
    the first failure that it quotes becomes the root.
    """
    if vote.choice not in library.causes and vote.choice != SOUND:
        return assessment
    if not may_count(assessment, vote, library):
        return assessment
    priors = rule_shares(assessment)
    signs = vote_signs(assessment, vote, library)
    shares = weigh_vote(priors, vote.choice, base_share(priors, vote.choice), signs, vote_weights().signs)
    if vote.choice != UNKNOWN_CAUSE and max(shares, key=lambda name: shares[name]) != vote.choice:
        # What speaks for the rules' answer weighs more: a vote that loses takes nothing from it.
        return assessment
    doubt, sound = shares[UNKNOWN_CAUSE], shares[SOUND]
    known = {item.cause: item for item in assessment.candidates}
    if vote.choice not in (SOUND, UNKNOWN_CAUSE):
        known[vote.choice] = _voted(known.get(vote.choice), vote, assessment, library)
    candidates = sorted(
        (
            replace(item, probability=shares.get(cause, 0.0), doubt=doubt)
            for cause, item in known.items()
            if cause != UNKNOWN_CAUSE
        ),
        key=lambda item: (-item.probability, -item.score),
    )
    report = assessment.report
    leads = candidates and candidates[0].cause == vote.choice and vote.choice != _first(assessment)
    if leads and vote.lines:
        report = report.led_by(vote.lines)
    fused = replace(
        assessment, report=report, candidates=tuple(candidates), vote=vote, sound=sound, silence=doubt
    )
    before, after = (outcome_named(item, library) for item in (assessment, fused))
    return replace(fused, vote=replace(vote, against=before)) if before != after else fused


def outcome_named(assessment: Assessment, library: Library) -> str:
    """Give what an assessment names: a cause, `insufficient-evidence` or `no-failure`."""
    cause = conclude(assessment, library).cause
    return SOUND if cause is None else cause.id


def rule_shares(assessment: Assessment) -> dict[str, float]:
    """Give what the rules hold: the share of each cause, of a log that does not tell, of a sound run."""
    shares = {item.cause: item.probability for item in assessment.candidates}
    doubt = shares.pop(UNKNOWN_CAUSE, 0.0) + assessment.doubt
    report, end = assessment.report, assessment.outcome.end
    if report.root is None and not assessment.candidates:
        if end == "failed":
            return {UNKNOWN_CAUSE: 1.0, SOUND: 0.0}
        if end == "unknown" and (report.log_end.kind == "unseen" or report.limits.cut):
            return {UNKNOWN_CAUSE: SILENT_UNSEEN * (1.0 - SOUND_UNSEEN), SOUND: SOUND_UNSEEN}
        sound = SOUND_CLOSED if report.log_end.kind == "closed" else SOUND_OPEN
        return {UNKNOWN_CAUSE: SILENT * (1.0 - sound), SOUND: sound}
    # A failure that nothing speaks for is one that the log does not tell.
    return {**shares, UNKNOWN_CAUSE: doubt if shares or doubt else 1.0, SOUND: 0.0}


def base_share(priors: Mapping[str, float], choice: str) -> float:
    """Give what a choice has before its vote counts: its share, or its part of what the rules leave open."""
    rivals = [share for name, share in priors.items() if name != choice]
    return max(priors.get(choice, 0.0), UNNAMED * (1.0 - max(rivals, default=0.0)), 1e-4)


def weigh_vote(
    priors: Mapping[str, float],
    choice: str,
    base: float,
    signs: Mapping[str, float],
    learned: Mapping[str, float],
) -> dict[str, float]:
    """Give the shares with the vote weighed in; they add up to 1."""
    added = sum(value * learned.get(name, 0.0) for name, value in signs.items())
    raised = {**priors, choice: base * math.exp(added)}
    total = sum(raised.values())
    return {name: share / total for name, share in raised.items()}


def vote_signs(assessment: Assessment, vote: Vote, library: Library) -> dict[str, float]:
    """Give what makes a vote weigh more or less, each sign named and 0 where it is absent.

    Who agrees has seen what the rules say: such a vote is no second witness, and weighs by its certainty
    alone. Where the rules hold that the log does not tell, a vote for a cause is the only witness, and weighs
    less the less sure it is.
    """
    if vote.choice in (SOUND, UNKNOWN_CAUSE):
        return {vote.choice: 1.0, f"{vote.choice}-{vote.certainty}": 1.0}
    priors = rule_shares(assessment)
    likeliest = max(priors, key=lambda name: priors[name])
    if likeliest == vote.choice:
        return {f"agrees-{vote.certainty}": 1.0}
    named = {item.cause for item in assessment.candidates if item.score > 0}
    quoted = [event.cause for event in assessment.report.events if event.line in vote.lines and event.cause]
    kinds = {library.causes[cause].category for cause in quoted}
    # A cause whose cases all share a framework is of jobs whose log shows one of its cases'; a log that shows
    # none at all may be of any.
    served = [frozenset(case.frameworks) for case in library.cases.values() if case.cause == vote.choice]
    seen = {item.name for item in assessment.report.frameworks}
    is_shared = bool(served) and bool(frozenset.intersection(*served))
    is_foreign = is_shared and bool(seen) and seen.isdisjoint(frozenset().union(*served))
    return {
        "cause": 1.0,
        f"cause-{vote.certainty}": 1.0,
        f"against-silence-{vote.certainty}": float(likeliest == UNKNOWN_CAUSE),
        "quote-says-it": float(vote.choice in quoted),
        "quotes-of-other-kind": float(bool(kinds) and library.causes[vote.choice].category not in kinds),
        "named-by-rules": float(vote.choice in named),
        "other-framework": float(is_foreign),
    }


def may_count(assessment: Assessment, vote: Vote, library: Library) -> bool:
    """Tell whether a vote may change anything.

    It has to quote a line that fails, for the rules or read by itself, or telemetry has to show its cause.
    Unless the run came to a good end, that may be an error of this kind which the run seemed to have
    survived: what was caught, or printed on, may be what a later failure follows from. No vote outweighs how
    the job is known to have ended, and a failure that is known, or stated by the log, is not called a sound
    run.
    """
    if is_proved(assessment):
        return vote.choice == _first(assessment)
    if vote.choice == SOUND:
        stated = any(item.standing == "established" for item in assessment.candidates[:1])
        return assessment.outcome.end != "failed" and not stated
    shown = [held for held in assessment.findings.holding(vote.choice) if held.rule.effect != "contradicts"]
    report = assessment.report
    failed = report.standing
    if report.root is not None or report.log_end.kind != "closed":
        kind = voted.category if (voted := library.causes.get(vote.choice)) else None
        alike = {name for name, cause in library.causes.items() if cause.category == kind}
        failed += tuple(event for event in report.survived if event.cause in alike)
    failing = {line for event in failed for line in (event.line, event.last, event.traceback)}
    quotes_failure = bool(vote.failing) or not failing.isdisjoint(vote.lines)
    return vote.choice == UNKNOWN_CAUSE or bool(shown) or quotes_failure


def is_proved(assessment: Assessment) -> bool:
    """Tell whether the way in which the job is known to have ended proves the likeliest cause."""
    row = assessment.outcome.reading
    return row is not None and row.proof == "established" and row.cause == _first(assessment)


def _first(assessment: Assessment) -> str:
    return assessment.candidates[0].cause if assessment.candidates else ""


def _voted(known: Candidate | None, vote: Vote, assessment: Assessment, library: Library) -> Candidate:
    """Give the candidate that a vote is for, with the cases that the model cites for it."""
    report, retrieval = assessment.report, assessment.retrieval
    found = known or candidate_of(vote.choice, "hypothesis", report, retrieval)
    if known is not None and known.standing == "hypothesis" and vote.choice == _first(assessment):
        found = replace(found, standing="supported")
    if found.cases:
        return found
    near = {item.owner for item in retrieval.ranked}
    cited = [library.cases[name] for name in vote.cases if name in library.cases and name in near]
    own = [case for case in cited if case.cause == vote.choice]
    return replace(found, cases=tuple(SignatureMatch(case, 0, at_root=False) for case in own))
