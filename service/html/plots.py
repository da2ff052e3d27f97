"""Plots of counts: bars with their names above them, and columns in stacked colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from service.html.drawing import WIDTH, line, svg, text
from service.html.markup import Html, element

# Colours that a stack tells apart; what is beyond is one more, in grey.
COLOURS = ("c1", "c2", "c3", "c4", "c5")
OTHER = "other"
_ROW = 34.0
_BAR = 12.0
# Points that a letter of a label takes at most; one of Chinese takes twice as much.
_LETTER = 6.2
_LEFT, _TOP, _HEIGHT, _BELOW = 40.0, 12.0, 150.0, 22.0


@dataclass(frozen=True)
class Amount:
    """One bar: its name, how long it is, how that is told, its colour."""

    name: str
    value: float
    told: str
    colour: str = "one"


@dataclass(frozen=True)
class Column:
    """One column: its name, and its parts by what they are of."""

    name: str
    parts: Mapping[str, float]


def bar_plot(told: str, rows: Sequence[Amount]) -> Html:
    """Draw bars below each other, the longest over the whole width."""
    most = max((row.value for row in rows), default=0) or 1.0
    words = "; ".join(f"{row.name}: {row.told}" for row in rows)
    return svg(
        _ROW * len(rows) + 2,
        f"{told}: {words}",
        *(part for place, row in enumerate(rows) for part in _bar(row, _ROW * place, most)),
    )


def _bar(row: Amount, y: float, most: float) -> list[Html]:
    width = WIDTH - _LETTER * _width(row.told) - 14
    return [
        text(0, y + 12, clipped(row.name, width)),
        text(WIDTH, y + 12, row.told, "small", "end"),
        element("rect", x=0.0, y=y + 17, width=WIDTH, height=_BAR, rx=2.0, class_="track"),
        element(
            "rect",
            x=0.0,
            y=y + 17,
            width=max(2.0, WIDTH * row.value / most),
            height=_BAR,
            rx=2.0,
            class_=row.colour,
        ),
    ]


def column_plot(told: str, stacks: Sequence[Column], colours: Mapping[str, str]) -> Html:
    """Draw columns side by side; `colours` gives the class of each part, in the order from below."""
    most = max((sum(column.parts.values()) for column in stacks), default=0) or 1.0
    # Marks stand at round whole numbers, the highest at or above the most.
    rough = max(most / 4, 1)
    power = 10 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    top = step * ceil(most / step)
    marks = []
    for value in (tick * step for tick in range(round(top / step) + 1)):
        y = _TOP + _HEIGHT * (1 - value / top)
        marks += [line(_LEFT, y, WIDTH, y, "rule"), text(_LEFT - 6, y + 4, f"{value:g}", "small", "end")]
    step_x = (WIDTH - _LEFT) / max(len(stacks), 1)
    words = "; ".join(f"{column.name}: {sum(column.parts.values()):g}" for column in stacks)
    return svg(
        _TOP + _HEIGHT + _BELOW,
        f"{told}: {words}",
        *marks,
        *(
            part
            for place, column in enumerate(stacks)
            for part in _stack(column, _LEFT + place * step_x, step_x, top, colours)
        ),
        *_names(stacks, step_x),
    )


def clipped(words: str, width: float) -> str:
    """Cut words to a width in points."""
    if _width(words) * _LETTER <= width:
        return words
    kept = ""
    for char in words:
        if (_width(kept + char) + 1) * _LETTER > width:
            break
        kept += char
    return f"{kept.rstrip()}…"


def _width(words: str) -> float:
    return sum(1.9 if ord(char) > 0x2E80 else 1.0 for char in words)


def _stack(column: Column, x: float, width: float, top: float, colours: Mapping[str, str]) -> list[Html]:
    gap = min(2.0, width * 0.15)
    drawn: list[Html] = []
    below = 0.0
    for name, colour in colours.items():
        value = column.parts.get(name, 0)
        if value:
            height = _HEIGHT * value / top
            y = _TOP + _HEIGHT * (1 - below / top) - height
            title = element("title", f"{column.name}, {name}: {value:g}")
            drawn.append(
                element(
                    "rect",
                    title,
                    x=x + gap,
                    y=y,
                    width=min(width - 2 * gap, 40.0),
                    height=height,
                    class_=colour,
                )
            )
            below += value
    return drawn


def _names(stacks: Sequence[Column], width: float) -> list[Html]:
    """Name as many columns as have room."""
    longest = max((_width(column.name) for column in stacks), default=1) * _LETTER + 10
    every = max(1, ceil(longest / width)) if width else 1
    return [
        text(min(_LEFT + width * place + 2, WIDTH - longest + 10), _TOP + _HEIGHT + 16, column.name, "small")
        for place, column in enumerate(stacks)
        if place % every == 0
    ]
