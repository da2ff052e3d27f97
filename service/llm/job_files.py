"""The job's own files as a model may look into them: rows by their numbers, or by words that they hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Rows of one answer, those around a row that holds the words, and the longest row.
MOST, AROUND, LONGEST = 100, 4, 400


def read_file(
    launches: Sequence[str], name: str, first: str, words: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give rows of a file with their numbers, and what is to be said of those that are not given.

    `launches` are texts of files, each with its name behind the last row; they are redacted. Raises
    ValueError, in words for a model, where there is no such file.
    """
    files = {title: body.split("\n") for body, _, title in (text.rpartition("\n") for text in launches)}
    wanted = name.strip().replace("\\", "/")
    found = [title for title in files if title == wanted] or [
        title for title in files if title.rpartition("/")[2] == wanted.rpartition("/")[2]
    ]
    if len(found) != 1:
        there = ", ".join(files) or "none"
        raise ValueError(f"the job has no one file of that name; its files: {there}")
    rows = files[found[0]]
    if first and not first.isdecimal():
        raise ValueError("a row is a number")
    places = _holding(rows, words) if words else range(max(0, int(first or 1) - 1), len(rows))
    shown = [place for place in places if rows[place].strip()]
    told = tuple(f"{place + 1}: {rows[place][:LONGEST]}" for place in shown[:MOST])
    if len(shown) > MOST:
        return told, (
            f"{len(shown) - MOST} more rows of {len(rows)}: ask for them with first {shown[MOST] + 1}.",
        )
    return told, () if told else ("No row is such.",)


def _holding(rows: Sequence[str], words: str) -> list[int]:
    """Give the places of rows that hold one of some words, and of the rows around them."""
    needle = re.compile("|".join(map(re.escape, words.replace("|", " ").split())), re.IGNORECASE)
    near = {
        place
        for at, row in enumerate(rows)
        if needle.search(row)
        for place in range(max(0, at - AROUND), min(len(rows), at + AROUND + 1))
    }
    return sorted(near)
