"""A row that a traceback quotes and the job's file at hand no longer has: what stands there now."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from corpus.paths import base_name
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame
from service.remediation.code_edits.failing_code import (
    LONGEST_ROW,
    JobFile,
    file_of,
    frames_of_failure,
    is_row,
    row_of,
)
from service.remediation.code_edits.source_text import parsed, printed_source

# How alike a row at least is to the one that it may have come of.
ALIKE = 0.6
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_QUOTED = re.compile(r"['\"`]([^'\"`\n]{2,300})['\"`]")


@dataclass(frozen=True)
class ChangedRow:
    """The file's name, and the row that comes nearest to the failing one; 0 and empty where none does.

    `gone` is what the message blames and the row no longer has, `still` what it has as before, `gained` what
    the message misses and the row has by now. `is_anew` tells that the row makes the call that failed with
    something else. `removed` is a call that failed, whose result nobody took, and that its function does not
    make any more.
    """

    name: str
    line: int = 0
    text: str = ""
    gone: str = ""
    still: str = ""
    gained: str = ""
    is_anew: bool = False
    removed: str = ""


def changed_row(report: CrashReport, files: Sequence[JobFile]) -> ChangedRow | None:
    """Tell that the file of the innermost own call is at hand and does not hold the row that failed."""
    own = [frame for frame in frames_of_failure(report) if frame.line and is_own(frame) and frame.code]
    if not own or len(own[-1].code) > LONGEST_ROW:
        return None
    frame = own[-1]
    file = file_of(frame, files)
    if file is None:
        return None
    name = base_name(file.name)
    rows = file.text.split("\n")
    if frame.code.strip() in map(str.strip, rows):
        return None
    if there := row_of(frame, file.text):
        # The same statement, with another text or number in it.
        changed = _blamed(ChangedRow(name, there, rows[there - 1].strip()), frame, report)
        return changed if changed.gone and not is_row(rows[there - 1], frame.code.strip()) else None
    likeness = {
        line: SequenceMatcher(None, frame.code.strip(), rows[line - 1].strip()).ratio()
        for line in _within(frame, file.text, len(rows))
    }
    if call := _removed(frame, file.text):
        return ChangedRow(name, removed=call)
    best = max(likeness, key=lambda line: likeness[line], default=0)
    if likeness.get(best, 0.0) < ALIKE:
        return ChangedRow(name)
    row = rows[best - 1].strip()
    return _blamed(ChangedRow(name, best, row, is_anew=_is_anew(frame.code, row)), frame, report)


def _outermost_call(row: str) -> ast.Call | None:
    """Give the call that a row is about: the one that it makes last."""
    source = printed_source(row)
    nodes = ast.walk(source.tree) if source is not None else ()
    return next((node for node in nodes if isinstance(node, ast.Call)), None)


def _is_anew(quoted: str, row: str) -> bool:
    """Tell whether a row makes the call of another one, of another object or with other arguments."""
    was, now = _outermost_call(quoted), _outermost_call(row)
    if was is None or now is None or ast.dump(was) == ast.dump(now):
        return False
    names = [ast.unparse(call.func).rpartition(".")[2] for call in (was, now)]
    return names[0] == names[1]


def _removed(frame: Frame, text: str) -> str:
    """Give the call that is the whole failing statement, where its function is there and calls it no more."""
    source, tree = printed_source(frame.code), parsed(text)
    only = source.tree.body[0] if source is not None and len(source.tree.body) == 1 else None
    if tree is None or not isinstance(only, ast.Expr) or not isinstance(only.value, ast.Call):
        return ""
    name = frame.function.rpartition(".")[2]
    scopes = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) and node.name == name]
    called = ast.unparse(only.value.func)
    if len(scopes) != 1 or "." not in called:
        return ""
    calls = [node.func for node in ast.walk(scopes[0]) if isinstance(node, ast.Call)]
    # A call of another object by the same name may be the same step.
    made = {ast.unparse(call).rpartition(".")[2] for call in calls}
    return "" if called.rpartition(".")[2] in made else called


def _blamed(row: ChangedRow, frame: Frame, report: CrashReport) -> ChangedRow:
    """Say what the message quotes of the failing row, and whether the row as it is now has it still."""
    told = _QUOTED.findall(report.root.body) if report.root is not None else []
    blamed = [text for text in told if text in frame.code]
    still = next((text for text in blamed if text in row.text), "")
    missed = (text for text in told if text not in frame.code and text.isidentifier())
    gained = next((text for text in missed if re.search(rf"\b{text}\b", row.text)), "")
    return replace(row, still=still, gone="" if still else next(iter(blamed), ""), gained=gained)


def _within(frame: Frame, text: str, count: int) -> Sequence[int]:
    """Give the rows of the function that the traceback names, else of the whole file."""
    tree = parsed(text)
    name = frame.function.rpartition(".")[2]
    found = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, _FUNCTIONS) and node.name == name
    ]
    if len(found) != 1:
        return range(1, count + 1)
    return range(found[0].lineno, (found[0].end_lineno or found[0].lineno) + 1)
