"""Slurm's short form of many nodes' names, such as `gpu[01-04,7],login`."""

from __future__ import annotations

import re
from itertools import product

# A list that names more is hostile or broken.
MAX_NODES = 20_000
_ABSENT = frozenset({"", "None assigned", "(null)", "Unknown"})
_PART = re.compile(r"[^,\[\]]*(?:\[[^\]]*\][^,\[\]]*)*")
_PIECE = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def expand(text: str) -> tuple[str, ...]:
    """Give each node's name; what cannot be read is given as it stands."""
    if text in _ABSENT:
        return ()
    names: list[str] = []
    for part in filter(None, _PART.findall(text)):
        names += _names(part)
        if len(names) >= MAX_NODES:
            break
    return tuple(names[:MAX_NODES])


def _names(part: str) -> list[str]:
    choices: list[list[str]] = []
    count = 1
    for match in _PIECE.finditer(part):
        found = _numbers(match[1]) if match[1] is not None else [match[2]]
        count *= len(found)
        if not found or count > MAX_NODES:
            return [part]
        choices.append(found)
    return ["".join(chosen) for chosen in product(*choices)]


def _numbers(text: str) -> list[str]:
    found: list[str] = []
    for item in text.split(","):
        match = _RANGE.fullmatch(item)
        if match is None:
            return []
        begin, end = int(match[1]), int(match[2] or match[1])
        if not begin <= end < begin + MAX_NODES - len(found):
            return []
        # Numbers keep the width that the first of a range has.
        found += [f"{number:0{len(match[1])}d}" for number in range(begin, end + 1)]
    return found
