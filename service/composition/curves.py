"""The numbers that a job printed over its steps, as an answer shows them, and what went wrong in words."""

from __future__ import annotations

import math
from collections.abc import Iterator

from corpus import curves
from corpus.message import words
from corpus.schema import Language
from ingest.logs.curves import LoggedCurve, thinned
from ingest.logs.report import CrashReport
from service.schemas.diagnosis import Curve

# So many curves and points of each go into an answer.
MOST_CURVES, MOST_POINTS = 6, 64
_DIGITS = 4


def curves_of(report: CrashReport) -> tuple[Curve, ...]:
    """Give the curves of a job, those that went wrong first."""
    return tuple(_curve(found, report) for found in report.curves[:MOST_CURVES])


def _curve(found: LoggedCurve, report: CrashReport) -> Curve:
    since = found.since
    place = report.place(since.line) if since is not None and since.line else None
    return Curve(
        name=found.name,
        points=tuple((point.step, _shown(point.value)) for point in thinned(found.points, MOST_POINTS)),
        counts_steps=found.counts_steps,
        finding=found.finding,
        since=since.step if since is not None else None,
        line=place.line if place is not None else None,
        file=(place.file or None) if place is not None else None,
        before=_shown(found.before) if found.before is not None else None,
        full_at=float(round(found.full_at)) if found.full_at is not None else None,
        source=found.source or None,
    )


def _shown(value: float) -> float | None:
    """Give a value as far as a plot tells it; JSON has none that is not finite."""
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def curve_words(found: tuple[Curve, ...], language: Language) -> Iterator[str]:
    """Say of each curve that went wrong how, and from where on."""
    table = curves.load()
    for curve in found:
        if curve.finding is None or curve.since is None:
            continue
        where = words(
            "diagnosis.curve-step" if curve.counts_steps else "diagnosis.curve-line",
            language,
            at=f"{curve.since:g}",
        )
        finite = [value for _, value in curve.points if value is not None]
        told = words(
            f"diagnosis.curve-{curve.finding}",
            language,
            name=table.kind(curve.name).title.to(language),
            where=where,
            who=curve.source or "?",
            before="?" if curve.before is None else f"{curve.before:g}",
            last=f"{finite[-1]:g}" if finite else "?",
        )
        if curve.full_at is not None:
            told += words("diagnosis.curve-full", language, at=f"{curve.full_at:g}")
        yield told
