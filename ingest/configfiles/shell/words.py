"""One argument of a command: what bash makes of it, and where each character of it stands in the script."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError

# How a character is quoted: not at all, single, double, or as the text of a here-document.
Quote = Literal["", "'", '"', "<<"]

# What bash reads next, by the quoting it is in. `end` opens or closes a quoting.
_TOKENS: dict[Quote, re.Pattern[str]] = {
    "": re.compile(r"(?P<join>\\\n)|\\(?P<escaped>.)|(?P<end>['\"])|(?P<plain>.)", re.DOTALL),
    "'": re.compile(r"(?P<end>')|(?P<plain>.)", re.DOTALL),
    '"': re.compile(r"(?P<join>\\\n)|\\(?P<escaped>[$`\"\\])|(?P<end>\")|(?P<plain>.)", re.DOTALL),
    "<<": re.compile(r"(?P<join>\\\n)|\\(?P<escaped>[$`\\])|(?P<plain>.)", re.DOTALL),
}
# What stands for itself.
_RUNS: dict[Quote, re.Pattern[str]] = {
    "": re.compile(r"[^\\'\"]+"),
    "'": re.compile(r"[^']+"),
    '"': re.compile(r"[^\\\"]+"),
    "<<": re.compile(r"[^\\]+"),
}
_SPECIAL = {'"': re.compile(r"([$`\"\\])"), "<<": re.compile(r"([$`\\])")}
_BRACES = re.compile(r"\{[^{}\0]*(?:,|\.\.)[^{}\0]*\}")
_VARIABLE = re.compile(r"\$(?:(?P<bare>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)(?P<all>\[[@*]\])?\})")

# What a variable or an argument is where it is not given: plain text, or in quotes of its own.
_DEFAULT = re.compile(
    r"\$\{(?:[A-Za-z_]\w*|\d+):?[-=](?P<quote>\"?)(?P<text>[\w./:@%+,=-]+)(?P=quote)\}", re.ASCII
)


class CharacterUnit(NamedTuple):
    """One character as bash passes it, or (`computed`) an expression that bash replaces.

    Offsets in the script.
    """

    text: str
    start: int
    end: int
    quote: Quote
    computed: bool = False


class WordEdit(NamedTuple):
    """Replace script[start:end] by `new`."""

    start: int
    end: int
    new: str


class Reference(NamedTuple):
    """A variable that a word consists of; `items` for all elements of an array."""

    name: str
    items: bool
    quote: Quote


@dataclass(frozen=True)
class Word:
    """An argument, or the rest of one.

    `opened` is the quoting that its first character is in, `splits` says that it stands in a string which
    bash cuts at blanks, `branch` that it may not be reached (if, loop, function).
    """

    units: tuple[CharacterUnit, ...]
    start: int
    end: int
    source: str
    splits: bool = False
    branch: bool = False
    opened: Quote = ""

    @cached_property
    def text(self) -> str:
        """Give the argument as bash passes it; expressions stay as written."""
        return "".join(unit.text for unit in self.units)

    @property
    def plain(self) -> bool:
        """Tell whether bash passes the word as it stands, nothing computed."""
        return not any(unit.computed for unit in self.units)

    @property
    def line(self) -> int:
        """Give the word's line in the script."""
        return self.source.count("\n", 0, self.start) + 1

    def rest(self, begin: int) -> Word:
        """Give what follows the first `begin` characters."""
        if not begin:
            return self
        last = self.units[begin - 1]
        return Word(self.units[begin:], last.end, self.end, self.source, self.splits, self.branch, last.quote)

    def equals_at(self) -> int | None:
        """Give the place of the first equals sign, if all before it is plain."""
        for index, unit in enumerate(self.units):
            if unit.computed:
                return None
            if unit.text == "=":
                return index
        return None

    def reference(self) -> Reference | None:
        """Give the variable, where the word is one and nothing else."""
        if len(self.units) != 1 or not self.units[0].computed:
            return None
        found = _VARIABLE.fullmatch(self.units[0].text)
        return found and Reference(found["bare"] or found["braced"], bool(found["all"]), self.units[0].quote)

    def default(self) -> Word | None:
        """Give the word within `${NAME:-word}`, where this one is that and nothing else."""
        if len(self.units) != 1 or not self.units[0].computed:
            return None
        unit = self.units[0]
        found = _DEFAULT.fullmatch(unit.text)
        if found is None:
            return None
        start, quote = unit.start + found.start("text"), _quote(found["quote"]) or unit.quote
        units = [
            CharacterUnit(each, start + at, start + at + 1, quote) for at, each in enumerate(found["text"])
        ]
        return Word(tuple(units), start, units[-1].end, self.source, True, self.branch, quote)

    def replaced(self, new: str) -> WordEdit:
        """Write `new` in the word's own quoting; a word of mixed quoting is quoted as a whole."""
        if self.splits and (not new or re.search(r"\s", new)):
            raise NotPatchableError(Message("patch.line-string-cut-blanks", line=self.line))
        quotes = {unit.quote for unit in self.units}
        if not self.units:
            # Write into a word without a character: nothing, an empty pair of quotes, or an open quoting.
            raw = self.source[self.start : self.end]
            if self.opened == "" and raw in ("''", '""'):
                return WordEdit(self.start + 1, self.start + 1, written(new, _quote(raw[0])))
            return WordEdit(self.start, self.start, written(new, self.opened))
        first, last = self.units[0], self.units[-1]
        if len(quotes) == 1:
            return WordEdit(first.start, last.end, written(new, first.quote))
        # Inside of a quoting, the replaced text would have to end it where the old one did.
        if self.opened == "":
            return WordEdit(self.start, self.end, shlex.quote(new))
        raise NotPatchableError(
            Message("patch.line-quoting-mixed", line=self.line, source=self.source[self.start : self.end])
        )

    def span_replaced(self, begin: int, end: int, new: str) -> WordEdit:
        """Write `new` for a part of a plain word, characters `begin` to `end`; there is one before it."""
        if len({unit.quote for unit in self.units[begin - 1 : end]}) > 1:
            raise NotPatchableError(
                Message("patch.line-quoting-mixed", line=self.line, source=self.source[self.start : self.end])
            )
        before = self.units[begin - 1]
        return WordEdit(before.end, self.units[end - 1].end, written(new, before.quote))

    def pieces(self) -> Iterator[Word]:
        """Cut at blanks, as bash does with the value of an unquoted variable."""
        held: list[CharacterUnit] = []
        for unit in self.units:
            if unit.computed or not unit.text.isspace():
                held.append(unit)
            elif held:
                yield self._piece(held)
                held = []
        if held:
            yield self._piece(held)

    def _piece(self, units: list[CharacterUnit]) -> Word:
        # A word of its own begins within the string's quoting.
        return Word(
            tuple(units), units[0].start, units[-1].end, self.source, True, self.branch, units[0].quote
        )


