"""A function of the job's own that gives a list of one number a row, and on one of its ways leaves a row out.

No call of it is on the stack: its list fails where the framework puts the numbers to their rows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from corpus.message import in_both
from corpus.paths import base_name
from ingest.configfiles.formats import CODE
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.code_edits.missing_returns import REWARDS
from service.remediation.code_edits.source_text import whole_source
from service.remediation.own_edits import OwnEdit

# Of PyTorch (aten/src/ATen/ExpandUtils.cpp, TensorAdvancedIndexing.cpp) and NumPy: what was given, and what
# it had to fill.
_COUNTS = (
    re.compile(
        r"expanded size of the tensor \((?P<wanted>\d{1,9})\) must match the existing size "
        r"\((?P<given>\d{1,9})\)"
    ),
    re.compile(
        r"value tensor of shape \[(?P<given>\d{1,9})\] cannot be broadcast to indexing result of shape "
        r"\[(?P<wanted>\d{1,9})\]"
    ),
    re.compile(
        r"could not broadcast input array from shape \((?P<given>\d{1,9}),\) into shape "
        r"\((?P<wanted>\d{1,9}),\)"
    ),
)
_PUT, _UNKNOWN = "0.0", "VALUE"


class _ShortLoop(NamedTuple):
    """A loop that appends to the list which its function returns, and the place where one way does not.

    `skip` is a `continue`, or the last statement of the loop, whose end one way reaches.
    """

    file: JobFile
    function: ast.FunctionDef
    name: str
    skip: ast.stmt


class _Ways(NamedTuple):
    """What the ways through a block come to.

    `is_done` tells whether each that reaches its end has appended, None where none does; `skips` are the ends
    of those that begin the next turn without; `is_clear` is false where the ways are not told, as in a loop
    within.
    """

    is_done: bool | None
    skips: tuple[ast.stmt, ...]
    is_clear: bool = True


def short_list(report: CrashReport, files: Sequence[JobFile]) -> OwnEdit | None:
    """Give the row that one way through a function leaves out, where a list is shorter than its rows."""
    root = report.root
    counts = next(filter(None, (form.search(root.body) for form in _COUNTS)), None) if root else None
    if root is None or counts is None or any(map(is_own, root.frames[-1:])):
        return None
    if not int(counts["given"]) < int(counts["wanted"]):
        return None
    rows = "\n".join(file.text for file in files)
    found = [
        loop
        for file in files
        if file.name.endswith(CODE) and (source := whole_source(file.text)) is not None
        for function in source.tree.body
        if isinstance(function, ast.FunctionDef)
        # Its name is handed on: what is only called stands on the stack.
        if re.search(rf"(?m)^(?!\s*(?:from|import|def)\b).*(?<![\w.]){function.name}(?![\w(]|\s*\()", rows)
        for loop in _short_loops(file, function)
    ]
    return _edit(found[0]) if len(found) == 1 else None


def _short_loops(file: JobFile, function: ast.FunctionDef) -> Iterator[_ShortLoop]:
    returned = {
        node.value.id
        for node in ast.walk(function)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Name)
    }
    for loop in function.body:
        if not isinstance(loop, ast.For) or loop.orelse:
            continue
        for name in returned:
            ways = _ways(loop.body, name, is_done=False)
            skips = [*ways.skips, *([loop.body[-1]] if ways.is_done is False else [])]
            if ways.is_clear and len(skips) == 1 and _appended(loop, name):
                yield _ShortLoop(file, function, name, skips[0])


def _ways(block: Sequence[ast.stmt], name: str, *, is_done: bool) -> _Ways:
    """Follow the ways through a block."""
    skips: list[ast.stmt] = []
    for statement in block:
        if isinstance(statement, ast.Continue):
            return _Ways(None, (*skips, *(() if is_done else (statement,))))
        if isinstance(statement, ast.Return | ast.Raise | ast.Break):
            return _Ways(None, tuple(skips))
        if isinstance(statement, ast.If):
            parts = [_ways(part, name, is_done=is_done) for part in (statement.body, statement.orelse)]
        elif isinstance(statement, ast.Try):
            parts = [
                _ways([*statement.body, *statement.orelse], name, is_done=is_done),
                *(_ways(handler.body, name, is_done=is_done) for handler in statement.handlers),
            ]
        elif isinstance(statement, ast.With):
            parts = [_ways(statement.body, name, is_done=is_done)]
        elif isinstance(statement, ast.For | ast.While | ast.Match) and _appended(statement, name):
            return _Ways(None, (), is_clear=False)
        else:
            is_done = is_done or _appended(statement, name)
            continue
        skips += [skip for part in parts for skip in part.skips]
        ends = [part.is_done for part in parts if part.is_done is not None]
        if not all(part.is_clear for part in parts):
            return _Ways(None, (), is_clear=False)
        if not ends:
            return _Ways(None, tuple(skips))
        is_done = all(ends)
    return _Ways(is_done, tuple(skips))


def _appended(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in ("append", "extend", "insert")
        and isinstance(each.func.value, ast.Name)
        and each.func.value.id == name
        for each in ast.walk(node)
    )


def _edit(found: _ShortLoop) -> OwnEdit | None:
    """Put in what the row that is left out gets: a reward earns nothing; else only its caller knows."""
    rows, skip = found.file.text.split("\n"), found.skip
    is_reward = REWARDS.search(found.function.name) is not None
    put = f"{found.name}.append({_PUT if is_reward else _UNKNOWN})"
    leaf = base_name(found.file.name)
    why = in_both("changes.row-left-out", name=found.function.name, list=found.name)
    last = skip.end_lineno or skip.lineno
    if isinstance(skip, ast.Continue):
        # A row of its own, not `if x: continue`.
        if not is_reward or rows[skip.lineno - 1].strip().partition(" ")[0] != "continue":
            return OwnEdit("insert-before", f"{leaf}:{skip.lineno}", "", put, why, is_sure=False)
        rows.insert(skip.lineno - 1, " " * skip.col_offset + put)
        return OwnEdit("insert-before", f"{leaf}:{skip.lineno}", "", put, why, found.file, "\n".join(rows))
    if not is_reward or not isinstance(skip, ast.If) or skip.orelse:
        return OwnEdit("insert-after", f"{leaf}:{last}", "", put, why, is_sure=False)
    rows[last:last] = [f"{' ' * skip.col_offset}else:", f"{' ' * skip.body[0].col_offset}{put}"]
    return OwnEdit("insert-after", f"{leaf}:{last}", "", f"else: {put}", why, found.file, "\n".join(rows))
