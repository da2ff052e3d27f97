"""A function of the job's own that a framework calls by name, and that gives nothing on one of its ways.

No call of it is on the stack: its None fails where the framework uses the number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from corpus.message import in_both
from ingest.configfiles.formats import CODE
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.code_edits.source_text import whole_source
from service.remediation.own_edits import OwnEdit

# What PyTorch, NumPy and Python say of a None in place of a number.
_NONE = re.compile(
    r"can't assign a NoneType to|real number, not (?:'?NoneType|None\b)|"
    r"argument must be .{1,60} not 'NoneType'|Could not infer dtype of NoneType|"
    r"unsupported (?:operand|format).{1,80}NoneType"
)
# A row that nobody thought of earns nothing. Of what another function is to give, only its caller knows.
REWARDS = re.compile(
    r"(?i)reward|(?<![a-z])(?:scor(?:es?|ers?|ing)|grad(?:es?|ers?|ing)|verif\w*|acc(?:uracy)?)(?![a-z])"
)
_PUT, _PUT_UNKNOWN = "return 0.0", "return VALUE"


def missing_return(report: CrashReport, files: Sequence[JobFile]) -> OwnEdit | None:
    """Give the function that the job names an end which gives a number, where its other ways do."""
    root = report.root
    if root is None or not _NONE.search(root.body) or any(map(is_own, root.frames[-1:])):
        return None
    told = "\n".join([report.command[1], *(file.text for file in files if not file.name.endswith(CODE))])
    found = [
        (file, function)
        for file in files
        if file.name.endswith(CODE) and (source := whole_source(file.text)) is not None
        for function in source.tree.body
        if isinstance(function, ast.FunctionDef)
        # A file of settings or the command has the function's name as a value.
        if re.search(rf"(?m)[=:][ \t]*['\"]?{re.escape(function.name)}['\"]?(?=[\s,]|$)", told)
        if not _ends(function.body) and _gives_numbers(function)
    ]
    if len(found) != 1:
        return None
    file, function = found[0]
    named = rf"(?m)^.*[=:][ \t]*['\"]?{re.escape(function.name)}['\"]?(?=[\s,]|$)"
    is_reward = REWARDS.search(" ".join([function.name, *(row[0] for row in re.finditer(named, told))]))
    rows, last = file.text.split("\n"), function.body[-1].end_lineno or function.lineno
    place = f"{file.name.replace(chr(92), '/').rpartition('/')[2]}:{last}"
    if is_reward is None:
        why = in_both("changes.way-without-value", name=function.name)
        return OwnEdit("insert-after", place, "", _PUT_UNKNOWN, why, is_sure=False)
    text = "\n".join([*rows[:last], " " * function.body[0].col_offset + _PUT, *rows[last:]])
    why = in_both("changes.way-without-return", name=function.name)
    return OwnEdit("insert-after", place, "", _PUT, why, file, text)


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Tell whether no way leads past the end of a block."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    if isinstance(last, ast.With):
        return _ends(last.body)
    if isinstance(last, ast.Try):
        tried = _ends(last.orelse) if last.orelse else _ends(last.body)
        return _ends(last.finalbody) or (tried and all(_ends(each.body) for each in last.handlers))
    if isinstance(last, ast.While):
        is_endless = isinstance(last.test, ast.Constant) and bool(last.test.value)
        return is_endless and not any(isinstance(node, ast.Break) for node in ast.walk(last))
    # Which cases there are is not told.
    return isinstance(last, ast.Return | ast.Raise | ast.Match)


def _returns(function: ast.FunctionDef) -> Iterator[ast.expr]:
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))


def _gives_numbers(function: ast.FunctionDef) -> bool:
    """Tell whether a way of the function gives a number as written, and none gives several things."""
    values = list(_returns(function))
    several = (ast.Dict, ast.Tuple, ast.List, ast.JoinedStr)
    is_generator = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
    numbers = (value.operand if isinstance(value, ast.UnaryOp) else value for value in values)
    is_told = any(isinstance(each, ast.Constant) and isinstance(each.value, int | float) for each in numbers)
    return is_told and not is_generator and not any(isinstance(value, several) for value in values)
