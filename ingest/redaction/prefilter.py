"""Where a secret may be at all.

One pass over the bytes says which rows are to be looked at, and for which kinds.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain, product
from operator import itemgetter
from pathlib import Path

import numpy as np

from ingest.errors import InvalidExpressionError
from ingest.logs.scanner import Finder
from ingest.redaction.clear_texts import SHORT, ClearTexts
from ingest.redaction.extra import extra_kinds, extra_text
from ingest.redaction.kinds import Probed
from ingest.redaction.readings import (
    APART,
    Readings,
    RowReading,
    has_link,
    part_of,
    row_begins,
    without_escapes,
)
from ingest.redaction.row_shapes import RowCut, RowShapes
from ingest.redaction.table import KINDS, SHIPPED
from ingest.redaction.views import BEFORE_ROW

# A value that reaches its row's end may go on; one of megabytes is no row that a terminal has cut.
LONGEST_TAIL = 4096
# Of a row without end, what a secret near a place can reach: so far back, and so far on. A second place in
# the same part gets a part of its own only where too little of it is left.
BACK, ON, LEFT = 16 << 10, 48 << 10, 24 << 10
# So many rows of one text are looked at one by one, and one more for each so many bytes: where nearly each
# short row may hold a secret, those beyond are masked.
ROWS, BYTES_A_ROW = 8192, 256
# And so many rows' begins for each of them, which may be the second half of a name.
SEAMS_A_ROW = 2
# Where more rows than this are passed over, their ends are counted in pieces of so many bytes.
ROWS_AT_ONCE, PIECE = 64, 4096
# Fewer bytes than this between two rows that are masked unread are masked with them.
NEAR = 64
# From so many bytes on a text is read by the shapes of its rows; so many rows around one that reads otherwise
# than it is written are read with it, more than any condition goes over.
SHAPED_FROM, AROUND = 64 << 10, 8
# What shapes are asked takes seconds to compile, where it is not at hand; before so many bytes it does not
# pay.
PAYS = 8 << 20
_BLANK = re.compile(rb"\s")
# A box's edge is a bar by then.
_CLOSING = b"\"'\\ \t\r|"
_BETWEEN = _CLOSING + b":=|"
_OPEN = frozenset(_CLOSING + b"\r")
_OPENS = frozenset(bytes([code]) for code in _OPEN)
_ROW_START = re.compile(BEFORE_ROW)
# What may begin what stands before a row.
_MARKS = frozenset(bytes([code]) for code in b" \t([+>|0123456789")
_NO_TAILS: tuple[bytes, ...] = ()
_UNPROBED = Probed(is_worth=False, until=-1)
_SEAM_START = (
    r"^(?:\([^()\n]*\)|\[[^\[\]\n]*\]:?|\d{4}-\d\d-\d\d[T ][\d:.,]+Z? |\d{1,4}: )?[ \t]*[+>|]?[ \t]*[\"']?"
)


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """A row, as a place in the bytes without its newline, and what may be in it.

    `kinds` are numbers of the table; `open` are those of them that the row below may go on with; `hits`
    counts the places that meet a condition, which is about how often an expression begins to match; `first`
    is where the first of them ends, or where the row begins. A `flood` is several rows beyond those that are
    looked at one by one, of which one kind stands for all.
    """

    begin: int
    end: int
    kinds: frozenset[int]
    open: frozenset[int]
    hits: int = 1
    first: int = 0
    flood: bool = False


@dataclass(slots=True)
class CandidateKinds:
    """What may be in a row: numbers of kinds, and of those that the row below may go on with."""

    kinds: set[int] = field(default_factory=set)
    going_on: set[int] = field(default_factory=set)
    hits: int = 0
    first: int = sys.maxsize

    def add(self, other: CandidateKinds) -> None:
        """Take in what another reading of the row says."""
        self.kinds |= other.kinds
        self.going_on |= other.going_on
        self.hits += other.hits
        self.first = min(self.first, other.first)


class Prefilter:
    """The compiled necessary conditions of all kinds."""

    def __init__(self, cache: Path | None = None) -> None:
        numbers: dict[str, list[int]] = defaultdict(list)
        # How the next row goes on with a cut literal, and what it begins with, as a row's end shows it.
        self._rests: dict[bytes, list[tuple[bytes, int]]] = defaultdict(list)
        tails: dict[str, set[str]] = defaultdict(set)
        for number, kind in enumerate(KINDS):
            numbers[kind.prefilter].append(number)
            for start in kind.starts:
                for place in range(1, len(start)):
                    self._rests[start[place:].lower().encode()].append(
                        (start[:place].lower().encode(), number)
                    )
                    tails[kind.after].add(re.escape(start[place:]))
        self._kinds = [frozenset(group) for group in numbers.values()]
        self._heads = {rest: tuple({head for head, _ in found}) for rest, found in self._rests.items()}
        # What a row ends with, by the two letters that its end parts.
        joints: dict[bytes, set[bytes]] = defaultdict(set)
        for rest, heads in self._rests.items():
            for head, _ in heads:
                joints[head[-1:] + rest[:1]].add(head)
        self._joints = {joint: tuple(heads) for joint, heads in joints.items()}
        self._longest = max(map(len, self._rests))
        # With what a row ends that may be cut amid a literal; most rows end with a digit or a bracket.
        self._cut_ends = _OPEN | {sign for joint in self._joints for sign in (joint[:1] + joint[:1].upper())}
        # A match that may end anywhere meets its condition as often as it has bytes.
        self._linear = frozenset(
            number for number, group in enumerate(self._kinds) if any(KINDS[each].linear for each in group)
        )
        self._probes = {
            number: probe
            for number, group in enumerate(self._kinds)
            if len({KINDS[each].probe for each in group}) == 1
            and (probe := KINDS[min(group)].probe) is not None
        }
        self._far = frozenset(number for number, kind in enumerate(KINDS) if kind.far)
        below = [(number, kind.below) for number, kind in enumerate(KINDS) if kind.below]
        self._cache, self._conditions = cache, [*numbers, *(f"{_SEAM_START}{text}" for _, text in below)]
        self._finder = Finder(list(numbers), cache)
        self._readings = Readings(cache)
        self._halves = [
            f"(?i){_SEAM_START}(?:{'|'.join(sorted(group))}){after}" for after, group in tails.items()
        ]
        self._seams = Finder(self._halves + [f"{_SEAM_START}{text}" for _, text in below], cache)
        # Behind the cut literals, the kinds of what a row alone tells to be the second half of.
        self._whole = dict(enumerate(((number,) for number, _ in below), len(tails)))
        self._clear = ClearTexts(self._conditions, cache)
        self._read = 0

    @cached_property
    def shapes(self) -> RowShapes | None:
        """What is known of rows by their shapes; nothing where a user's expression does not allow it."""
        firsts = {joint[1:] for joint in self._joints}
        pairs = self._joints.keys() | {bytes([code]) + first for code in _OPEN for first in firsts}
        cut = RowCut(
            self._halves,
            lambda row: _cut_begin(row, 0),
            frozenset(map(bytes, chain.from_iterable(map(_cases, pairs)))),
            lambda above, first: bool(self._tails(above, first)),
            self._longest + 4,
        )
        try:
            return RowShapes(self._conditions, cut, self._cache)
        except InvalidExpressionError:
            return None

    def compile_all(self) -> None:
        """Compile and store what is asked for once much was redacted."""
        self.shapes  # noqa: B018 - to make it is what is wanted
        self._clear.compile()

    def is_known_clear(self, data: bytes) -> bool:
        """Tell whether a short text is known to hold no secret."""
        return len(data) <= SHORT and self._clear.hold(data)

    def is_of_clear_shape(self, data: bytes) -> bool:
        """Tell whether a short text is known to hold no secret, whatever its digits are."""
        return len(data) <= SHORT and self._clear.hold_shape(data)

    def spots(self, data: bytes) -> list[CandidateRow]:
        """Give the rows that may hold a secret, in their order.

        Short texts that hold none are remembered: names, paths and statements come again and again.
        """
        is_short = len(data) <= SHORT
        if is_short and self._clear.hold(data):
            return []
        if len(data) >= SHAPED_FROM:
            self._read += len(data)
        is_shaped = len(data) >= SHAPED_FROM and self._read > PAYS
        found = self._live_spots(data) if is_shaped else self._spots(data, len(data))
        if is_short and not found:
            self._clear.add(data)
        return found

    def _live_spots(self, data: bytes) -> list[CandidateRow]:
        """Give the same, of a text most of whose rows have a shape that holds nothing."""
        shapes = self.shapes
        plain = without_escapes(data)
        # A title is no part of what is shown, and of no shape then.
        if shapes is None or (plain is not data and has_link(data)):
            return self._spots(data, len(data))
        begins = row_begins(data)
        live = shapes.live_rows(plain, begins if plain is data else row_begins(plain))
        part = part_of(data, live, begins)
        found = self._spots(part.text, len(data), AROUND)
        if any(spot.flood for spot in found):
            return self._spots(data, len(data))
        places, numbers = row_begins(part.text), part.rows or ()
        moved = []
        for spot in found:
            at = bisect_right(places, spot.begin) - 1
            if numbers[at] == APART:
                continue
            on = begins[numbers[at]] - places[at]
            first = spot.first + on if spot.first > spot.begin else 0
            moved.append(replace(spot, begin=spot.begin + on, end=spot.end + on, first=first))
        return moved

    def _spots(self, data: bytes, size: int, around: int | None = None) -> list[CandidateRow]:
        """Give the rows of a text, or of the rows of one of such a size that are looked at.

        Where the text reads otherwise, only rows that do and those `around` them are, where that is given.
        """
        rows: dict[tuple[int, int], CandidateKinds] = defaultdict(CandidateKinds)
        beyond: set[int] = set()
        for reading in self._readings.of(data, around):
            found, more = self._rows(reading.text, self._finder.ends(reading.text), size)
            beyond |= more if reading.rows is None else {reading.rows[row] for row in more} - {APART}
            told = found if reading.text is data else _translated(found, reading, data)
            for row, wanted in told.items():
                rows[row].add(wanted)
        spots = [
            CandidateRow(
                *row,
                frozenset(wanted.kinds),
                frozenset(wanted.going_on),
                wanted.hits,
                min(wanted.first, row[1]),
            )
            for row, wanted in sorted(rows.items(), key=itemgetter(0))
        ]
        # What those beyond hold is like what the last one read holds.
        kinds = spots[-1].kinds | spots[-1].open if spots else {0}
        return [*spots, *_floods(data, sorted(beyond), min(kinds))] if beyond else spots

    def _rows(
        self, plain: bytes, ends: Sequence[tuple[int, int]], size: int
    ) -> tuple[dict[tuple[int, int], CandidateKinds], set[int]]:
        """Give the rows in which the conditions are met, or begin to be.

        Beside them stand the numbers of those that are too many to look at.
        """
        rows: dict[tuple[int, int], CandidateKinds] = defaultdict(CandidateKinds)
        # How many rows of a text are looked at one by one.
        begin, end, most, beyond = 0, -1, (ROWS + size // BYTES_A_ROW), list[int]()
        probed: dict[int, Probed] = {}
        for at, (number, place) in enumerate(ends):
            if len(rows) > most:
                beyond = [
                    place - 1
                    for number, place in ends[at:]
                    if number not in self._probes or self._probes[number](plain, place).is_worth
                ]
                break
            counts = number not in self._linear
            if (probe := self._probes.get(number)) is not None:
                # One run of letters meets the condition at many of its places, and counts once.
                if place > probed.get(number, _UNPROBED).until:
                    probed[number] = probe(plain, place)
                else:
                    counts = False
                if not probed[number].is_worth:
                    continue
            if not begin <= place - 1 <= end or (end - begin >= ON and end - place < LEFT):
                begin, end = _row(plain, place - 1)
            found, wanted = self._kinds[number], rows[begin, end]
            wanted.hits += counts
            wanted.first = min(wanted.first, place)
            if not found <= wanted.kinds:
                wanted.kinds |= found
            # Whether what was found at a place may go on in the row below.
            reaches = (
                True
                if end - place <= LONGEST_TAIL and not _BLANK.search(plain[place:end].strip(_BETWEEN))
                else found <= self._far and end - begin <= LONGEST_TAIL
            )
            if reaches:
                wanted.going_on |= found
        seams = self._seams.ends(plain) if b"\n" in plain else []
        most *= SEAMS_A_ROW
        beyond += [plain.rfind(b"\n", 0, place) for _, place in seams[most:]]
        for row, number in self._cut(plain, seams[:most]):
            rows[row].going_on.add(number)
            rows[row].first = 0
        # The numbers of the rows that some places are in.
        numbers = (
            set()
            if not beyond
            else set(
                np.unique(
                    np.searchsorted(np.flatnonzero(np.frombuffer(plain, np.uint8) == ord("\n")), beyond)
                ).tolist()
            )
        )
        return rows, numbers

    def _cut(self, plain: bytes, seams: Sequence[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], int]]:
        """Yield rows that end within a literal of a kind, with the kind."""
        seam, begin, end, done, tails = -1, 0, -1, 0, _NO_TAILS
        for pattern, place in seams:
            if place > end:
                seam = plain.rfind(b"\n", 0, place)
                if pattern not in self._whole and (seam <= 0 or plain[seam - 1] not in self._cut_ends):
                    continue
                end = plain.find(b"\n", place)
                end = len(plain) if end < 0 else end
                begin, done = _cut_begin(plain, seam + 1), 0
                above = plain[max(0, seam - self._longest - 4) : max(0, seam)]
                tails = self._tails(above, plain[begin : begin + 1])
            if seam < 0 or not (tails or pattern in self._whole):
                continue
            numbers = (
                self._halved(
                    tails, plain[begin : begin + self._longest].lower(), range(done + 1, place - begin + 1)
                )
                if tails
                else ()
            )
            done = place - begin
            for number in (*numbers, *self._whole.get(pattern, ())):
                yield _row(plain, seam - 1 if seam else 0), number

    def _tails(self, above: bytes, first: bytes) -> tuple[bytes, ...]:
        """Give what a row ends with, as it is and without what closes a string.

        Nothing where no literal is cut so, of which `first` is the first byte below.
        """
        # Most rows are told by two letters: no literal has them side by side.
        tail, first = above[-1:].lower(), first.lower()
        if tail not in _OPENS:
            heads = self._joints.get(tail + first)
            return (above.lower(),) if heads and above.lower().endswith(heads) else _NO_TAILS
        tail = above.lower().rstrip(b"\r")
        tails = (tail,) if tail[-1:] not in _CLOSING else (tail, tail.rstrip(_CLOSING))
        return tails if any(each.endswith(self._joints.get(each[-1:] + first, ())) for each in tails) else ()

    def _halved(self, tails: tuple[bytes, ...], below: bytes, sizes: range) -> Iterator[int]:
        """Yield the kinds whose literal a row's end cuts.

        So much of it stands below, and what comes before it above.
        """
        for size in sizes:
            heads = self._heads.get(below[:size])
            if heads and any(tail.endswith(heads) for tail in tails):
                yield from (
                    number
                    for head, number in self._rests[below[:size]]
                    if any(tail.endswith(head) for tail in tails)
                )


