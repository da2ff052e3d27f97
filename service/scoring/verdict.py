"""From an assessment to a verdict: whether a cause can be named, which, and what that rests on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from corpus.library import Library
from corpus.schema import Case, Cause
from service.schemas.diagnosis import UNKNOWN_CAUSE, Standing, Verdict
from service.scoring.assessment import Assessment
from service.scoring.scoring import confidence, is_close, is_doubtful


@dataclass(frozen=True)
class Conclusion:
    """What is concluded of a job.

    `cause` is None where nothing failed, and the row that says so where the verdict is unknown; `cases` are
    those of the named cause that fit, the best first; `has_ended` tells that outcome or log show a good end.
    """

    verdict: Verdict
    cause: Cause | None
    confidence: float
    standing: Standing
    cases: tuple[Case, ...]
    has_ended: bool


def conclude(assessment: Assessment, library: Library) -> Conclusion:
    """Conclude what the assessment amounts to."""
    verdict = verdict_of(assessment, library)
    report, candidates = assessment.report, assessment.candidates
    is_closed = report.log_end.kind == "closed" and not report.limits.cut
    end = assessment.outcome.end
    has_ended = end == "succeeded" or (end == "unknown" and is_closed)
    standing: Standing = "none"
    if verdict == "no-failure":
        standing = "established" if has_ended else "none"
    elif verdict != "unknown":
        standing = candidates[0].standing
    if verdict == "no-failure":
        return Conclusion(verdict, None, 0.0, standing, (), has_ended)
    cause = library.causes[UNKNOWN_CAUSE if verdict == "unknown" else candidates[0].cause]
    cases = [match.case for match in candidates[0].cases] if candidates else []
    fitting = tuple(case for case in cases if case.cause == cause.id)
    return Conclusion(verdict, cause, confidence(candidates), standing, fitting, has_ended)


def verdict_of(assessment: Assessment, library: Library) -> Verdict:
    """Tell whether a cause can be named, two can, or none."""
    report, candidates, end = assessment.report, assessment.candidates, assessment.outcome.end
    likeliest = candidates[0].probability if candidates else 0.0
    if assessment.vote is not None and assessment.sound > max(likeliest, assessment.doubt):
        return "no-failure"
    if report.root is None and not candidates:
        # Judge a log in which nothing failed: silence is no proof of a good end, and a failed end outweighs
        # it.
        is_unseen = (
            report.log_end.kind == "unseen" or report.limits.cut or assessment.doubt > assessment.sound
        )
        return "unknown" if end == "failed" or (end == "unknown" and is_unseen) else "no-failure"
    if is_doubtful(candidates):
        return "unknown"
    is_chosen = assessment.vote is not None and assessment.vote.choice == candidates[0].cause
    # That the first is often confused with another is nothing that this log says: it makes no question.
    others = (replace(item, probability=item.probability - item.borrowed) for item in candidates[1:])
    told = [candidates[0], *sorted(others, key=lambda item: -item.probability)]
    if is_chosen or not is_close(told):
        return "diagnosed"
    # Two likely causes are a question, unless one is proved or lies behind the other: that is its answer.
    first, second = told[:2]
    explained = library.causes[first.cause].explains
    return "ambiguous" if first.standing != "established" and second.cause not in explained else "diagnosed"
