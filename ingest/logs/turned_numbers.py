"""Rows that a program writes again and again, whose numbers turn to NaN: told by the rows around them.

A program that is written for one job names its numbers as it likes, or not at all. That a row has no number
where those of the same shape above it had one needs no name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# So far is looked around a row, in bytes and in rows.
NEAR, ROWS = 65_536, 400
# So many rows of its shape have numbers where it is no accident.
LEAST = 3
_NUMBER = re.compile(rb"[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|\b(?:nan|inf(?:inity)?)\b)", re.IGNORECASE)
_NO_NUMBER = re.compile(rb"\b(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
_SPACES = re.compile(rb"\s+")


def stands_below_numbers(data: bytes, begin: int, row: bytes) -> bool:
    """Tell whether rows of the same shape above the place `begin` have numbers everywhere."""
    above = data[max(0, begin - NEAR) : begin].split(b"\n")
    return _with_numbers(above[-ROWS:], row) >= LEAST


def stands_above_numbers(data: bytes, row: bytes) -> bool:
    """Tell whether rows of the same shape have numbers again behind the last row like `row` in `data`."""
    shape = _shape(row)
    below: list[bytes] = []
    for other in reversed(data[-NEAR:].split(b"\n")[-ROWS:]):
        if _NO_NUMBER.search(other) and _shape(other) == shape:
            break
        below.append(other)
    return _with_numbers(below, row) >= LEAST


def _with_numbers(rows: Iterable[bytes], row: bytes) -> int:
    """Count the rows of a row's shape in which no number is missing."""
    shape = _shape(row)
    return sum(not _NO_NUMBER.search(other) and _shape(other) == shape for other in rows)


def _shape(row: bytes) -> bytes:
    """Give a row without what its numbers are, and without how wide they are written."""
    return _SPACES.sub(b" ", _NUMBER.sub(b"#", row)).strip()
