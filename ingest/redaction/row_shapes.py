"""Which rows of a text need a look at all: most of a log's are like one that was seen, but for their digits.

A row of such a shape as holds no condition of any kind, whatever its digits are, is passed over. What is left
are rows that may hold one, and those beside them that a condition may reach into or a cut name goes on in.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate, repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.digit_blind import MASK, Beginning, blind_beginnings, blind_expressions, fillers_of
from ingest.logs.scanner import Finder
from ingest.redaction.readings import SIGNS
from ingest.redaction.views import CODED, WRITTEN_OUT

# What a shape tells, as bits: that a condition may be met in its rows; that they may begin with the second
# half of a name that the row above has cut; that they hold an escape that is written out, and whether for it
# all of the text is read so; above these, how many rows below what begins in them may reach, and where in the
# row that half would begin.
_HOLDS, _BEGINS_CUT, _WRITTEN_OUT, _CODED = 1, 2, 4, 8
_ROWS, _ALL_ROWS, _BEGIN = 4, 15, 8
_LIVE = _HOLDS | _ALL_ROWS << _ROWS
# A longer row is looked at without asking; it is rarely like another one.
LONGEST = 4096
# So many bytes of shapes are remembered.
REMEMBERED = 4 << 20

Numbers = NDArray[np.int64]


class RowCut(NamedTuple):
    """How a name is known that a row's end cuts.

    What finds its second half in the row below, where in a row that half would begin, the two bytes that may
    stand on both sides of the cut, and whether the end of a row (so many bytes of it) and the first byte of
    the half below may belong to one name.
    """

    expressions: Sequence[str]
    begin: Callable[[bytes], int]
    pairs: Collection[bytes]
    joins: Callable[[bytes, bytes], bool]
    longest: int


class RowShapes:
    """The shapes of rows that were seen, and what each of them tells."""

    def __init__(self, conditions: Sequence[str], cut: RowCut, cache: Path | None) -> None:
        """Compile what shapes are asked; raises InvalidExpressionError where one cannot be asked so."""
        reaching = [*conditions, *cut.expressions]
        beginnings = blind_beginnings(reaching)
        farthest = max(rows for _, rows in beginnings)
        # What reads otherwise than it is written may meet any condition then.
        beginnings += [Beginning(text, farthest) for text in blind_expressions(SIGNS)]
        # One database for all would take several times as long to compile.
        self._holding = Finder(blind_expressions(conditions), cache)
        self._beginning_cut = Finder(blind_expressions(cut.expressions), cache)
        self._going_on = Finder([text for text, _ in beginnings], cache)
        self._reaches = [rows << _ROWS for _, rows in beginnings]
        coded, written_out = blind_expressions([CODED]), blind_expressions([WRITTEN_OUT])
        self._escapes = [_CODED] * len(coded) + [_WRITTEN_OUT] * len(written_out)
        self._escaped = Finder([*coded, *written_out], cache)
        self._farthest = farthest << _ROWS
        self._unknown = _HOLDS | _BEGINS_CUT | _WRITTEN_OUT | _CODED | self._farthest
        self._cut_begin, self._joins, self._longest = cut.begin, cut.joins, cut.longest
        self._pairs = np.zeros((256, 256), np.bool_)
        for above, below in cut.pairs:
            self._pairs[above, below] = True
        # A mask makes noughts.
        sets = (b"[0%b]*" % re.escape(filler) for filler in sorted(fillers_of(reaching)))
        self._is_filler = re.compile(b"|".join(sets)).fullmatch
        self._told: dict[bytes, int] = {}
        self._size = 0

    def live_rows(self, plain: bytes, begins: Sequence[int]) -> list[int]:
        """Give the numbers of the rows that are to be looked at, in their order; the last is always one.

        `begins` is where the rows of the text begin.
        """
        shapes = plain.translate(MASK).split(b"\n")
        told: list[int] = list(map(self._told.get, shapes, repeat(-1)))
        if -1 in told:
            learnt = self._learn({shape for shape, tells in zip(shapes, told, strict=True) if tells < 0})
            told = [learnt[shape] if tells < 0 else tells for shape, tells in zip(shapes, told, strict=True)]
        # What its match needs behind it may be the end of the text.
        told[-1] = self._unknown
        tells = np.array(told)
        if bool((tells & _CODED).any()):
            tells[tells & _WRITTEN_OUT != 0] |= self._farthest
        is_live = tells & _LIVE != 0
        may_go_on = np.flatnonzero(~is_live & (tells & _BEGINS_CUT != 0))
        is_live[self._continuing(plain, begins, tells, may_go_on)] = True
        last, live = -1, list[int]()
        for row in np.flatnonzero(is_live).tolist():
            first = row - 1
            # What stands above an empty row is what the one below it goes on with.
            while first > last and not shapes[first]:
                first -= 1
            until = self._until(shapes, row, int(tells[row]) >> _ROWS & _ALL_ROWS)
            live += range(max(last + 1, first, 0), until + 1)
            last = max(last, until)
        return live

    def _continuing(self, plain: bytes, begins: Sequence[int], tells: Numbers, rows: Numbers) -> list[int]:
        """Give those of some rows that may go on with a name that the one above them cuts."""
        text = np.frombuffer(plain, np.uint8)
        ends = np.asarray(begins)[rows]
        places = ends + (tells[rows] >> _BEGIN)
        # The two bytes on both sides of a cut tell of most rows that nothing is cut there.
        is_within = (ends >= 2) & (places < len(text))
        rows, ends, places = rows[is_within], ends[is_within], places[is_within]
        is_pair = self._pairs[text[ends - 2], text[places]]
        return [
            row
            for row, end, place in zip(
                rows[is_pair].tolist(), ends[is_pair].tolist(), places[is_pair].tolist(), strict=True
            )
            if self._joins(
                plain[max(begins[row - 1], end - 1 - self._longest) : end - 1], plain[place : place + 1]
            )
        ]

    def _until(self, shapes: Sequence[bytes], row: int, rows: int) -> int:
        """Give the last row that a match may reach which begins in a row; the next is always looked at."""
        if not rows:
            return min(row + 1, len(shapes) - 1)
        while rows and row + 1 < len(shapes):
            row += 1
            rows -= self._is_filler(shapes[row]) is None
        return row

    def _learn(self, shapes: Collection[bytes]) -> dict[bytes, int]:
        """Tell what shapes tell that were not seen, and remember it."""
        learnt = dict.fromkeys(shapes, self._unknown)
        asked = [shape for shape in shapes if len(shape) <= LONGEST]
        # Each has a newline before and behind it, as in a text.
        text = b"\n".join((b"", *asked, b""))
        ends = list(accumulate((len(shape) + 1 for shape in asked), initial=1))[1:]
        told = [0] * len(asked)
        for number, end in self._going_on.ends(text):
            row = bisect_left(ends, end)
            told[row] = max(told[row], self._reaches[number])
        for _, end in self._holding.ends(text):
            told[bisect_left(ends, end)] |= _HOLDS
        for number, end in self._escaped.ends(text):
            told[bisect_left(ends, end)] |= self._escapes[number]
        for row in {bisect_left(ends, end) for _, end in self._beginning_cut.ends(text)}:
            told[row] |= _BEGINS_CUT | self._cut_begin(asked[row]) << _BEGIN
        fresh = dict(zip(asked, told, strict=True))
        if self._size > REMEMBERED:
            self._told, self._size = {}, 0
        self._told.update(fresh)
        self._size += len(text)
        return learnt | fresh
