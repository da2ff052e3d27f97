"""Where a secret may be at all: one pass over the bytes says which rows are to be looked at, and for which kinds."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ingest.logs.scanner import Finder
from ingest.redaction.table import KINDS
from ingest.redaction.views import BARE, BEFORE_ROW, COLOURS, ESCAPES, UNSEEN

# A value that reaches its row's end may go on; one of megabytes is no row that a terminal has cut.
LONGEST_TAIL = 4096
# Of a row without end, what a secret near a place can reach: so far back, and so far on. A second place in the
# same part gets a part of its own only where too little of it is left.
BACK, ON, LEFT = 16 << 10, 48 << 10, 24 << 10
_BLANK = re.compile(rb"\s")
_CLOSING = b"\"'\\ \t\r"
_BETWEEN = _CLOSING + b":="
_ROW_START = re.compile(BEFORE_ROW)
_SEAM_START = r"^(?:\([^()\n]*\)|\[[^\[\]\n]*\]:?)?[ \t]*[\"']?"


@dataclass(frozen=True, slots=True)
class Spot:
    """A row, as a place in the bytes without its newline, and what may be in it.

    `kinds` are numbers of the table; `open` are those of them that the row below may go on with.
    """

    begin: int
    end: int
    kinds: frozenset[int]
    open: frozenset[int]


class Sieve:
    """The compiled necessary conditions of all kinds."""

    def __init__(self, cache: Path | None = None) -> None:
        numbers: dict[str, list[int]] = defaultdict(list)
        # What a cut literal begins with, as a row's end shows it, and how the next row goes on.
        self._heads: dict[bytes, list[tuple[bytes, int]]] = defaultdict(list)
        tails: dict[str, set[str]] = defaultdict(set)
        for number, kind in enumerate(KINDS):
            numbers[kind.sieve].append(number)
            for start in kind.starts:
                for place in range(1, len(start)):
                    self._heads[start[:place].lower().encode()].append((start[place:].lower().encode(), number))
                    tails[kind.after].add(re.escape(start[place:]))
        self._kinds = [frozenset(group) for group in numbers.values()]
        self._longest = max(map(len, self._heads))
        self._far = frozenset(number for number, kind in enumerate(KINDS) if kind.far)
        below = [(number, kind.below) for number, kind in enumerate(KINDS) if kind.below]
        self._finder = Finder([*numbers, f"{BARE}|{UNSEEN}"], cache, once=[len(numbers)])
        self._seams = Finder([f"(?i){_SEAM_START}(?:{'|'.join(sorted(group))}){after}" for after, group in tails.items()] + [f"{_SEAM_START}{text}" for _, text in below], cache)
        # Behind the cut literals, the kinds of what a row alone tells to be the second half of.
        self._whole = dict(enumerate((number for number, _ in below), len(tails)))

    def spots(self, data: bytes) -> list[Spot]:
        """Give the rows that may hold a secret, in their order."""
        plain, ends = self._ends(data)
        kinds: dict[tuple[int, int], set[int]] = defaultdict(set)
        going_on: dict[tuple[int, int], set[int]] = defaultdict(set)
        begin, end = 0, -1
        for number, place in ends:
            if not begin <= place - 1 <= end or (end - begin >= ON and end - place < LEFT):
                begin, end = _row(plain, place - 1)
            found = self._kinds[number]
            if not found <= kinds[begin, end]:
                kinds[begin, end] |= found
            if self._reaches(plain, place, begin, end, found):
                going_on[begin, end] |= found
        for row, number in self._cut(plain):
            going_on[row].add(number)
        if not going_on and not kinds:
            return []
        rows = sorted(set(kinds) | set(going_on))
        if plain is data:
            return [Spot(*row, frozenset(kinds[row]), frozenset(going_on[row])) for row in rows]
        return _translated({row: (kinds[row], going_on[row]) for row in rows}, plain, data)

    def _ends(self, data: bytes) -> tuple[bytes, list[tuple[int, int]]]:
        """Give the bytes without colours, and where in them the conditions are met."""
        plain = ESCAPES.sub(b"", data) if b"\x1b" in data else data
        ends = self._finder.ends(plain)
        bare = len(self._kinds)
        if any(number == bare for number, _ in ends):
            plain = COLOURS.sub(b"", data)
            ends = [item for item in self._finder.ends(plain) if item[0] != bare]
        return plain, ends

    def _reaches(self, plain: bytes, place: int, begin: int, end: int, found: frozenset[int]) -> bool:
        """Tell whether what was found at a place may go on in the row below."""
        if end - place <= LONGEST_TAIL and not _BLANK.search(plain[place:end].strip(_BETWEEN)):
            return True
        return found <= self._far and end - begin <= LONGEST_TAIL

    def _cut(self, plain: bytes) -> Iterator[tuple[tuple[int, int], int]]:
        """Yield rows that end within a literal of a kind, with the kind."""
        done = -1
        for pattern, place in self._seams.ends(plain) if b"\n" in plain else ():
            newline = plain.rfind(b"\n", 0, place)
            if newline < 0:
                continue
            if pattern in self._whole:
                yield _row(plain, newline - 1 if newline else 0), self._whole[pattern]
            if newline == done:
                continue
            done = newline
            tail = plain[max(0, newline - self._longest - 4) : newline].rstrip(_CLOSING).lower()
            start = _ROW_START.match(plain, newline + 1)
            below = plain[start.end() if start else newline + 1 : place + 40].lower()
            for size in range(1, min(self._longest, len(tail)) + 1):
                for rest, number in self._heads.get(tail[-size:], ()):
                    if below.startswith(rest):
                        yield _row(plain, newline - 1 if newline else 0), number


def _row(data: bytes, place: int) -> tuple[int, int]:
    """Give the row that a place is in, or what matters of an endless one; a newline belongs to the row that it ends."""
    first, last = max(0, place - BACK), min(len(data), place + ON)
    begin, end = data.rfind(b"\n", first, place) + 1, data.find(b"\n", place, last)
    return begin or first, last if end < 0 else end


def _translated(rows: dict[tuple[int, int], tuple[set[int], set[int]]], plain: bytes, data: bytes) -> list[Spot]:
    """Give the same rows of the text with its colours; these hold no newline."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    plain_ends = np.flatnonzero(np.frombuffer(plain, np.uint8) == ord("\n"))
    found: dict[int, tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
    for number, row in zip(np.searchsorted(plain_ends, [begin for begin, _ in rows]).tolist(), rows, strict=True):
        for one, other in zip(found[number], rows[row], strict=True):
            one |= other
    return [
        Spot(int(ends[number - 1]) + 1 if number else 0, int(ends[number]) if number < len(ends) else len(data), frozenset(kinds), frozenset(going_on))
        for number, (kinds, going_on) in found.items()
    ]


_CACHE: list[Path] = []


def keep(folder: Path) -> None:
    """Keep what is compiled in a folder, so that the next process need not compile it."""
    _CACHE[:] = [folder]


@cache
def sieve() -> Sieve:
    """Give the sieve; compiled once in a process."""
    return Sieve(_CACHE[0] if _CACHE else None)
