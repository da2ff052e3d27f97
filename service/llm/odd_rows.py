"""Rows in which one writer has another number than all others: a rank that is not as its peers are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from ingest.logs.lines import Line, parse_line

# Writers that have to agree before one that differs is odd, and the part of all that may be odd.
LEAST, SHARE = 3, 0.25
# The longest row that is looked at.
_LONGEST = 600
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|(?<![\w.])\d+(?:\.\d+)*")


def odd_rows(rows: Mapping[int, str]) -> Iterator[int]:
    """Yield the rows of which one number differs, where nearly all writers of such a row have the same.

    Numbers by which writers are told apart (a rank, an address) differ in all rows, and a step's count in
    many: neither is odd.
    """
    alike: dict[tuple[str, int], dict[int, tuple[str, list[str]]]] = {}
    for number, text in rows.items():
        line = parse_line(text[:_LONGEST].encode("utf-8", "replace"), number)
        numbers = _NUMBER.findall(line.body)
        if numbers and (writer := _writer(line)):
            key = _NUMBER.sub("#", line.body), len(numbers)
            alike.setdefault(key, {})[number] = writer, numbers
    for said in alike.values():
        if len({writer for writer, _ in said.values()}) > LEAST:
            yield from _odd(said)


def _writer(line: Line) -> str:
    """Name who prints a line; empty where nothing tells."""
    return line.rank or line.told or f"{line.actor} {line.node} {line.pid}".strip()


def _odd(said: Mapping[int, tuple[str, list[str]]]) -> Iterator[int]:
    for column in zip(*(numbers for _, numbers in said.values()), strict=True):
        counts = Counter(column)
        usual, count = counts.most_common(1)[0]
        agreeing = {
            writer for (writer, _), number in zip(said.values(), column, strict=True) if number == usual
        }
        if len(agreeing) >= LEAST and len(column) - count <= SHARE * len(column):
            yield from (row for row, number in zip(said, column, strict=True) if number != usual)
