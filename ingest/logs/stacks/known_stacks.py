"""Tracebacks whose calls differ from known ones in their digits alone: counted by those, not read again.

What a traceback's rows say follows from their text, so that rows which are alike but for digits fall into the
same calls. Its last line, its number and its stream are read of each; the numbers in its calls are those of
the one that was read, which whoever shows them reads in full.
"""

from __future__ import annotations

import re

from ingest.digit_blind import MASK
from ingest.logs.lines import Line, is_plain
from ingest.logs.placed_line import PlacedLine
from ingest.logs.repeats import StackExtent
from ingest.logs.stacks import stack, tracebacks
from ingest.logs.stacks.stack import Traceback

# So many stacks of at most so many bytes are remembered.
REMEMBERED, LONGEST = 2048, 16 << 10
# Where in a file a call stands is a number of any length that `tracebacks` reads.
_PLACE = re.compile(rb'(?<=", line )[0-9]{1,9}(?=[,\n])')
# Files tell of frameworks by their digits, too: `vllm/v1`.
_FILES = re.compile(rb'File "([^"\n]*)"')

_NUMBER = re.compile(rb"[0-9]+")

_Shape = tuple[bytes, tuple[bool, ...], bytes, tuple[bytes, ...]]


class KnownStacks:
    """The stacks that were read whole, by their shapes."""

    def __init__(self) -> None:
        self._read: dict[_Shape, Traceback] = {}

    def like(self, at: PlacedLine, extent: StackExtent) -> Traceback | None:
        """Give the traceback that a header begins, with the calls of one like it; None if there is none.

        What could go on below or have come of one above is for whoever reads it in full.
        """
        shape = _shape_of(at, extent)
        known = self._read.get(shape) if shape is not None else None
        if known is None or not _stands_alone(at, extent, len(known.frames)):
            return None
        return _with_last_line(at, extent, known)

    def learn(self, at: PlacedLine, extent: StackExtent, found: list[Traceback]) -> None:
        """Remember what was read of a stack, where nothing but its own rows told it."""
        shape = _shape_of(at, extent)
        if shape is None or len(found) != 1 or not tracebacks.is_header(at.line.body):
            return
        read = found[0]
        if (
            _with_last_line(at, extent, read) != read
            or not _stands_alone(at, extent, len(read.frames))
            or not all(map(is_plain, at.block.data[extent.begin : extent.end].split(b"\n")))
        ):
            return
        if len(self._read) >= REMEMBERED:
            self._read.clear()
        self._read[shape] = read


def _with_last_line(at: PlacedLine, extent: StackExtent, like: Traceback) -> Traceback | None:
    """Give the traceback that stands somewhere and has the calls of another; None where its end is none."""
    number = at.line.number + at.block.data.count(b"\n", extent.begin, extent.last)
    last = stack.parsed(at.block, extent.last, extent.end, number, at.parsed)
    raised = tracebacks.plain_end(last.body)
    if raised is None or last.source != at.line.source:
        return None
    name, message = raised["type"] + (raised["inner"] or ""), raised["message"] or ""
    return Traceback(at.line.number, number, at.line.source, like.frames, name, message, last.text)


def _shape_of(at: PlacedLine, extent: StackExtent) -> _Shape | None:
    """Give what stacks whose calls are read alike have in common, whatever their last lines say.

    None where rows of others stand among a stack's own.
    """
    begin, header, last, end = extent
    if not extent.is_ended or end - begin > LONGEST:
        return None
    data = at.block.data
    prefix, calls = data[begin:header], data[header:last]
    if prefix:
        mark = b"\n" + prefix
        if data.count(b"\n", begin, end) != data.count(mark, begin, end):
            return None
        calls = calls.replace(mark, b"\n")
    files = tuple(_FILES.findall(calls))
    # A prefix that is taken off as a whole, and tells the same of its process, ends before what is read.
    told = tuple(map(bool, at.line[1 + Line._fields.index("body") :]))
    is_off = len(at.line.text) == len(prefix) + len(at.line.body)
    prefix = _NUMBER.sub(b"0", prefix) if is_off else prefix.translate(MASK)
    return prefix, told, _PLACE.sub(b"0", calls).translate(MASK), files


def _stands_alone(at: PlacedLine, extent: StackExtent, frames: int) -> bool:
    """Tell whether no row near a stack could join another one to it."""
    block, line = at.block, at.line
    if tracebacks.may_come_of_another(block, line, at.parsed):
        return False
    first = line.number - block.line
    last = first + block.data.count(b"\n", extent.begin, extent.last)
    below = last + 1, stack.reach(first, last, frames)
    return stack.last_among(tracebacks.GOING_ON, block, line.source, below, at.parsed) is None
