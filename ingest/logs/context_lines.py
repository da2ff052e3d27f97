"""The rows around a line, and those that a log ends with, as they stand in a block."""

from __future__ import annotations

from collections.abc import Callable

from ingest.logs.lines import MAX_TEXT
from ingest.logs.scanner import Block

SURROUNDINGS = 8
# Rows beside those that are shown are judged with them: a secret may begin above what is shown, or end below
# it.
BESIDE = 4
MAX_AROUND = 8192
# Bytes before and behind a line in which the rows around it are looked for.
WINDOW = 16384
TAIL = 12


def context_lines(block: Block, offset: int, number: int) -> tuple[tuple[int, bytes], ...]:
    """Give the numbered rows around the line that holds `offset`."""
    begin, end = block.line_bounds(offset)
    most = SURROUNDINGS + BESIDE
    before = _whole_rows(block.data, begin, most + 1)[:-1][-most:]
    after = block.data[end + 1 : end + WINDOW].split(b"\n", most)[:most]
    rows = [(number - len(before) + place, raw) for place, raw in enumerate(before)]
    rows += [(number + 1 + place, raw) for place, raw in enumerate(after) if raw]
    rows.append((number, block.data[begin:end]))
    # Of a redrawn line the last part is shown; cut at its end, for what is cut before it may name a secret.
    return tuple(
        sorted(
            (place, (raw.rstrip(b"\r").rsplit(b"\r", 1)[-1] if b"\r" in raw else raw)[:MAX_AROUND])
            for place, raw in rows
        )
    )


def _whole_rows(data: bytes, end: int, most: int) -> list[bytes]:
    """Give the last rows, so many at most, within WINDOW before `end` that begin there; one may be empty."""
    begin = max(0, end - WINDOW)
    rows = data[begin:end].rsplit(b"\n", most)
    if len(rows) > most:
        return rows[1:]
    return rows if begin == 0 or data[begin - 1 : begin] == b"\n" else rows[1:]


def last_rows(block: Block) -> list[tuple[int, bytes]]:
    """Give the numbered rows that a block ends with."""
    end = len(block.data.rstrip(b"\n"))
    rows = _whole_rows(block.data, end, TAIL + BESIDE) or [
        block.data[block.data.rfind(b"\n", 0, end) + 1 : end]
    ]
    first = block.number(end) - len(rows) + 1
    return [(first + place, raw) for place, raw in enumerate(rows)]


def uncut(raw: bytes, clean: Callable[[str], str]) -> bytes:
    """Mask a row that is too long to be shown whole before it is cut.

    What it ends with here may be half a secret.
    """
    if len(raw) <= MAX_TEXT:
        return raw
    text = clean(raw.decode("utf-8", "replace"))
    return (text[: MAX_TEXT - MAX_AROUND] if len(raw) >= MAX_AROUND else text).encode()
