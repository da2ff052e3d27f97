"""Settings that a message names in words: `gradient checkpointing`, `flash attention`, `learning rate`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import reduce

# More words than these are no setting's name, and one alone may mean anything.
MOST_WORDS, LEAST_WORDS = 6, 2
# Words of a sentence that stand side by side, none of them part of a path, a call, a flag or a longer name.
_RUN = re.compile(
    r"(?<![\w./\\=-])[A-Za-z][A-Za-z0-9]*(?:[ -][A-Za-z][A-Za-z0-9]*)+(?![\w/\\(=]|\.\w|-\w|\[)"
)
# What stands before the name of a thing in which something is: of that the sentence does not speak.
_WITHIN = re.compile(r"(?i)\b(?:in|inside|within|from) (?:the|your|this|that|a) \Z")
_WORD = re.compile(r"[A-Za-z0-9]+")
# How sentences and settings differ in the same words.
_SHORTER = (
    ("number_of_", "num_"),
    ("maximum_", "max_"),
    ("_length", "_len"),
    ("sequence_", "seq_"),
    ("attention", "attn"),
)


def words_naming(sentence: str, is_setting: Callable[[str], bool]) -> Iterator[tuple[str, int, int]]:
    """Give the runs of words that are a setting's name, each with its place; the longest of those that meet.

    `is_setting` tells which names any framework has.
    """
    for run in _RUN.finditer(sentence):
        words = [(word.group().lower(), *word.span()) for word in _WORD.finditer(sentence, *run.span())]
        first = 0
        while first < len(words):
            counts = range(min(MOST_WORDS, len(words) - first), LEAST_WORDS - 1, -1)
            names = (
                (count, "_".join(word for word, _, _ in words[first : first + count])) for count in counts
            )
            found = next(((n, name) for n, name in names if any(map(is_setting, spellings(name)))), None)
            is_place = found is not None and _WITHIN.search(sentence[: words[first][1]])
            if found is not None and not is_place:
                yield found[1], words[first][1], words[first + found[0] - 1][2]
            first += found[0] if found else 1


def spellings(name: str) -> tuple[str, ...]:
    """Give a name in its full words, and as settings shorten these."""
    short = reduce(lambda left, pair: left.replace(*pair), _SHORTER, name)
    return (name,) if short == name else (name, short)
