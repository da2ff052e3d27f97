"""A place in a source that tells of a failure, and the fixed words of what it says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from corpus.message_atlas import SiteKind
from corpus.message_words import words

# A message in pieces: text that is fixed, and None for what the program puts in.
Pieces = list[str | None]

# So many groups of a message are kept: what is longer is told from others by its beginning.
MOST_WORDS = 25
# The first line that has so many words stands for the whole: a log's reader sees messages line by line.
_ENOUGH_WORDS = 3
MOST_NAMES = 8
_GLUED_LEFT, _GLUED_RIGHT = re.compile(r"[A-Za-z0-9]+$"), re.compile(r"^[A-Za-z0-9]+")
# What a message calls by name: an option, a variable, an identifier of several words.
_NAMED = re.compile(
    r"(?<![\w-])--[a-z][\w-]{2,50}|(?<![\w/.])[A-Z][A-Z0-9]{2,20}(?:_[A-Z0-9]{1,20}){1,6}(?![\w/])"
    r"|(?<![\w/])[a-z][a-z0-9]{1,30}(?:_[a-z0-9]{1,30}){1,8}(?:\.[a-z_]{2,40}){0,3}(?![\w/(])"
)


@dataclass(frozen=True, slots=True)
class FoundSite:
    """One site of a source file.

    `symbol` is the class and function around it, `runs` the runs of fixed words of its message, `names` the
    settings and arguments that the condition before it reads or its message names.
    """

    symbol: str
    line: int
    kind: SiteKind
    exception: str
    runs: tuple[tuple[str, ...], ...]
    names: tuple[str, ...] = ()


def runs_of(pieces: Iterable[str | None]) -> tuple[tuple[str, ...], ...]:
    """Give the runs of fixed words of the line of a message that tells it from others.

    A word that touches what is put in is none: `layer{n}` shows as `layer3` or as `layers`.
    """
    lines: list[list[tuple[str, ...]]] = [[]]
    # Pieces of fixed text that nothing parts are one.
    parts: Pieces = [
        "".join(piece or "" for piece in group) if is_fixed else None
        for is_fixed, group in groupby(pieces, key=lambda piece: piece is not None)
    ]
    for place, part in enumerate(parts):
        if part is None:
            continue
        text = _GLUED_RIGHT.sub("", part) if place and parts[place - 1] is None else part
        text = _GLUED_LEFT.sub("", text) if place + 1 < len(parts) else text
        first, *others = text.split("\n")
        lines[-1].append(tuple(words(first)))
        lines += [[tuple(words(other))] for other in others]
    chosen = next((line for line in lines if sum(map(len, line)) >= _ENOUGH_WORDS), None)
    kept, left = [], MOST_WORDS
    for run in chosen if chosen is not None else [run for line in lines for run in line]:
        kept.append(run[:left])
        left -= len(kept[-1])
    return tuple(run for run in kept if run)


def named_in(pieces: Iterable[str | None]) -> list[str]:
    """Give the options, variables and identifiers that a message calls by name."""
    return [match.group().rstrip(".") for part in pieces if part for match in _NAMED.finditer(part)]


def joined_names(*lists: Sequence[str]) -> tuple[str, ...]:
    """Put names together, each once, the first ones first."""
    return tuple(dict.fromkeys(name for names in lists for name in names))[:MOST_NAMES]
