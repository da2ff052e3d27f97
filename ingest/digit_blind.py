"""What an expression asks of a row whose digits are all noughts, and of the rows below it.

Rows of a log are alike but for their digits. An expression of which each place takes any digit or none cannot
tell them apart, so that what it says of one holds for all. Each expression is made so by letting a place that
takes some digit take a nought: the blind one matches the masked row wherever the exact one matches the row
as given, and more. Where it finds nothing, the exact one finds nothing in any row that is alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from ingest.expression_tree import (
    DIGITS,
    NEWLINE,
    Anchor,
    Chain,
    Chars,
    Choice,
    Node,
    Repeat,
    bits_of,
    parse,
    written,
)

# Hyperscan takes expressions of up to 16,000 signs.
LONGEST = 12_000
_NOUGHT = bits_of(b"0")
_NEVER = Choice()
# The parts of an expression of `re`: what is escaped, a class of characters, how often, and any other sign.
_PARTS = re.compile(
    r"\\(?P<escaped>.)|\[(?P<members>\^?\]?(?:\\.|[^\]\\])*)\]|\{\d+(?:,\d*)?\}|(?P<sign>.)", re.DOTALL
)
# Escapes that may stand for a digit; ranges of digits in a class, and what may be one of other signs.
_DIGIT_SIGNS = "0123456789"
_NUMBERED = f"{_DIGIT_SIGNS}xuUN"
_ESCAPES = re.compile(r"\\[^\dxuUN]")
_DIGITS_FROM_TO = re.compile(r"(?<!-)(\d)-(\d)")
_UNCLEAR = re.compile(r"\\|-\d|\d-")
# What the masked row has for each byte of the row as given.
MASK = bytes(48 if 48 <= code < 58 else code for code in range(256))


class Beginning(NamedTuple):
    """What finds the part of a match up to a newline in it, and how many rows below the match may reach."""

    expression: str
    rows: int


def blind_expressions(expressions: Iterable[str]) -> list[str]:
    """Give what finds, in rows that are masked and end with a newline, each that holds a match, as it ends.

    Of one that ends where the text does nothing is found. Raises InvalidExpressionError.
    """
    trees = (_masked(parse(expression), _NEVER) for expression in expressions)
    return list(dict.fromkeys(text for tree in trees if tree != _NEVER for text in _short_texts(tree)))


def blind_texts(expressions: Iterable[str]) -> list[str]:
    """Give what finds each masked text that may hold a match. Raises InvalidExpressionError."""
    trees = (_masked(parse(expression), Anchor(r"\z")) for expression in expressions)
    return list(dict.fromkeys(text for tree in trees for text in _short_texts(tree)))


def blind_beginnings(expressions: Iterable[str]) -> list[Beginning]:
    """Give what finds, in rows that are masked and end with a newline, each whose match may go on below.

    One that begins with the newline before a row is a match in that row.
    """
    found: dict[str, int] = {}
    for expression in expressions:
        for tree, rows in _beginnings(_masked(parse(expression), Chain()), ends=True):
            for text in _short_texts(tree):
                found[text] = max(found.get(text, 0), rows)
    found.pop(written(Chars(NEWLINE)), None)
    return [Beginning(text, rows) for text, rows in found.items()]


def _short_texts(node: Node) -> Iterator[str]:
    """Write a tree as one expression, or as several where a choice in it makes it too long for Hyperscan."""
    text = written(node)
    parts = node.parts if isinstance(node, Chain) else (node,)
    at = max(range(len(parts)), key=lambda at: _options(parts[at]), default=0)
    if len(text) <= LONGEST or not parts or _options(parts[at]) < 2:
        yield text
        return
    chosen = parts[at]
    options = chosen.options if isinstance(chosen, Choice) else ()
    for half in (options[: len(options) // 2], options[len(options) // 2 :]):
        yield from _short_texts(Chain((*parts[:at], Choice(half), *parts[at + 1 :])))


def _options(node: Node) -> int:
    return len(node.options) if isinstance(node, Choice) else 0


def fillers_of(expressions: Iterable[str]) -> frozenset[bytes]:
    """Give of which bytes alone the rows may consist that a match goes over beside those that it reaches."""
    sets = frozenset[int]().union(*(_fillers(parse(expression)) for expression in expressions))
    return frozenset(bytes(code for code in range(256) if bits >> code & 1) for bits in sets)


def _masked(node: Node, at_end: Node) -> Node:
    """Let a place that takes a digit take a nought; `at_end` is what the text's end is taken for."""
    match node:
        case Chars(bits):
            # What takes any digit stays as it is: Hyperscan knows its forms, such as all but a newline.
            takes_some = bits & DIGITS and bits & DIGITS != DIGITS
            return Chars(bits & ~DIGITS | _NOUGHT) if takes_some else node
        case Anchor(text):
            return at_end if text == r"\z" else node
        case Chain(parts):
            inner = tuple(_masked(part, at_end) for part in parts)
            return _NEVER if _NEVER in inner else Chain(inner)
        case Choice(options):
            kept = tuple(one for option in options if (one := _masked(option, at_end)) != _NEVER)
            return kept[0] if len(kept) == 1 else Choice(kept)
        case Repeat(part, least, most):
            one = _masked(part, at_end)
            return (_NEVER if least else Chain()) if one == _NEVER else Repeat(one, least, most)


