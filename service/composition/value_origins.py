"""Where the values of the failing statement were made: rows of the job's own files, from the nearest back.

Through calls and files where the code can be parsed; else within the one file, by the names of its rows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corpus.paths import base_name
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import own_call
from service.remediation.code_edits.changed_rows import changed_row
from service.remediation.code_edits.unparsed import UNPARSED
from service.remediation.data_flow.option_reads import HOLDER
from service.remediation.data_flow.origins import Step, origins
from service.remediation.own_edits import job_files

# So many rows are told of a statement, and so many steps are gone back from it.
MOST_ROWS, MOST_STEPS = 4, 4
LONGEST_ROW = 90
# So much of what may be empty is named, and what makes an array of a shape.
MOST_EMPTY = 2
_MAKES = frozenset({"zeros", "ones", "empty", "full"})
# A longer row of a file is data, and no statement that people write.
LONGEST_READ = 300
_NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,3}(?![\w(=.'\"])")
_REMARK = re.compile(r"^\s*#|\s{2,}#\s.*$")
_HANDS_ON = re.compile(r"^\s*[\w.]+\s*=\s*[A-Za-z_]\w*\s*(?:#.*)?$")
_BINDS_NOTHING = re.compile(r"\s*(?:#|(?:async )?def |class |assert |(?:el)?if |while |return |raise )")
# What a loop or a block binds, and what stands left of a sign that assigns; a comparison assigns nothing.
_BINDS = (
    r"^\s*(?:(?:async )?for [^\n]*?(?<![\w.]){name}(?![\w.])[^\n]* in (?P<of>[^\n]+):"
    r"|(?:async )?with (?P<opened>[^\n]+) as {name}\s*:"
    r"|(?:[\w.,\s*()\[\]'\"]*(?<![\w.]))?{name}(?![\w.(])[\w.,\s*()\[\]'\":]*?\s*"
    r"(?:[-+*/|&@]|//|\*\*)?=(?!=)(?P<from>[^\n]+))"
)


@dataclass(frozen=True)
class ValueRow:
    """A row of the job's own files that made a value which the failing statement is given, and its place.

    Where the row hands `code` to a function that it calls, `handed` is the parameter; else it is empty.
    """

    place: str
    code: str
    handed: str = ""


def value_rows(report: CrashReport) -> tuple[ValueRow, ...]:
    """Give the rows that made what the job's own failing call passes; none where unknown.

    A row that Python cannot read is given nothing.
    """
    if report.root is not None and report.root.exception in UNPARSED:
        return ()
    steps = origins(report)
    return _rows_near(report) if steps is None else _rows_of(steps)


def _rows_of(steps: Sequence[Step]) -> tuple[ValueRow, ...]:
    """Give the first rows that tell something, each once."""
    found: dict[str, ValueRow] = {}
    for step in steps:
        if step.place and step.place not in found and not _hands_on(step):
            code = ast.unparse(step.handed or step.statement).split("\n")[0]
            code = f"{code[:LONGEST_ROW]}…" if len(code) > LONGEST_ROW else code
            found[step.place] = ValueRow(step.place, code, step.name if step.handed else "")
    return tuple(found.values())[:MOST_ROWS]


def made_empty(report: CrashReport) -> str:
    """Name what a failing statement is given and the job's files make with no entry; empty where nothing is.

    A list that begins empty, an array of no row: what was to fill it may not have run.
    """
    found = [
        f"{ast.unparse(step.statement.targets[0])} ({step.place})"
        for step in origins(report) or ()
        if isinstance(step.statement, ast.Assign) and step.place and _is_empty(step.statement.value)
    ]
    return ", ".join(dict.fromkeys(found[:MOST_EMPTY]))


def _is_empty(node: ast.expr) -> bool:
    """Tell whether an expression makes something with no entry: `[]`, `dict()`, `zeros((0, 4))`."""
    match node:
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(func=ast.Name(id="list" | "dict" | "set" | "tuple"), args=[], keywords=[]):
            return True
        case ast.Call(func=ast.Attribute(attr=name), args=[shape, *_]) if name in _MAKES:
            sizes = shape.elts if isinstance(shape, ast.Tuple | ast.List) else [shape]
            return not sizes or any(isinstance(size, ast.Constant) and size.value == 0 for size in sizes)
        case ast.Call(func=ast.Attribute(attr="array" | "tensor"), args=[inner, *_]):
            return _is_empty(inner)
    return False


def _hands_on(step: Step) -> bool:
    """Tell whether a statement only gives what it reads its name: another variable, an entry called alike."""
    if step.handed is not None:
        return ast.unparse(step.handed) == step.name
    if not isinstance(step.statement, ast.Assign):
        return False
    whole, target = step.statement.value, step.statement.targets[0]
    pairs = (
        zip(target.elts, whole.elts, strict=False)
        if isinstance(target, ast.Tuple) and isinstance(whole, ast.Tuple)
        else [(target, whole)]
    )
    return all(_is_renamed(name, value) for name, value in pairs)


def _is_renamed(name: ast.expr, value: ast.expr) -> bool:
    match value:
        case ast.Name():
            return True
        case ast.Subscript(value=ast.Name(id=holder), slice=ast.Constant(value=key)):
            # What reads an option tells where it is from.
            return isinstance(name, ast.Name) and key == name.id and not HOLDER.fullmatch(holder)
    return False


def _rows_near(report: CrashReport) -> tuple[ValueRow, ...]:
    """Give the rows of the failing call's own file, by the names of its rows.

    A file that was edited since has the failing row elsewhere, or another one in its place.
    """
    own = own_call(report.root.frames) if report.root is not None else None
    if own is None or not own.line or not own.code:
        return ()
    name = base_name(own.file)
    texts = [file.text for file in job_files(report) if base_name(file.name) == name]
    rows = texts[0].split("\n") if len(texts) == 1 else []
    same = [place for place, row in enumerate(rows, 1) if row.strip() == own.code.strip()]
    if not same and (changed := changed_row(report, job_files(report))) is not None and changed.line:
        same = [changed.line] if changed.name == name and changed.line <= len(rows) else []
    if not same:
        return ()
    line = min(same, key=lambda place: abs(place - own.line))
    return tuple(ValueRow(f"{name}:{row}", code) for row, code in _back(rows[line - 1], line, rows))


def _back(code: str, line: int, rows: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Go back from a statement to what made its values, those of one row first."""
    waiting, seen, told = [(code, line, 0)], {line}, 0
    while waiting and told < MOST_ROWS:
        text, below, steps = waiting.pop(0)
        for name in dict.fromkeys(_names(text)):
            found = _made(name, below, rows)
            if found is None or found[0] in seen or told >= MOST_ROWS:
                continue
            place, source = found
            seen.add(place)
            # What only hands a parameter on tells nothing of where its value is from.
            if not _HANDS_ON.search(rows[place - 1]):
                told += 1
                yield place, _REMARK.sub("", rows[place - 1]).strip()[:LONGEST_ROW]
            if steps + 1 < MOST_STEPS:
                waiting.append((source, place, steps + 1))


