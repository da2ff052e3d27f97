"""What a program says of a name that it does not know: `refusal_words.yaml`, as one expression."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from corpus import library
from corpus.schema import Expression, Record

FILE = "refusal_words.yaml"


class RefusalWords(Record):
    """The expressions, of all languages that programs of jobs speak."""

    expressions: Annotated[tuple[Expression, ...], Field(min_length=1)]


@cache
def refusal() -> re.Pattern[str]:
    """Give the expression of all words; raises InvalidCorpusError naming the field that is wrong."""
    path = Path(__file__).with_name(FILE)
    words = library.validated(RefusalWords, library.read_yaml(path), str(path))
    return re.compile("|".join(words.expressions), re.IGNORECASE)