def _quote(raw: str) -> Quote:
    return "'" if raw == "'" else '"' if raw == '"' else ""


def written(value: str, quote: Quote) -> str:
    """Spell a value so that bash, in this quoting, passes exactly it."""
    if quote == "":
        return shlex.quote(value) if value else ""
    if quote == "'":
        return value.replace("'", "'\\''")
    return _SPECIAL[quote].sub(r"\\\1", value)


def word(source: str, start: int, end: int, computed: Iterable[tuple[int, int]], quote: Quote = "") -> Word:
    """Read source[start:end] as one word; `computed` holds the spans of the expressions in it."""
    spans = dict(computed)
    begins = sorted(spans)
    units: list[CharacterUnit] = []
    now, at = quote, start
    while at < end:
        if at in spans:
            units.append(CharacterUnit(source[at : spans[at]], at, spans[at], now, True))
            at = spans[at]
            continue
        run = _RUNS[now].match(source, at, next((begin for begin in begins if at < begin < end), end))
        if run is not None:
            units += [CharacterUnit(text, place, place + 1, now) for place, text in enumerate(run[0], at)]
            at = run.end()
            continue
        token = _TOKENS[now].match(source, at)
        if token is None:
            break
        if token.groupdict().get("end"):
            now = _quote(token["end"]) if now == "" else ""
        elif text := (token.groupdict().get("escaped") or token["plain"]):
            units.append(CharacterUnit(text, at, token.end(), now))
        at = token.end()
    return Word(_with_braces(units), start, end, source)


def _with_braces(units: list[CharacterUnit]) -> tuple[CharacterUnit, ...]:
    """Join an unquoted {a,b} or {1..3} to one expression: bash makes several words of it."""
    flat = "".join(unit.text if unit.quote == "" and not unit.computed else "\0" for unit in units)
    joined, at = [], 0
    for found in _BRACES.finditer(flat):
        inside = units[found.start() : found.end()]
        joined += units[at : found.start()]
        joined.append(
            CharacterUnit("".join(unit.text for unit in inside), inside[0].start, inside[-1].end, "", True)
        )
        at = found.end()
    return tuple(joined + units[at:])
