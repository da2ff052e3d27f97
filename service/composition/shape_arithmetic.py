"""Which entry of a shape is wrong, by the number of elements that are there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from math import prod

# What `misfit` fills.
SHAPE_BLANKS = frozenset({"fits"})
# What `missing_axes` fills.
AXES_BLANKS = frozenset({"fits", "axis"})
# A shape of more axes is none that a person writes.
MOST_AXES = 8
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


def missing_axes(target: str, sizes: str) -> Mapping[str, str]:
    """Give the shapes with further axes of 1 by which a tensor goes into a larger shape: `fits`.

    `axis` is where the first of them goes. Empty where none does, or where the shape fits as it is: a tensor
    gets axes in front by itself, never amid its own.
    """
    wanted = [int(text) for text in _NUMBER.findall(target)]
    held = [int(text) for text in _NUMBER.findall(sizes)]
    lacking = len(wanted) - len(held)
    if lacking < 1 or len(wanted) > MOST_AXES or min(wanted) < 0:
        return {}
    found: dict[str, int] = {}
    for places in combinations(range(len(wanted)), lacking):
        rest = iter(held)
        made = [1 if place in places else next(rest) for place in range(len(wanted))]
        if all(one in (1, other) for one, other in zip(made, wanted, strict=True)):
            found.setdefault(str(made), places[0])
    if str([1] * lacking + held) in found or not 0 < len(found) <= MOST_FITS:
        return {}
    return {"fits": " / ".join(found), "axis": str(next(iter(found.values())))}
