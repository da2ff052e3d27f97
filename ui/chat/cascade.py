"""How a failure spread over the processes of a job: a plot, and the same as a list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from corpus.schema import Language
from service.html.markup import EMPTY, Html, element, folded, join
from service.schemas.diagnosis import CascadeEntry
from ui.chat import prose
from ui.chat.view import TriageView
from ui.chat.words import counted, say

# Heights in pixels; across, the plot is as wide as the page, so places are in percent.
_LANE, _AXIS = 34, 40
_LEFT, _RIGHT = 4.0, 96.0
_CLOCK = re.compile(r"(?P<time>\d{1,2}:\d{2}:\d{2})(?P<part>[.,]\d+)?")
MAX_LANES = 16
# A list that is longer folds below its plot.
SHORT = 4
# Ranks that are named one by one.
MAX_NAMED = 8


class CascadeLane(NamedTuple):
    """One process of the job, or ranks without any failure where all others report one.

    `is_first` tells that others said the same as it.
    """

    name: str
    is_silent: bool = False
    is_first: bool = False


class CascadeDot(NamedTuple):
    """An entry's place: its column in the order of first lines, and its lane."""

    entry: CascadeEntry
    column: int
    lane: int


def render(view: TriageView) -> Html:
    """Render the cascade; nothing where nothing failed, or where all of it is one process's."""
    diagnosis, language = view.diagnosis, view.language
    if diagnosis is None or not diagnosis.cascade:
        return EMPTY
    title = say(
        "cascade-recovered" if all(entry.role == "recovered" for entry in diagnosis.cascade) else "cascade",
        language,
    )
    entries = in_time(diagnosis.cascade)
    is_one = len(lanes(entries, language)) < 2 and entries[0].count < 2
    if is_one and any(entry.role == "root" for entry in entries):
        # One process spreads nothing; what followed stands in the explanation and in the log.
        return EMPTY
    plot = _plot(entries, language) if len(entries) > 1 and not is_one else None
    rows = element("ol", *(_item(entry, language) for entry in entries), class_="spread")
    told = (
        rows
        if len(entries) <= SHORT
        else folded(say("cascade-list", language, count=len(entries)), rows, key="spread")
    )
    return element(
        "section", element("h2", title), plot, told, id="wc-cascade", class_="card", aria_label=title
    )


def in_time(entries: Sequence[CascadeEntry]) -> Sequence[CascadeEntry]:
    """Order the entries of several files by the clock, where each file shows one.

    Line numbers order those of one file.
    """
    files = {entry.file for entry in entries}
    clocks = {file: [_clock(entry) for entry in entries if entry.file == file] for file in files}
    if len(files) < 2 or not all(any(found) for found in clocks.values()):
        return entries
    # A line without a time of its own came with the one before it.
    last = {file: next(filter(None, found)) for file, found in clocks.items()}
    keyed: list[tuple[str, int, CascadeEntry]] = []
    for place, entry in enumerate(entries):
        last[entry.file] = _clock(entry) or last[entry.file]
        keyed.append((last[entry.file], place, entry))
    return [entry for _, _, entry in sorted(keyed, key=lambda item: item[:2])]


def _clock(entry: CascadeEntry) -> str:
    match = _CLOCK.search(entry.time or "")
    return f"{match['time']:0>8}{(match['part'] or '').replace(',', '.')}" if match else ""


def lanes(entries: Sequence[CascadeEntry], language: Language) -> list[CascadeLane]:
    """Give the processes in the order in which they failed, and the silent ranks behind them."""
    named: dict[str, bool] = {}
    for entry in entries:
        owner, is_first = _owner(entry, language), bool(entry.missing_ranks) and entry.count > 1
        named[owner] = named.get(owner, False) or is_first
    silent = dict.fromkeys(_numbers(entry.silent_ranks) for entry in entries if entry.silent_ranks)
    return [
        *(CascadeLane(name, is_first=is_first) for name, is_first in named.items()),
        *(CascadeLane(say("silent", language, ranks=ranks), True) for ranks in silent),
    ][:MAX_LANES]


def dots(
    entries: Sequence[CascadeEntry], named: Sequence[CascadeLane], language: Language
) -> list[CascadeDot]:
    """Place each entry; one whose process has no lane of its own stands in the last."""
    place: Mapping[str, int] = {lane.name: number for number, lane in enumerate(named)}
    return [
        CascadeDot(entry, column, place.get(_owner(entry, language), len(named) - 1))
        for column, entry in enumerate(entries)
    ]


