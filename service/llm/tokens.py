"""How many tokens a text is, without any model's tokenizer: an estimate that is rather too high."""

from __future__ import annotations

import re

# Words in pieces of five letters, digits in threes, every Chinese character and sign alone; blanks go with
# what follows.
_PIECES = re.compile(r"[A-Za-z]{1,5}|\d{1,3}|[^\sA-Za-z\d]|\n")


def estimate_tokens(text: str) -> int:
    """Give about how many tokens a text is, in the vocabularies that are usual; rather too many."""
    return sum(1 for _ in _PIECES.finditer(text))


def cut_to_tokens(text: str, most: int) -> str:
    """Give the beginning of a text that is at most so many tokens."""
    for number, match in enumerate(_PIECES.finditer(text)):
        if number >= most:
            return text[: match.start()]
    return text