def _beginnings(node: Node, *, ends: bool) -> Iterator[tuple[Node, int]]:
    """Yield what matches as far as a newline in it, and how many rows the rest may reach.

    `ends` tells that nothing needs to follow the node; then what ends with its newline is whole.
    """
    match node:
        case Chars(bits):
            if bits & NEWLINE and not ends:
                yield Chars(NEWLINE), 1
        case Chain(parts):
            yield from _of_chain(parts, ends=ends)
        case Choice(options):
            for option in options:
                yield from _beginnings(option, ends=ends)
        case Repeat(part, least, most):
            before = () if most == 1 else (Repeat(part, 0, None if most is None else most - 1),)
            for cut, rows in _beginnings(part, ends=ends and least <= 1):
                yield Chain((*before, cut)), rows
        case Anchor():
            pass


def _of_chain(parts: tuple[Node, ...], *, ends: bool) -> Iterator[tuple[Node, int]]:
    for at, part in enumerate(parts):
        rest = parts[at + 1 :]
        for cut, rows in _beginnings(part, ends=ends and all(map(_is_nullable, rest))):
            yield Chain((*parts[:at], cut)), rows + _rows(rest, ends=ends)


def _rows(parts: tuple[Node, ...], *, ends: bool) -> int:
    """Give into how many rows some parts go, of which nothing needs to follow the last where they end all."""
    is_end = ends and bool(parts) and _is_byte(parts[-1])
    return sum(map(_newlines, parts[:-1] if is_end else parts))


def _is_byte(node: Node) -> bool:
    return isinstance(node, Chars) or (isinstance(node, Choice) and all(map(_is_byte, node.options)))


def _newlines(node: Node) -> int:
    """Give how many newlines a match of a tree holds at most, those of a repetition counted once."""
    match node:
        case Chars(bits):
            return int(bool(bits & NEWLINE))
        case Chain(parts):
            return sum(map(_newlines, parts))
        case Choice(options):
            return max(map(_newlines, options), default=0)
        case Repeat(part, _, most):
            return min(1, _newlines(part)) if most != 1 else _newlines(part)
        case Anchor():
            return 0


def _is_nullable(node: Node) -> bool:
    match node:
        case Chars():
            return False
        case Anchor(text):
            return text == "^"
        case Chain(parts):
            return all(map(_is_nullable, parts))
        case Choice(options):
            return any(map(_is_nullable, options))
        case Repeat(part, least, _):
            return least == 0 or _is_nullable(part)


def _fillers(node: Node) -> frozenset[int]:
    match node:
        case Chain(parts) | Choice(parts):
            return frozenset[int]().union(*map(_fillers, parts))
        case Repeat(part, _, most):
            # The rows within a repetition consist of what is repeated; it ends in one more.
            return _fillers(part) | ({_bytes_of(part)} if most != 1 and _newlines(part) else frozenset())
        case Chars() | Anchor():
            return frozenset()


def _bytes_of(node: Node) -> int:
    match node:
        case Chars(bits):
            return bits
        case Anchor():
            return 0
        case Chain(parts) | Choice(parts):
            bits = 0
            for part in parts:
                bits |= _bytes_of(part)
            return bits
        case Repeat(part, _, _):
            return _bytes_of(part)


def told_apart(expressions: Iterable[str]) -> bytes | None:
    """Give a table that makes alike the digits which no expression of `re` tells from each other.

    None where it cannot be said.
    """
    sets: list[set[int]] = []
    for expression in expressions:
        found = _digit_sets(expression)
        if found is None:
            return None
        sets += found
    alike: dict[tuple[bool, ...], int] = {}
    table = bytearray(range(256))
    for code in range(48, 58):
        table[code] = alike.setdefault(tuple(code in found for found in sets), code)
    return bytes(table)


@lru_cache(4096)
def _digit_sets(expression: str) -> list[set[int]] | None:
    """Give the sets of digits that the places of an expression take; None where one cannot be said."""
    if "(?P=" in expression:
        return None
    sets: list[set[int]] = []
    for part in _PARTS.finditer(expression):
        if part["escaped"] and part["escaped"] in _NUMBERED:
            return None
        if part["escaped"]:
            continue
        if part["members"] is not None:
            members = _ESCAPES.sub("", part["members"])
            ranges = _DIGITS_FROM_TO.findall(members)
            members = _DIGITS_FROM_TO.sub("", members)
            if _UNCLEAR.search(members):
                return None
            sets += (set(range(ord(first), ord(last) + 1)) for first, last in ranges)
            sets += ({ord(member)} for member in members if member in _DIGIT_SIGNS)
        elif part["sign"] and part["sign"] in _DIGIT_SIGNS:
            sets.append({ord(part["sign"])})
    return sets
