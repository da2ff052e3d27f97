"""A cure that the job's file at hand has already: the file was edited after the run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from corpus.code_edits import known_code_edits
from corpus.paths import base_name
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from service.remediation.code_edits.failing_code import JobFile, file_of, frames_of_failure, is_row, row_of
from service.remediation.code_edits.source_text import parsed
from service.remediation.own_edits import OwnEdit

# Names of modules, and of what makes one path of another, that any two calls share.
_COMMON = frozenset({"os", "self", "args", "torch", "np", "Path"})
_OF_PATHS = frozenset({"path", "dirname", "join", "abspath", "parent"})


class PresentCure(NamedTuple):
    """The file that has it, by its own name, and the row."""

    name: str
    line: int


def edited_file(report: CrashReport, files: Sequence[JobFile]) -> JobFile | None:
    """Give the file of the innermost own call where another row stands at the line that failed."""
    own = [frame for frame in frames_of_failure(report) if frame.line and is_own(frame) and frame.code]
    file = file_of(own[-1], files) if own else None
    if file is None:
        return None
    rows = file.text.split("\n")
    stands = own[-1].line <= len(rows) and is_row(rows[own[-1].line - 1], own[-1].code.strip())
    return None if stands else file


def moved_row(report: CrashReport, files: Sequence[JobFile]) -> PresentCure | None:
    """Give the row to which the very statement that failed has moved, in a file that was edited since."""
    file = edited_file(report, files)
    own = [frame for frame in frames_of_failure(report) if frame.line and is_own(frame) and frame.code]
    line = row_of(own[-1], file.text) if file is not None else 0
    # Of a statement of several rows one alone is quoted.
    is_far = (
        file is not None
        and abs(line - own[-1].line) > 1
        and own[-1].code.count("(") == own[-1].code.count(")")
    )
    return PresentCure(base_name(file.name), line) if file is not None and line and is_far else None


def present_edit(edit: OwnEdit, report: CrashReport, files: Sequence[JobFile]) -> PresentCure | None:
    """Tell that a file which was edited since has an edit already, in the function that failed.

    Of a row that is replaced, the new one stands there and the old one nowhere; of a statement that is
    inserted, one that calls the same with something of the same, or sets the same.
    """
    file = edited_file(report, files)
    tree = parsed(file.text) if file is not None else None
    wanted = parsed(edit.after)
    if file is None or tree is None or wanted is None or not wanted.body:
        return None
    frame = [frame for frame in frames_of_failure(report) if is_own(frame) and frame.code][-1]
    name = base_name(file.name)
    is_replaced = edit.kind == "replace"
    within = list(_within(tree, frame.function))
    there = _moved(edit, wanted, within) or _renamed(edit, wanted, within)
    there = there or _brought(edit, wanted, within, row_of(frame, file.text), frame.line)
    if is_replaced and there:
        return PresentCure(name, there)
    if is_replaced and frame.code.strip() in map(str.strip, file.text.split("\n")):
        return None
    for statement in within:
        same = (
            _bare(statement) == _bare(wanted.body[0])
            if is_replaced
            else edit.kind != "import" and _does_as(statement, wanted.body[0], within)
        )
        if same:
            return PresentCure(name, statement.lineno)
    return None


def given_argument(
    call: str, argument: str, report: CrashReport, files: Sequence[JobFile], value: str = ""
) -> PresentCure | None:
    """Tell that a file which was edited since hands a call, or one named after it, an argument.

    That is any value but None, or the one which `value` writes.
    """
    file = edited_file(report, files)
    tree = parsed(file.text) if file is not None else None
    nodes = list(ast.walk(tree)) if tree is not None else []
    imports = (alias for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names)
    names = {alias.asname: alias.name for alias in imports if alias.asname}
    for node in nodes:
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if not isinstance(node, ast.Call) or not names.get(called, called).endswith(call):
            continue
        for keyword in node.keywords:
            given = ast.unparse(keyword.value)
            is_told = given.strip("'\"") == value if value else given != "None"
            if file is not None and keyword.arg == argument and is_told:
                return PresentCure(base_name(file.name), keyword.value.lineno)
    return None


def made_call(call: str, report: CrashReport, files: Sequence[JobFile]) -> PresentCure | None:
    """Tell that a file which was edited since makes a call, by its full name."""
    file = edited_file(report, files)
    tree = parsed(file.text) if file is not None else None
    for node in ast.walk(tree) if tree is not None else ():
        if file is not None and isinstance(node, ast.Call) and ast.unparse(node.func) == call:
            return PresentCure(base_name(file.name), node.lineno)
    return None


def _within(tree: ast.Module, function: str) -> Iterator[ast.stmt]:
    """Give the statements of the function that a traceback names, else those outside of all."""
    name = function.rpartition(".")[2]
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in ast.walk(tree) if isinstance(node, functions) and node.name == name]
    waiting: list[ast.AST] = list(found) if found else [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt) and node not in found:
            yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, functions)]


def _moved(edit: OwnEdit, wanted: ast.Module, within: Sequence[ast.stmt]) -> int:
    """Give the row where the function has what an edit puts into the failing statement; 0 without."""
    before = parsed(edit.before)
    had = {ast.dump(node) for node in ast.walk(before)} if before is not None else set()
    fresh = [node for node in ast.walk(wanted) if isinstance(node, ast.Call) and ast.dump(node) not in had]
    # The innermost new call is what the edit is about; those around it only hold it.
    inner = [node for node in fresh if not any(other is not node for other in _calls(node) if other in fresh)]
    sought = {ast.dump(node) for node in inner}
    found = {ast.dump(call): call.lineno for statement in within for call in _calls(statement)}
    rows = [found[told] for told in sought if told in found]
    return min(rows) if before is not None and sought and len(rows) == len(sought) else 0


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (inner for inner in ast.walk(node) if isinstance(inner, ast.Call))


def _bare(statement: ast.stmt) -> str:
    """Give a statement's tree without the words of its texts."""
    if hasattr(statement, "body"):
        return ""
    told = ast.parse(ast.unparse(statement))
    for node in ast.walk(told):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(told)


