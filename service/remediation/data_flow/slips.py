"""Slips of the job's own code on the way of a failing value, where one edit of one row mends them.

A comma behind an assignment makes a tuple of its value; what a function gives back as several values is kept
as one; a layer is handed what the row above it was handed, whose outcome is read nowhere; an object that has
tensors of its own, a metric or a loss, is not moved to the device of what it is called with.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from corpus.message import in_both
from ingest.configfiles.notebook import place_in
from ingest.configfiles.settings import TextEdit
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile, failing_code, frames_of_failure
from service.remediation.code_edits.source_text import SourceText, head_nodes, parsed, whole_source
from service.remediation.data_flow import definitions
from service.remediation.data_flow.definitions import Definition
from service.remediation.data_flow.job_program import Function, JobProgram, Scope, called
from service.remediation.data_flow.origins import Step, origins
from service.remediation.own_edits import OwnEdit, job_files

# Messages of a value that is a tuple, or a list, where another kind was wanted.
_SEVERAL = re.compile(
    r"'(?:tuple|list)' object (?:has no attribute|is not callable)"
    r"|(?:\bnot|got|received|found) (?:a )?'?tuple\b|tuple indices must be|'tuple' and|and 'tuple'"
)
_TUPLE = re.compile(r"\btuple\b")
# PyTorch's words for a layer that takes another width than its input has.
_WIDTH = re.compile(
    r"mat1 and mat2 shapes cannot be multiplied|size mismatch, m1:|running_mean should contain \d+ elements"
    r"|expected input\[[\d, ]+\] to have \d+ channels"
    r"|Given normalized_shape=|input\.size\(-1\) must be equal"
)
# PyTorch's words for tensors on two devices, and what is made as an object of a class.
_DEVICES = re.compile(r"Expected all tensors to be on the same device|found at least two devices")
_CLASS = re.compile(r"_?[A-Z]\w*[a-z]\w*")
# A device with its number, whose kind is also the method that moves there.
_NUMBERED = re.compile(r"\b(?P<kind>[a-z]{2,8}):\d")
LONGEST_SHOWN = 100


@dataclass(frozen=True)
class _Place:
    """A file, its code, and the row of a statement as a person finds it."""

    file: JobFile
    source: SourceText
    at: str


def flow_edit(report: CrashReport, files: Sequence[JobFile] | None = None) -> OwnEdit | None:
    """Give the edit of the first slip on the way of the failing value; None where there is none."""
    root = report.root
    if root is None:
        return None
    at_hand = job_files(report) if files is None else files
    message = f"{root.exception}: {root.body}"
    if _WIDTH.search(message):
        return _passed_over(report, at_hand)
    if _DEVICES.search(message):
        return _stayed_behind(report, at_hand, {"to", *_NUMBERED.findall(message)})
    if not _SEVERAL.search(message):
        return None
    steps = origins(report, at_hand) or []
    edits = (edit for step in steps for edit in _slips(step, message, at_hand))
    return next(edits, None)


def _slips(step: Step, message: str, files: Sequence[JobFile]) -> Iterator[OwnEdit]:
    statement = step.statement
    file = next((each for each in files if each.name == step.scope.module.name), None)
    source = whole_source(file.text) if file is not None else None
    if file is None or source is None or step.made is None or not isinstance(statement, ast.Assign):
        return
    place = _Place(file, source, step.place)
    value = statement.value
    if isinstance(value, ast.Tuple) and len(value.elts) == 1 and place.source.source(value)[:1] != "(":
        edit = TextEdit(place.source.end(value.elts[0]), place.source.end(value), "")
        yield from _edited(place, statement, [edit], "changes.slip-comma", name=step.name)
    elif _TUPLE.search(message) and isinstance(value, ast.Call) and step.made.is_whole:
        count = _count_given_back(value, files)
        # Another branch that does the same fails as well; another function may take the values apart.
        rows = _own_nodes(step.scope.function or place.source.tree)
        kept = [each for each in rows if _keeps_whole(each, statement)]
        if count > 1 and kept:
            ends = [place.source.end(each.targets[0]) for each in kept if isinstance(each, ast.Assign)]
            edits = [TextEdit(end, end, ", *_") for end in ends]
            told: dict[str, str | int] = {"name": step.name, "callee": called(value), "count": count}
            # Which of the values is meant is not told.
            made = _edited(place, statement, edits, "changes.slip-several", **told)
            yield from (replace(edit, is_sure=False) for edit in made)


def _count_given_back(call: ast.Call, files: Sequence[JobFile]) -> int:
    """Give how many values the job's one function of a name gives back in every case; 0 where one."""
    if isinstance(call.func, ast.Attribute) and not isinstance(call.func.value, ast.Name):
        return 0
    trees = (tree for file in files if (tree := parsed(file.text)) is not None)
    named = [node for tree in trees for node in ast.walk(tree) if isinstance(node, Function)]
    named = [node for node in named if node.name == called(call)]
    given = [node.value for node in _returns(named[0])] if len(named) == 1 else []
    counts = {len(value.elts) if isinstance(value, ast.Tuple) else 0 for value in given}
    return counts.pop() if len(counts) == 1 else 0


