"""The expressions of Hyperscan as trees of sets of bytes, as far as the tables of this package use them.

What a tree can be asked, text cannot: which bytes each place takes, and how a match may begin.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ingest.errors import InvalidExpressionError

# Sets of bytes, as bits.
ALL = (1 << 256) - 1


def bits_of(chars: bytes) -> int:
    """Give the set of some bytes."""
    bits = 0
    for char in chars:
        bits |= 1 << char
    return bits


NEWLINE, DIGITS = bits_of(b"\n"), bits_of(b"0123456789")
_SPACE = bits_of(b" \t\n\r\f\v")
_UPPER, _LOWER = bits_of(bytes(range(65, 91))), bits_of(bytes(range(97, 123)))
_WORD = _UPPER | _LOWER | DIGITS | bits_of(b"_")
_CLASSES = {
    b"s": _SPACE,
    b"S": ALL & ~_SPACE,
    b"w": _WORD,
    b"W": ALL & ~_WORD,
    b"d": DIGITS,
    b"D": ALL & ~DIGITS,
}
_CONTROLS = {b"n": 10, b"r": 13, b"t": 9, b"f": 12, b"v": 11, b"a": 7, b"e": 27}
_TIMES = re.compile(rb"(?:(?P<sign>[*+?])|\{(?P<least>\d+)(?P<upto>,(?P<most>\d*))?\})(?P<more>[?+])?")
_GROUP = re.compile(rb"\((?!\?)|\(\?(?P<on>[im]*)(?:-(?P<off>[im]+))?(?P<end>[:)])")


@dataclass(frozen=True, slots=True)
class Chars:
    """One byte of a set."""

    bits: int


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place between two bytes, as it is written."""

    text: str


@dataclass(frozen=True, slots=True)
class Chain:
    """One part behind the other; none matches the empty text."""

    parts: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some options; none of none ever matches."""

    options: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part so many times, at most `most` where there is a bound."""

    part: Node
    least: int
    most: int | None


Node = Chars | Anchor | Chain | Choice | Repeat


# The same expressions are asked for several forms, and a few sets of bytes stand in most of their places.
@lru_cache(1024)
def parse(expression: str) -> Node:
    """Give the tree of an expression; raises InvalidExpressionError where it uses what is not known here."""
    reader = _Reader(expression.encode())
    tree = reader.choice(caseless=False)
    if reader.place < len(reader.text):
        raise reader.refusal()
    return tree


def written(node: Node) -> str:
    """Write a tree as an expression of Hyperscan that needs no flag but that of many rows."""
    match node:
        case Chars(bits):
            return _written_set(bits)
        case Anchor(text):
            return text
        case Chain(parts):
            return "".join(map(written, parts))
        case Choice(options):
            return f"(?:{'|'.join(map(written, options))})"
        case Repeat(part, least, most):
            return f"(?:{written(part)}){{{least},{'' if most is None else most}}}"


