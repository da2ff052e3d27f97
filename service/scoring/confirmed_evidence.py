"""Let speak what a person confirmed of the same crash before: a sign beside the others, not a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from corpus.library import Library
from ingest.logs.report import CrashReport
from service.schemas.confirmations import Confirmation, ConfirmedCause
from service.schemas.diagnosis import UNKNOWN_CAUSE
from service.scoring.retrieval import Retrieval
from service.scoring.scoring import Candidate, candidate_of

# The share of the whole that the confirmed cause gets before the rest is dealt out as the log has it. Of 27
# pairs of labelled incidents with one fingerprint, all of different jobs, 17 have a cause in common
# (`python -m eval.fingerprints`): half is on the safe side of that.
CONFIRMED = 0.5


def weigh_by_confirmation(
    candidates: Sequence[Candidate],
    known: Iterable[ConfirmedCause],
    report: CrashReport,
    retrieval: Retrieval,
    library: Library,
) -> tuple[list[Candidate], Confirmation | None]:
    """Give the candidates as the confirmed cause of the same crash leaves them, and what was confirmed.

    A cause that the log states stands as it is.
    """
    same = (item for item in known if item.fingerprint == report.fingerprint and item.cause in library.causes)
    told = next((item for item in same if item.cause != UNKNOWN_CAUSE), None)
    if report.root is None or told is None:
        return list(candidates), None
    if any(item.standing == "established" for item in candidates):
        return list(candidates), Confirmation(cause=told.cause, on=told.on, counted=False)
    there = next(
        (item for item in candidates if item.cause == told.cause),
        candidate_of(told.cause, "hypothesis", report, retrieval),
    )
    # Without candidates the log tells nothing.
    doubt = (candidates[0].doubt if candidates else 1.0) * (1.0 - CONFIRMED)
    raised = replace(there, probability=CONFIRMED + (1.0 - CONFIRMED) * there.probability, doubt=doubt)
    others = [
        replace(item, probability=(1.0 - CONFIRMED) * item.probability, doubt=doubt)
        for item in candidates
        if item.cause != told.cause
    ]
    placed = sorted([raised, *others], key=lambda item: (-item.probability, -item.score))
    return placed, Confirmation(cause=told.cause, on=told.on, counted=True)