def _names(text: str) -> Iterator[str]:
    """Give the names that a statement reads: of a call, those that it passes; else all of its right side."""
    try:
        tree = ast.parse(text.strip().removesuffix(":") if text.rstrip().endswith(":") else text.strip())
    except (SyntaxError, ValueError):
        yield from (match[0] for match in _NAME.finditer(text))
        return
    loaded = [node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)]
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    whole = [node for node in loaded if id(node) not in called and isinstance(node.ctx, ast.Load)]
    inner = {id(node.value) for node in whole if isinstance(node, ast.Attribute)}
    yield from (ast.unparse(node) for node in whole if id(node) not in inner)


def _made(name: str, below: int, rows: Sequence[str]) -> tuple[int, str] | None:
    """Give the last row above one that binds a name, or the object that it is a part of, and from what."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        whole = ".".join(parts[:length])
        if whole == "self":
            return None
        binds = re.compile(_BINDS.replace("{name}", re.escape(whole)))
        for place in range(below - 1, 0, -1):
            row = rows[place - 1]
            is_read = len(row) <= LONGEST_READ and whole in row and not _BINDS_NOTHING.match(row)
            match = binds.match(row) if is_read else None
            if match is not None:
                return place, match["of"] or match["opened"] or match["from"]
            is_above = re.match(r"\s*(?:async )?def ", row) and _indent(row) < _indent(rows[below - 1])
            if is_above and length == len(parts) == 1:
                break  # a parameter, or a name of the module
    return None


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())
