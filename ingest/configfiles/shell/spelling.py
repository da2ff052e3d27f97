"""How a value is written for the program that reads it, and when two spellings mean the same."""

from __future__ import annotations

import re

from corpus.schema import Scalar

# True and false as programs spell them, by the spelling that stands there.
_PAIRS = [("True", "False"), ("true", "false"), ("TRUE", "FALSE"), ("1", "0"), ("yes", "no"), ("on", "off")]
_BY_WORD = {word: pair for pair in _PAIRS for word in pair}
# Hydra's grammar knows these words alone; `yes` is text to it, and 1 a number.
HYDRA = ("True", "False")
TRUE = frozenset(pair[0].lower() for pair in _PAIRS)
FALSE = frozenset(pair[1].lower() for pair in _PAIRS)
_UNSET = re.compile(r"unset(?: it)?")


def is_switch(text: str) -> bool:
    """Tell whether a word can be the value of a boolean option."""
    return text.lower() in TRUE | FALSE


def is_unset(to: Scalar) -> bool:
    """Tell whether a variable is to be taken out of the environment."""
    return isinstance(to, str) and _UNSET.fullmatch(to) is not None


def same(text: str, to: Scalar, words: tuple[str, str] | None = None) -> bool:
    """Tell whether a program that reads `text` gets the value `to`.

    Of booleans it may know one pair of words only.
    """
    if isinstance(to, bool) and words:
        return text.lower() == words[0 if to else 1].lower()
    if isinstance(to, bool):
        return text.lower() in (TRUE if to else FALSE)
    if isinstance(to, str):
        return text == to
    try:
        return float(text) == to
    except ValueError:
        return False


def spelled(to: Scalar, old: str, default: tuple[str, str] = HYDRA) -> str:
    """Write a value; a boolean as the old one was written, else as `default` has true and false."""
    if not isinstance(to, bool):
        return str(to)
    if default == HYDRA and old.lower() not in ("true", "false"):
        return default[0 if to else 1]
    return _BY_WORD.get(old, default)[0 if to else 1]
