"""What speaks for a cause, in numbers that can be weighed.

Each sign is small, named and 0 where it is absent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corpus.library import Library
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from service.schemas.diagnosis import UNKNOWN_CAUSE
from service.scoring.retrieval import Retrieval

Signs = Mapping[str, float]

# How far down the lists of the word and vector searches a case still says something.
DEPTH = 20
# Causes that only likeness proposes: of the word search, and of the vector search.
BY_WORDS, BY_VECTORS = 4, 3


@dataclass(frozen=True)
class SearchPlaces:
    """Each cause's best place, from 0, among the cases that the two searches find."""

    words: Mapping[str, int]
    dense: Mapping[str, int]

    @property
    def similarity(self) -> tuple[str, ...]:
        """The causes that likeness alone is worth proposing, the nearest first."""
        return tuple(dict.fromkeys([*list(self.words)[:BY_WORDS], *list(self.dense)[:BY_VECTORS]]))


def search_places(retrieval: Retrieval, library: Library) -> SearchPlaces:
    """Give each cause's best place among the cases that each search found for the log."""
    places: dict[str, dict[str, int]] = {"words": {}, "dense": {}}
    for name, found in places.items():
        for place, owner in enumerate(retrieval.by_retriever.get(name, ())[:DEPTH]):
            if owner in library.cases:
                found.setdefault(library.cases[owner].cause, place)
    return SearchPlaces(places["words"], places["dense"])


def features_for(cause: str, score: float, report: CrashReport, like: SearchPlaces) -> Signs:
    """Give the signs for a cause; `score` is what the evidence alone gives it, from 0 to 1.

    Case and root line are in the score already. Signs of their own for them, and for causes that explain each
    other, were tried and changed nothing in cross-validation.
    """
    root = report.root
    assert root is not None  # noqa: S101 - only failures are weighed
    return {
        "score": math.log((score + 0.02) / (1.02 - score)),
        **({f"root-kind-{root.kind}": 1.0} if root.cause == cause else {}),
        **_of_others(cause, root, report.standing),
        **_of_likeness(cause, like),
    }


def _of_others(cause: str, root: Event, standing: Sequence[Event]) -> dict[str, float]:
    others = [event for event in standing if event.cause == cause and event is not root]
    origins = [event for event in others if event.pattern_role == "origin"]
    stated = sum(event.strength == "states" for event in origins)
    return {
        "other-origins": min(2.0, len(origins)),
        "other-origins-stating": min(2.0, stated),
        "other-followers": min(2.0, len(others) - len(origins)),
    }


def _of_likeness(cause: str, like: SearchPlaces) -> dict[str, float]:
    signs = {
        name: 1.0 / (1 + places[cause])
        for name, places in (("words", like.words), ("vectors", like.dense))
        if cause in places
    }
    if signs.get("words") == signs.get("vectors") == 1.0:
        signs["words-and-vectors"] = 1.0
    return signs


def features_of_doubt(report: CrashReport) -> Signs:
    """Give the signs that the log does not tell at all."""
    root = report.root
    assert root is not None  # noqa: S101 - only failures are weighed
    return {
        "doubt": 1.0,
        f"doubt-role-{root.pattern_role}": 1.0,
        f"doubt-kind-{root.kind}": 1.0,
        "doubt-no-cause": float(root.cause is None),
        "doubt-without-frames": float(not root.frames),
        "doubt-stated": float(root.cause == UNKNOWN_CAUSE),
    }
