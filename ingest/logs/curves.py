"""The numbers that a job printed or logged over its steps, and where one of them went wrong.

Of a long log so many rows are read as show its course.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from statistics import median
from typing import Literal, NamedTuple

from corpus import curves
from corpus.curves import CurveKind, Spellings, Tell
from corpus.log_patterns import Pattern
from ingest.logs.lines import Line, parse_line
from ingest.logs.scanner import Block

Finding = Literal["broken", "zero", "jump", "rise", "slow", "behind"]
# So many rows show a log's course, so much of one is looked at, and so many sources are told apart.
COURSE, LONGEST, SOURCES = 512, 8192, 64
# Every so many rows a new spelling is looked for.
LEARNS = 16
# Fewer points show no course, and fewer after a change may be a slip.
LEAST, LEAST_SINCE = 8, 3
# How many times the value before a leap is, how much of it must stay, and so much longer steps are slow.
LEAP, STAYS, SLOWER = 20.0, 5.0, 2.0
# Growth: how straight it is, how many readings rise, and how much it is in all.
STRAIGHT, RISING, GROWN = 0.7, 0.8, 1.3
# So many ranks or processes show what is usual, and so much longer than theirs one takes that is behind.
FEWEST, BEHIND = 3, 1.5
# So many points before a leap are what it is measured against.
BEFORE = 50


class Point(NamedTuple):
    """One value: the step that it was told at, and its line, 0 where it stands in no log."""

    step: float
    value: float
    line: int = 0


@dataclass(frozen=True, slots=True)
class LoggedCurve:
    """How a number went. `since` is where it went wrong, `before` what it was until then.

    `full_at` is the step at which what grows would reach the machine's limit. `counts_steps` tells that the
    points stand at steps; else at the rows that told them. `source` is the rank or process that is behind
    the others, whose median is `before`.
    """

    name: str
    points: tuple[Point, ...]
    finding: Finding | None = None
    since: Point | None = None
    before: float | None = None
    full_at: float | None = None
    counts_steps: bool = True
    source: str = ""


@dataclass
class CurveLog:
    """Gathers the numbers of one job's log while it goes by.

    Rows of progress are searched for at the ends of each block alone; between them rows are sampled here, at
    equal distances that grow with the log.
    """

    _series: dict[tuple[str, str], list[Point]] = field(default_factory=dict)
    _sources: set[str] = field(default_factory=set)
    _spellings: Spellings = field(default_factory=Spellings)
    _progress_pattern: Pattern | None = None
    _distance: int = 0
    _read: int = 0
    _limit: float = 0.0
    _memory: list[Point] = field(default_factory=list)
    _counts_steps: bool = True

    def see(self, pattern: Pattern, line: Line, step: float) -> None:
        """Note the numbers of a line of progress that `pattern` found; `step` is -1 where it tells none."""
        if self._put(line, step):
            self._progress_pattern = pattern

    def sample(self, block: Block) -> None:
        """Read rows of a block between those that are searched for."""
        if self._progress_pattern is None:
            return
        data, place = block.data, block.start
        self._distance = self._distance or max(1, (block.stop - place) // COURSE)
        while place < block.stop:
            begin = data.rfind(b"\n", 0, place) + 1
            end = data.find(b"\n", place)
            end = len(data) if end < 0 else end
            text = parse_line(data[begin : min(end, begin + LONGEST)], block.number(begin))
            if match := self._progress_pattern.compiled.search(text.text):
                step = match.groupdict().get("step")
                self._put(text, float(step) if step else -1.0)
            place = max(end + 1, place + self._distance)

    def _put(self, line: Line, step: float) -> bool:
        """Add the numbers that a line tells to the curves of its source; False where it tells none."""
        source = line.source
        if source not in self._sources and len(self._sources) >= SOURCES:
            return False
        is_new = self._read % LEARNS == 0
        values = self._spellings.learn(line.text) if is_new else self._spellings.values(line.text)
        self._read += 1
        if not values:
            return False
        self._sources.add(source)
        self._counts_steps = self._counts_steps and step >= 0
        for item in values:
            place = step if step >= 0 else float(line.number)
            self._series.setdefault((item.kind, source), []).append(Point(place, item.value, line.number))
        if self._read >= 2 * COURSE:
            self._read //= 2
            self._distance *= 2
            self._series = {key: course[::2] for key, course in self._series.items()}
        return True

    def see_memory(self, used: float, limit: float, line: int) -> None:
        """Note a reading of the host's memory, in GiB."""
        self._limit = max(self._limit, limit)
        if len(self._memory) < COURSE:
            self._memory.append(Point(float(line), used, line))

    def _memory_at_steps(self) -> list[Point]:
        """Give the readings of memory at the steps that were told last before them."""
        told = sorted(
            {point.line: point.step for course in self._series.values() for point in course}.items()
        )
        lines = [line for line, _ in told]
        return [
            Point(told[place - 1][1], reading.value, reading.line)
            for reading in self._memory
            if (place := bisect_right(lines, reading.line))
        ]

    def curves(self, logged: Mapping[str, Mapping[int, float]]) -> tuple[LoggedCurve, ...]:
        """Give the curves of the log, and of what was logged beside it, those that went wrong first."""
        if not (self._series or self._memory or logged):
            return ()
        for key, course in self._series.items():
            # A row at a block's end may be sampled as well.
            self._series[key] = list(
                {point.line: point for point in sorted(course, key=attrgetter("line"))}.values()
            )
        if self._memory:
            self._series["host-memory", ""] = self._memory_at_steps() if self._counts_steps else self._memory
        table = curves.load()
        found: dict[str, tuple[list[Point], bool]] = {}
        for (name, _), course in self._series.items():
            if len(course) > len(found.get(name, ((), True))[0]):
                found[name] = (course, self._counts_steps)
        for name, values in logged.items():
            kind = table.of(name)
            if kind is not None and len(values) > len(found.get(kind.name, ((), True))[0]):
                found[kind.name] = ([Point(step, value) for step, value in sorted(values.items())], True)
        behind = {
            name: found_behind
            for name in found
            if "behind" in table.kind(name).tells and (found_behind := self._behind(name)) is not None
        }
        told = [
            behind.get(name) or curve_of(table.kind(name), course, limit=self._limit, counts_steps=counts)
            for name, (course, counts) in found.items()
            if len(course) >= LEAST
        ]
        order = [kind.name for kind in table.kinds]
        return tuple(sorted(told, key=lambda curve: (curve.finding is None, order.index(curve.name))))

    def _behind(self, name: str) -> LoggedCurve | None:
        """Find the one rank or process whose steps take longer than those of all others, all along."""
        courses = {
            source: [point for point in course if math.isfinite(point.value)]
            for (kind, source), course in self._series.items()
            if kind == name and source and len(course) >= LEAST
        }
        if len(courses) < FEWEST:
            return None
        usual = {source: median(point.value for point in course) for source, course in courses.items()}
        slowest = max(usual, key=lambda source: usual[source])
        others = [value for source, value in usual.items() if source != slowest]
        course = courses[slowest]
        early = median(point.value for point in course[: max(LEAST // 2, len(course) // 4)])
        if max(others) <= 0 or min(early, usual[slowest]) < BEHIND * max(others):
            return None
        return LoggedCurve(
            name,
            tuple(course),
            "behind",
            course[0],
            median(others),
            counts_steps=self._counts_steps,
            source=slowest,
        )


def curve_of(
    kind: CurveKind, course: Sequence[Point], *, limit: float = 0.0, counts_steps: bool = True
) -> LoggedCurve:
    """Tell how a number went, by what is looked for in its kind; `limit` is what the machine has of it."""
    points = tuple(course)
    if broken := _broken(points):
        finite = [point.value for point in points if math.isfinite(point.value)]
        before = finite[-1] if finite else None
        return LoggedCurve(kind.name, points, "broken", broken, before, counts_steps=counts_steps)
    whole = [point for point in points if math.isfinite(point.value)]
    for tell in kind.tells:
        # What is behind is told among several.
        if tell != "behind" and (found := _FINDERS[tell](whole, kind.share)):
            since, before = found
            full = _full_at(whole, limit) if tell == "rise" else None
            return LoggedCurve(kind.name, points, tell, since, before, full, counts_steps)
    return LoggedCurve(kind.name, points, counts_steps=counts_steps)


def _broken(points: Sequence[Point]) -> Point | None:
    """Give the first point from which on no value is a finite number."""
    since = None
    for point in reversed(points):
        if math.isfinite(point.value):
            break
        since = point
    return since


def _zero(points: Sequence[Point], share: float) -> tuple[Point, float] | None:
    """Find where a number fell to nothing and stayed there, after it had been something."""
    most = share * median(abs(point.value) for point in points[: max(1, len(points) // 2)])
    place = len(points)
    while place > 0 and abs(points[place - 1].value) <= most:
        place -= 1
    before = [abs(point.value) for point in points[:place] if point.value]
    is_told = len(points) - place >= max(LEAST_SINCE, len(points) // 20) and len(before) >= LEAST_SINCE
    return (points[place], points[place - 1].value) if is_told else None


def _jump(points: Sequence[Point], _share: float) -> tuple[Point, float] | None:
    """Find where a number leapt to a multiple and stayed."""
    values = [abs(point.value) for point in points]
    lowest = list(values)
    for place in range(len(values) - 2, -1, -1):
        lowest[place] = min(lowest[place], lowest[place + 1])
    for place in range(LEAST, len(values) - LEAST_SINCE + 1):
        if values[place] < LEAP * min(values[max(0, place - BEFORE) : place]):
            continue
        before = median(values[max(0, place - BEFORE) : place])
        if before > 0 and values[place] >= LEAP * before and lowest[place] >= STAYS * before:
            return points[place], before
    return None


def _rise(points: Sequence[Point], _share: float) -> tuple[Point, float] | None:
    """Find growth that goes on all along."""
    values = [point.value for point in points]
    if len(values) < LEAST or values[0] <= 0 or values[-1] < GROWN * values[0]:
        return None
    rising = sum(later >= earlier for earlier, later in pairwise(values)) / (len(values) - 1)
    _, straight = _line(points)
    return (points[0], values[0]) if rising >= RISING and straight >= STRAIGHT else None


def _slow(points: Sequence[Point], _share: float) -> tuple[Point, float] | None:
    """Find where steps began to take a multiple of what they took before, to the end."""
    if len(points) < 2 * LEAST:
        return None
    before = median(point.value for point in points[: len(points) // 2])
    last = median(point.value for point in points[-(len(points) // 4) :])
    if before <= 0 or last < SLOWER * before:
        return None
    place = len(points)
    while place > 0 and points[place - 1].value >= SLOWER * before:
        place -= 1
    return (points[place], before) if len(points) - place >= LEAST_SINCE else None


_FINDERS: Mapping[Tell, Callable[[Sequence[Point], float], tuple[Point, float] | None]] = {
    "zero": _zero,
    "jump": _jump,
    "rise": _rise,
    "slow": _slow,
}


def _line(points: Sequence[Point]) -> tuple[float, float]:
    """Give the slope of the straight line through the points, and how much of their spread it explains."""
    count = len(points)
    middle = sum(point.step for point in points) / count
    level = sum(point.value for point in points) / count
    across = sum((point.step - middle) ** 2 for point in points)
    along = sum((point.value - level) ** 2 for point in points)
    both = sum((point.step - middle) * (point.value - level) for point in points)
    if across == 0 or along == 0:
        return 0.0, 0.0
    return both / across, both * both / (across * along)


def _full_at(points: Sequence[Point], limit: float) -> float | None:
    """Give the step at which what grows reaches the limit; None where none is known or it has passed it."""
    slope, _ = _line(points)
    last = points[-1]
    if limit <= last.value or slope <= 0:
        return None
    return last.step + (limit - last.value) / slope


def thinned(points: Sequence[Point], most: int) -> Iterator[Point]:
    """Give no more than so many points over the whole course, the first and the last among them."""
    if len(points) <= most:
        yield from points
        return
    step = (len(points) - 1) / (most - 1)
    yield from (points[round(place * step)] for place in range(most))
