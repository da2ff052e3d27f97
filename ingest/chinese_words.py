"""Split Chinese into words with jieba, from a table of its frequencies that is small and read in a moment.

jieba keeps its dictionary of half a million words as a dict, which takes 54 MiB of every process that reads
one line of Chinese, and leaves a copy of it in the folder for temporary files. Here the words' hashes are
kept in order beside their frequencies: 6 MB, in a file of the index.
"""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

# Parts of the lines of one log are asked for again and again.
_REMEMBERED = 8192
_KEYS, _COUNTS = "Q", "I"

Cut = Callable[[str], Iterator[str]]


class WordFrequencies:
    """How often each word of a dictionary is met, and 0 for what one begins with, as jieba reads it."""

    def __init__(self, keys: array[int], counts: array[int]) -> None:
        self._keys, self._counts = keys, counts
        self._of = lru_cache(_REMEMBERED)(self._searched)

    @classmethod
    def of(cls, frequencies: dict[str, int]) -> WordFrequencies:
        """Take them from a dict."""
        rows = sorted((_key(word), count) for word, count in frequencies.items())
        return cls(array(_KEYS, (key for key, _ in rows)), array(_COUNTS, (count for _, count in rows)))

    @classmethod
    def read(cls, path: Path) -> WordFrequencies:
        """Read them from a file that `write` made; raises OSError."""
        content = path.read_bytes()
        keys, counts = array(_KEYS), array(_COUNTS)
        size = len(content) // (keys.itemsize + counts.itemsize)
        keys.frombytes(content[: size * keys.itemsize])
        counts.frombytes(content[size * keys.itemsize :])
        return cls(keys, counts)

    def write(self, path: Path) -> None:
        """Write them to a file."""
        with path.open("wb") as stream:
            self._keys.tofile(stream)
            self._counts.tofile(stream)

    def __contains__(self, word: str) -> bool:
        """Tell whether a word, or the beginning of one, is known."""
        return self._of(word) is not None

    def __getitem__(self, word: str) -> int:
        """Give a known word's frequency; raises KeyError."""
        if (count := self._of(word)) is None:
            raise KeyError(word)
        return count

    def get(self, word: str) -> int | None:
        """Give a word's frequency; None for one that is not known."""
        return self._of(word)

    @property
    def total(self) -> int:
        """The sum of all frequencies."""
        return sum(self._counts)

    def _searched(self, word: str) -> int | None:
        key = _key(word)
        place = bisect_left(self._keys, key)
        return self._counts[place] if place < len(self._keys) and self._keys[place] == key else None


def write(path: Path) -> None:
    """Write jieba's own dictionary as a table of frequencies."""
    _dictionary().write(path)


@cache
def _dictionary() -> WordFrequencies:
    """Give jieba's own: two seconds, which a process that writes one index after another pays once."""
    tokenizer = _tokenizer()
    frequencies, _ = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    return WordFrequencies.of(frequencies)


def cutter(path: Path | None = None) -> Cut:
    """Give what cuts a run of Chinese into words for a search, short ones within long ones too.

    `path` is the file of a table; without one, jieba reads its own dictionary, which takes a second.
    """
    tokenizer = _tokenizer()
    if path is not None:
        tokenizer.FREQ = WordFrequencies.read(path)
        tokenizer.total = tokenizer.FREQ.total
        tokenizer.initialized = True
    cut: Cut = tokenizer.cut_for_search
    return cut


def _tokenizer() -> Any:
    # Imported here: most logs are English.
    import jieba

    jieba.setLogLevel(logging.WARNING)
    return jieba.Tokenizer()


def _key(word: str) -> int:
    """Give 64 bits that stand for a word; of half a million words hardly two have the same."""
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest())
