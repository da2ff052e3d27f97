"""Lines that a logger calls errors: the last resort, where no pattern knew any line of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from ingest.logs import lines
from ingest.logs.lines import Line
from ingest.logs.scanner import Block

# How far from the end such lines are looked for, how many lines with the word are read, and how many of them
# taken.
REACH = 256 << 10
TRIED = 2000
MOST = 32

_WORD = re.compile(rb"\b(?:ERROR|CRITICAL|FATAL)\b")
_LEVEL = re.compile(r"(?:ERR|CRIT|FATAL)")


def is_error(level: str) -> bool:
    """Tell whether a level is that of an error or of worse."""
    return _LEVEL.match(level) is not None


def error_levels(block: Block) -> Iterator[Line]:
    """Give the lines near a block's end whose own prefix has the level of an error.

    A word in the message is none.
    """
    counted = found = 0
    for match in islice(_WORD.finditer(block.data, max(0, len(block.data) - REACH)), TRIED):
        begin, end = block.line_bounds(match.start())
        if begin < counted or found == MOST:
            continue
        line = lines.parse_line(block.data[begin:end], block.number(begin), match.start() - begin)
        if is_error(line.level):
            found += 1
            yield line
        counted = end + 1
