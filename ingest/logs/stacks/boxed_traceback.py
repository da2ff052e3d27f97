"""Tracebacks that are drawn for people: rich's boxes, also typer's and accelerate's.

Grammar: rich/traceback.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby, islice

from ingest.logs.lines import Line
from ingest.logs.stacks import stack
from ingest.logs.stacks.stack import Frame, Traceback

_BOX = re.compile(r"\s*[╭+][─-]+ Traceback \(most recent call last\) [─-]+[╮+]\s*$")
_BOX_ROW = re.compile(r"\s*[│|] ?(?P<text>.*?) ?[│|]?\s*$")
_BOX_END = re.compile(r"\s*(?:╰─|\+--)")
# A path that is wider than the box goes on in the next row, so rows are joined before they are read; where
# the function alone did not fit, the blank before it is gone.
_BOX_FRAME = re.compile(r"(?P<file>\S.*?):(?P<line>\d{1,9}) ?in ?(?P<function>.+)$")
_BOX_CODE = re.compile(r"\s*(?:❱|>|\\u2771)\s*\d+ (?P<code>.+)")

# Over how many rows more a console may break a message.
MOST_WRAPPED = 12
_BEGINS = re.compile(r"Traceback \(|\s*[╭+][─-]")


def read_boxed(first: Line, lines: Iterator[Line], _earlier: Iterator[Line]) -> list[Traceback] | None:
    """Read the drawn traceback that a line begins; None where it begins none."""
    return _box(first, lines) if _BOX.match(first.body) else None


def _box(first: Line, lines: Iterator[Line]) -> list[Traceback]:
    rows: list[str] = []
    for line in stack.of(first, lines):
        if _BOX_END.match(line.body):
            break
        row = _BOX_ROW.match(line.body)
        rows.append(row["text"] if row else "")
    frames = tuple(_box_frames(rows))
    end = next((line for line in stack.of(first, lines, 3) if line.body.strip()), first)
    exception = stack.EXCEPTION.match(_unwrapped(end, first, lines))
    if exception is None:
        return [Traceback(first.number, end.number, first.source, frames, "", "", end.text)] if frames else []
    return [
        Traceback(
            first.number,
            end.number,
            first.source,
            frames,
            exception["type"],
            exception["message"] or "",
            end.text,
        )
    ]


def _unwrapped(end: Line, first: Line, lines: Iterator[Line]) -> str:
    """Give the exception's line as it was before the console, as wide as the box, broke it at blanks."""
    width = len(first.body.rstrip())
    whole, last = end.body, end.body
    for line in islice(lines, MOST_WRAPPED):
        word = line.body.split(None, 1)[0] if line.body.strip() else ""
        is_full = len(last.rstrip()) + 1 + len(word) > width
        is_other = line.source != first.source or line.level or line.time or _BEGINS.match(line.body)
        if is_other or not (word and is_full):
            break
        whole, last = f"{whole.rstrip()} {line.body.strip()}", line.body
    return whole


def _box_frames(rows: Iterable[str]) -> list[Frame]:
    """Read paragraphs: one names the file, the next shows its code."""
    frames: list[Frame] = []
    for is_text, group in groupby(rows, key=lambda row: bool(row.strip())):
        paragraph = list(group) if is_text else []
        named = _BOX_FRAME.match("".join(row.strip() for row in paragraph))
        if named and not any(_BOX_CODE.match(row) for row in paragraph):
            frames.append(Frame(named["file"], int(named["line"]), named["function"].strip()))
        elif frames and not frames[-1].code:
            code = next((match["code"] for row in paragraph if (match := _BOX_CODE.match(row))), "")
            frames[-1] = replace(frames[-1], code=code.strip(" │|"))
    return frames
