"""Lines that say again what was read in full already: counted, not read.

A loop that fails a million times, or a warning at every step, would otherwise cost as much as all the rest
of a log. What differs only in its digits is the same line here. Each pattern has an allowance of its own, so
that a flood of one never hides another that is rare.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ingest.logs.events import GroupKey

# So many lines of one wording are read in full: more ranks than most jobs have.
FULL = 512
# So many wordings are told apart, and so many lines of one pattern are read in full at most.
WORDINGS = 40_000
ALLOWANCE = 20_000
# What of a line, or of a traceback, makes its wording.
LINE_HEAD = 400
STACK_HEAD = 1200
# How far the line that ends a traceback is looked for.
STACK_REACH = 64 << 10
STACKS = 64
# Through so many exceptions that one traceback tells of its last line is looked for.
LINKS = 8

_HEADER = b"Traceback ("
# What stands between two exceptions of one traceback, with a blank row above and below.
_BETWEEN = (b"During handling of the above", b"The above exception was")
_DIGITS = b"0123456789"


class StackExtent(NamedTuple):
    """Where a traceback stands: its header's row, the header in it, and its last row, -1 where none ends it.

    Lines of other processes may stand among its own, which all begin as the header's row does.
    """

    begin: int
    header: int
    last: int
    end: int

    @property
    def is_ended(self) -> bool:
        """Tell whether the row is known that ends it."""
        return self.last >= 0


def stack_extent(data: bytes, begin: int) -> StackExtent:
    """Give where the traceback stands whose header's row begins at a place."""
    header = data.find(_HEADER, begin, begin + LINE_HEAD)
    newline = _last_row(data, begin, b"\n" + data[begin:header]) if header >= 0 else -1
    if newline < 0:
        return StackExtent(begin, header, -1, -1)
    end = data.find(b"\n", newline + 1)
    return StackExtent(begin, header, newline + 1, len(data) if end < 0 else end)


def stack_wording(data: bytes, at: StackExtent) -> bytes:
    """Give what tells a traceback from others: how it begins, and the line that ends it.

    Ranks that fail in the same deep calls differ in that line alone. Where no end is found (a prefix with a
    clock), the beginning tells.
    """
    if not at.is_ended:
        return data[at.begin : at.begin + STACK_HEAD]
    newline = at.last - 1
    return (
        data[at.begin : min(newline, at.begin + STACK_HEAD)]
        + data[newline : min(at.end, newline + LINE_HEAD)]
    )


def _last_row(data: bytes, begin: int, mark: bytes) -> int:
    """Give where the row stands that ends a traceback, -1 where none does.

    `mark` is a line's end and the prefix of the next one. The next traceback's header ends the search, so
    that a flood of them costs what it is long.
    """
    last, links, is_linked = -1, 0, False
    # A process that says no more would else be looked for to the end of the block.
    stop = begin + STACK_REACH + len(mark) - 1
    place = data.find(mark, begin, stop)
    while place >= 0:
        row = place + len(mark)
        below = data.find(mark, row, stop)
        is_indented = data[row : row + 1].isspace()
        if last >= 0:
            is_blank = data[row : row + 1] in (b"\n", b"\r")
            below = data.find(mark, row) if is_blank and below < 0 else below
            goes_on = is_blank and below >= 0 and data.startswith(_BETWEEN, below + len(mark))
            if not is_indented or (is_blank and not goes_on) or links == LINKS:
                break
            last = -1
        elif data.startswith(_BETWEEN, row):
            links, is_linked = links + 1, True
        elif data.startswith(_HEADER, row):
            if not is_linked:
                break
            is_linked = False
        elif not is_indented:
            last = place
        place = below if below < begin + STACK_REACH else -1
    return last


@dataclass(slots=True)
class Sighting:
    """How often a wording was seen, the last line of it, and the group that its event went to."""

    count: int = 0
    last: int = 0
    group: GroupKey | None = None
    full: int = FULL

    @property
    def is_known(self) -> bool:
        """Tell whether enough of this wording was read in full."""
        return self.count > self.full


@dataclass
class Repeats:
    """What was seen so far, by wording.

    `omitted` counts lines that were neither read nor counted with others.
    """

    omitted: int = 0
    _sights: dict[tuple[tuple[int, ...], bytes], Sighting] = field(default_factory=dict)
    _spent: dict[int, int] = field(default_factory=dict)

    def sight(self, rows: tuple[int, ...], raw: bytes, line: int, full: int = FULL) -> Sighting:
        """Note one more line of these patterns and this wording."""
        key = rows, raw.translate(None, _DIGITS)
        found = self._sights.get(key)
        if found is None:
            found = Sighting(full=full)
            if len(self._sights) < WORDINGS:
                self._sights[key] = found
        return self.again(found, line)

    def again(self, sight: Sighting, line: int) -> Sighting:
        """Note one more line of a wording that was seen."""
        sight.count += 1
        sight.last = line
        return sight

    @property
    def is_full(self) -> bool:
        """Tell whether no further wording is remembered."""
        return len(self._sights) >= WORDINGS

    def counted(self) -> Iterator[Sighting]:
        """Give what was counted and not read."""
        return (sight for sight in self._sights.values() if sight.is_known)

    def is_spent(self, rows: tuple[int, ...], counts: bool = True) -> bool:
        """Charge a line that is to be read in full.

        Tell whether every pattern in it has used up its allowance.
        """
        counted, spent = self._spent, True
        for row in rows:
            count = counted.get(row, 0)
            spent = spent and count >= ALLOWANCE
            counted[row] = count + 1
        self.omitted += spent and counts
        return spent
