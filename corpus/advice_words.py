"""Words of orders, by what they ask of a reader: rows of `advice_words.yaml`."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pydantic import BeforeValidator

from corpus import library
from corpus.schema import Record
from corpus.vocabulary import stem

FILE = "advice_words.yaml"

_Words = Annotated[frozenset[str], BeforeValidator(lambda text: frozenset(str(text).split()))]
_Stems = Annotated[frozenset[str], BeforeValidator(lambda text: frozenset(map(stem, str(text).split())))]


class AdviceWords(Record):
    """Stems of the words of any advice, and of orders that take away, open, send or hide something.

    `value` are those by which the value of any setting is described, `story` those that tell what any job
    did; `switching` are such an order together with a word that says off. `commands` are expressions of those
    that a message may name as its remedy and that fetch, take away or open nothing of a stranger's.
    """

    ordinary: _Stems
    value: _Stems
    story: _Stems
    grave: _Stems
    switching: _Stems
    grave_zh: _Words
    commands: tuple[str, ...]


@cache
def load() -> AdviceWords:
    """Load the words that ship; raises InvalidCorpusError where they are damaged."""
    path = library.ROOT / FILE
    return library.validated(AdviceWords, library.read_yaml(path), str(path))
