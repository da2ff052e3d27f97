"""Rows that a program writes again and again, whose numbers turn to NaN: told by the rows around them.

A program that is written for one job names its numbers as it likes, or not at all. That a row has no number
where those of the same shape above it had one needs no name.
"""

from __future__ import annotations

import re
from collections import Counter

# So many rows of its shape have numbers where it is no accident.
LEAST = 3
# A row that is longer is no row of numbers.
LONGEST = 1000
_NUMBER = re.compile(rb"[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|\b(?:nan|inf(?:inity)?)\b)", re.IGNORECASE)
_NO_NUMBER = re.compile(rb"\b(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
_SPACES = re.compile(rb"\s+")


class ShapedRows:
    """Which shapes of rows have numbers everywhere, and where, in a piece of a log."""

    def __init__(self, data: bytes) -> None:
        """Look through all rows once."""
        # Where enough rows of a shape had numbers, and how many have them since one had none.
        self._from: dict[bytes, int] = {}
        self._since: Counter[bytes] = Counter()
        counts: Counter[bytes] = Counter()
        begin = 0
        for row in data.split(b"\n"):
            shape = _shape(row)
            if _NO_NUMBER.search(row):
                self._since[shape] = 0
            else:
                counts[shape] += 1
                self._since[shape] += 1
                if counts[shape] == LEAST:
                    self._from[shape] = begin
            begin += len(row) + 1

    def have_numbers_above(self, begin: int, row: bytes) -> bool:
        """Tell whether rows of a row's shape have numbers everywhere above the place where it begins."""
        return self._from.get(_shape(row), begin) < begin

    def have_numbers_again(self, row: bytes) -> bool:
        """Tell whether rows of a row's shape have numbers behind the last one that has none."""
        return self._since[_shape(row)] >= LEAST


def _shape(row: bytes) -> bytes:
    """Give a row without what its numbers are, and without how wide they are written."""
    return _SPACES.sub(b" ", _NUMBER.sub(b"#", row[:LONGEST])).strip()
