"""Tracebacks that several processes print line by line among each other, with nothing to tell them apart.

Each row goes to the stack that it can belong to: a frame's statement to one whose last frame has none yet, a
frame to one whose last statement calls its function, an exception to one whose last statement raises it. What
is left open goes to the stack that waits longest, as processes that print at once take turns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ingest.logs.lines import Line
from ingest.logs.stacks import stack
from ingest.logs.stacks.stack import Frame, Traceback

# So many stacks are told apart, and so many rows of them read.
MOST_STACKS, MOST_ROWS = 16, 1200
# Rows under a statement that mark its part.
_MARKS = re.compile(r"\s*[~^][~^ ]*$")

ReadFrame = Callable[[str], Frame | None]


@dataclass
class _Stack:
    """One stack as far as it is read; `touched` is the row that it got last."""

    start: int
    touched: int
    frames: list[Frame] = field(default_factory=list)
    end: Line | None = None
    exception: str = ""
    message: str = ""

    @property
    def code(self) -> str:
        """The statement of the last frame; empty where it is still to come."""
        return self.frames[-1].code if self.frames else ""

    def calls(self, frame: Frame) -> bool:
        """Tell whether a frame can be the next: the last statement names its function."""
        if not self.frames or frame.function == "<module>":
            return not self.frames and frame.function == "<module>"
        return re.search(rf"\b{re.escape(frame.function)}\b", self.code) is not None

    def raises(self, exception: str) -> bool:
        """Tell whether the last statement names an exception's class."""
        return exception.rpartition(".")[2] in self.code


def read_woven(
    first: Line, rows: Iterator[Line], is_header: Callable[[str], bool], frame: ReadFrame
) -> list[Traceback]:
    """Read the stacks that begin with a header, if others begin among its rows and all of them end.

    `rows` are those of the same stream below the header. None are given where a row is neither frame nor
    statement nor exception: then nobody knows whose it is.
    """
    stacks = [_Stack(first.number, 0)]
    for place, row in enumerate(rows, 1):
        body = row.body
        if place > MOST_ROWS or len(stacks) > MOST_STACKS:
            return []
        if is_header(body):
            stacks.append(_Stack(row.number, place))
        elif found := frame(body):
            _add_frame(stacks, found, place)
        elif body[:1].isspace():
            _add_statement(stacks, body.strip(), place)
        elif body and not _end(stacks, row):
            return []
        if all(one.end for one in stacks):
            break
    ended = [(one, one.end) for one in stacks if one.end and one.frames]
    if not len(ended) == len(stacks) > 1:
        return []
    return [
        Traceback(one.start, end.number, end.source, tuple(one.frames), one.exception, one.message, end.text)
        for one, end in sorted(ended, key=lambda each: each[1].number)
    ]


def _add_frame(stacks: list[_Stack], frame: Frame, place: int) -> None:
    """Give a frame to a stack that calls it, else to one that has its last statement."""
    live = [one for one in stacks if one.end is None]
    calling = [one for one in live if one.calls(frame)]
    complete = [one for one in live if one.code or not one.frames]
    one = min(calling or complete or live, key=lambda one: one.touched, default=None)
    if one is not None:
        one.frames.append(frame)
        one.touched = place


def _add_statement(stacks: list[_Stack], code: str, place: int) -> None:
    """Give a statement to the stack that waits longest for one.

    What marks a part of it, or goes on with it, is the turn of a stack that has one.
    """
    live = [one for one in stacks if one.end is None and one.frames]
    waiting = [] if _MARKS.match(code) else [one for one in live if not one.code]
    turn = min(waiting or [one for one in live if one.code], key=lambda one: one.touched, default=None)
    if turn is None or not code:
        return
    if waiting:
        turn.frames[-1] = replace(turn.frames[-1], code=code)
    turn.touched = place


def _end(stacks: list[_Stack], row: Line) -> bool:
    """End the stack that a row's exception came out of; tell whether there is one."""
    exception = stack.EXCEPTION.match(row.body)
    live = [one for one in stacks if one.end is None and one.frames]
    if exception is None or not live:
        return False
    name = exception["type"] + (exception["inner"] or "")
    raising = [one for one in live if one.raises(exception["type"])]
    one = min(raising or [one for one in live if one.code] or live, key=lambda one: one.touched)
    one.end, one.exception, one.message = row, name, exception["message"] or ""
    return True
