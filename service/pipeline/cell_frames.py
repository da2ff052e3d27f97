"""The calls of a notebook's cells, told by the rows of its code, as those of any other file of the job.

A traceback names a cell by its count and a row in it. The code of all cells is one file here
(`ingest.configfiles.notebook`), whose rows are other ones; how a person finds the row goes along.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ingest.configfiles import notebook
from ingest.configfiles.notebook import Cell
from ingest.logs.report import CrashReport
from ingest.logs.stacks.stack import Frame
from service.patching.patches import ConfigFile
from service.remediation.code_edits.failing_code import is_row

_CELL = re.compile(r"In \[(?P<count>\d+)\]")
# A file that the kernel makes of a cell, which names no count: ipykernel/compiler.py.
_OF_KERNEL = re.compile(r"/ipykernel_\d+/\d+\.py$")


def with_cells(report: CrashReport, files: Sequence[ConfigFile]) -> CrashReport:
    """Give the report with the calls of cells in the notebook's file, where one alone has such a row."""
    books = [file for file in files if file.name.endswith(notebook.ENDING)]
    if not books:
        return report
    events = tuple(
        replace(event, frames=tuple(_in_file(frame, books) for frame in event.frames))
        if event.frames
        else event
        for event in report.events
    )
    root = next(
        (now for was, now in zip(report.events, events, strict=True) if was is report.root), report.root
    )
    return replace(report, events=events, root=root)


def _in_file(frame: Frame, books: Sequence[ConfigFile]) -> Frame:
    counted = _CELL.fullmatch(frame.file)
    if counted is None and not _OF_KERNEL.search(frame.file):
        return frame
    found = [(book, row) for book in books for row in _rows(frame, notebook.cells_of(book.text), counted)]
    if not found or len({book.name for book, _ in found}) > 1:
        return frame
    # Of cells alike the last one that was run holds what failed.
    book, row = found[-1]
    return replace(frame, file=book.name, line=row, place=notebook.place_of(book.text, row))


def _rows(frame: Frame, cells: Sequence[Cell], counted: re.Match[str] | None) -> Iterator[int]:
    """Give the rows of the code that a call may stand in: in the cell of its count, else in any like it."""
    fitting = [cell for cell in cells if _fits(frame, cell)]
    own = [cell for cell in fitting if counted is not None and cell.count == counted["count"]]
    # A count is lost as a kernel begins anew, and where a notebook is saved without them.
    for cell in own or fitting:
        yield cell.heading + frame.line


def _fits(frame: Frame, cell: Cell) -> bool:
    is_there = 0 < frame.line <= len(cell.rows)
    return is_there and bool(frame.code) and is_row(cell.rows[frame.line - 1], frame.code.strip())
