"""A row that a traceback quotes and the job's file at hand no longer has: what stands there now."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame
from service.remediation.code_edits.failing_code import (
    LONGEST_ROW,
    JobFile,
    file_of,
    frames_of_failure,
    row_of,
)
from service.remediation.code_edits.source_text import parsed

# How alike a row at least is to the one that it may have come of.
ALIKE = 0.6


@dataclass(frozen=True)
class ChangedRow:
    """The file's name, and the row that comes nearest to the failing one; 0 and empty where none does."""

    name: str
    line: int = 0
    text: str = ""


def changed_row(report: CrashReport, files: Sequence[JobFile]) -> ChangedRow | None:
    """Tell that the file of the innermost own call is at hand and does not hold the row that failed."""
    own = [frame for frame in frames_of_failure(report) if frame.line and is_own(frame) and frame.code]
    if not own or len(own[-1].code) > LONGEST_ROW:
        return None
    frame = own[-1]
    file = file_of(frame, files)
    if file is None or row_of(frame, file.text):
        return None
    name = file.name.replace("\\", "/").rpartition("/")[2]
    rows = file.text.split("\n")
    if frame.code.strip() in map(str.strip, rows):
        return None
    likeness = {
        line: SequenceMatcher(None, frame.code.strip(), rows[line - 1].strip()).ratio()
        for line in _within(frame, file.text, len(rows))
    }
    best = max(likeness, key=lambda line: likeness[line], default=0)
    return (
        ChangedRow(name, best, rows[best - 1].strip())
        if likeness.get(best, 0.0) >= ALIKE
        else ChangedRow(name)
    )


def _within(frame: Frame, text: str, count: int) -> Sequence[int]:
    """Give the rows of the function that the traceback names, else of the whole file."""
    tree = parsed(text)
    name = frame.function.rpartition(".")[2]
    found = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    ]
    if len(found) != 1:
        return range(1, count + 1)
    return range(found[0].lineno, (found[0].end_lineno or found[0].lineno) + 1)
