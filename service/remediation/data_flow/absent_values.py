"""What the job's own files say of a value that is not there: which call gave None, which way leaves it unset.

Said is only what the files show: a function without a way that gives a value, an attribute that one branch
alone sets, a block that records no graph around the row that made a loss.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from corpus.message import in_both
from corpus.paths import base_name
from corpus.schema import Text
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.code_edits.source_text import parsed
from service.remediation.data_flow.job_program import Function, called
from service.remediation.data_flow.origins import Step, origins
from service.remediation.data_flow.own_attributes import set_elsewhere

_NONE = re.compile(r"'?NoneType'?(?: object)? (?:has no attribute|is not|object)|object of type 'NoneType'")
_GRAPHLESS = re.compile(r"element 0 of tensors does not require grad")
_RECORDS_NOTHING = re.compile(r"(?:^|\.)(?:no_grad|inference_mode)$")
# Calls that give None where nothing is found, and what they then did not find.
_MATCHERS = frozenset({"match", "search", "fullmatch"})
_LONGEST = 60
# So many places are named.
_MOST = 3


def absent_value(report: CrashReport, files: Sequence[JobFile]) -> Text | None:
    """Say which row leaves the value away that the message misses; None where the files do not show it."""
    body = report.root.body if report.root is not None else ""
    if _NONE.search(body):
        return next(filter(None, (_gave_none(step, files) for step in origins(report, files) or ())), None)
    if _GRAPHLESS.search(body):
        return _without_graph(origins(report, files) or (), files)
    return set_elsewhere(report, files)


def _gave_none(step: Step, files: Sequence[JobFile]) -> Text | None:
    """Say of a row that assigns a call's outcome why that may be None."""
    match step.statement:
        case ast.Assign(value=ast.Call() as call) | ast.AnnAssign(value=ast.Call() as call):
            pass
        case _:
            return None
    if not step.place or (step.made is not None and not step.made.is_whole):
        return None
    told = {"name": step.name, "place": step.place, "call": _short(call)}
    match call:
        case ast.Call(func=ast.Attribute(attr="get"), args=[key], keywords=[]):
            return in_both("changes.none-of-key", key=_short(key), **told)
        case ast.Call(func=ast.Attribute(attr=attr)) if attr in _MATCHERS:
            return in_both("changes.none-of-search", **told)
    named = [
        (file, node)
        for file in files
        if (tree := parsed(file.text)) is not None
        for node in ast.walk(tree)
        if isinstance(node, Function) and node.name == called(call)
    ]
    if len(named) != 1:
        return None
    file, function = named[0]
    own = list(_own(function))
    if function.decorator_list or any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own):
        return None
    given = [node for node in own if isinstance(node, ast.Return)]
    some = [node for node in given if not _is_none(node.value)]
    at = f"{file.name.replace(chr(92), '/').rpartition('/')[2]}:{function.lineno}"
    if not some:
        return in_both("changes.none-of-no-return", callee=function.name, at=at, **told)
    rows = ", ".join(str(node.lineno) for node in some[:_MOST])
    bare = [node for node in given if _is_none(node.value)]
    if bare or not any(node in function.body for node in some):
        return in_both("changes.none-of-branch", callee=function.name, at=at, rows=rows, **told)
    return None


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """Give what a function holds, without the functions within it."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            yield from _own(node)


def _without_graph(steps: Sequence[Step], files: Sequence[JobFile]) -> Text | None:
    """Name the blocks that record no graph around a row that made the loss, else those of a `forward`."""
    lines = {(step.scope.module.name, step.statement.lineno) for step in steps}
    around: list[str] = []
    within: list[str] = []
    head = ""
    for file in files:
        tree = parsed(file.text) if file.name in {name for name, _ in lines} else None
        leaf = base_name(file.name)
        for function in ast.walk(tree) if tree is not None else ():
            for block in _own(function) if isinstance(function, Function | ast.Module) else ():
                if not isinstance(block, ast.With) or not any(map(_records_nothing, block.items)):
                    continue
                rows = range(block.lineno, (block.end_lineno or block.lineno) + 1)
                head = head or _short(block.items[0].context_expr)
                if any((file.name, line) in lines for line in rows):
                    around.append(f"{leaf}:{block.lineno}")
                elif isinstance(function, Function) and function.name == "forward":
                    within.append(f"{leaf}:{block.lineno}")
    places = ", ".join((around or within)[:_MOST])
    return in_both("changes.graph-not-recorded", place=places, head=head) if places else None


def _records_nothing(item: ast.withitem) -> bool:
    made = item.context_expr
    return isinstance(made, ast.Call) and _RECORDS_NOTHING.search(ast.unparse(made.func)) is not None


def _short(node: ast.expr) -> str:
    text = ast.unparse(node).replace("`", "'")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
