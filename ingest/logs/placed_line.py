"""A parsed line where it stands, for what has to be looked up around it."""

from __future__ import annotations

from typing import NamedTuple

from ingest.logs.lines import Line
from ingest.logs.scanner import Block


class PlacedLine(NamedTuple):
    """A line in its block.

    `offset` is a byte of the line, counted from the block's begin; `parsed` holds the block's lines that were
    parsed already, by number, and is added to.
    """

    line: Line
    block: Block
    offset: int
    parsed: dict[int, Line]