def _keeps_whole(node: ast.AST, like: ast.Assign) -> bool:
    """Tell whether a statement keeps what the same call gives back under the same one name."""
    match node:
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=ast.Call() as call):
            made = like.value
            same = isinstance(made, ast.Call) and ast.unparse(call.func) == ast.unparse(made.func)
            return same and ast.unparse(target) == ast.unparse(like.targets[0])
    return False


def _returns(function: Function) -> Iterator[ast.Return]:
    """Give the statements by which a function itself gives something back."""
    return (node for node in _own_nodes(function) if isinstance(node, ast.Return))


def _own_nodes(holder: Function | ast.Module) -> Iterator[ast.AST]:
    """Give what a function or a module holds, without what the functions and classes in it do."""
    waiting: list[ast.AST] = list(holder.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def _edited(
    place: _Place, statement: ast.stmt, edits: list[TextEdit], why: str, **told: str | int
) -> Iterator[OwnEdit]:
    """Give the edit of a statement, with those of others like it, where what comes of it is code."""
    text = place.source.edited(edits)
    if parsed(text) is None:
        return
    start = place.source.start(statement)
    end = place.source.end(statement)
    before = place.source.text[start:end]
    edit = next(each for each in edits if start <= each.start <= end)
    after = before[: edit.start - start] + edit.new + before[edit.end - start :]
    yield OwnEdit(
        "replace", place.at, _one_row(before), _one_row(after), in_both(why, **told), place.file, text
    )


def _one_row(text: str) -> str:
    row = " ".join(part.strip() for part in text.split("\n"))
    return f"{row[:LONGEST_SHOWN]}…" if len(row) > LONGEST_SHOWN else row


def _passed_over(report: CrashReport, files: Sequence[JobFile]) -> OwnEdit | None:
    """Hand a layer the outcome of the row above, which is read nowhere, in place of what that row was handed.

    `h = first(x)` and then `h = second(x)`: what the first one made is lost.
    """
    code = next(failing_code(frames_of_failure(report), files), None)
    if code is None or code.file is None or code.function is None:
        return None
    statement = code.statement
    above = _before(statement, code.function)
    match statement, above:
        case (
            ast.Assign(targets=[ast.Name(id=name)]),
            ast.Assign(targets=[ast.Name(id=same)], value=made),
        ) if name == same:
            taken = {node.id for node in ast.walk(made) if isinstance(node, ast.Name)}
        case _:
            return None
    read = [node for node in ast.walk(statement.value) if isinstance(node, ast.Name)]
    calls = [node for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
    again = [node for node in read if node.id in taken and any(node in call.args for call in calls)]
    if any(node.id == name for node in read) or len(again) != 1 or name in taken:
        return None
    at = place_in(code.file.name, code.file.text, statement.lineno)
    place = _Place(code.file, code.source, at)
    edit = TextEdit(code.source.start(again[0]), code.source.end(again[0]), name)
    told: dict[str, str | int] = {"name": name, "given": again[0].id, "row": above.lineno}
    return next(_edited(place, statement, [edit], "changes.slip-passed-over", **told), None)


def _before(statement: ast.stmt, function: Function) -> ast.stmt | None:
    """Give the statement that stands before another one in its block."""
    for node in ast.walk(function):
        for name in ("body", "orelse", "finalbody"):
            block: list[ast.stmt] | ast.expr = getattr(node, name, [])
            if isinstance(block, list) and statement in block[1:]:
                return block[block.index(statement) - 1]
    return None


def _stayed_behind(report: CrashReport, files: Sequence[JobFile], moves: Collection[str]) -> OwnEdit | None:
    """Move an object that failed as it was called to the device of what it is called with.

    The library's own code failed below the call, and the object was made by a class and never moved by one of
    the methods that do.
    """
    frames = frames_of_failure(report)
    program = JobProgram(frames, files)
    call = program.calls[-1] if program.calls else None
    if call is None or not call.calls or not call.scope.module.name:
        return None
    for node in head_nodes(call.statement):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
            continue
        made = _made_once(node.func, call.scope, program, moves)
        if made is None or not isinstance(made.statement, ast.Assign) or not isinstance(made.value, ast.Call):
            continue
        file = next(each for each in files if each.name == made.scope.module.name)
        source, name = whole_source(file.text), ast.unparse(node.func)
        device = _device_at(made.statement, made.scope.function, call.scope.function)
        if source is None or not device or not _CLASS.fullmatch(called(made.value)):
            continue
        end = source.end(made.value)
        place = _Place(file, source, place_in(file.name, file.text, made.statement.lineno))
        edits = [TextEdit(end, end, f".to({device})")]
        return next(_edited(place, made.statement, edits, "changes.slip-stayed", name=name), None)
    return None


def _made_once(
    node: ast.expr, scope: Scope, program: JobProgram, moves: Collection[str]
) -> Definition | None:
    """Give the one place where an object that is called was made; None where there are more, or it moved."""
    found: list[Definition] = []
    if isinstance(node, ast.Name):
        found = definitions.of_name(node.id, scope)
    elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
        found = definitions.of_attribute(node.attr, scope, program)
    text = ast.unparse(node)
    moved = (
        each
        for module in program.modules
        for verb in moves
        for each in module.calls.get(verb, ())
        if isinstance(each.func, ast.Attribute) and ast.unparse(each.func.value) == text
    )
    return found[0] if len(found) == 1 and found[0].is_whole and next(moved, None) is None else None


def _device_at(made: ast.stmt, function: Function | None, failing: Function | None) -> str:
    """Name the device that the failing function moves tensors to, where it is known as an object is made."""
    for node in ast.walk(failing) if failing is not None else ():
        if isinstance(node, ast.Call) and called(node) == "to":
            given = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "device")]
            named = [value for value in given if ast.unparse(value).rpartition(".")[2] == "device"]
            if not named:
                continue
            text = ast.unparse(named[0])
            first = text if text == "self.device" else text.partition(".")[0]
            is_shared = function is failing or first == "self.device"
            return text if is_shared and first in _set_above(made, function) else ""
    return ""


def _set_above(statement: ast.stmt, function: Function | None) -> frozenset[str]:
    """Give a function's parameters and what is assigned in it above a statement."""
    if function is None:
        return frozenset()
    above = (
        ast.unparse(node)
        for node in ast.walk(function)
        if isinstance(node, ast.Name | ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and node.lineno < statement.lineno
    )
    return definitions.names_taken(function) | frozenset(above)
