"""What a failing message says and the job's files at hand rule out: they were edited after the run.

A name that is bound by now, an argument that is no longer given, a test or a handler around the row that
failed, a check that is gone. With the files as they are the failure cannot have come, so nothing is to edit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corpus.message import in_both
from corpus.paths import base_name
from corpus.schema import Text
from ingest.configfiles.notebook import ENDING
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from service.remediation.code_edits.defined_since import defined_since
from service.remediation.code_edits.failing_code import (
    FailingCode,
    JobFile,
    failing_code,
    file_of,
    frames_of_failure,
    row_of,
)
from service.remediation.code_edits.guards import guard_of
from service.remediation.code_edits.source_text import parsed
from service.remediation.own_edits import OwnEdit

_NAMELESS = re.compile(r"\bname '(?P<name>\w+)' is not defined")
_UNSET = re.compile(
    r"local variable '(?P<before>\w+)' (?:referenced before|where it is not)|"
    r"cannot access local variable '(?P<name>\w+)'"
)
_UNTAKEN = re.compile(r"(?P<function>[\w.]{1,160})\(\) got an unexpected keyword argument '(?P<name>\w+)'")
# torch, of a matrix product: what is given, and what the layer's weight takes.
_MISFIT = re.compile(r"shapes cannot be multiplied \(\d+x(?P<given>\d+) and (?P<taken>\d+)x\d+\)")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class _Finding:
    """What the file has by now: the message that says so, what it names, and the row."""

    said: str
    line: int
    told: str = ""


def mended_since(report: CrashReport, files: Sequence[JobFile]) -> OwnEdit | None:
    """Give what the files at hand have by now that rules the failure out; None where nothing does."""
    root = report.root
    if root is None:
        return None
    if (given := defined_since(report, files)) is not None:
        name, there = given
        return _there(_Finding("changes.given-since", there.line, name), there.name)
    frames = frames_of_failure(report)
    own = [frame for frame in frames if frame.line and is_own(frame) and frame.code]
    file = file_of(own[-1], files) if own else None
    # A notebook's cells run in any order: what one of them has says nothing of another one.
    if file is None or file.name.endswith(ENDING):
        return None
    leaf = base_name(file.name)
    code = next(failing_code(frames, files), None)
    found: _Finding | None = None
    if code is not None and code.file is not None and code.frame is own[-1]:
        found = _bound(root.body, code) or _untaken(root.body, code) or _widened(root.body, code)
        if found is None and (guard := guard_of(root, code)) is not None:
            found = _Finding("changes.guarded-since", guard.lineno, ast.unparse(guard).partition("\n")[0])
    elif not row_of(own[-1], file.text):
        found = _unchecked(own[-1].code.strip(), own[-1].function, file)
        found = found or _brought(root.body, own[-1].function, file)
    return _there(found, leaf) if found is not None else None


def _there(found: _Finding, leaf: str) -> OwnEdit:
    told = in_both(found.said, file=leaf, line=found.line, name=found.told.replace("`", "'"))
    empty = Text(en="", zh="")
    return OwnEdit("replace", f"{leaf}:{found.line}", "", "", empty, there=found.line, told=told)


def _bound(body: str, code: FailingCode) -> _Finding | None:
    """Tell that a name which the failing statement misses is bound on every way to it."""
    if not code.is_innermost:
        return None
    if match := _NAMELESS.search(body):
        name, blocks = match["name"], [code.source.tree.body]
        edge = code.function.lineno if code.function is not None else code.statement.lineno
    elif (match := _UNSET.search(body)) and code.function is not None:
        name, blocks, edge = match["before"] or match["name"], [code.function.body], code.statement.lineno
    else:
        return None
    scope = code.function or code.source.tree
    # What is unbound again, or bound for a block alone, may be missing all the same.
    for node in ast.walk(scope):
        is_deleted = isinstance(node, ast.Delete) and name in map(ast.unparse, node.targets)
        if is_deleted or (isinstance(node, ast.ExceptHandler) and node.name == name):
            return None
    above = [item for block in blocks for item in block if item.lineno < edge and name in _binds(item)]
    return _Finding("changes.bound-since", above[-1].lineno, name) if above else None


def _brought(body: str, function: str, file: JobFile) -> _Finding | None:
    """Tell that a name which a function missed is bound by its file, whatever its rows read by now."""
    match, tree = _NAMELESS.search(body), parsed(file.text)
    if match is None or tree is None:
        return None
    name = function.rpartition(".")[2]
    scopes = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) and node.name == name]
    # What a function binds itself may come too late in it.
    own = {item for scope in scopes for node in ast.walk(scope) for item in _stored(node)}
    bound = [item.lineno for item in tree.body if match["name"] in _binds(item)]
    is_bound = len(scopes) == 1 and bool(bound) and match["name"] not in own
    return _Finding("changes.bound-since", bound[0], match["name"]) if is_bound else None


def _stored(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
        yield node.id
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from _binds(node)


def _binds(statement: ast.stmt) -> Iterator[str]:
    """Give the names that a statement binds whatever way it takes."""
    match statement:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case ast.Assign() | ast.AnnAssign(value=ast.expr()):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for node in (inner for target in targets for inner in ast.walk(target)):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id
        case ast.With(items=items):
            yield from (ast.unparse(item.optional_vars) for item in items if item.optional_vars)


def _untaken(body: str, code: FailingCode) -> _Finding | None:
    """Tell that the failing call gives an argument no more which what it calls did not take."""
    match = _UNTAKEN.search(body)
    if match is None or not code.is_innermost:
        return None
    callee = match["function"].removesuffix(".__init__").rpartition(".")[2]
    calls = [
        node
        for node in ast.walk(code.statement)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == callee
    ]
    given = {word.arg for call in calls for word in call.keywords}
    is_open = None in given or any(isinstance(arg, ast.Starred) for call in calls for arg in call.args)
    if not calls or match["name"] in given or is_open:
        return None
    return _Finding("changes.untaken-since", calls[0].lineno, match["name"])


def _widened(body: str, code: FailingCode) -> _Finding | None:
    """Tell that the layer which is called is made for the width that it was given."""
    match = _MISFIT.search(body)
    called = [ast.unparse(node.func) for node in code.nodes() if isinstance(node, ast.Call)] if match else []
    made = [
        (node.lineno, node.value)
        for node in ast.walk(code.source.tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if any(ast.unparse(target) in called for target in node.targets)
    ]
    if match is None or len(made) != 1 or not ast.unparse(made[0][1].func).endswith("Linear"):
        return None
    line, call = made[0]
    widths = [*call.args[:1], *(word.value for word in call.keywords if word.arg == "in_features")]
    is_wide = [ast.unparse(width) for width in widths] == [match["given"]]
    return _Finding("changes.layer-since", line, ast.unparse(call)) if is_wide else None


def _unchecked(quoted: str, function: str, file: JobFile) -> _Finding | None:
    """Tell that a check which failed is gone: no statement of its kind stands in its function any more."""
    kind = {"raise": ast.Raise, "assert": ast.Assert}.get(quoted.partition(" ")[0])
    tree = parsed(file.text)
    if kind is None or tree is None:
        return None
    name = function.rpartition(".")[2]
    scopes = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) and node.name == name]
    if len(scopes) != 1 or any(isinstance(node, kind) for node in ast.walk(scopes[0])):
        return None
    return _Finding("changes.unchecked-since", scopes[0].lineno, quoted)
