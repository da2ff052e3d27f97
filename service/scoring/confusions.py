"""What a cause is taken for: the chances of the other causes where the one that was named is wrong.

They were counted over public logs that were answered at first sight, and stand in a file that
`python -m eval.confusions` writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from corpus.library import Library
from corpus.schema import Record
from ingest.logs.report import CrashReport
from service.scoring.retrieval import Retrieval
from service.scoring.scoring import DIAGNOSED, Candidate, candidate_of

FILE = Path(__file__).parent / "confusions.json"
# So many causes of which nothing in the log speaks are worth a place among the others.
PROPOSED = 2


class Confusions(Record):
    """By the cause that was named, the chances of the others where it was wrong, the likeliest first.

    `usual` are the chances where a cause was never named; `answers` tells how many were counted.
    """

    shares: Mapping[str, Mapping[str, float]]
    usual: Mapping[str, float]
    answers: int

    def rivals(self, cause: str) -> Mapping[str, float]:
        """Give the chances of the other causes where this one is wrong."""
        found = self.shares.get(cause, self.usual)
        return {other: share for other, share in found.items() if other != cause}


@cache
def shipped() -> Confusions:
    """Load the table, once a process."""
    return Confusions.model_validate_json(FILE.read_bytes())


def with_rivals(
    candidates: Sequence[Candidate],
    report: CrashReport,
    retrieval: Retrieval,
    library: Library,
    confusions: Confusions,
) -> list[Candidate]:
    """Give the causes that the first one is mostly confused with what was given to mere likeness.

    The probabilities of the first, of doubt and of what something in the log speaks for are taken from
    nowhere: these are fitted. Where no cause is likely enough to be named, none is confused with another.
    """
    alike = sum(item.probability for item in candidates[1:] if item.score <= 0)
    if not alike or candidates[0].probability < DIAGNOSED:
        return list(candidates)
    first, *others = candidates
    by_cause = {item.cause: item for item in others}
    rivals = {
        cause: share for cause, share in confusions.rivals(first.cause).items() if cause in library.causes
    }
    for cause in list(rivals)[:PROPOSED]:
        rival = replace(candidate_of(cause, "hypothesis", report, retrieval), doubt=first.doubt)
        by_cause.setdefault(cause, rival)
    shares = {cause: rivals[cause] for cause in by_cause if cause in rivals}
    left = 1.0 - sum(shares.values())
    moved = [
        replace(
            item,
            probability=item.probability * (1.0 if item.score > 0 else left) + alike * shares.get(cause, 0.0),
            is_rival=cause in shares,
            borrowed=alike * shares.get(cause, 0.0),
        )
        for cause, item in by_cause.items()
    ]
    return [first, *sorted(moved, key=lambda item: (-item.probability, -item.score))]