def _cases(signs: bytes) -> Iterator[tuple[int, ...]]:
    """Yield some letters in each combination of their cases."""
    return product(*({*bytes([sign]).lower(), *bytes([sign]).upper()} for sign in signs))


def _cut_begin(text: bytes, begin: int) -> int:
    """Give where in a row the second half of a name would begin that the row above cuts."""
    if text[begin : begin + 1] in _MARKS and (start := _ROW_START.match(text, begin)):
        return start.end()
    return begin


def _floods(data: bytes, numbers: Sequence[int], number: int) -> Iterator[CandidateRow]:
    """Yield rows, by their numbers, those that stand below each other, or nearly, as one."""
    ends = [-1, *np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")).tolist(), len(data)]
    kind = frozenset((number,))
    first = last = numbers[0]
    for row in (*numbers[1:], -1):
        if row < 0 or ends[row] - ends[last + 1] > NEAR:
            yield CandidateRow(ends[first] + 1, ends[last + 1], kind, kind, flood=True)
            first = row
        last = row


def _row(data: bytes, place: int) -> tuple[int, int]:
    """Give the row that a place is in, or what matters of an endless one.

    A newline belongs to the row that it ends.
    """
    first, last = max(0, place - BACK), min(len(data), place + ON)
    begin, end = data.rfind(b"\n", first, place) + 1, data.find(b"\n", place, last)
    return begin or first, last if end < 0 else end


def _translated(
    rows: dict[tuple[int, int], CandidateKinds], reading: RowReading, data: bytes
) -> dict[tuple[int, int], CandidateKinds]:
    """Give the rows of a reading as those of the text as given; these hold no newline."""
    if not rows:
        return {}
    found: dict[tuple[int, int], CandidateKinds] = defaultdict(CandidateKinds)
    number = done = last = begin = 0
    for row in sorted(rows, key=itemgetter(0)):
        number += reading.text.count(b"\n", done, row[0])
        done = max(done, row[0])
        rows[row].first = 0
        given = number if reading.rows is None else reading.rows[number]
        if given == APART:
            continue
        begin = _rows_on(data, begin, given - last)
        last = given
        end = data.find(b"\n", begin)
        found[begin, len(data) if end < 0 else end].add(rows[row])
    return found


def _rows_on(data: bytes, place: int, number: int) -> int:
    """Give where the row begins that stands so many rows below the one that begins at a place."""
    # To count the ends in a piece takes far less than to find each of them.
    while number > ROWS_AT_ONCE and (ends := data.count(b"\n", place, place + PIECE)) < number:
        place += PIECE
        number -= ends
    for _ in range(number):
        place = data.find(b"\n", place) + 1
    return place


_CACHE: list[Path] = []


def save_prefilter(folder: Path) -> None:
    """Keep what is compiled in a folder, so that the next process need not compile it."""
    _CACHE[:] = [folder]


def load_prefilter() -> Prefilter:
    """Give the prefilter; compiled once in a process, and anew where the user's own patterns are others."""
    return _prefilter(extra_text())


@lru_cache(maxsize=1)
def _prefilter(extra: str) -> Prefilter:
    KINDS[:] = (*SHIPPED, *extra_kinds(extra))
    return Prefilter(_CACHE[0] if _CACHE else None)
