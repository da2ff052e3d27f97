"""The causes beside the named one: which deserve a line, and what would tell them apart."""

from __future__ import annotations

from corpus.library import Library
from corpus.message import words
from corpus.schema import Language
from ingest.logs.conditions import ReportView, all_hold
from service.schemas.diagnosis import UNKNOWN_CAUSE, Alternative, Verdict
from service.scoring.assessment import Assessment
from service.scoring.scoring import Candidate

# A cause that is less likely than this is not worth a line; one that only likeness proposes needs more.
SLIGHT = 0.05
ALIKE = 0.15


def alternatives_of(
    assessment: Assessment, verdict: Verdict, library: Library, language: Language
) -> tuple[Alternative, ...]:
    """Give the likeliest other causes; where none is named, the likeliest of all."""
    first = None if verdict in ("unknown", "no-failure") else next(iter(assessment.candidates), None)
    rest = [
        item
        for item in assessment.candidates
        if item is not first
        and item.cause != UNKNOWN_CAUSE
        and item.probability >= (SLIGHT if item.score > 0 or item.is_rival else ALIKE)
    ]
    view = assessment.view
    return tuple(
        Alternative(
            cause=item.cause,
            confidence=round(item.probability, 3),
            tell_apart=_told(first, item, library, language, view),
        )
        for item in rest[:3]
    )


def _told(
    first: Candidate | None, other: Candidate, library: Library, language: Language, view: ReportView
) -> str:
    """Say what would tell another cause apart, and why it is there where nothing in the log speaks for it."""
    told = tell_apart(first, other, library, language, view)
    written = library.causes[first.cause].confused_with if first else ()
    is_seen = other.score > 0 or other.events or other.cases or other.cause in {row.cause for row in written}
    # Whoever reads of a full GPU beside a missing module would look for its line.
    return words("answer.alternative-unseen", language, told=told) if other.is_rival and not is_seen else told


def tell_apart(
    first: Candidate | None, other: Candidate, library: Library, language: Language, view: ReportView
) -> str:
    """Say what would tell another cause from the first one, or would confirm it where there is no first."""
    named = library.causes[other.cause]
    for confusion in library.causes[first.cause].confused_with if first else ():
        if confusion.cause == other.cause:
            return confusion.to(language)
    fitting = (check for check in named.checks if all_hold(check.when, view))
    return next(fitting, named.means).to(language)