def _renamed(edit: OwnEdit, wanted: ast.Module, within: Sequence[ast.stmt]) -> int:
    """Give the row where the function calls what an edit puts in place of another call; 0 without."""
    before = parsed(edit.before)
    if before is None:
        return 0
    had, new = ({ast.unparse(call.func) for call in _calls(tree)} for tree in (before, wanted))
    made = {ast.unparse(call.func): call.lineno for statement in within for call in _calls(statement)}
    is_there = new - had and had - new and new - had <= set(made) and not (had - new) & set(made)
    return min(made[name] for name in new - had) if is_there else 0


def _brought(edit: OwnEdit, wanted: ast.Module, within: Sequence[ast.stmt], row: int, line: int) -> int:
    """Give the row, of those that were added above the failing one, that makes of a name what an edit does.

    An edit that hands `x.to(device)` on finds `x = x.to(device)`; 0 without.
    """
    names = {node.id for node in ast.walk(parsed(edit.before) or wanted) if isinstance(node, ast.Name)}
    verbs = {
        (ast.unparse(call.func.value), known_code_edits().alike.get(call.func.attr, call.func.attr))
        for call in _calls(wanted)
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in names
    }
    for statement in within if row > line else ():
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute() as function)):
                verb = known_code_edits().alike.get(function.attr, function.attr)
                is_it = ast.unparse(function.value) == name and (name, verb) in verbs
                if is_it and statement.lineno < row:
                    return statement.lineno
    return 0


def _does_as(statement: ast.stmt, wanted: ast.stmt, within: Sequence[ast.stmt]) -> bool:
    """Tell whether a statement sets what another one sets, or calls the same with something of the same."""
    if isinstance(statement, ast.Assign) and isinstance(wanted, ast.Assign):
        return list(map(ast.dump, statement.targets)) == list(map(ast.dump, wanted.targets))
    calls = [each.value for each in (statement, wanted) if isinstance(each, ast.Expr)]
    one, other = (calls[0], calls[1]) if len(calls) == 2 else (None, None)
    if not isinstance(one, ast.Call) or not isinstance(other, ast.Call):
        return False
    if ast.dump(one.func) == ast.dump(other.func) and not other.args:
        return True
    alike = known_code_edits().alike
    verbs = [ast.unparse(call.func).rpartition(".")[2] for call in (one, other)]
    if ast.dump(one.func) != ast.dump(other.func) and not {*verbs} <= {*alike, *alike.values()}:
        return False
    if alike.get(verbs[0], verbs[0]) != alike.get(verbs[1], verbs[1]):
        return False
    parts = [
        _parts([call.func, *call.args] if verb in alike else call.args)
        for call, verb in zip((one, other), verbs, strict=True)
    ]
    # What a name was made of stands for it.
    for each in within:
        if isinstance(each, ast.Assign) and any(ast.unparse(target) in parts[0] for target in each.targets):
            parts[0] |= _parts([each.value])
    return bool(parts[0] & parts[1])


def _parts(nodes: Iterable[ast.AST]) -> set[str]:
    """Give the names and the folders that expressions are made of."""
    found: set[str] = set()
    for node in (inner for each in nodes for inner in ast.walk(each)):
        if isinstance(node, ast.Name):
            found.update({node.id} - _COMMON)
        elif isinstance(node, ast.Attribute):
            found.update({node.attr} - _OF_PATHS - set(known_code_edits().alike))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(filter(None, node.value.split("/")))
    return found
