"""Calls of the job's files at hand that cannot have run: the file has changed since the run.

What stands above the failing row in a function on the stack was run before it. A call there with other
arguments than the job's own function takes would have ended the run earlier.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from corpus.message import in_both
from corpus.paths import base_name
from corpus.schema import Text
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile, frames_of_failure
from service.remediation.data_flow.job_program import Function, JobProgram, Module, called, parameters


def changed_since(report: CrashReport, files: Sequence[JobFile]) -> Text | None:
    """Say that a call above the failing one does not fit what it calls; None where all of them do."""
    program = JobProgram(frames_of_failure(report), files)
    for module, call in _passed(program):
        if (found := _taken(call, module, program)) is None:
            continue
        least, most = found
        given = len(call.args) + len(call.keywords)
        if not least <= given <= most:
            leaf = base_name(module.name)
            taken = least if given < least else most
            place = f"{leaf}:{call.lineno}"
            return in_both("changes.changed-since", call=called(call), place=place, given=given, taken=taken)
    return None


def _passed(program: JobProgram) -> Iterator[tuple[Module, ast.Call]]:
    """Give the calls that the run has passed: above the failing rows, and in what those call."""
    for own in program.calls:
        function = own.scope.function
        if function is None or not own.scope.module.name:
            continue
        for call in _certain(function, own.statement.lineno):
            yield own.scope.module, call
            home = program.function_named(called(call), own.scope.module)
            if home is not None and isinstance(call.func, ast.Name):
                yield from ((home[0], inner) for inner in _certain(home[1]))


def _certain(function: Function, above: int = 0) -> Iterator[ast.Call]:
    """Give the calls of a function's own block, in no branch and no loop, above a row where one is given."""
    for statement in function.body:
        is_above = not above or (statement.end_lineno or statement.lineno) < above
        if is_above and isinstance(statement, ast.Assign | ast.Expr | ast.AnnAssign | ast.Return):
            yield from (node for node in ast.walk(statement) if isinstance(node, ast.Call))


def _taken(call: ast.Call, module: Module, program: JobProgram) -> tuple[int, int] | None:
    """Give how many arguments the job's own function or class takes at least and at most; None if unknown."""
    is_open = any(isinstance(arg, ast.Starred) for arg in call.args) or any(
        word.arg is None for word in call.keywords
    )
    if is_open or not isinstance(call.func, ast.Name):
        return None
    name, own = call.func.id, 0
    named = [each.classes[name] for each in program.modules if name in each.classes]
    home: Function | None = None
    if len(named) == 1 and not named[0].decorator_list:
        makers = [item for item in named[0].body if getattr(item, "name", "") == "__init__"]
        is_made_so = any(word.arg == "metaclass" for word in named[0].keywords)
        home = makers[0] if makers and isinstance(makers[0], Function) and not is_made_so else None
        own = 1
    elif not named:
        functions = [one for each in program.modules for one in each.functions.get(name, ())]
        above = next(module.around(functions[0]), None) if len(functions) == 1 else None
        home = functions[0] if len(functions) == 1 and not isinstance(above, ast.ClassDef) else None
    if home is None or home.decorator_list or home.args.vararg or home.args.kwarg or name in module.imports:
        return None
    taken = parameters(home)[own:]
    needed_by_name = sum(value is None for value in home.args.kw_defaults)
    return (
        max(len(taken) - len(home.args.defaults), 0) + needed_by_name,
        len(taken) + len(home.args.kwonlyargs),
    )
