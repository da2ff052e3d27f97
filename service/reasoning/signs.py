"""What speaks for a cause, in numbers that can be weighed: each sign is small, named and 0 where it is absent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corpus.library import Library
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from service.retrieval import Retrieval, SignatureMatch

Signs = Mapping[str, float]

# How far down the lists of the word and vector searches a case still says something.
DEPTH = 20
# Causes that only likeness proposes: of the word search, and of the vector search.
BY_WORDS, BY_VECTORS = 4, 3
# A cause's own evidence counts in kinship from here on.
SHOWN = 0.3


@dataclass(frozen=True)
class Likeness:
    """Each cause's best place, from 0, among the cases that the two searches find."""

    words: Mapping[str, int]
    dense: Mapping[str, int]

    @property
    def near(self) -> tuple[str, ...]:
        """The causes that likeness alone is worth proposing, the nearest first."""
        return tuple(dict.fromkeys([*list(self.words)[:BY_WORDS], *list(self.dense)[:BY_VECTORS]]))


def likeness(retrieval: Retrieval, library: Library) -> Likeness:
    """Look up whose cases are like the log."""
    return Likeness(*(_places(retrieval.by_retriever.get(name, ()), library) for name in ("words", "dense")))


def _places(owners: Sequence[str], library: Library) -> dict[str, int]:
    found: dict[str, int] = {}
    for place, owner in enumerate(owners[:DEPTH]):
        if owner in library.cases:
            found.setdefault(library.cases[owner].cause, place)
    return found


def signs_for(
    cause: str, report: CrashReport, retrieval: Retrieval, library: Library, scores: Mapping[str, float], like: Likeness
) -> Signs:
    """Give the signs for a cause; `scores` are what the evidence alone gives each cause, from 0 to 1."""
    root = report.root
    assert root is not None  # noqa: S101 - only failures are weighed
    score = scores.get(cause, 0.0)
    return {
        "score": math.log((score + 0.02) / (1.02 - score)),
        **_of_root(cause, root),
        **_of_cases(cause, root, retrieval.signatures),
        **_of_others(cause, root, report.standing),
        **_of_likeness(cause, like),
        **_of_kin(cause, library, scores),
    }


def _of_root(cause: str, root: Event) -> dict[str, float]:
    if root.cause != cause:
        return {}
    follower = "-follower" if root.pattern_role in ("collateral", "wrapper") else ""
    return {f"root-{root.strength}{follower}": 1.0, f"root-kind-{root.kind}": 1.0}


def _of_cases(cause: str, root: Event, matches: Sequence[SignatureMatch]) -> dict[str, float]:
    own = [match for match in matches if match.case.cause == cause]
    at_root = [match for match in own if match.at_root]
    elsewhere = [match for match in own if not match.at_root]
    signs: dict[str, float] = {}
    if at_root:
        signs |= {"case-at-root": 1.0, "case-at-root-conditions": _conditions(at_root), "case-at-root-more": min(3.0, len(at_root) - 1.0)}
        signs["case-against-root"] = float(root.cause is not None and root.cause != cause)
    if elsewhere:
        signs |= {"case-elsewhere": 1.0, "case-elsewhere-conditions": _conditions(elsewhere)}
    return signs


def _conditions(matches: Sequence[SignatureMatch]) -> float:
    return min(3.0, max(match.conditions for match in matches) - 1.0)


def _of_others(cause: str, root: Event, standing: Sequence[Event]) -> dict[str, float]:
    others = [event for event in standing if event.cause == cause and event is not root]
    origins = [event for event in others if event.pattern_role == "origin"]
    stated = sum(event.strength == "states" for event in origins)
    return {
        "other-origins": min(2.0, len(origins)), "other-origins-stating": min(2.0, stated),
        "other-followers": min(2.0, len(others) - len(origins)),
    }


def _of_likeness(cause: str, like: Likeness) -> dict[str, float]:
    signs = {
        name: 1.0 / (1 + places[cause]) for name, places in (("words", like.words), ("vectors", like.dense)) if cause in places
    }
    if signs.get("words") == signs.get("vectors") == 1.0:
        signs["words-and-vectors"] = 1.0
    return signs


def _of_kin(cause: str, library: Library, scores: Mapping[str, float]) -> dict[str, float]:
    symptoms = library.causes[cause].explains
    deeper = (other for other in scores if other in library.causes and cause in library.causes[other].explains)
    return {
        "explains-another": float(any(scores.get(symptom, 0.0) > SHOWN for symptom in symptoms)),
        "explained-by-another": float(any(scores[other] > SHOWN for other in deeper)),
    }


def signs_of_doubt(report: CrashReport) -> Signs:
    """Give the signs that the log does not tell at all."""
    root = report.root
    assert root is not None  # noqa: S101 - only failures are weighed
    return {
        "doubt": 1.0, f"doubt-role-{root.pattern_role}": 1.0, f"doubt-kind-{root.kind}": 1.0,
        "doubt-no-cause": float(root.cause is None), "doubt-without-frames": float(not root.frames),
        "doubt-stated": float(root.cause == "insufficient-evidence"),
    }
