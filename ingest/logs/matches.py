"""What is found in a block: matches of patterns, and where headings and delimiters of samples may stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ingest.logs.line_index import LineIndex, Numbers
from ingest.logs.scan_windows import LONG_LINE, around_matches, is_overrun

_SPACE = ord(" ")


class Match(NamedTuple):
    """A pattern's match: its row number, the line, and where in the block it ends."""

    row: int
    line: int
    offset: int


class Headings(NamedTuple):
    """In their order: the number of each one's row, its line, and where in the block it ends."""

    rows: list[int]
    lines: list[int]
    offsets: list[int]


class Found(NamedTuple):
    """What the scanner finds in a block: matches by place, and proposed headings of samples."""

    matches: list[Match]
    headings: Headings


# Gives where matches end in some bytes, each with its row in the last bits: a large log has hundreds of
# thousands, and NumPy makes an array of numbers several times as fast as one of pairs.
EndsIn = Callable[[bytes], list[int]]
ROW_BITS = 20
_ROW = (1 << ROW_BITS) - 1
NONE = Headings([], [], [])


def find_headings(
    ends_in: EndsIn, data: bytes, index: LineIndex, own: tuple[int, int], places: Sequence[int], line: int
) -> Headings:
    """Search a block around its matches, which are at some places.

    `own` is the block's own part, and `line` the number of its first line. Each row is told once a line, or
    once in `LONG_LINE` bytes of a line that is longer.
    """
    parts = around_matches(index, data, *own, places)
    told = [(begin, found) for begin, stop in parts if (found := ends_in(data[begin:stop]))]
    # Most pastes have none, and every call of NumPy costs microseconds.
    if not told:
        return NONE
    codes = np.concatenate([np.array(found, np.intp) + (begin << ROW_BITS) for begin, found in told])
    codes.sort()
    ends, rows = codes >> ROW_BITS, codes & _ROW
    is_own = (ends > own[0]) & (ends <= own[1])
    ends, rows = ends[is_own], rows[is_own]
    is_blank = np.frombuffer(data, np.uint8)[ends - 1] <= _SPACE
    is_kept = np.ones(len(ends), bool)
    for place in np.flatnonzero(is_blank).tolist():
        is_kept[place] = not is_overrun(data, int(ends[place]))
    ends, rows = ends[is_kept], rows[is_kept]
    if not len(ends):
        return NONE
    above = index.above_each(ends - 1)
    kept = _once_a_line(ends, rows, above)
    return Headings(rows[kept].tolist(), (line + above[kept]).tolist(), (ends[kept] - 1).tolist())


def _once_a_line(ends: Numbers, rows: Numbers, above: Numbers) -> Numbers:
    """Give which matches are the first of their row in a line; `above` counts the lines above each."""
    # By line and row, and each in the order in which they stand.
    places = above << ROW_BITS | rows
    order = np.argsort(places, kind="stable")
    kept = []
    while len(order):
        firsts = np.flatnonzero(np.diff(places[order], prepend=-1))
        kept.append(order[firsts])
        silent_until = np.repeat(ends[order[firsts]], np.diff(firsts, append=len(order))) + LONG_LINE
        order = order[ends[order] > silent_until]
    return np.sort(np.concatenate(kept))
