"""Lines of the root's stack that a model needs: the calls in the job's own code, and the one that raised."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

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
    own = [frame for frame in root.frames if is_own(frame)][-MOST:]
    wanted = [frame for frame in (*own, root.frames[-1]) if frame.line]
    numbers = [number for number in sorted(texts) if root.traceback <= number <= root.line]
    return frozenset(_rows(wanted, {number: texts[number] for number in numbers}))


def _rows(wanted: Sequence[Frame], texts: Mapping[int, str]) -> Iterator[int]:
    places = [
        (frame, re.compile(rf"{re.escape(_base(frame.file))}\W.*?(?:line |:){frame.line}\b"))
        for frame in wanted
    ]
    arrows = {frame.line for frame in wanted}
    for number, text in texts.items():
        frame = next((frame for frame, place in places if place.search(text)), None)
        if frame is not None:
            yield number
            said = frame.code.strip()
            # Other processes may print between a call and its statement.
            below = (near for near in range(number + 1, number + 1 + AMONG) if near in texts)
            yield from islice((near for near in below if said and texts[near].rstrip().endswith(said)), 1)
        arrow = _ARROW.match(text)
        if arrow and int(arrow[1]) in arrows:
            yield number


def _base(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2]


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
