"""Which entry of a shape is wrong, by the number of elements that are there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod

# What `misfit` fills.
SHAPE_BLANKS = frozenset({"fits"})
MOST_FITS = 3
_NUMBER = re.compile(r"-?\d+")


def misfit(shape: str, size: str) -> Mapping[str, str]:
    """Give how a shape fits `size` elements by another number in one place: `fits`, such as `64 -> 10`.

    Empty where no entry alone can be mended, or too many can. An entry of -1 takes what is left, so nothing
    tells which of the others is wrong.
    """
    entries, count = [int(text) for text in _NUMBER.findall(shape)], int(size)
    whole = prod(entries)
    if whole <= 0 or whole == count or min(entries) < 0:
        return {}
    # In place of 1, any number fits.
    fits = {entry: entry * count // whole for entry in entries if entry > 1 and entry * count % whole == 0}
    told = [f"{wrong} -> {right}" for wrong, right in fits.items() if right > 1]
    return {"fits": ", ".join(told)} if 0 < len(told) <= MOST_FITS else {}
