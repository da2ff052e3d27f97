"""Lines of the root's stack that a model needs: the calls in the job's own code, and the one that raised."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from corpus.paths import base_name
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame
from service.llm.deadline import Deadline
from service.llm.log_view import LogView, Reopen

# Own calls of one stack that are kept, the innermost; rows of a stack that are read; seconds for a large log.
MOST, LONGEST, SECONDS = 16, 1200, 2.0
# Rows below a call among which its statement is looked for.
AMONG = 8
# The statement that failed, among the rows of source that IPython prints.
_ARROW = re.compile(r"\W*-+> ?(\d+)\b")


def kept_frames(frames: Sequence[Frame], most: int) -> list[Frame | None]:
    """Give the calls that a short stack shows: own ones and the innermost; None stands for those left out."""
    own = [place for place, frame in enumerate(frames) if is_own(frame)][-MOST:]
    others = [place for place in range(len(frames)) if place not in own]
    room = max(most - len(own), 1)
    kept = sorted({*own, *others[-room:], len(frames) - 1} - {-1})
    shown: list[Frame | None] = []
    for above, place in zip([-1, *kept], kept, strict=False):
        shown += [frames[place]] if place == above + 1 else [None, frames[place]]
    return shown


def call_rows(report: CrashReport, texts: Mapping[int, str]) -> frozenset[int]:
    """Give the numbers of the rows that show the root's own calls and the innermost one."""
    root = report.root
    if root is None or not root.frames or not root.traceback:
        return frozenset()
    stack = {number: texts[number] for number in sorted(texts) if root.traceback <= number <= root.line}
    own = [frame for frame in root.frames if is_own(frame) and frame.line][-MOST:]
    # A package's code may stand in a stack many times; the innermost call alone is the one that raised.
    at = max(_places(root.frames[-1:], stack), default=root.line)
    innermost = {number: text for number, text in stack.items() if number >= at}
    return frozenset([*_rows(own, stack), *_rows(root.frames[-1:], innermost)])


def _places(frames: Sequence[Frame], texts: Mapping[int, str]) -> dict[int, Frame]:
    """Give the calls by the rows that name their places."""
    places = [
        (frame, re.compile(rf"{re.escape(base_name(frame.file))}\W.*?(?:line |:){frame.line}\b"))
        for frame in frames
    ]
    return {
        number: frame
        for number, text in texts.items()
        for frame, place in places
        if frame.line and place.search(text)
    }


def _rows(frames: Sequence[Frame], texts: Mapping[int, str]) -> Iterator[int]:
    """Yield the rows that name the places of calls, and those of their statements."""
    for number, frame in _places(frames, texts).items():
        yield number
        # Other processes may print between a call and its statement.
        below = (near for near in range(number + 1, number + 1 + AMONG) if near in texts)
        yield from islice((near for near in below if _shows(texts[near], frame)), 1)


def _shows(text: str, frame: Frame) -> bool:
    """Tell whether a row below a call shows its statement."""
    said, arrow = frame.code.strip(), _ARROW.match(text)
    return bool(said and text.rstrip().endswith(said)) or (arrow is not None and int(arrow[1]) == frame.line)


def call_lines(report: CrashReport, reopen: Reopen | None) -> dict[int, str]:
    """Give those rows by their numbers, from the log where the report does not hold all of its stack."""
    root = report.root
    if root is None or not root.traceback or not root.frames or root.line - root.traceback > LONGEST:
        return {}
    span = range(root.traceback, root.line)
    if all(number in report.texts for number in span):
        return {}
    view = LogView(report, reopen, Deadline(SECONDS))
    texts = view.lines([(root.traceback, root.line)])
    return {number: texts[number] for number in sorted(call_rows(report, texts))}
