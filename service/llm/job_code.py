"""The job's own code around the calls that failed: what an argument was, and which check raised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingest.configfiles import notebook
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame
from service.llm.prompt_context import PromptContext
from service.llm.prompt_injection import withhold
from service.llm.prompt_lines import PromptRow, own_names

# Calls that are shown, the innermost first, and lines around each.
CALLS, AROUND = 3, 6
# A shorter statement may stand anywhere.
TELLING = 12
# The longest row of code that is shown.
_LONGEST = 160
# Ranks of the failing rows, and how much a row of distance adds.
_AT, _PER_ROW = 1.7, 0.35


def code_rows(prompt_context: PromptContext) -> Iterator[PromptRow]:
    """Give the rows of the job's files around the own calls of the root, nearest ranked first.

    A file counts where it has the very statement that the stack quotes: another version would mislead.
    """
    report = prompt_context.report
    shown: dict[tuple[str, int], PromptRow] = {}
    ids = own_names(prompt_context)
    frames = report.root.frames if report.root is not None else ()
    own = [frame for frame in reversed(frames) if frame.line and frame.code and is_own(frame)]
    for depth, frame in enumerate(own[:CALLS]):
        found = _found(frame, report)
        if found is None:
            continue
        name, rows, at = found
        for place in range(max(0, at - AROUND), min(len(rows), at + AROUND + 1)):
            if rows[place].strip():
                rank = _AT + depth / 2 + _PER_ROW * abs(place - at)
                text = withhold(f"{_place(name, rows, place)}: {rows[place]}", ids, _LONGEST)
                row = PromptRow("code", rank, text, number=place + 1 + 100_000 * depth)
                shown.setdefault((name, place), row)
    yield from shown.values()


def _place(name: str, rows: Sequence[str], place: int) -> str:
    is_cell = name.endswith(notebook.ENDING)
    return notebook.place_of("\n".join(rows), place + 1) if is_cell else f"{name}:{place + 1}"


def _found(frame: Frame, report: CrashReport) -> tuple[str, Sequence[str], int] | None:
    """Give the name and the rows of the file that a call is in, and the place of its row."""
    base = frame.file.replace("\\", "/").rpartition("/")[2]
    for text in report.launches:
        body, _, name = text.rpartition("\n")
        rows = body.split("\n")
        at = frame.line - 1
        # A stack shows a statement of several rows by its first, or as one.
        told = rows[at].strip() if name.rpartition("/")[2] == base and at < len(rows) else ""
        if told and frame.code.strip().startswith(told):
            return name, rows, at
        # A file that was edited since has the statement elsewhere; one that has it twice tells nothing.
        there = [place for place, row in enumerate(rows) if row.strip() == frame.code.strip()]
        is_base = name.rpartition("/")[2] == base
        if is_base and len(there) == 1 and len(frame.code.strip()) >= TELLING:
            return name, rows, there[0]
    return None
