"""Weigh what speaks for each cause: the root's own line, the cases whose signature holds, the other signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from corpus.library import Library
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from service.schemas.diagnosis import UNKNOWN_CAUSE, Standing
from service.scoring.calibration import MOST, probabilities, weights
from service.scoring.features import Signs, features_for, features_of_doubt, search_places
from service.scoring.message_evidence import message_votes
from service.scoring.retrieval import Retrieval, SignatureMatch
from service.scoring.source_sites import site_of

# How far a root line's pattern alone settles its cause.
ROOT_WEIGHT = {"states": 0.9, "suggests": 0.66, "hints": 0.36}
# The same for a line that as a rule follows another failure, standing as the root for want of a better.
FOLLOWER_WEIGHT = {"states": 0.72, "suggests": 0.52, "hints": 0.25}
CASE_AT_ROOT = 0.6
CASE_ELSEWHERE = 0.3
PER_CONDITION = 0.06
OTHER_EVENT = 0.2
RIVAL = 0.55
TAKEN_OVER = 0.6

# A first cause less likely than this is not named; two that are this near are both named.
DIAGNOSED = 0.45
CLOSE = 0.85


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cause with what speaks for it.

    `score` says from 0 to 1 how much that is; `probability` is what it comes to among all candidates, and
    `doubt` the probability that the log does not tell. `signs` are the features that the probability was
    worked out from; none where only the machine or the outcome shows the cause. `is_rival` tells that the
    likeliest cause is often confused with it, which gives it the part `borrowed` of its probability.
    """

    cause: str
    score: float
    standing: Standing
    cases: tuple[SignatureMatch, ...]
    events: tuple[Event, ...]
    probability: float = 0.0
    doubt: float = 0.0
    signs: Signs = field(default_factory=dict)
    is_rival: bool = False
    borrowed: float = 0.0


@dataclass(frozen=True, slots=True)
class CauseFeatures:
    """A cause with its signs."""

    cause: str
    signs: Signs


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """What stands against each other: the causes, and doubt."""

    options: tuple[CauseFeatures, ...]
    doubt: Signs


def rank_causes(report: CrashReport, retrieval: Retrieval, library: Library) -> list[Candidate]:
    """Give the causes that something speaks for, the likeliest first."""
    if report.root is None:
        return []
    found = _candidates(report, retrieval, library)
    table = _features(found, report, retrieval, library)
    shares = probabilities([option.signs for option in table.options], table.doubt, weights())
    likely = dict(zip((option.cause for option in table.options), shares.causes, strict=True))
    signs = {option.cause: option.signs for option in table.options}
    placed = [
        replace(
            item, probability=likely.get(item.cause, 0.0), doubt=shares.doubt, signs=signs.get(item.cause, {})
        )
        for item in found
    ]
    return sorted(placed, key=lambda candidate: (-candidate.probability, -candidate.score))


def feature_table(report: CrashReport, retrieval: Retrieval, library: Library) -> FeatureTable:
    """Give what the probabilities of a failed job's causes are worked out from."""
    return _features(_candidates(report, retrieval, library), report, retrieval, library)


def _features(
    found: Sequence[Candidate], report: CrashReport, retrieval: Retrieval, library: Library
) -> FeatureTable:
    like = search_places(retrieval, library)
    told = tuple(
        CauseFeatures(item.cause, features_for(item.cause, item.score, report, like))
        for item in found
        if item.cause != UNKNOWN_CAUSE
    )
    return FeatureTable(told, features_of_doubt(report))


def _candidates(report: CrashReport, retrieval: Retrieval, library: Library) -> list[Candidate]:
    of_option = next(
        (cause.id for cause in library.causes.values() if "own-option" in cause.messages_name), None
    )
    root = report.root
    worded = (
        message_votes(root, report.launches, of_option, lambda: site_of(root, report))
        if root is not None
        else {}
    )
    causes = dict.fromkeys(
        [match.case.cause for match in retrieval.signatures if match.at_root]
        + [event.cause for event in report.standing if event.cause]
        + [match.case.cause for match in retrieval.signatures]
        + list(worded)
        + list(search_places(retrieval, library).similarity)
    )
    found = [_candidate(str(cause), report, retrieval.signatures, worded) for cause in causes]
    # A cause that lies behind another takes over what speaks for its symptom.
    scores = {candidate.cause: candidate.score for candidate in found}
    for deeper, symptoms in explained_causes(found, library).items():
        for symptom in symptoms:
            taken = scores[symptom]
            scores[deeper] = 1.0 - (1.0 - scores[deeper]) * (1.0 - TAKEN_OVER * taken)
            scores[symptom] = taken * (1.0 - TAKEN_OVER)
    return [replace(candidate, score=scores[candidate.cause]) for candidate in found]


