"""Set an environment variable in a program's own first rows, before it imports what reads it.

Only for variables that libraries read when they are loaded or first used: what the loader, the interpreter or
a launcher reads has been read by then.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from corpus.message import Message
from corpus.schema import Scalar
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.python_code import MAX_CHARACTERS
from ingest.configfiles.settings import TextEdit, edited
from ingest.configfiles.shell.spelling import is_unset, same, spelled
from service.patching.target import PatchTarget


def with_variable(text: str, target: PatchTarget) -> str:
    """Give a program's code that sets the target's variable; the same text where it does so already.

    Raises NotPatchableError where the code treats the variable otherwise, or has no place for it.
    """
    if not target.in_code or is_unset(target.to) or len(text) > MAX_CHARACTERS or "\r\n" in text:
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotPatchableError(Message("patch.file-no-python-read")) from error
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in target.names]
    first = _first_import(tree)
    if not named:
        return edited(text, _added(text, tree, target, first))
    set_there = [value for row in tree.body[:first] for value in _assigned(row, named)]
    if len(named) != 1 or len(set_there) != 1:
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    (value,) = set_there
    if same(str(value.value), target.to):
        return text
    if not target.present or not same(str(value.value), target.present):
        # The code was edited since the run, which had no such value.
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    rows = text.split("\n")
    start, end = (
        sum(len(row) + 1 for row in rows[: line - 1]) + len(rows[line - 1].encode()[:column].decode())
        for line, column in (
            (value.lineno, value.col_offset),
            (value.end_lineno or value.lineno, value.end_col_offset or value.col_offset),
        )
    )
    return edited(text, TextEdit(start, end, _quoted(target.to)))


def _assigned(row: ast.stmt, named: list[ast.Constant]) -> Iterator[ast.Constant]:
    """Give the text that a row sets the variable to: `os.environ["NAME"] = "text"`."""
    match row:
        case ast.Assign(
            targets=[ast.Subscript(value=holder, slice=ast.Constant() as key)],
            value=ast.Constant(value=str()) as value,
        ) if key in named and ast.unparse(holder) in ("os.environ", "environ"):
            yield value


def _first_import(tree: ast.Module) -> int:
    """Give the place of the first row that imports more than Python's own modules, or does anything else.

    Before it a variable counts for all that is imported.
    """
    for place, row in enumerate(tree.body):
        is_text = isinstance(row, ast.Expr) and isinstance(row.value, ast.Constant)
        is_plain = isinstance(row, ast.Assign) and isinstance(row.value, ast.Constant)
        if not is_text and not is_plain and not _is_own(row):
            return place
    return len(tree.body)


def _is_own(row: ast.stmt) -> bool:
    """Tell whether a row imports modules of Python's own."""
    names = (
        [alias.name for alias in row.names]
        if isinstance(row, ast.Import)
        else [row.module or ""]
        if isinstance(row, ast.ImportFrom) and not row.level
        else [""]
    )
    return all(name.partition(".")[0] in sys.stdlib_module_names for name in names)


def _added(text: str, tree: ast.Module, target: PatchTarget, first: int) -> TextEdit:
    """Give the edit that sets the variable behind the imports of Python's own modules."""
    if first == len(tree.body):
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    before = tree.body[first]
    imports = [row for row in tree.body[:first] if isinstance(row, ast.Import | ast.ImportFrom)]
    has_os = any(
        isinstance(row, ast.Import) and any(alias.name == "os" and not alias.asname for alias in row.names)
        for row in imports
    )
    line = imports[-1].end_lineno or imports[-1].lineno if imports else _row_of(before) - 1
    rows = text.split("\n")
    if line >= _row_of(before):
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    new = [] if has_os else ["import os"]
    new += ["", f'os.environ["{target.names[0]}"] = {_quoted(target.to)}']
    if line < len(rows) and rows[line].strip():
        new.append("")
    at = sum(len(row) + 1 for row in rows[:line])
    lead = "" if imports else "\n" * bool(line and rows[line - 1].strip())
    return TextEdit(at, at, lead + "\n".join(new) + "\n")


def _row_of(node: ast.stmt) -> int:
    """Give the row where a statement begins, with what decorates it."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.decorator_list:
        return node.decorator_list[0].lineno
    return node.lineno


def _quoted(value: Scalar) -> str:
    text = spelled(value, "", ("1", "0"))
    if not text.isprintable() or set(text) & set('"\\$'):
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    return f'"{text}"'
