"""The order of what the parts of one job say: by their clocks where they have them, else by place.

In one file the place is the order. In several (a file a rank, say) line 5 of one and line 900 of another can
be the same second; and the clocks of two nodes may differ, which the steps that both count tell.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from string import digits

from ingest.logs.clock import parse_time, parse_uptime
from ingest.logs.events import Event

# Steps by which two parts' clocks are compared; fewer tell nothing.
STEPS = 4096
MIN_STEPS = 3
# Steps of all parts whose lines are kept; of more, every second one is let go, and again.
COURSE = 512
# A difference under this, in seconds, is the step's own jitter.
JITTER = 5.0
# A year for clocks that name none, where no other clock of the job names one; only differences matter then.
YEAR = 2024
_YEAR = re.compile(r"\b(20\d\d)\b")
# So many forms of clocks are told apart.
FORMS = 64
_DIGIT = re.compile(r"\d")
_DIGITS = str.maketrans(digits, "0" * len(digits))
# The last lines of a part, where what stands ended it.
LAST_LINES = 40


@dataclass(slots=True)
class Part:
    """One file of a job; `first` is the number of its first line when all parts are counted on."""

    name: str
    first: int
    lines: int = 0
    steps: dict[float, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Place:
    """A line as its reader finds it.

    The file (empty where there is one only) and its 1-based number there.
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:L{self.line}" if self.file else f"L{self.line}"


@dataclass
class Timeline:
    """The parts of a job in the order of reading, and when their lines were printed."""

    parts: list[Part] = field(default_factory=list)
    _times: dict[int, str] = field(default_factory=dict)
    _clock: str = ""
    # By the form of the clocks: how many there were, the first and the last.
    _clocks: dict[str, tuple[int, str, str]] = field(default_factory=dict, repr=False)
    _uptime: float = 0.0
    _order: dict[int, float] = field(default_factory=dict)
    _course: list[tuple[int, float]] = field(default_factory=list, repr=False)
    _stride: int = 1
    _counted: int = 0

    @property
    def has_parts(self) -> bool:
        """Tell whether there is more than one file."""
        return len(self.parts) > 1

    def begin(self, name: str, first: int) -> None:
        """Begin the next part."""
        self.parts.append(Part(name, first))
        self._clock = ""

    def end(self, lines: int) -> None:
        """End the part, which has so many lines."""
        self.parts[-1].lines = lines

    def lines_after(self, line: int) -> int:
        """Count the lines behind one in its file, once that was read to its end; 0 before any was read."""
        part = self.parts[self.number(line)] if self.parts else Part("", 1)
        return max(0, part.first + part.lines - 1 - line)

    def see(self, time: str) -> None:
        """Note the time of a line, which those below it without one share."""
        if time and self.note(time):
            self._clock = time

    def note(self, time: str) -> bool:
        """Count a time towards how long the job printed, whatever its line tells of.

        Tell whether it is one of a clock, and not how long a cluster was up.
        """
        if (uptime := parse_uptime(time)) is not None:
            self._uptime = max(self._uptime, uptime)
            return False
        form = f"{len(self.parts)} {time.translate(_DIGITS) if time.isascii() else _DIGIT.sub('0', time)}"
        if form in self._clocks or len(self._clocks) < FORMS:
            count, first, _ = self._clocks.get(form, (0, time, ""))
            self._clocks[form] = (count + 1, first, time)
        return True

    @property
    def seconds(self) -> float | None:
        """Give how long the job printed, by the clock that it printed most; None where none tells a day.

        How long its cluster was up tells no less, where only the first lines have a clock.
        """
        spans = []
        for count, first, last in self._clocks.values():
            began, ended = parse_time(first, YEAR), parse_time(last, YEAR)
            if began is not None and ended is not None and ended > began:
                spans.append((count, ended - began))
        told = max(spans)[1] if spans else 0.0
        return max(told, self._uptime) or None

    def mark(self, step: float, time: str) -> None:
        """Note when the part reached a step."""
        steps = self.parts[-1].steps
        if time and step >= 0 and len(steps) < STEPS:
            steps.setdefault(step, time)

    def count(self, line: int, step: float) -> None:
        """Note the line at which a step of the training was counted."""
        self._counted += 1
        if self._counted % self._stride == 0:
            self._course.append((line, step))
        if len(self._course) > COURSE:
            self._course = self._course[::2]
            self._stride *= 2

    def steps_within(self, first: int, last: int) -> list[tuple[float, float]]:
        """Give the steps known to be counted in these lines, in order: each count from where to where.

        A new one begins where a step is lower than the one before it, as at a new epoch or attempt.
        """
        counts: list[tuple[float, float]] = []
        for line, step in self._course:
            if first <= line <= last:
                if counts and step >= counts[-1][1]:
                    counts[-1] = (counts[-1][0], step)
                else:
                    counts.append((step, step))
        return counts

    def event(self, line: int, time: str) -> None:
        """Note the time of an event's line."""
        self.see(time)
        self._times.setdefault(line, self._clock)

    def settle(self, events: Iterable[Event]) -> None:
        """Work out the order of all events; call when everything was read."""
        if not self.has_parts:
            return
        texts = [text for part in self.parts for text in part.steps.values()]
        year = next(
            (int(match[1]) for text in (*self._times.values(), *texts) if (match := _YEAR.search(text))), YEAR
        )
        offsets = self.offsets(year)
        for event in events:
            when = parse_time(event.time or self._times.get(event.line, ""), year)
            if when is not None:
                self._order[event.line] = when - offsets[self.number(event.line)]

    def order(self, event: Event) -> tuple[float, int]:
        """Give what events are sorted by: one whose time is not known comes after those with a clock."""
        return (self._order.get(event.line, math.inf), event.line) if self._order else (0.0, event.line)

    def until(self, line: int) -> int:
        """Give the last line of the part that holds a line."""
        part = self.parts[self.number(line)] if self.parts else None
        return part.first + part.lines - 1 if part and part.lines else 1 << 62

    def is_last_word(self, event: Event) -> bool:
        """Tell whether an event stands at the end of its part."""
        return self.until(event.line) - event.last < LAST_LINES

    def place(self, line: int) -> Place:
        """Give the file and the line in it."""
        if not self.has_parts:
            return Place("", line)
        part = self.parts[self.number(line)]
        return Place(part.name, line - part.first + 1)

    def number(self, line: int) -> int:
        """Give the number of the part that holds a line, from 0."""
        return max(0, bisect_right([part.first for part in self.parts], line) - 1)

    def offsets(self, year: int) -> list[float]:
        """Give how far each part's clock is ahead of that of the part with the most steps, in seconds."""
        clocks = []
        for part in self.parts:
            told = ((step, parse_time(text, year)) for step, text in part.steps.items())
            clocks.append({step: when for step, when in told if when is not None})
        reference = max(clocks, key=len)
        return [_offset(clock, reference) for clock in clocks]


def _offset(steps: dict[float, float], reference: dict[float, float]) -> float:
    """Give the difference of two clocks; 0 where too few steps are common, or they do not agree on one."""
    gaps = [when - reference[step] for step, when in steps.items() if step in reference]
    if len(gaps) < MIN_STEPS:
        return 0.0
    middle = median(gaps)
    spread = median(abs(gap - middle) for gap in gaps)
    return middle if abs(middle) > JITTER and spread < abs(middle) / 4 else 0.0