def explained_causes(candidates: Sequence[Candidate], library: Library) -> Mapping[str, tuple[str, ...]]:
    """Give the candidates that each one lies behind, of those whose evidence is more than a hint."""
    there = {candidate.cause for candidate in candidates}
    shown = [
        candidate.cause
        for candidate in candidates
        if any(event.strength != "hints" and event.pattern_role == "origin" for event in candidate.events)
        or any(match.at_root and match.conditions > 1 for match in candidate.cases)
    ]
    return {
        cause: tuple(symptom for symptom in library.causes[cause].explains if symptom in there)
        for cause in shown
    }


def _candidate(
    cause: str, report: CrashReport, signatures: Sequence[SignatureMatch], worded: Mapping[str, float]
) -> Candidate:
    root = report.root
    assert root is not None  # noqa: S101 - the caller has checked
    cases = tuple(match for match in signatures if match.case.cause == cause)
    events = tuple(event for event in report.standing if event.cause == cause)
    # What the words of the root say against its cause stands only where little speaks for that one.
    against = max((share for other, share in worded.items() if other != cause), default=0.0)
    votes = [_root_vote(root, signatures) * (1.0 - against)] if root.cause == cause else []
    votes += [_case_vote(match, root) for match in cases[:2]]
    votes += [OTHER_EVENT for event in events if event is not root and event.pattern_role == "origin"][:2]
    missing = 1.0 - worded.get(cause, 0.0)
    for vote in votes:
        missing *= 1.0 - vote
    return Candidate(cause, 1.0 - missing, _standing(root, cause, cases, events), cases, events)


def candidate_of(
    cause: str, standing: Standing, report: CrashReport, retrieval: Retrieval, probability: float = 0.0
) -> Candidate:
    """Make a candidate of a cause that the machine or the outcome shows, whatever its log says."""
    cases = tuple(match for match in retrieval.signatures if match.case.cause == cause)
    events = tuple(event for event in report.standing if event.cause == cause)
    return Candidate(cause, 0.0, standing, cases, events, probability)


def _root_vote(root: Event, signatures: Sequence[SignatureMatch]) -> float:
    weights = FOLLOWER_WEIGHT if root.pattern_role in ("collateral", "wrapper") else ROOT_WEIGHT
    vote = weights[root.strength]
    # A case that knows this very line more exactly, and names another cause, speaks against the line's first
    # meaning; against one that a pattern is sure of only where it knows the line word for word.
    rivals = [
        match.case
        for match in signatures
        if match.at_root and match.case.cause != root.cause and match.conditions > 1
    ]
    quoted = any(case.signatures.quotes_message for case in rivals)
    if quoted:
        return vote * RIVAL * RIVAL
    return vote * RIVAL if rivals and root.strength != "states" else vote


def _case_vote(match: SignatureMatch, root: Event) -> float:
    base = CASE_AT_ROOT if match.at_root else CASE_ELSEWHERE
    follower = root.pattern_role in ("collateral", "wrapper") and root.strength == "hints"
    if (follower or (root.kind == "kill" and root.strength != "states")) and match.conditions < 2:
        base = CASE_ELSEWHERE  # a bare signal or time-out is the same for a dozen causes
    return min(0.85, base + PER_CONDITION * (match.conditions - 1))


def _standing(root: Event, cause: str, cases: Sequence[SignatureMatch], events: Sequence[Event]) -> Standing:
    if root.cause == cause and (root.strength == "states" or root.outright):
        return "established"
    signs = (
        sum(match.at_root for match in cases)
        + (root.cause == cause)
        + sum(event is not root for event in events)
    )
    return "supported" if signs > 1 else "hypothesis"


def confidence(candidates: Sequence[Candidate]) -> float:
    """Give the probability that the first candidate is the cause."""
    return round(min(MOST, candidates[0].probability), 3) if candidates else 0.0


def is_doubtful(candidates: Sequence[Candidate]) -> bool:
    """Tell whether no cause is likely enough to be named."""
    if not candidates or candidates[0].cause == UNKNOWN_CAUSE:
        return True
    first = candidates[0].probability
    # Two that are near each other may share what one alone would have.
    pair = first + candidates[1].probability if is_close(candidates) else first
    return pair < DIAGNOSED or first < candidates[0].doubt


def is_close(candidates: Sequence[Candidate]) -> bool:
    """Tell whether the second candidate is about as likely as the first."""
    return len(candidates) > 1 and candidates[1].probability > CLOSE * candidates[0].probability
