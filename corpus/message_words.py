"""A message's fixed words as hashes of neighbours: how a site of the atlas and a line of a log are compared.

Words are runs of letters without case, so that digits, quotes, punctuation and the joints of an identifier
make no difference; of Chinese, each character is a word. Two neighbours make a group. What a program puts
into a message parts the fixed words around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from zlib import crc32

WORD = re.compile(r"[A-Za-z]+|[\u4e00-\u9fff]")


def words(text: str) -> list[str]:
    """Give the words of a text, in lower case."""
    return [word.lower() for word in WORD.findall(text)]


def pair_hash(first: str, second: str) -> int:
    """Give the hash of two words that follow each other: 32 bits, the last one 0."""
    return crc32(f"{first} {second}".encode()) & ~1


def single_hash(word: str) -> int:
    """Give the hash of a word that stands alone between what the program puts in: 32 bits, the last one 1."""
    return crc32(word.encode()) | 1


def fixed_groups(runs: Iterable[Sequence[str]]) -> Iterator[int]:
    """Give the groups of a message from its runs of fixed words."""
    for run in runs:
        if len(run) == 1:
            yield single_hash(run[0])
        yield from (pair_hash(*two) for two in pairwise(run))


def line_groups(text: str) -> list[int]:
    """Give every group that a line may hold, each once, in the line's order."""
    found = words(text)
    return list(dict.fromkeys((*(pair_hash(*two) for two in pairwise(found)), *map(single_hash, found))))
