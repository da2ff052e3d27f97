"""Short texts that hold no secret: names, paths, statements and messages come again and again.

Many differ in their digits alone. What holds no condition of any kind, whatever its digits are, is known by
its shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ingest.digit_blind import MASK, blind_texts
from ingest.errors import InvalidExpressionError
from ingest.made_finder import MadeFinder
from ingest.redaction.readings import SIGNS

# So many texts, and so many shapes, of at most so many bytes are remembered.
REMEMBERED, SHORT = 8192, 1000
# After so many texts that were looked at in vain it pays to ask for shapes where what asks them is at hand;
# after so many, where that takes seconds to compile.
PAYS, PAYS_TO_COMPILE = 600, 24_000


class ClearTexts:
    """The texts, and the shapes of texts, that are known to hold no secret."""

    def __init__(self, conditions: Sequence[str], cache: Path | None) -> None:
        """Take the conditions of all kinds; nothing is compiled yet."""
        self._finder = MadeFinder([*conditions, *SIGNS], blind_texts, cache)
        self._texts: set[bytes] = set()
        self._shapes: set[bytes] = set()
        self._missed = 0

    def compile(self) -> None:
        """Compile what asks shapes, or load it; nothing where a user's expression does not allow it."""
        with suppress(InvalidExpressionError):
            self._finder.finder  # noqa: B018 - to make it is what is wanted

    def hold(self, text: bytes) -> bool:
        """Tell whether a text is known to hold nothing."""
        return text in self._texts or (bool(self._shapes) and text.translate(MASK) in self._shapes)

    def hold_shape(self, text: bytes) -> bool:
        """Tell whether a text that holds nothing is known to hold nothing whatever its digits are."""
        shape = text.translate(MASK)
        return shape in self._shapes or (_is_one_row(text) and self._is_clear(shape))

    def add(self, text: bytes) -> None:
        """Remember a text that was looked at in vain; all of its shape, where none of them can hold more."""
        self._missed += 1
        if self._missed > PAYS and _is_one_row(text):
            shape = text.translate(MASK)
            if self._is_clear(shape):
                _remember(self._shapes, shape)
                return
        _remember(self._texts, text)

    def _is_clear(self, shape: bytes) -> bool:
        if self._missed <= PAYS_TO_COMPILE and not self._finder.is_at_hand:
            return False
        try:
            return not self._finder.finder.ends(shape)
        except InvalidExpressionError:  # an expression of the user's does not allow it
            return False


def _is_one_row(text: bytes) -> bool:
    """Tell whether a text reads as it is written: over several rows a condition may be met in two."""
    return b"\n" not in text and b"\x1b" not in text and b"\\u001" not in text


def _remember(held: set[bytes], text: bytes) -> None:
    if len(held) >= REMEMBERED:
        held.clear()
    held.add(text)
