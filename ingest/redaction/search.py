"""Find secrets.

The exact expressions are held against the rows that the prefilter lets through, in each of their views.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ingest.redaction import entropy, views
from ingest.redaction.budget import RedactionBudget
from ingest.redaction.code_values import is_of_code
from ingest.redaction.kinds import NEXT_ROW, SecretMatch
from ingest.redaction.prefilter import CandidateRow, load_prefilter
from ingest.redaction.table import KINDS
from ingest.redaction.views import TextView

# How many rows below a cut one may belong to the same secret.
MOST_ROWS = 64
# So many are looked at first, or so many bytes of them.
FEW_ROWS, FEW_BYTES = 8, 256
# And so many are masked below one that is not read.
UNREAD_ROWS = 3
# What joining two rows costs beside their bytes, and what an expression may look through from one place of a
# row on.
SEAM, REACH = 40, 500
# A row that a terminal cut is as wide as the terminal.
NARROWEST = 20
WIDEST = 4096
# So far expressions look back for a scheme, or the dashes of a flag.
LOOK = 4
# Fewer characters in the row below tell nobody anything, and are the beginning of many words.
SHORTEST = 4
# A run of capitals and digits among its letters that begins a row by chance is shorter.
DRAWN = 16
# A word with a number behind it is rarely as long.
LONG_RUN = 8
_ASSIGNS = re.compile(rb"[A-Za-z_][\w.-]*=[^=]|\d{2,4}[-/:]\d\d[-/:]\d\d")
_MASK_BEGIN = b"[redacted:"
_MASKED = re.compile(rb"(?:\W*\[redacted:[a-z0-9-]+\]?[^\w\[]*)+")
# Rows that end so leave a value to the row below.
_GOES_ON = re.compile(rb"[:=|>+(\[\\-][ \t]*\r?\Z|\xef\xbc\x9a[ \t]*\r?\Z")
_FIRST_OF_ROW = re.compile(views.BEFORE_ROW + rb"[\"']?(?P<run>[A-Za-z0-9_+/=.~%:@!$-]*)(?P<rest>[^\n]*)")
_CONTINUING = [bytes([code]) for code in range(0x80, 0xC0)]
_CLOSING = b"\"'\\,;)]} \t\r"


@dataclass(frozen=True, slots=True)
class FoundSecret:
    """A secret.

    It has the number of its kind, its parts in the bytes as given, its text, and the end of the whole match.
    """

    kind: int
    parts: tuple[tuple[int, int], ...]
    secret: bytes
    begin: int
    end: int


def find_secrets(data: bytes, budget: RedactionBudget | None = None) -> list[FoundSecret]:
    """Give all secrets of a text; what `budget` does not last for is masked unread."""
    budget = budget or RedactionBudget()
    budget.earn(len(data))
    return list(search_rows(data, load_prefilter().spots(data), budget))


def are_known_clear(texts: Sequence[bytes], budget: RedactionBudget) -> bool:
    """Tell whether texts are known to hold no secret; what they are worth counts as if they were searched."""
    prefilter = load_prefilter()
    are_clear = all(map(prefilter.is_known_clear, texts))
    if are_clear:
        budget.earn(sum(map(len, texts)))
    return are_clear


def are_of_clear_shapes(texts: Sequence[bytes]) -> bool:
    """Tell whether texts are known to hold no secret, whatever their digits are."""
    return all(map(load_prefilter().is_of_clear_shape, texts))


def search_all(data: bytes) -> list[FoundSecret]:
    """Give all secrets of a text without the prefilter: every kind at every row; slow, to compare with."""
    kinds = frozenset(range(len(KINDS)))
    spots = []
    begin = 0
    for row in data.split(b"\n"):
        spots.append(CandidateRow(begin, begin + len(row), kinds, kinds))
        begin += len(row) + 1
    return list(search_rows(data, spots))


def search_rows(
    data: bytes, spots: Iterable[CandidateRow], budget: RedactionBudget | None = None
) -> Iterator[FoundSecret]:
    """Yield the secrets in some rows of a text; without a budget, whatever it costs."""
    windows: dict[int, list[_Window]] = {}
    budget = budget or RedactionBudget(left=sys.maxsize)
    for spot in spots:
        if spot.flood or budget.is_spent:
            yield _unread(data, spot)
            continue
        yield from _of_row(data, spot, windows, budget)
    for number, places in windows.items():
        reach = KINDS[number].back + KINDS[number].ahead
        for window in places:
            # Before it is read: a window's expression may look through all that it reaches, once for each
            # place.
            if budget.affords(
                window.end - window.begin + window.hits * min(reach, window.end - window.begin)
            ):
                yield from _within(data, window.begin, window.end, [number], budget)
            else:
                yield _masked_whole(window.begin, window.end, number)


def _of_row(
    data: bytes, spot: CandidateRow, windows: dict[int, list[_Window]], budget: RedactionBudget
) -> Iterator[FoundSecret]:
    """Yield the secrets of a row and of those that go on with it.

    What takes a larger part of the text is put into `windows`.
    """
    near = []
    finders = set()
    for number in sorted(spot.kinds):
        kind = KINDS[number]
        # Several conditions may ask for what one function finds.
        if kind.finder is not None and kind.finder in finders:
            continue
        finders.add(kind.finder)
        if (
            kind.back
            or kind.ahead > NEXT_ROW
            or (kind.ahead and _GOES_ON.search(data, max(spot.begin, spot.end - 16), spot.end))
        ):
            _widen(
                windows.setdefault(number, []),
                data,
                spot.begin - kind.back if kind.back else spot.begin,
                spot.end + kind.ahead,
            )
        else:
            near.append(number)
    size = spot.end - spot.begin
    if near and not budget.affords((size + spot.hits * min(size, REACH)) * len(near)):
        yield _unread(data, spot)
        return
    if near:
        yield from _within(data, spot.begin, spot.end, near, budget)
    if going_on := [number for number in spot.open if KINDS[number].wraps]:
        yield from _over_rows(data, spot, going_on, budget)


def _unread(data: bytes, spot: CandidateRow) -> FoundSecret:
    """Take what nobody reads any more for a secret, as far as a match may reach.

    A row from the word that asked for it on, or all of it.
    """
    begin, end = spot.begin, spot.end
    kinds = [KINDS[number] for number in spot.kinds | spot.open]
    if back := max(kind.back for kind in kinds):
        begin = data.rfind(b"\n", 0, max(0, begin - back)) + 1
    elif not spot.flood and all(kind.is_local for kind in kinds) and begin < spot.first <= end:
        begin = max(begin, data.rfind(b" ", begin, begin + len(data[begin : spot.first].rstrip())) + 1)
    if (ahead := max(kind.ahead for kind in kinds)) > NEXT_ROW:
        end = min(len(data), end + ahead)
    elif spot.open:
        end = _first_below(data, spot)
    return _masked_whole(begin, end, min(spot.kinds | spot.open))


def _first_below(data: bytes, spot: CandidateRow) -> int:
    """Give how far a row may go on in those below.

    To the end of their first word, and further where a row has no other.
    """
    end = spot.end
    for _ in range(UNREAD_ROWS):
        newline = data.find(b"\n", end + 1, end + 2 + WIDEST)
        row = _FIRST_OF_ROW.match(
            data, end + 1, newline if newline >= 0 else min(len(data), end + 2 + WIDEST)
        )
        if row is None or end >= len(data):
            return end
        # Words, and what is called by its name, such as an error, begin a row of their own.
        if (_is_words(row["run"]) or row["run"].endswith(b":")) and not _GOES_ON.search(
            data, max(spot.begin, end - 16), end
        ):
            return end
        end = row.end("run")
        if row["rest"].strip(_CLOSING):
            return end
        end = row.end()
    return end


def _masked_whole(begin: int, end: int, number: int) -> FoundSecret:
    # It counts as a match without length: a stream may be cut anywhere in it.
    return FoundSecret(number, ((begin, end),), b"", begin, begin)


@dataclass(slots=True)
class _Window:
    """A part of the text in whole rows, and how many places in it asked for it."""

    begin: int
    end: int
    hits: int = 1


def _widen(windows: list[_Window], data: bytes, begin: int, end: int) -> None:
    """Add a part of the text in whole rows; what overlaps the part before is one with it."""
    begin = data.rfind(b"\n", 0, max(0, begin)) + 1
    newline = data.find(b"\n", min(end, len(data)))
    end = len(data) if newline < 0 else newline
    if windows and begin <= windows[-1].end:
        windows[-1].end = max(end, windows[-1].end)
        windows[-1].hits += 1
    else:
        windows.append(_Window(begin, end))


def _within(
    data: bytes, begin: int, end: int, numbers: Sequence[int], budget: RedactionBudget
) -> Iterator[FoundSecret]:
    """Yield secrets of some kinds in a part of the text, in each of its views."""
    seen = views.view_of(data[begin:end])
    budget.spend((end - begin) * (len(seen) - 1) * len(numbers))
    for number in numbers:
        for view in seen:
            for match in _matches(view, number):
                first, last = _secret(match)
                whole, part = view.origin(*match.span()), view.origin(first, last)
                yield FoundSecret(
                    number,
                    ((begin + part[0], begin + part[1]),),
                    view.text[first:last],
                    begin + whole[0],
                    begin + whole[1],
                )


def _matches(view: TextView, number: int, until: int = sys.maxsize) -> Iterator[SecretMatch]:
    """Yield what an expression finds, beginning no later than `until`, and its check does not let stand."""
    kind = KINDS[number]
    for match in kind.matches(view.text):
        if match.start() > until:
            return
        first, last = _secret(match)
        secret = view.text[first:last]
        is_masked = (
            _MASKED.fullmatch(secret)
            or (not kind.linear and entropy.is_reference(secret.split(b":", 1)[-1]))
            or _in_mask(view.text, match.start())
            or _in_mask(view.text, first)
        )
        if not secret or is_masked or (kind.check is not None and not kind.check(secret)):
            continue
        if kind.check is None or not is_of_code(view.text, match.start(), first, secret):
            yield match


def _in_mask(text: bytes, place: int) -> bool:
    """Tell whether a place is within the words of a mask, which name secrets."""
    begin = text.rfind(_MASK_BEGIN, max(0, place - 40), place + len(_MASK_BEGIN) - 1)
    return begin >= 0 and text.find(b"]", begin, place) < 0


def _secret(match: SecretMatch) -> tuple[int, int]:
    return match.span(match.lastgroup) if match.lastgroup else match.span()


def _over_rows(
    data: bytes, spot: CandidateRow, numbers: Sequence[int], budget: RedactionBudget
) -> Iterator[FoundSecret]:
    """Yield secrets that begin in a row, or whose name does, and go on in the rows below it.

    A few rows first; more of them only where what was found goes on to the last one.
    """
    rows = FEW_ROWS
    while True:
        below = _going_on(data, spot, rows)
        if below.end == spot.end:
            return
        # What an author has broken at a blank may go on in a row that is wider; a name ends the one, its
        # value begins the other.
        seen = views.joined_rows(data[spot.begin : below.end], at_blanks=below.is_wide)
        budget.spend(
            sum(len(view.text) + SEAM * len(view.seams) for view in seen)
            + len(numbers) * (below.end - spot.begin) * len(seen)
        )
        matches = [
            (view, number, match)
            for view in seen
            if view.seams
            for number in numbers
            # What begins in a row below is found with that row.
            for match in _matches(view, number, view.seams[0] + LOOK)
            if not below.is_wide or _begins_row(view, _secret(match)[0])
        ]
        if (
            below.is_all
            or rows >= MOST_ROWS
            or not any(match.end() + LOOK >= view.seams[-1] for view, _, match in matches)
        ):
            break
        rows = MOST_ROWS
    for view, number, match in matches:
        yield from _pieces(view, match, number, spot.begin)


def _pieces(view: TextView, match: SecretMatch, number: int, offset: int) -> Iterator[FoundSecret]:
    """Yield what was found over several rows, as far as it is plausible that they belong together."""
    first, whole = _secret(match)
    last = _plausible(view, match, number)
    reach = match.end() if last == whole else last
    # What an expression looks back at is no part of its match.
    if first < last and any(match.start() - LOOK < seam < reach for seam in view.seams):
        places = tuple(
            (offset + begin, offset + end)
            for begin, end in (view.origin(*piece) for piece in view.pieces(first, last))
        )
        yield FoundSecret(
            number, places, view.text[first:last], offset + view.origin(match.start(), last)[0], places[-1][1]
        )


class _Below(NamedTuple):
    """The end of the last row that may go on with a row.

    Whether that one is wider, and whether no further row may.
    """

    end: int
    is_wide: bool = False
    is_all: bool = True


def _going_on(data: bytes, spot: CandidateRow, most: int) -> _Below:
    """Tell which rows, of so many, may go on with what a row ends with."""
    end, width = spot.end, _Width.of(data[spot.begin : spot.end])
    if spot.end - spot.begin > WIDEST:
        return _Below(end)
    is_narrow = spot.end - spot.begin < NARROWEST
    indented: int | None = None
    is_drawn = True
    for _ in range(most):
        newline = data.find(b"\n", end + 1, end + 2 + 2 * WIDEST)
        below = newline if newline >= 0 else min(len(data), end + 2 + 2 * WIDEST)
        row, lower = _FIRST_OF_ROW.match(data, end + 1, below), _Width.of(data[end + 1 : below])
        if row is None or (indented is not None and abs(indented - len(row["blank"])) > 1):
            return _Below(end)
        # What is drawn goes on however wide its row is: cells of a box are filled to no common width.
        is_drawn = is_drawn and len(row["run"]) >= DRAWN and entropy.is_dense(row["run"])
        if (is_narrow or lower.exceeds(width)) and not is_drawn:
            return _Below(below, is_wide=True) if end == spot.end else _Below(end)
        # A row with blanks is the last one, unless it is as wide as the terminal too.
        is_last = not lower.equals(width) and (row["rest"].strip(_CLOSING) or row["rest"][:1].isspace())
        width, end, indented = lower, below, len(row["blank"])
        if is_last:
            return _Below(end)
        if most == FEW_ROWS and end - spot.end > FEW_BYTES:
            break
    return _Below(end, is_all=False)


class _Width(NamedTuple):
    """How wide a row is in characters, and in a terminal's columns, of which Chinese characters take two."""

    letters: int
    columns: int

    @classmethod
    def of(cls, row: bytes) -> _Width:
        row = views.COLOURS.sub(b"", row.rstrip(b"\r"))
        letters = len(row) - sum(map(row.count, _CONTINUING)) if not row.isascii() else len(row)
        return cls(letters, (len(row) + letters) // 2)

    def exceeds(self, other: _Width) -> bool:
        """Tell whether it is wider in every way of counting."""
        return self.letters > other.letters and self.columns > other.columns

    def equals(self, other: _Width) -> bool:
        """Tell whether both may be as wide as the same terminal.

        A character of two columns may leave the last one empty.
        """
        return self.letters == other.letters or 0 <= other.columns - self.columns <= 1


def _plausible(view: TextView, match: SecretMatch, number: int) -> int:
    """Give how far a secret goes over seams.

    Into rows that look like more of it, or without which it is none.
    """
    first, last = _secret(match)
    for begin, end in view.pieces(first, last):
        run = (view.text[begin:end].split(None, 1) or [b""])[0]
        if not _begins_row(view, begin):
            if begin == first and entropy.is_nothing(view.text[begin:end]):
                return first  # `balance_dp_token: True`, and the next key below
            continue
        if _is_words(run):
            # A secret whose shape is not whole before a seam goes on behind it.
            alone = KINDS[number].compiled().match(view.text, match.start(), begin)
            if not KINDS[number].shaped or (alone is not None and alone.end() >= begin):
                return begin
        if len(run) < end - begin:
            return begin + len(run)
    return last


def _begins_row(view: TextView, place: int) -> bool:
    """Tell whether a row begins at a place of a view, or with a quote before it."""
    return any(seam <= place <= seam + 2 and not view.text[seam:place].strip(_CLOSING) for seam in view.seams)


def _is_words(run: bytes) -> bool:
    """Tell whether what a row begins with may be no more of a secret.

    Too little, a name and its value, a time, or a word; one with digits is none if it is long.
    """
    run = run.strip(b";,:.()")
    return (
        len(run) < SHORTEST
        or _ASSIGNS.match(run) is not None
        or (entropy.is_word(run) and not (len(run) >= LONG_RUN and entropy.is_mixed(run)))
    )
