"""The words that the corpus itself uses, in both languages, by which foreign ones are told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from corpus.schema import Record, Text

_ENGLISH = re.compile(r"[a-z]{3,}")
_LETTERS = re.compile(r"[a-z]+")
_MIXED = re.compile(r"[a-z]+\d+[a-z]+")
_CHINESE = re.compile(r"[\u4e00-\u9fff]{2,}")
# Longest first: what is left of a word has to have three letters.
_ENDINGS = ("ations", "ation", "ings", "ing", "ied", "ies", "ed", "es", "ly", "er", "s", "e")


@dataclass(frozen=True)
class CorpusVocabulary:
    """Stems of the English words, and the pairs of signs that stand beside each other in Chinese.

    `mixed` are words with digits amid their letters (`h5py`), `names` those of which the names of frameworks
    and settings are made, and `choices` those of what settings may be set to.
    """

    stems: frozenset[str]
    pairs: frozenset[str]
    mixed: frozenset[str]
    names: frozenset[str]
    choices: frozenset[str]


def stem(word: str) -> str:
    """Cut an ending, so that the forms of one word mostly agree: crude, and the same for both sides."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word.rstrip("yi")


def stems(text: str) -> list[str]:
    """Give the stems of a text's English words of three letters and more, in their order."""
    return [stem(word) for word in _ENGLISH.findall(text.lower())]


def pairs(text: str) -> list[str]:
    """Give the pairs of Chinese signs of a text, in their order."""
    return [run[place : place + 2] for run in _CHINESE.findall(text) for place in range(len(run) - 1)]


def texts_in(values: Iterable[object]) -> Iterator[Text]:
    """Yield every text that records hold, however deep."""
    for value in values:
        if isinstance(value, Text):
            yield value
        if isinstance(value, Record):
            yield from texts_in(getattr(value, name) for name in type(value).model_fields)
        elif isinstance(value, Mapping):
            yield from texts_in(value.values())
        elif isinstance(value, (tuple, list)):
            yield from texts_in(value)


def vocabulary_of(values: Iterable[object], names: Iterable[str], choices: Iterable[str]) -> CorpusVocabulary:
    """Give the words that records use, and those that names and choices are made of."""
    texts = list(texts_in(values))
    named, chosen = "\n".join(names), "\n".join(choices)
    told = "\n".join((named, *(text.en for text in texts)))
    return CorpusVocabulary(
        frozenset(stems(re.sub(r"[\W_]", " ", told))),
        frozenset(pairs("\n".join(text.zh for text in texts))),
        frozenset(_MIXED.findall(f"{told}\n{chosen}".lower())),
        frozenset(_LETTERS.findall(named.lower())),
        frozenset(_LETTERS.findall(chosen.lower())),
    )
