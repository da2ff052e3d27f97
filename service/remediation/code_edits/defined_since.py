"""What a failing message says that the job's code lacks and its files at hand have, edited since the run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from corpus.paths import base_name
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from service.remediation.code_edits.failing_code import JobFile, file_of, frames_of_failure, row_of
from service.remediation.code_edits.present_cures import PresentCure
from service.remediation.code_edits.source_text import parsed

_UNTAKEN = re.compile(r"(?P<function>[\w.<>]{1,160})\(\) got an unexpected keyword argument '(?P<name>\w+)'")
_UNOWNED = re.compile(r"'(?P<owner>\w+)' object has no attribute '(?P<name>\w+)'")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# How far from the call that the traceback names a lambda of the same statement may have moved.
MOVED = 12


def defined_since(report: CrashReport, files: Sequence[JobFile]) -> tuple[str, PresentCure] | None:
    """Give the argument or attribute that is missed, and where the job's files have it by now."""
    text = report.root.body if report.root is not None else ""
    there: tuple[JobFile, ast.stmt | ast.Lambda] | None
    if match := _UNTAKEN.search(text):
        taking = list(_functions(match["function"], report, files))
        is_there = bool(taking) and all(_takes(function.args, match["name"]) for _, function in taking)
        there = taking[0] if is_there else None
    elif match := _UNOWNED.search(text):
        there = _member(match["owner"], match["name"], files) or _moved(match["name"], report, files)
    else:
        return None
    return (
        (match["name"], PresentCure(base_name(there[0].name), there[1].lineno)) if there is not None else None
    )


def _functions(
    called: str, report: CrashReport, files: Sequence[JobFile]
) -> Iterator[tuple[JobFile, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]]:
    """Give the definitions that a function's full name may mean."""
    *owners, name = called.split(".")
    if name == "<lambda>":
        yield from _lambdas(report, files)
        return
    owner = owners[-1] if owners and owners[-1] != "<locals>" else ""
    for file in files:
        tree = parsed(file.text)
        nodes = ast.walk(tree) if tree is not None else ()
        for scope in nodes:
            is_scope = not owner or (isinstance(scope, ast.ClassDef) and scope.name == owner)
            inner = ast.iter_child_nodes(scope) if is_scope else ()
            yield from ((file, node) for node in inner if isinstance(node, _FUNCTIONS) and node.name == name)


def _lambdas(report: CrashReport, files: Sequence[JobFile]) -> Iterator[tuple[JobFile, ast.Lambda]]:
    """Give the lambdas that the innermost own call hands over, as its file has them now."""
    own = [frame for frame in frames_of_failure(report) if frame.line and is_own(frame)]
    for frame in reversed(own):
        file = file_of(frame, files)
        tree = parsed(file.text) if file is not None else None
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
        near = [call for call in calls if abs(call.lineno - frame.line) <= MOVED]
        quoted = frame.code.strip().rstrip("(")
        rows = {call.lineno: call for call in near if quoted.endswith(_name(call.func))}
        if file is not None and rows:
            call = rows[min(rows, key=lambda line: abs(line - frame.line))]
            given = (*call.args, *(keyword.value for keyword in call.keywords))
            yield from ((file, node) for node in given if isinstance(node, ast.Lambda))
            return


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "\n")


def _takes(arguments: ast.arguments, name: str) -> bool:
    named = (*arguments.args, *arguments.kwonlyargs)
    return arguments.kwarg is not None or any(argument.arg == name for argument in named)


def _member(owner: str, name: str, files: Sequence[JobFile]) -> tuple[JobFile, ast.stmt | ast.Lambda] | None:
    """Give the method or class variable of that name; a property may raise what reads as its absence."""
    found: list[tuple[JobFile, ast.stmt | ast.Lambda]] = []
    for file in files:
        tree = parsed(file.text)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.ClassDef) and node.name == owner:
                found += [(file, item) for item in node.body if _is_member(item, name)]
    return found[0] if len(found) == 1 else None


def _moved(
    name: str, report: CrashReport, files: Sequence[JobFile]
) -> tuple[JobFile, ast.stmt | ast.Lambda] | None:
    """Give the member where the failing row asks its own object for it, and stands in a class that has it."""
    own = [frame for frame in frames_of_failure(report) if frame.line and is_own(frame)]
    file = file_of(own[-1], files) if own and f"self.{name}" in own[-1].code else None
    line = row_of(own[-1], file.text) if file is not None else 0
    tree = parsed(file.text) if file is not None else None
    for node in ast.walk(tree) if tree is not None and line else ():
        if isinstance(node, ast.ClassDef) and node.lineno < line <= (node.end_lineno or 0):
            members = [item for item in node.body if _is_member(item, name)]
            return (file, members[0]) if file is not None and members else None
    return None


def _is_member(item: ast.stmt, name: str) -> bool:
    if isinstance(item, _FUNCTIONS):
        return item.name == name and not item.decorator_list
    targets = item.targets if isinstance(item, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)
