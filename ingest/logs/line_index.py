"""Where the lines of a block stand: how many begin before a place, and which of them hold a word."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

Numbers = np.ndarray[tuple[int], np.dtype[np.intp]]

_NEWLINE = ord("\n")
# Newlines are counted once for each stretch of so many bytes; the counts of its eight-byte words, added up,
# still fit into a byte each.
_STRIDE_BITS = 10
_STRIDE = 1 << _STRIDE_BITS
_WORD_BYTES = 8
# So many bytes are compared at once, since each comparison makes an array of their size.
_PIECE = 1 << 18
# From so many places on it pays to know where all newlines are.
_MANY = 256
# Lines are grouped in stretches of so many, as far as somebody asks for them.
_GROUPED_BITS = 9


# Gives the group of a line, told by where it begins and ends and how many lines stand above it; None where it
# is of none.
GroupOf = Callable[[int, int, int], "str | None"]


class WordLines(NamedTuple):
    """The lines that hold a word: where each begins, and how many lines stand above it."""

    begins: list[int]
    numbers: list[int]


@dataclass(slots=True)
class _GroupedLines:
    """The lines of some stretches that hold one of some words, by their groups and in order."""

    begin: int
    end: int
    groups: dict[str, list[int]]


class LineIndex:
    """Counts the lines of some bytes; what is found out is kept. Two threads may ask, each finds the same.

    `places_of` gives where a word begins in some bytes, in order.
    """

    __slots__ = ("_before", "_data", "_grouped", "_newlines", "_places_of", "_words")

    def __init__(self, data: bytes, places_of: Callable[[bytes, bytes], list[int]]) -> None:
        self._data, self._places_of = data, places_of
        self._before: list[int] | None = None
        self._newlines: Numbers | None = None
        self._words: dict[bytes, WordLines] = {}
        # By name and words.
        self._grouped: dict[tuple[str, tuple[bytes, ...]], _GroupedLines] = {}

    def before(self, place: int) -> int:
        """Count the newlines before a place."""
        if self._before is None:
            self._before = _counts(self._data)
        stretch = place >> _STRIDE_BITS
        return self._before[stretch] + self._data.count(b"\n", stretch << _STRIDE_BITS, place)

    def before_each(self, places: list[int]) -> list[int]:
        """Count the newlines before each of some places."""
        if len(places) < _MANY:
            return [self.before(place) for place in places]
        counted: list[int] = np.searchsorted(self._all_newlines(), places).tolist()
        return counted

    def above_each(self, places: Numbers) -> Numbers:
        """Count the newlines before each of many places."""
        return np.searchsorted(self._all_newlines(), places)

    def stretches(self, firsts: Sequence[int], lasts: Sequence[int], more: int) -> list[tuple[int, int]]:
        """Give parts of the bytes, told by their first and last ones, with so many lines on either side.

        Both are in order. Parts that overlap or touch are given as one.
        """
        if not firsts:
            return []
        newlines = self._all_newlines()
        # Where each line begins, and where the bytes end.
        begins = np.concatenate(([0], newlines + 1, [len(self._data)]))
        first = np.maximum(np.searchsorted(newlines, firsts) - more, 0)
        end = np.minimum(np.searchsorted(newlines, lasts) + more + 1, len(begins) - 1)
        is_apart = np.flatnonzero(begins[first[1:]] > begins[end[:-1]])
        first, end = first[np.append(0, is_apart + 1)], end[np.append(is_apart, len(end) - 1)]
        return list(zip(begins[first].tolist(), begins[end].tolist(), strict=True))

    def lines_with(self, word: bytes) -> WordLines:
        """Give the lines that hold a word, in order; they are looked for once."""
        found = self._words.get(word)
        if found is None:
            found = self._words[word] = self._found(word)
        return found

    def last_among(
        self, name: str, words: tuple[bytes, ...], group: str, lines: tuple[int, int], group_of: GroupOf
    ) -> int | None:
        """Give the last of some lines that holds one of some words and is of a group; one thread may ask.

        `lines` are the first and the last of them, told by how many stand above each. `group_of` is called
        for each line that holds a word near those that are asked for; `name` tells it from others.
        """
        first, last = max(0, lines[0]), lines[1]
        begin, end = first >> _GROUPED_BITS, (last >> _GROUPED_BITS) + 1
        found = self._grouped.get((name, words))
        if found is None or begin > found.end or end < found.begin:
            # A log is read downwards: what is asked for as a rule stands beside what was.
            found = self._grouped[name, words] = _GroupedLines(begin, begin, {})
        if end > found.end:
            for grouped, numbers in self._by_group(words, found.end, end, group_of).items():
                found.groups.setdefault(grouped, []).extend(numbers)
            found.end = end
        if begin < found.begin:
            for grouped, numbers in self._by_group(words, begin, found.begin, group_of).items():
                found.groups.setdefault(grouped, [])[:0] = numbers
            found.begin = begin
        held = found.groups.get(group)
        at = bisect_right(held, last) - 1 if held is not None else -1
        return held[at] if held is not None and at >= 0 and held[at] >= first else None

    def _by_group(
        self, words: tuple[bytes, ...], begin: int, end: int, group_of: GroupOf
    ) -> dict[str, list[int]]:
        """Give the lines of some stretches that hold a word, by their groups."""
        held: set[tuple[int, int]] = set()
        for word in words:
            begins, numbers = self.lines_with(word)
            first, last = (bisect_left(numbers, at << _GROUPED_BITS) for at in (begin, end))
            held.update(zip(numbers[first:last], begins[first:last], strict=True))
        groups: dict[str, list[int]] = {}
        for number, place in sorted(held):
            newline = self._data.find(b"\n", place)
            group = group_of(place, len(self._data) if newline < 0 else newline, number)
            if group is not None:
                groups.setdefault(group, []).append(number)
        return groups

    def _found(self, word: bytes) -> WordLines:
        places = self._places_of(self._data, word)
        if not places:
            return WordLines([], [])
        newlines = self._all_newlines()
        numbers = np.searchsorted(newlines, places)
        # In order already: `np.unique` would load numpy.ma, which a cold start has no other use for.
        numbers = numbers[np.flatnonzero(np.diff(numbers, prepend=-1))]
        begins = np.where(numbers > 0, newlines[numbers - 1] + 1, 0) if len(newlines) else numbers
        return WordLines(begins.tolist(), numbers.tolist())

    def _all_newlines(self) -> Numbers:
        if self._newlines is None:
            self._newlines = np.flatnonzero(np.frombuffer(self._data, np.uint8) == _NEWLINE)
        return self._newlines


def _counts(data: bytes) -> list[int]:
    """Give how many newlines stand before each stretch of bytes."""
    whole = len(data) >> _STRIDE_BITS
    view = np.frombuffer(data, np.uint8, whole << _STRIDE_BITS)
    found = [np.zeros(1, np.intp)]
    for place in range(0, len(view), _PIECE):
        hits = (view[place : place + _PIECE] == _NEWLINE).view(np.uint64)
        words = hits.reshape(-1, _STRIDE // _WORD_BYTES).sum(axis=1)
        found.append(words.view(np.uint8).reshape(-1, _WORD_BYTES).sum(axis=1, dtype=np.intp))
    counts: list[int] = np.cumsum(np.concatenate(found)).tolist()
    return counts
