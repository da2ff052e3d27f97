"""A text as its readers see it: without colours, with its escapes written out, as a shell takes it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ingest.logs.scanner import Finder
from ingest.redaction import views
from ingest.redaction.views import (
    BARE,
    CODED,
    COLOURS,
    CONTROL,
    ESCAPES,
    FOREIGN,
    NESTED,
    UNSEEN,
    WRITTEN_OUT,
)

# What makes a text read otherwise than it is written, and the numbers of these signs.
SIGNS = (f"{BARE}|{UNSEEN}", CONTROL, NESTED, FOREIGN, CODED)
_BARE, _CONTROL, _NESTED, _FOREIGN, _CODED = range(len(SIGNS))
# What each of them makes read otherwise: without controls, or as a shell takes it, the text keeps its own
# signs; and where one escape is written out, all are.
_ROWS = {_CONTROL: (CONTROL, FOREIGN), _NESTED: (NESTED, FOREIGN), _CODED: (WRITTEN_OUT,)}
# A terminal's link to an address that may hold a secret.
_LINK = re.compile(rb"\x1b\][^\x07\x1b\n]{0,400}://[^\x07\x1b\n]{0,400}[@=]")


# The number of a row that no text has.
APART = -1


class RowReading(NamedTuple):
    """A text as it is read, and which rows of the text as given it has, where these are not all."""

    text: bytes
    rows: Sequence[int] | None = None


class Readings:
    """Compiled expressions of what makes a text read otherwise than it is written."""

    def __init__(self, cache: Path | None = None) -> None:
        # Among the kinds of secrets these would slow them all down.
        self._signs = Finder(
            SIGNS, cache, once=[number for number in range(len(SIGNS)) if number not in (_BARE, _FOREIGN)]
        )
        self._cache = cache
        self._numbers = [sign for sign, texts in _ROWS.items() for _ in texts]

    @cached_property
    def _signed_rows(self) -> Finder:
        """What tells of each row with a sign once, however often the sign stands in it."""
        texts = [text for texts in _ROWS.values() for text in texts]
        return Finder([rf"(?:{text})[^\n]*(?:\n|\z)" for text in texts], self._cache)

    def of(self, data: bytes, around: int | None = None) -> Iterator[RowReading]:
        """Yield the text without escapes, and then each that reads otherwise.

        Of those, only the rows that do, and so many `around` them, where that is given.
        """
        plain = without_escapes(data)
        found = self._signs.ends(plain)
        signs = {number for number, _ in found}
        if _BARE in signs:
            plain = _without_colours(data, plain, [end for number, end in found if number == _BARE])
            found = self._signs.ends(plain)
        if _FOREIGN in signs:
            ends = [end for number, end in found if number == _FOREIGN]
            plain = views.with_signs_of_ascii(plain, ends)
        yield RowReading(plain)
        given = {plain}
        for reading in self._others(data, plain, signs, around):
            if reading.text not in given:
                given.add(reading.text)
                yield reading

    def _others(self, data: bytes, plain: bytes, signs: set[int], around: int | None) -> Iterator[RowReading]:
        if plain is not data and has_link(data):
            yield RowReading(data)
        if signs.isdisjoint((_CONTROL, _NESTED, _CODED)):
            return
        near = {} if around is None else self._near({without_escapes(data), plain}, around)
        if _CONTROL in signs:
            part, rows = _part(data, near.get(_CONTROL))
            yield RowReading(views.uncontrolled(part), rows)
            yield RowReading(views.without_backspaces(part), rows)
        if _NESTED in signs:
            part, rows = _part(data, near.get(_NESTED))
            yield RowReading(views.unnested(part), rows)
        if _CODED in signs:
            part, rows = _part(plain, near.get(_CODED))
            yield RowReading(views.decoded(part), rows)

    def _near(self, texts: Iterable[bytes], around: int) -> dict[int, list[int]]:
        """Give for each sign the numbers of the rows that read otherwise for it, and of those around them."""
        near: dict[int, set[int]] = defaultdict(set)
        for text in texts:
            begins = row_begins(text)
            for number, end in self._signed_rows.ends(text):
                row = bisect_right(begins, end - 1) - 1
                rows = range(max(0, row - around), min(len(begins), row + around + 1))
                near[self._numbers[number]].update(rows)
        return {sign: sorted(rows) for sign, rows in near.items()}


def without_escapes(data: bytes) -> bytes:
    """Give a text without whole colours and other escapes, in as many rows."""
    return ESCAPES.sub(b"", data) if b"\x1b" in data else data


def row_begins(text: bytes) -> list[int]:
    """Give where the rows of a text begin."""
    return [0, *(np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1).tolist()]


def has_link(data: bytes) -> bool:
    """Tell whether a terminal's title or link may hold an address with a secret.

    To search for the two signs of a title takes far longer than to look for one behind the other.
    """
    text = np.frombuffer(data, np.uint8)
    has_title = bool((text[np.flatnonzero(text[:-1] == ord("\x1b")) + 1] == ord("]")).any())
    return has_title and _LINK.search(data) is not None


def part_of(text: bytes, rows: Sequence[int], begins: Sequence[int] = ()) -> RowReading:
    """Give some rows of a text, with the newline that ends each; `begins` is where its rows begin, if known.

    A row of a semicolon, whose number is APART, stands between those where others are left out: no condition
    begins before it or behind it and goes over it, and no name is cut so.
    """
    begins = [*(begins or row_begins(text)), len(text)]
    parts, numbers, last = list[bytes](), list[int](), -1
    for row in rows:
        if numbers and row > last + 1:
            parts.append(b";\n")
            numbers.append(APART)
        parts.append(text[begins[row] : begins[row + 1]])
        numbers.append(row)
        last = row
    return RowReading(b"".join(parts), numbers)


def _part(text: bytes, rows: Sequence[int] | None) -> RowReading:
    return RowReading(text) if rows is None else part_of(text, rows)


def _without_colours(data: bytes, plain: bytes, ends: Sequence[int]) -> bytes:
    """Take what is left of colours, and signs without width, out of the rows that have some.

    `plain` is the text without whole escapes, in which the places were found; no colour goes over a row.
    """
    rows, given = plain.split(b"\n"), data.split(b"\n")
    number, done, last = 0, 0, -1
    for end in ends:
        number += plain.count(b"\n", done, end)
        done = end
        if number != last:
            rows[number] = COLOURS.sub(b"", given[number])
            last = number
    return b"\n".join(rows)
