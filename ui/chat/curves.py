"""The numbers that the job printed over its steps, plotted, with a mark where one went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corpus import curves
from corpus.schema import Language
from service.composition.curves import curve_words
from service.html.markup import EMPTY, Html, element, folded
from service.schemas.diagnosis import Curve
from ui.chat import prose
from ui.chat.view import TriageView
from ui.chat.words import say

# A plot's own units; the browser stretches it.
WIDTH, HEIGHT = 400, 90
# Room above and below, so that a flat line is seen.
_ROOM = 6


def render(view: TriageView) -> Html:
    """Render the curves of an answer; nothing where the job told no numbers."""
    diagnosis, language = view.diagnosis, view.language
    if diagnosis is None or not diagnosis.curves:
        return EMPTY
    told = list(curve_words(diagnosis.curves, language))
    return element(
        "section",
        folded(
            element("h2", say("curves", language)),
            *(element("p", *prose.inline(words)) for words in told),
            *(_plot(curve, language) for curve in diagnosis.curves),
            key="curves",
            is_open=bool(told),
        ),
        id="wc-curves",
        class_="card",
        aria_label=say("curves", language),
    )


def _plot(curve: Curve, language: Language) -> Html:
    values = [value for _, value in curve.points if value is not None]
    kind = curves.load().kind(curve.name)
    name = kind.title.to(language)
    if not values:
        return element("p", say("curve-no-number", language, name=name), class_="hint")
    low, high = min(values), max(values)
    ends = [f"{curve.points[place][0]:g}" for place in (0, -1)]
    if kind.at is not None:
        first, last = (kind.at.to(language).format(at=end) for end in ends)
    else:
        at = "curve-at-step" if curve.counts_steps else "curve-at-line"
        first, last = (say(at, language, at=end) for end in ends)
    told = say(
        "curve-of", language, name=name, first=f"{values[0]:g}", last=f"{values[-1]:g}", low=low, high=high
    )
    lines = (
        element("polyline", points=" ".join(piece), vector_effect="non-scaling-stroke")
        for piece in pieces(curve.points, low, high)
    )
    # Where the curve went wrong, as far as that is inside of it.
    since = EMPTY
    if curve.since is not None and curve.finding not in ("rise", "behind"):
        x = round(_across(curve.since, curve.points[0][0], curve.points[-1][0]), 1)
        since = element(
            "line", x1=x, y1=0, x2=x, y2=HEIGHT, class_="since", vector_effect="non-scaling-stroke"
        )
    return element(
        "figure",
        element("figcaption", name),
        element(
            "div",
            element(
                "div",
                element("span", f"{high:g}"),
                element("span", f"{low:g}"),
                class_="scale",
                aria_hidden="true",
            ),
            element(
                "svg",
                *lines,
                since,
                viewBox=f"0 0 {WIDTH} {HEIGHT}",
                preserveAspectRatio="none",
                role="img",
                aria_label=told,
            ),
            class_="curve",
        ),
        element("p", element("span", first), element("span", last), class_="ends", aria_hidden="true"),
    )


def pieces(points: Sequence[tuple[float, float | None]], low: float, high: float) -> Iterator[list[str]]:
    """Give the places of the points, in a piece for each run without one that is no finite number."""
    begin, end = points[0][0], points[-1][0]
    piece: list[str] = []
    for step, value in points:
        if value is None:
            if piece:
                yield piece
            piece = []
            continue
        y = _ROOM + (HEIGHT - 2 * _ROOM) * (1 - (value - low) / ((high - low) or 1))
        piece.append(f"{_across(step, begin, end):.1f},{y:.1f}")
    if piece:
        yield piece


def _across(step: float, begin: float, end: float) -> float:
    return WIDTH * (step - begin) / ((end - begin) or 1)
