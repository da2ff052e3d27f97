"""Plots of a run as inline SVG, coloured by the page's CSS classes, without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from eval.figures import counted
from eval.metrics import BINS, Bin, Mean
from service.html.drawing import WIDTH, Scale, line, svg, text
from service.html.markup import Html, element, style_sheet

_SQUARE = 300.0
_LEFT, _TOP, _BOTTOM = 48.0, 26.0, 250.0
_RIGHT = WIDTH - 12
_ROUND = 24.0
_BAR = 18.0
_CELL = 26.0
_LETTER = 6.6


@dataclass(frozen=True)
class Bar:
    """One bar: its name, its mean from 0 to 1, and the CSS class of its colour."""

    name: str
    found: Mean
    colour: str


def _axes(across: Scale, up: Scale, names: tuple[str, str]) -> list[Html]:
    ticks = [step / 5 for step in range(6)]
    rows = [up.low + tick * (up.high - up.low) for tick in ticks]
    return [
        *(line(across.start, up.at(row), across.end, up.at(row), "rule") for row in rows),
        *(text(across.start - 6, up.at(row) + 4, f"{row:.2f}", "small", "end") for row in rows),
        *(text(across.at(tick), up.start + 16, f"{tick:.1f}", "small", "middle") for tick in ticks),
        text((across.start + across.end) / 2, up.start + 36, names[0], "small", "middle"),
        element(
            "text",
            names[1],
            x=-(up.start + up.end) / 2,
            y=11,
            class_="small",
            text_anchor="middle",
            transform="rotate(-90)",
        ),
    ]


def reliability(bins: Sequence[Bin], colour: str) -> Html:
    """Draw a reliability diagram: share right over confidence; on the dashed line both are equal."""
    across, up = Scale(0, 1, _LEFT, _RIGHT), Scale(0, 1, _BOTTOM, _TOP)
    description = "; ".join(
        f"confidence {item.confidence:.2f}: {item.right:.2f} right of {item.count}" for item in bins
    )
    return svg(
        _SQUARE,
        f"Reliability: {description or 'nothing to show'}",
        *_axes(across, up, ("confidence", "share right")),
        text(across.start - 6, up.end - 13, "n", "small", "end"),
        line(across.at(0), up.at(0), across.at(1), up.at(1), "ideal"),
        *(part for item in bins for part in _point(item, across, up, colour)),
    )


def _point(item: Bin, across: Scale, up: Scale, colour: str) -> list[Html]:
    x, y = across.at(item.confidence), up.at(item.right)
    # Counts stand in a row above the bins, so that near points do not cover them.
    middle = (min(int(item.confidence * BINS), BINS - 1) + 0.5) / BINS
    return [
        line(x, y, x, up.at(item.confidence), f"gap {colour}"),
        element("circle", cx=x, cy=y, r=min(3 + item.count**0.5, 9.0), class_=colour),
        text(across.at(middle), up.end - 13, str(item.count), "small", "middle"),
    ]


def risk_coverage(curves: Mapping[str, Sequence[tuple[float, float]]], colours: Mapping[str, str]) -> Html:
    """Draw risk-coverage curves: share right over share answered, by descending confidence."""
    least = min((right for points in curves.values() for _, right in points), default=0.0)
    across, up = Scale(0, 1, _LEFT, _RIGHT), Scale(min(int(least * 10) / 10, 0.9), 1, _BOTTOM, _TOP)
    description = "; ".join(
        f"{name}: {points[-1][1]:.2f} right at coverage {points[-1][0]:.2f}"
        for name, points in curves.items()
        if points
    )
    drawn = [
        element(
            "polyline",
            points=" ".join(f"{across.at(share):.1f},{up.at(right):.1f}" for share, right in points),
            class_=f"line {colours[name]}",
        )
        for name, points in curves.items()
    ]
    y = _BOTTOM - 12
    keys = [
        element("g", line(x, y - 4, x + 16, y - 4, f"line {colours[name]}"), text(x + 21, y, name))
        for x, name in ((_LEFT + 12 + 60 * number, name) for number, name in enumerate(curves))
    ]
    return svg(
        _SQUARE,
        f"Risk and coverage: {description or 'nothing to show'}",
        *_axes(across, up, ("share answered", "share right of those")),
        *drawn,
        *keys,
    )


def learning_curve(
    curves: Mapping[str, Sequence[tuple[int, float]]], colours: Mapping[str, str], style: str
) -> Html:
    """Draw a share by round for each curve, with its words below, as a file with its own rules of style.

    A round that a curve has no share of is left out of it.
    """
    rounds = sorted({number for points in curves.values() for number, _ in points})
    # One round alone stands in the middle.
    low, high = (rounds[0] - 0.5, rounds[-1] + 0.5) if rounds else (0.5, 1.5)
    # Numbers of two figures side by side must not run into one another.
    right = max(_RIGHT, _LEFT + _ROUND * len(rounds))
    across, up = Scale(low, high, _LEFT, right), Scale(0, 1, _BOTTOM, _TOP)
    ticks = [step / 5 for step in range(6)]
    description = "; ".join(
        f"{name}: " + ", ".join(f"{value:.2f} in round {number}" for number, value in points)
        for name, points in curves.items()
        if points
    )
    return svg(
        _SQUARE + _BAR * len(curves),
        f"Score at first sight: {description or 'nothing to show'}",
        style_sheet(style),
        *(line(across.start, up.at(tick), across.end, up.at(tick), "rule") for tick in ticks),
        *(text(across.start - 6, up.at(tick) + 4, f"{tick:.1f}", "small", "end") for tick in ticks),
        # The word once: repeated under each of many rounds it would run into the next.
        text(across.start - 6, up.start + 16, "round", "small", "end"),
        *(text(across.at(number), up.start + 16, str(number), "small", "middle") for number in rounds),
        *(
            part
            for row, (name, points) in enumerate(curves.items())
            for part in _curve(name, points, colours[name], _BOTTOM + 40 + _BAR * row, across, up)
        ),
        width=right + WIDTH - _RIGHT,
        namespace="http://www.w3.org/2000/svg",
    )


def _curve(
    name: str, points: Sequence[tuple[int, float]], colour: str, y: float, across: Scale, up: Scale
) -> list[Html]:
    places = [(across.at(number), up.at(value)) for number, value in points]
    steps = [line(*start, *end, f"line {colour}") for start, end in pairwise(places)]
    dots = [element("circle", cx=x, cy=row, r=4.0, class_=colour) for x, row in places]
    key = element("circle", cx=_LEFT + 6, cy=y - 4, r=4.0, class_=colour)
    return [*steps, *dots, key, text(_LEFT + 18, y, name)]


def bars(title: str, rows: Sequence[Bar], goal: tuple[float, str] | None = None) -> Html:
    """Draw horizontal bars from 0 to 1 with intervals, figures and the goal (value, text), where given."""
    left = min(max((len(row.name) for row in rows), default=0) * _LETTER + 8, 120.0)
    across = Scale(0, 1, left, WIDTH - 92)
    description = "; ".join(f"{row.name} {counted(row.found)}" for row in rows)
    bottom = 24 + _BAR * len(rows)
    marked: list[Html] = []
    if goal is not None:
        x = across.at(goal[0])
        marked = [line(x, 20, x, bottom, "goal"), text(WIDTH, 14, f"goal {goal[1]}", "small", "end")]
    return svg(
        bottom + 4,
        f"{title}: {description}",
        text(0, 14, title, "title"),
        *(part for number, row in enumerate(rows) for part in _bar(row, 24 + _BAR * number, across)),
        *marked,
    )


def _bar(row: Bar, y: float, across: Scale) -> list[Html]:
    found, middle = row.found, y + _BAR / 2
    track = element(
        "rect", x=across.start, y=y + 2, width=across.end - across.start, height=_BAR - 4, class_="track"
    )
    figure = f"{found.value:.2f} n={found.count}" if found.count else "-"
    words = [text(0, middle + 4, row.name), text(WIDTH - 84, middle + 4, figure)]
    if not found.count:
        return [track, *words]
    filled = element(
        "rect",
        x=across.start,
        y=y + 2,
        width=across.at(found.value) - across.start,
        height=_BAR - 4,
        class_=f"bar {row.colour}",
    )
    if found.low != found.low:  # NaN: no interval
        return [track, filled, *words]
    low, high = across.at(found.low), across.at(found.high)
    ends = [line(x, middle - 3, x, middle + 3, "whisker") for x in (low, high)]
    return [track, filled, line(low, middle, high, middle, "whisker"), *ends, *words]


def confusion(pairs: Mapping[tuple[str, str], int]) -> Html:
    """Draw a confusion matrix: labelled categories are rows, named ones columns.

    The opacity of a cell grows with its share of the row.
    """
    rows = sorted({row for row, _ in pairs})
    columns = [*rows, *sorted({column for _, column in pairs} - set(rows))]
    left = max((len(name) for name in columns), default=0) * _LETTER + 16
    top = left * 0.9 + 16
    totals = {row: sum(count for (name, _), count in pairs.items() if name == row) for row in rows}
    wrong = "; ".join(
        f"{row} named {column}: {count}" for (row, column), count in sorted(pairs.items()) if row != column
    )
    cells = [
        part
        for (row, column), count in sorted(pairs.items())
        for part in _cell(
            left + _CELL * columns.index(column),
            top + _CELL * rows.index(row),
            count,
            count / totals[row],
            row == column,
        )
    ]
    return svg(
        top + _CELL * len(rows) + 8,
        f"Confusion of categories: {wrong or 'none'}",
        *_grid(left, top, len(columns), len(rows)),
        *cells,
        *(
            text(left - 8, top + _CELL * (number + 0.65), name, anchor="end")
            for number, name in enumerate(rows)
        ),
        *(
            element("text", name, x=x, y=top - 8, transform=f"rotate(-55 {x:.1f} {top - 8:.1f})")
            for number, name in enumerate(columns)
            for x in [left + _CELL * (number + 0.6)]
        ),
        text(0, 12, "labelled ↓  named →", "small"),
        *(
            text(left + _CELL * len(columns) + 8, top + _CELL * (number + 0.65), f"n={totals[name]}", "small")
            for number, name in enumerate(rows)
        ),
        width=left + _CELL * len(columns) + left * 0.5,
    )


def _grid(left: float, top: float, columns: int, rows: int) -> list[Html]:
    right, bottom = left + _CELL * columns, top + _CELL * rows
    return [
        *(line(left, top + _CELL * row, right, top + _CELL * row, "rule") for row in range(rows + 1)),
        *(
            line(left + _CELL * column, top, left + _CELL * column, bottom, "rule")
            for column in range(columns + 1)
        ),
    ]


def _cell(x: float, y: float, count: int, share: float, right: bool) -> list[Html]:
    # A light background, so that the number is readable in both colour schemes.
    background = element(
        "rect",
        x=x,
        y=y,
        width=_CELL,
        height=_CELL,
        class_="one" if right else "two",
        fill_opacity=0.12 + 0.33 * share,
    )
    return [background, text(x + _CELL / 2, y + _CELL * 0.65, str(count), anchor="middle")]
