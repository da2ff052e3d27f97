"""Names that say nothing of their own: made of words that our knowledge has, or standing in given lines."""

from __future__ import annotations

import re

from corpus import advice_words
from corpus.library import Library
from corpus.vocabulary import stem

# So many digits in a row, or in a whole name, count something or are a version's; more may be an account's or
# a telephone's.
MOST_DIGITS, DIGITS_OF_NAME = 4, 6
# Shorter pieces are no words.
_SHORT = 3
# Pieces of names, `perDevice_batch4` as `per`, `Device`, `batch`, `4`.
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_]")


def is_plain_name(text: str, library: Library, lines: str) -> bool:
    """Tell whether a name stands in the lines, or all its pieces are words that our knowledge has.

    One whose pieces are too short to be words, as of an account, is made of digits and single letters.
    """
    if _stands(text.strip("'\"`"), lines):
        return True
    pieces = _PIECE.findall(text)
    is_code = sum(map(len, pieces)) > 2 * MOST_DIGITS and sum(len(piece) < _SHORT for piece in pieces) > 4
    is_code = is_code or sum(sign.isdigit() for sign in text) > DIGITS_OF_NAME
    return not is_code and all(_is_plain(piece, library, lines) for piece in pieces)


def _is_plain(piece: str, library: Library, lines: str) -> bool:
    if piece.isdecimal():
        return len(piece) <= MOST_DIGITS or _stands(piece, lines)
    low = piece.lower()
    words = advice_words.load()
    return (
        (len(low) < _SHORT and low.isascii())
        or low in library.name_parts
        or stem(low) in library.vocabulary.stems | words.ordinary | words.value
        or _stands(piece, lines)
    )


def _stands(name: str, lines: str) -> bool:
    return re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", lines) is not None
