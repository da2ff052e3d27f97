"""Names that say nothing of their own: made of words that our knowledge has, or standing in given lines."""

from __future__ import annotations

import re

from corpus import advice_words
from corpus.library import Library
from corpus.vocabulary import stem

# So many digits in a row, or in a whole name, count something or are a version's; more may be an account's or
# a telephone's.
MOST_DIGITS, DIGITS_OF_NAME, DIGITS_OF_BYTES = 4, 6, 12
# So many words joined say something.
_JOINED = 3
# Digits amid letters, as `s3nd` writes a word and `k8s` a name.
_MIXED = re.compile(r"[A-Za-z]+\d+[A-Za-z]+")
# Of the words by which grave orders begin, those with which names of libraries do.
_OF_NAMES = frozenset(map(stem, ("flash", "format", "import", "share", "merge", "pipe", "open", "leave")))
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
    if _MIXED.search(text) and any(
        word not in library.vocabulary.mixed for word in _MIXED.findall(text.lower())
    ):
        return False
    if is_order_name(text, library):
        return False
    return not is_code and all(_is_plain(piece, library, lines) for piece in pieces)


def is_order_name(text: str, library: Library) -> bool:
    """Tell whether a name that no setting has is an order to do something grave: `kill_all_ranks`."""
    pieces = _PIECE.findall(text)
    is_grave = len(pieces) >= _JOINED and stem(pieces[0].lower()) in advice_words.load().grave - _OF_NAMES
    return is_grave and not library.is_setting(text)


def is_measure(number: str) -> bool:
    """Tell whether digits are a number of a size that settings have, or a round one that bytes may have."""
    plain = number.replace(",", "")
    is_round = len(plain) <= DIGITS_OF_BYTES and (int(plain) % 1000 == 0 or int(plain) % 1024 == 0)
    return len(plain) <= DIGITS_OF_NAME or is_round


def _is_plain(piece: str, library: Library, lines: str) -> bool:
    if piece.isdecimal():
        return len(piece) <= MOST_DIGITS or _stands(piece, lines)
    low = piece.lower()
    words = advice_words.load()
    return (
        (len(low) < _SHORT and low.isascii())
        or low in library.vocabulary.names | library.vocabulary.choices
        or stem(low) in library.vocabulary.stems | words.ordinary | words.value
        or _stands(piece, lines)
    )


def _stands(name: str, lines: str) -> bool:
    return re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", lines) is not None
