"""What a new value is to a file's reader: the same as now, a list, a number."""

from __future__ import annotations

import ast
import math

from corpus.schema import Scalar

# How a message of Python's says that a setting is to have no value, which files of settings write as `null`.
NOTHING = "None"


def same(now: object, to: Scalar) -> bool:
    """Tell whether a value read from a file says what `to` says; `8` and `"8"`, `True` and `true` are one."""
    if isinstance(now, list):
        return now == listed(to)
    if now is None or isinstance(now, dict):
        return now is None and to == NOTHING
    if isinstance(now, bool) or isinstance(to, bool):
        return str(now).lower() == str(to).lower()
    one, other = number(now), number(to)
    return one == other if one is not None and other is not None else str(now) == str(to)


def number(value: object) -> float | None:
    """Give a number, also one in a string; None for all else and for infinities."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | str)
        or (isinstance(value, str) and value != value.strip())
    ):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def same_sort(one: str, other: str) -> bool:
    """Tell whether two words are both numbers, or both `true` or `false`."""
    switches = ("true", "false")
    return (number(one) is not None and number(other) is not None) or (
        one.lower() in switches and other.lower() in switches
    )


def listed(value: object) -> list[object] | None:
    """Read a list that is written as Python writes it (`['console']`); None for all else."""
    if not isinstance(value, str) or not value.startswith("["):
        return None
    try:
        found = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    flat = isinstance(found, list) and all(isinstance(item, bool | int | float | str) for item in found)
    return found if flat else None


def meant(to: Scalar) -> object:
    """Give what a value stands for in a file that has lists of its own."""
    items = listed(to)
    return to if items is None else items