@lru_cache(1024)
def _written_set(bits: int) -> str:
    codes = [code for code in range(256) if bits >> code & 1]
    if len(codes) == 1:
        return _written_byte(codes[0])
    runs: list[list[int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    ranges = (
        _written_byte(first) + (f"-{_written_byte(last)}" if last > first else "") for first, last in runs
    )
    return f"[{''.join(ranges)}]"


def _written_byte(code: int) -> str:
    return chr(code) if chr(code).isalnum() and code < 128 else f"\\x{code:02x}"


class _Reader:
    """Reads an expression from its beginning on."""

    def __init__(self, text: bytes) -> None:
        self.text, self.place = text, 0

    def refusal(self) -> InvalidExpressionError:
        """Say where the expression goes on with what is not known."""
        return InvalidExpressionError(f"at {self.text[self.place : self.place + 12]!r}")

    def choice(self, *, caseless: bool) -> Node:
        """Read up to the end of a group, or of all."""
        options: list[Node] = []
        while True:
            parts, caseless = self._chain(caseless=caseless)
            options.append(parts[0] if len(parts) == 1 else Chain(tuple(parts)))
            if self._next() != b"|":
                return options[0] if len(options) == 1 else Choice(tuple(options))
            self.place += 1

    def _next(self) -> bytes:
        return self.text[self.place : self.place + 1]

    def _chain(self, *, caseless: bool) -> tuple[list[Node], bool]:
        """Read up to the end of an option; a flag in it holds for what follows it."""
        parts: list[Node] = []
        while self._next() not in (b"", b"|", b")"):
            if group := _GROUP.match(self.text, self.place):
                self.place = group.end()
                flags, off = group["on"] or b"", group["off"] or b""
                inner = b"i" not in off and (caseless or b"i" in flags)
                if group["end"] == b")":
                    caseless = inner
                    continue
                atom = self.choice(caseless=inner)
                if self._next() != b")":
                    raise self.refusal()
                self.place += 1
            else:
                atom = self._atom(caseless=caseless)
            parts.append(self._repeated(atom))
        return parts, caseless

    def _repeated(self, atom: Node) -> Node:
        found = _TIMES.match(self.text, self.place)
        if found is None:
            return atom
        if found["more"] == b"+":
            raise self.refusal()
        self.place = found.end()
        if found["sign"]:
            least, most = {b"*": (0, None), b"+": (1, None), b"?": (0, 1)}[found["sign"]]
        else:
            least = int(found["least"])
            most = least if not found["upto"] else int(found["most"]) if found["most"] else None
        return Repeat(atom, least, most)

    def _atom(self, *, caseless: bool) -> Node:
        sign = self._next()
        if sign in b"^$":
            self.place += 1
            return Anchor(sign.decode())
        if sign == b"[":
            return Chars(self._set(caseless=caseless))
        if sign == b".":
            self.place += 1
            return Chars(ALL & ~NEWLINE)
        if self.text[self.place : self.place + 2] in (rb"\b", rb"\z"):
            self.place += 2
            return Anchor(self.text[self.place - 2 : self.place].decode())
        if sign in b"(*+?":
            raise self.refusal()
        bits = self._escaped() if sign == b"\\" else 1 << sign[0]
        self.place += sign != b"\\"
        return Chars(_both_cases(bits) if caseless else bits)

    def _escaped(self) -> int:
        """Read a backslash and what it makes of the signs behind it."""
        sign = self.text[self.place + 1 : self.place + 2]
        if sign == b"x":
            digits = self.text[self.place + 2 : self.place + 4]
            if not re.fullmatch(rb"[0-9A-Fa-f]{2}", digits):
                raise self.refusal()
            self.place += 4
            return 1 << int(digits, 16)
        if sign in _CLASSES:
            self.place += 2
            return _CLASSES[sign]
        if sign in _CONTROLS:
            self.place += 2
            return 1 << _CONTROLS[sign]
        if not sign or sign.isalnum():
            raise self.refusal()
        self.place += 2
        return 1 << sign[0]

    def _set(self, *, caseless: bool) -> int:
        """Read a set of signs in brackets."""
        self.place += 1
        is_negated = self._next() == b"^"
        self.place += is_negated
        bits, begin = 0, self.place
        while (sign := self._next()) != b"]" or self.place == begin:
            if not sign or self.text[self.place : self.place + 2] == b"[:":
                raise self.refusal()
            one = self._of_set()
            if self._next() == b"-" and self.text[self.place + 1 : self.place + 2] != b"]":
                self.place += 1
                last = self._of_set()
                if one.bit_count() != 1 or last.bit_count() != 1:
                    raise self.refusal()
                one = (last << 1) - one
            bits |= one
        self.place += 1
        bits = _both_cases(bits) if caseless else bits
        return ALL & ~bits if is_negated else bits

    def _of_set(self) -> int:
        if self._next() == b"\\":
            if self.text[self.place + 1 : self.place + 2] == b"b":
                raise self.refusal()
            return self._escaped()
        self.place += 1
        return 1 << self.text[self.place - 1]


def _both_cases(bits: int) -> int:
    return bits | (bits & _UPPER) << 32 | (bits & _LOWER) >> 32