def _owner(entry: CascadeEntry, language: Language) -> str:
    own = entry.source or say("job", language)
    return f"{entry.file} · {own}" if entry.file and entry.source else entry.file or own


def _numbers(ranks: Sequence[int]) -> str:
    told = ", ".join(map(str, ranks[:MAX_NAMED]))
    return f"{told}…" if len(ranks) > MAX_NAMED else told


def _plot(entries: Sequence[CascadeEntry], language: Language) -> Html:
    named = lanes(entries, language)
    count = sum(not lane.is_silent for lane in named)
    label = say("cascade-plot", language, lanes=counted("cascade-lanes", "cascade-lane", count, language))
    height = _LANE * len(named) + _AXIS
    names = (
        element(
            "li",
            told := say("and-others", language, name=lane.name) if lane.is_first else lane.name,
            class_="silent" if lane.is_silent else None,
            title=told,
        )
        for lane in named
    )
    heights = [f"{_middle(number):g}" for number in range(len(named))]
    grid = (
        element("line", x1="0%", x2="100%", y1=y, y2=y, class_="lane silent" if lane.is_silent else "lane")
        for y, lane in zip(heights, named, strict=True)
    )
    svg = element(
        "svg",
        *grid,
        *_trail(dots(entries, named, language), len(entries)),
        *_marks(dots(entries, named, language), len(entries)),
        *_axis(entries, len(named)),
        width="100%",
        height=str(height),
        role="img",
        aria_label=label,
    )
    return element("div", element("ol", *names, class_="lanes", aria_hidden="true"), svg, class_="plot")


def _across(column: int, columns: int) -> float:
    return _LEFT + (_RIGHT - _LEFT) * column / max(1, columns - 1)


def _middle(lane: int) -> float:
    return _LANE * (lane + 0.5)


def _trail(placed: Sequence[CascadeDot], columns: int) -> Iterator[Html]:
    """Draw from each failure to the next one."""
    standing = [dot for dot in placed if dot.entry.role != "recovered"]
    for one, other in pairwise(standing):
        yield element(
            "line",
            x1=f"{_across(one.column, columns):.2f}%",
            y1=f"{_middle(one.lane):g}",
            x2=f"{_across(other.column, columns):.2f}%",
            y2=f"{_middle(other.lane):g}",
            class_="trail",
        )


def _marks(placed: Sequence[CascadeDot], columns: int) -> Iterator[Html]:
    for dot in placed:
        x, y = f"{_across(dot.column, columns):.2f}%", _middle(dot.lane)
        told = element("title", f"L{dot.entry.line} {dot.entry.event}"[:200])
        yield element(
            "circle",
            told,
            cx=x,
            cy=f"{y:g}",
            r="9" if dot.entry.role == "root" else "6",
            class_=f"dot r-{dot.entry.role}",
            data_line=str(dot.entry.line),
            data_file=dot.entry.file,
        )
        if dot.entry.count > 1:
            yield element("text", f"×{dot.entry.count}", x=x, y=f"{y - 11:g}", class_="times")


def _axis(entries: Sequence[CascadeEntry], count: int) -> Iterator[Html]:
    """Write line numbers and clock times below, where there is room for them."""
    y = _LANE * count + 14
    every = max(1, -(-len(entries) // 7))
    for column in range(0, len(entries), every):
        x = f"{_across(column, len(entries)):.2f}%"
        yield element("text", f"L{entries[column].line}", x=x, y=str(y), class_="tick")
        clock = _clock(entries[column])[:8]
        if clock:
            yield element("text", clock, x=x, y=str(y + 14), class_="tick clock")


def _item(entry: CascadeEntry, language: Language) -> Html:
    missing = say("silent-told", language, ranks=_numbers(entry.missing_ranks)) if entry.missing_ranks else ""
    told = [
        part
        for part in (entry.source, entry.time or "", f"×{entry.count}" if entry.count > 1 else "", missing)
        if part
    ]
    return element(
        "li",
        element("span", say(f"role-{entry.role}", language), class_=f"chip r-{entry.role}"),
        " ",
        prose.citation(entry.place),
        " ",
        element("code", entry.event.strip()),
        join(" ", element("span", " · ".join(told), class_="by")) if told else None,
    )
