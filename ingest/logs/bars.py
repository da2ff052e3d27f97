"""Progress bars as they were drawn last: whether a job's main work reached its end."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ingest.logs.lines import Line, parse_line
from ingest.logs.wording import prepares

# The bar of a job's main work takes at least so many seconds.
MAIN_WORK = 60
# So few lines may stand behind it where the job ends with it: its results, a word of farewell.
FAREWELL = 12
# A bar that is left before so much of its length stands amid its work.
NEARLY = 0.9
# So many of the last redrawings of a row are read.
REDRAWN = 24
# So many bars of a file are told apart.
MOST_BARS = 512
# Count, length and the time taken, as tqdm and those that look like it draw them.
_DRAWN = re.compile(
    r"\d{1,3}%\|[^|\n]{0,400}\| {0,3}(?P<step>\d{1,12})/(?P<total>\d{1,12}) \["
    r"(?:(?:(?P<days>\d{1,3})d(?:ays?)?,? )?(?P<hours>\d{1,4}):)?(?P<minutes>\d\d):(?P<seconds>\d\d)<"
)


class BarState(NamedTuple):
    """A bar as it was drawn last: its count, where that ends, and the seconds that it has taken.

    `is_anew` tells that it began again, as that of an epoch does, and `prepares` that its description is of
    loading or preparing something, not of the work itself. `began` is the line that it was first drawn in,
    `moved` the one in which it came to its count; `is_still` tells that it was never seen at another one.
    """

    line: int
    step: int
    total: int
    seconds: int
    prepares: bool
    began: int
    moved: int
    is_still: bool = True
    is_anew: bool = False

    def following(self, before: BarState) -> BarState:
        """Give the same bar drawn after it was drawn as `before`."""
        is_anew = (self.step, self.seconds) < (before.step, before.seconds)
        moved = before.moved if self.step == before.step and not is_anew else self.moved
        is_anew = is_anew or self.is_anew or before.is_anew
        is_still = before.is_still and self.is_still and self.step == before.step
        return self._replace(is_anew=is_anew, began=before.began, moved=moved, is_still=is_still)


@dataclass
class Bars:
    """The bars of one file, told apart by the process that draws them and by their length."""

    _states: dict[tuple[str, int], BarState] = field(default_factory=dict)

    def draw(self, line: Line) -> None:
        """Note the bar of a line, if it holds one."""
        drawn = _DRAWN.search(line.text)
        if drawn is None:
            return
        key = (line.source, int(drawn["total"]))
        before = self._states.get(key)
        if before is None and len(self._states) >= MOST_BARS:
            return
        days, hours, minutes = (int(drawn[name] or 0) for name in ("days", "hours", "minutes"))
        step, seconds = int(drawn["step"]), ((days * 24 + hours) * 60 + minutes) * 60 + int(drawn["seconds"])
        at = line.number
        now = BarState(at, step, key[1], seconds, prepares(line.body), began=at, moved=at)
        self._states[key] = now if before is None else now.following(before)

    def draw_last(self, rows: Iterable[tuple[int, bytes]]) -> None:
        """Note the bars that the last rows of a file end with, whose redrawings stand in one row.

        Some of them are known already, so that they are ordered among themselves first.
        """
        last = Bars()
        for number, raw in rows:
            if b"%|" in raw:
                for part in raw.rsplit(b"\r", REDRAWN)[1 if raw.count(b"\r") > REDRAWN else 0 :]:
                    last.draw(parse_line(part, number))
        for key, now in last._states.items():
            before = self._states.get(key)
            self._states[key] = now if before is None else now.following(before)

    def worked_through(self, last_line: int) -> BarState | None:
        """Give the bar of the job's main work if it came to its end in the last lines of the file.

        That is the bar that is drawn last. It takes at least a minute and longer than any other, it began
        once, and no other bar of work is left short of its end.
        """
        main = max(self._states.values(), key=lambda bar: (bar.line, bar.seconds), default=None)
        if main is None or main.prepares or main.is_anew or main.seconds < MAIN_WORK:
            return None
        others = self._states.values()
        # One that was begun within the main one, which has counted on since, is over, drawn last or not.
        within = [bar for bar in others if main.began < bar.began and bar.line < main.moved]
        is_whole = all(bar.step >= bar.total for bar in others if not bar.prepares and bar not in within)
        is_longest = all(bar.seconds <= main.seconds for bar in others)
        is_last = 0 <= last_line - main.line <= FAREWELL
        return main if is_whole and is_longest and is_last else None

    @property
    def is_whole(self) -> bool:
        """Tell whether the bar that was drawn last came to its end."""
        last = max(self._states.values(), key=lambda bar: bar.line, default=None)
        return last is not None and last.step >= last.total

    def is_amid(self, since: int, last_line: int) -> bool:
        """Tell whether the file ends with a bar of work that has counted on behind a line and is left amid.

        A trainer that ends draws its bar once more as it was; one that was begun there is drawn from 0 on.
        """
        main = max(self._states.values(), key=lambda bar: bar.line, default=None)
        if main is None or main.prepares or not since < main.moved or last_line - main.line > 1:
            return False
        return not main.is_still and 0 < main.step < NEARLY * main.total
