"""Values that a statement takes apart: how many names it has for them, and how many the job's function gives.

`a, b = f()` fails with a count, or with the type of the one value that came; `f` at hand says in which row it
gives how many. Where it gives names, and those of the statement are among them, the statement is mended.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from corpus.message import in_both
from corpus.schema import Text
from ingest.configfiles.notebook import place_in
from ingest.configfiles.settings import TextEdit
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile, frames_of_failure
from service.remediation.code_edits.source_text import parsed, whole_source
from service.remediation.data_flow.job_program import JobProgram, OwnCall, called
from service.remediation.data_flow.samples import Given, SampleMaker, given_back, sample_maker
from service.remediation.own_edits import OwnEdit

_ONE = re.compile(r"cannot unpack non-iterable (?P<kind>[\w.]{1,60}) object")
_COUNT = re.compile(r"(?:not enough|too many) values to unpack \(expected (?:at least )?\d+(?:, got \d+)?\)")
# What a loop hands on with the number of each turn before it.
_COUNTS = frozenset({"enumerate"})
_WRAPS = frozenset({"tqdm", "trange", "enumerate", "iter", "progress_bar", "track"})
MOST_NAMED = 6


def unpacked_words(report: CrashReport, files: Sequence[JobFile]) -> Text | None:
    """Say how many values a failing statement takes, and where the job's code gives how many of them."""
    said = _said(report)
    program = JobProgram(frames_of_failure(report), files)
    call = program.calls[-1] if program.calls else None
    taken = _taken(call.statement) if call is not None else None
    if said is None or call is None or call.calls or taken is None:
        return None
    names, value = taken
    told: dict[str, str | int] = {"count": len(names), "names": ", ".join(names[:MOST_NAMED])}
    maker = _maker(value, call, program)
    if maker is None:
        return _without_maker(said, value, told) if isinstance(value, ast.Call) else None
    told |= {"callee": maker.name, "place": f"{maker.leaf}:{maker.function.lineno}"}
    others = [each for each in maker.given if _number(each) not in (None, len(names))]
    fitting = [each for each in maker.given if _number(each) == len(names)]
    if not others:
        return None
    counts = {_number(each) for each in others}
    rows = ", ".join(str(each.line) for each in others[:MOST_NAMED])
    form = "changes.unpacked-on-a-way" if fitting else "changes.unpacked-otherwise"
    shown = ", ".join(others[0].parts[:MOST_NAMED]) or others[0].one
    got = counts.pop() if len(counts) == 1 else 0
    return in_both(form, rows=rows, got=got or 0, values=shown, **told)


def unpacked_edit(report: CrashReport, files: Sequence[JobFile]) -> OwnEdit | None:
    """Take what a function gives by the names that it gives it under; the statement has some of these."""
    program = JobProgram(frames_of_failure(report), files)
    call = program.calls[-1] if program.calls else None
    said = _said(report)
    taken = _taken(call.statement) if call is not None else None
    if said is None or call is None or call.calls or taken is None or not call.scope.module.name:
        return None
    names, value = taken
    maker = _maker(value, call, program)
    ways = {each.parts for each in maker.given} if maker is not None else set()
    parts = [part.rpartition(".")[2] for part in ways.pop()] if len(ways) == 1 else []
    if maker is None or len(parts) <= len(names) or [part for part in parts if part in names] != names:
        return None
    file = next((each for each in files if each.name == call.scope.module.name), None)
    source = whole_source(file.text) if file is not None else None
    target = _target(call.statement)
    if file is None or source is None or target is None or not source.is_placed(target):
        return None
    put = ", ".join(part if part in names else "_" for part in parts)
    start, end = source.start(target), source.end(target)
    is_bracketed = source.text[start] in "(["
    put = f"({put})" if is_bracketed else put
    text = source.edited([TextEdit(start, end, put)])
    if parsed(text) is None:
        return None
    row = source.text.split("\n")[target.lineno - 1].strip()
    before = source.text[start:end]
    told = {"callee": maker.name, "place": f"{maker.leaf}:{maker.given[-1].line}", "count": len(parts)}
    at = place_in(file.name, file.text, target.lineno)
    why = in_both("changes.unpacked-by-name", **told)
    return OwnEdit("replace", at, row, row.replace(before, put, 1), why, file, text)


def _said(report: CrashReport) -> re.Match[str] | None:
    body = report.root.body if report.root is not None else ""
    return _ONE.search(body) or _COUNT.search(body)


def _target(statement: ast.stmt) -> ast.Tuple | ast.List | None:
    """Give the names that a statement takes values apart into; of a loop with numbers the inner ones."""
    match statement:
        case ast.Assign(targets=[ast.Tuple() | ast.List() as target]):
            return target
        case ast.For(target=ast.Tuple(elts=[_, ast.Tuple() | ast.List() as target]), iter=ast.Call() as made):
            return target if called(made) in _COUNTS else None
        case ast.For(target=ast.Tuple() | ast.List() as target):
            return target
    return None


def _taken(statement: ast.stmt) -> tuple[list[str], ast.expr] | None:
    """Give the names on the left and the expression that is taken apart; None where one takes any number."""
    target = _target(statement)
    if target is None or any(isinstance(each, ast.Starred) for each in target.elts):
        return None
    value = statement.iter if isinstance(statement, ast.For) else getattr(statement, "value", None)
    if not isinstance(value, ast.expr):
        return None
    return [ast.unparse(each).rpartition(".")[2] for each in target.elts], value


def _maker(value: ast.expr, call: OwnCall, program: JobProgram) -> SampleMaker | None:
    """Give the job's own function that gave a value, or its data set where a batch is taken apart."""
    if isinstance(call.statement, ast.For):
        inner = value
        while isinstance(inner, ast.Call) and called(inner) in _WRAPS and inner.args:
            inner = inner.args[0]
        name = ast.unparse(inner).lower()
        is_loader = isinstance(inner, ast.Name | ast.Attribute | ast.Subscript) and "load" in name
        return sample_maker(program) if is_loader else None
    if isinstance(value, ast.Name) and value.id in ("batch", "data", "sample"):
        return sample_maker(program)
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name | ast.Attribute):
        return None
    return _function(value, call, program)


def _function(value: ast.Call, call: OwnCall, program: JobProgram) -> SampleMaker | None:
    func, name = value.func, called(value)
    is_own = isinstance(func, ast.Name) or ast.unparse(func).startswith("self.")
    home = program.function_named(name, call.scope.module)
    if home is None or not (is_own or len(home[0].functions.get(name, ())) == 1):
        return None
    found = SampleMaker(name, home[0], home[1], given_back(home[1]))
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(home[1])):
        return None
    return found if found.given and not home[1].decorator_list else None


def _number(given: Given) -> int | None:
    """Give how many values a way gives; None where one value may be several."""
    if given.parts:
        return None if any(part.startswith("*") for part in given.parts) else len(given.parts)
    return None if given.keys or given.others or not _is_single(given.one) else 1


def _is_single(text: str) -> bool:
    """Tell whether an expression may be taken for one value: a name or a number, no call and no list."""
    return re.fullmatch(r"[\w.]+|-?[\d.]+", text) is not None


def _without_maker(said: re.Match[str], value: ast.Call, told: dict[str, str | int]) -> Text | None:
    """Say what the message and the row tell alone: so many names, and what the call gave."""
    kind = said.groupdict().get("kind")
    if kind == "NoneType":
        return None
    told |= {"callee": called(value)}
    if kind:
        return in_both("changes.unpacked-one", kind=kind, **told)
    return None
