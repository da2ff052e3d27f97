"""Find secrets: the exact expressions, held against the rows that the sieve lets through, in each of their views."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ingest.redaction import shapes, views
from ingest.redaction.kinds import NEXT_ROW
from ingest.redaction.sieve import Spot, sieve
from ingest.redaction.table import KINDS
from ingest.redaction.views import View

# How many rows below a cut one may belong to the same secret.
MOST_ROWS = 64
# A row that a terminal cut is as wide as the terminal.
NARROWEST = 20
WIDEST = 4096
# Fewer characters in the row below tell nobody anything, and are the beginning of many words.
SHORTEST = 4
_MASKED = re.compile(rb"(?:[^\w\[]*\[redacted:[a-z0-9-]+\]?[^\w\[]*)+")
# Rows that end so leave a value to the row below.
_GOES_ON = re.compile(rb"[:=|>+\\-][ \t]*\r?\Z|\xef\xbc\x9a[ \t]*\r?\Z")
_FIRST_OF_ROW = re.compile(views.BEFORE_ROW + rb"(?P<run>[A-Za-z0-9_+/=.~%:@!$-]+)(?P<rest>[^\n]*)")
_CLOSING = b"\"'\\,;)]} \t\r"


@dataclass(frozen=True, slots=True)
class Found:
    """A secret: the number of its kind, its parts in the bytes as given, its text, and how far the whole match goes."""

    kind: int
    parts: tuple[tuple[int, int], ...]
    secret: bytes
    begin: int
    end: int


def found(data: bytes) -> list[Found]:
    """Give all secrets of a text."""
    return list(among(data, sieve().spots(data)))


def exhaustive(data: bytes) -> list[Found]:
    """Give all secrets of a text without the sieve: every kind at every row; slow, to compare with."""
    kinds = frozenset(range(len(KINDS)))
    spots = []
    begin = 0
    for row in data.split(b"\n"):
        spots.append(Spot(begin, begin + len(row), kinds, kinds))
        begin += len(row) + 1
    return list(among(data, spots))


def among(data: bytes, spots: Iterable[Spot]) -> Iterator[Found]:
    """Yield the secrets in some rows of a text."""
    windows: dict[int, list[tuple[int, int]]] = {}
    for spot in spots:
        near = []
        for number in sorted(spot.kinds):
            kind = KINDS[number]
            if kind.back or kind.ahead > NEXT_ROW or (kind.ahead and _GOES_ON.search(data, max(spot.begin, spot.end - 16), spot.end)):
                _widen(windows.setdefault(number, []), data, spot.begin - kind.back if kind.back else spot.begin, spot.end + kind.ahead)
            else:
                near.append(number)
        if near:
            yield from _within(data, spot.begin, spot.end, near)
        if going_on := [number for number in spot.open if KINDS[number].wraps]:
            yield from _over_rows(data, spot, going_on)
    for number, places in windows.items():
        for begin, end in places:
            yield from _within(data, begin, end, [number])


def _widen(windows: list[tuple[int, int]], data: bytes, begin: int, end: int) -> None:
    """Add a part of the text in whole rows; what overlaps the part before is one with it."""
    begin = data.rfind(b"\n", 0, max(0, begin)) + 1
    newline = data.find(b"\n", min(end, len(data)))
    end = len(data) if newline < 0 else newline
    if windows and begin <= windows[-1][1]:
        windows[-1] = windows[-1][0], max(end, windows[-1][1])
    else:
        windows.append((begin, end))


def _within(data: bytes, begin: int, end: int, numbers: Iterable[int]) -> Iterator[Found]:
    """Yield secrets of some kinds in a part of the text, in each of its views."""
    seen = views.of(data[begin:end])
    for number in numbers:
        for view in seen:
            for match in _matches(view, number):
                first, last = _secret(match)
                whole, part = view.origin(*match.span()), view.origin(first, last)
                yield Found(
                    number, ((begin + part[0], begin + part[1]),), view.text[first:last], begin + whole[0], begin + whole[1]
                )


def _matches(view: View, number: int) -> Iterator[re.Match[bytes]]:
    """Yield what an expression finds and its check does not let stand."""
    check = KINDS[number].check
    for match in KINDS[number].compiled().finditer(view.text):
        secret = view.text[slice(*_secret(match))]
        if secret and not _MASKED.fullmatch(secret) and (check is None or check(secret)):
            yield match


def _secret(match: re.Match[bytes]) -> tuple[int, int]:
    return match.span(match.lastgroup) if match.lastgroup else match.span()


def _over_rows(data: bytes, spot: Spot, numbers: Iterable[int]) -> Iterator[Found]:
    """Yield secrets that begin in a row and go on in the rows below it."""
    end = _going_on(data, spot)
    if end == spot.end:
        return
    view = views.joined(data[spot.begin : end])
    for number in numbers:
        for match in _matches(view, number):
            first, last = _secret(match)
            last = _plausible(view, match, number)
            parts = [view.origin(*piece) for piece in view.pieces(first, last)]
            if len(parts) < 2:
                continue
            places = tuple((spot.begin + begin, spot.begin + end) for begin, end in parts)
            yield Found(number, places, view.text[first:last], spot.begin + view.origin(match.start(), last)[0], places[-1][1])


def _going_on(data: bytes, spot: Spot) -> int:
    """Give the end of the last row that may go on with what a row ends with."""
    end, width = spot.end, spot.end - spot.begin
    if not NARROWEST <= width <= WIDEST or data.endswith((b" ", b"\t"), spot.begin, spot.end):
        return end
    indented = None
    for _ in range(MOST_ROWS):
        newline = data.find(b"\n", end + 1, end + 2 + 2 * width)
        below = newline if newline >= 0 else len(data)
        row = _FIRST_OF_ROW.match(data, end + 1, below)
        if row is None or below - end - 1 > width or indented not in (None, row["blank"]):
            return end
        width, end, indented = below - end - 1, below, row["blank"]
        if row["rest"].strip(_CLOSING) or row["rest"][:1].isspace():
            return end
    return end


def _plausible(view: View, match: re.Match[bytes], number: int) -> int:
    """Give how far a secret goes over seams: into rows that look like more of it, or without which it is none."""
    first, last = _secret(match)
    for begin, end in view.pieces(first, last):
        run = (view.text[begin:end].split(None, 1) or [b""])[0]
        if begin == first:
            continue
        if (len(run) < SHORTEST or shapes.is_word(run.strip(b"=;,"))) and not _needs(view, match, number, begin):
            return begin
        if len(run) < end - begin:
            return begin + len(run)
    return last


def _needs(view: View, match: re.Match[bytes], number: int, seam: int) -> bool:
    """Tell whether a secret's shape is not whole before a seam."""
    alone = KINDS[number].compiled().match(view.text, match.start(), seam)
    return KINDS[number].shaped and (alone is None or alone.end() < seam)
