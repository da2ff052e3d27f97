"""A call that all ranks must make, where the job's own code lets one rank alone reach it.

No statement of it is on the stack: the others wait in their next collective until a watchdog ends them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from corpus.expressions import compiled
from corpus.message import in_both
from corpus.rank_guards import CallOfAllRanks, load
from ingest.configfiles.formats import CODE
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.code_edits.source_text import whole_source
from service.remediation.own_edits import OwnEdit

# torch/csrc/distributed/c10d: ProcessGroupNCCL.cpp, ProcessGroupGloo.cpp; gloo's buffers, monitoredBarrier.
_WAITED = re.compile(
    r"[Ww]atchdog caught collective operation timeout|Timed out waiting \d{1,12} ?ms|monitoredBarrier"
)


class _Guarded(NamedTuple):
    """A statement with a call of all ranks, the test above it, and the block that the test guards."""

    file: JobFile
    statement: ast.stmt
    call: ast.Call
    kind: CallOfAllRanks
    guard: ast.If


def guarded_collective(report: CrashReport, files: Sequence[JobFile]) -> OwnEdit | None:
    """Give the one call of the job's own that waits for ranks which never come to it."""
    root = report.root
    if root is None or not _WAITED.search(root.body):
        return None
    found = {
        (file.name, guarded.call.lineno, guarded.call.col_offset): guarded
        for file in files
        if file.name.endswith(CODE) and (source := whole_source(file.text)) is not None
        for guarded in _guarded(file, source.tree)
    }
    return _edit(next(iter(found.values()))) if len(found) == 1 else None


def _guarded(file: JobFile, tree: ast.AST) -> Iterator[_Guarded]:
    table = load()
    one, others = compiled(table.one_rank), compiled(table.other_ranks)
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            rest: Iterator[ast.stmt] = iter(block if isinstance(block, list) else ())
            for guard in rest:
                if not isinstance(guard, ast.If):
                    continue
                test = ast.unparse(guard.test)
                # `not is_main_process` has the words of both.
                if others.search(test):
                    is_left = guard.body and isinstance(guard.body[-1], ast.Return)
                    yield from _calls(file, list(rest) if is_left else guard.orelse, guard)
                elif one.search(test):
                    yield from _calls(file, guard.body, guard)


def _calls(file: JobFile, block: Sequence[ast.stmt], guard: ast.If) -> Iterator[_Guarded]:
    """Give the calls of all ranks in a block; a function that it only defines may be called by all."""
    waiting: list[tuple[ast.stmt, ast.AST]] = [(statement, statement) for statement in block]
    while waiting:
        statement, node = waiting.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            for kind in load().calls:
                if compiled(kind.call).search(called) and _is_asked(node, kind):
                    yield _Guarded(file, statement, node, kind, guard)
        waiting += [
            (below if isinstance(below, ast.stmt) else statement, below)
            for below in ast.iter_child_nodes(node)
        ]


def _is_asked(call: ast.Call, kind: CallOfAllRanks) -> bool:
    if not kind.needs:
        return True
    given = {word.arg: word.value for word in call.keywords}
    value, alone = given.get(kind.needs), given.get(kind.instead)
    is_off = isinstance(value, ast.Constant) and not value.value
    is_alone = isinstance(alone, ast.Constant) and bool(alone.value)
    return value is not None and not is_off and not is_alone


def _edit(found: _Guarded) -> OwnEdit:
    """Make the call one of a single rank by its argument, else put it where all ranks come."""
    rows, statement = found.file.text.split("\n"), found.statement
    place = f"{found.file.name.replace(chr(92), '/').rpartition('/')[2]}:{found.call.lineno}"
    test, called = ast.unparse(found.guard.test), ast.unparse(found.call.func)
    why = in_both("changes.call-of-all-ranks", call=called, test=test, row=found.guard.lineno)
    row = rows[statement.lineno - 1]
    word = next((word for word in found.call.keywords if word.arg == found.kind.needs), None)
    if word is not None and word.lineno == word.end_lineno:
        row = rows[word.lineno - 1]
        written = row.encode()
        alone = f"{found.kind.instead}=True"
        rows[word.lineno - 1] = (
            written[: word.col_offset].decode() + alone + written[word.end_col_offset :].decode()
        )
        shown = (row.strip(), rows[word.lineno - 1].strip())
        return OwnEdit("replace", place, *shown, why, found.file, "\n".join(rows), is_sure=False)
    told = OwnEdit("outdent", place, f"if {test}", row.strip(), why, is_sure=False)
    is_last = found.guard.body[-1] is statement and len(found.guard.body) > 1
    if not is_last or found.guard.orelse or statement.lineno != statement.end_lineno:
        return told
    rows[statement.lineno - 1] = " " * found.guard.col_offset + row.strip()
    return replace(told, file=found.file, text="\n".join(rows))
