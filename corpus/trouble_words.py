"""What a line that speaks of trouble says: the words of `trouble_words.yaml`, as one expression."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from corpus import library
from corpus.schema import Expression, Record

FILE = "trouble_words.yaml"


class TroubleWords(Record):
    """The expressions of each language."""

    en: Annotated[tuple[Expression, ...], Field(min_length=1)]
    zh: Annotated[tuple[Expression, ...], Field(min_length=1)]


@cache
def trouble() -> re.Pattern[str]:
    """Give the expression of all words; raises InvalidCorpusError naming the field that is wrong."""
    path = Path(__file__).with_name(FILE)
    words = library.validated(TroubleWords, library.read_yaml(path), str(path))
    return re.compile("|".join((*words.en, *words.zh)), re.IGNORECASE)
