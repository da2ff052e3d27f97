"""The settings of a launch file in Python: plain values that it assigns or hands to calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import accumulate

from corpus.keys import unsigned
from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.settings import LONGEST, Setting, TextEdit, place_at

# The parser's stack bounds how deep a file may nest; its time grows with the length.
MAX_CHARACTERS = 1 << 18


def read(text: str) -> list[Setting]:
    """Read `NAME = 1`, `call(name=1)`, `{"name": 1}` and `add_argument("--name", default=1)`.

    Raises NotPatchableError.
    """
    if len(text) > MAX_CHARACTERS:
        raise NotPatchableError(Message("patch.file-longer-characters", max_characters=f"{MAX_CHARACTERS:,}"))
    try:
        tree = ast.parse(text)
        found = sorted(_values(tree), key=lambda item: (item[1].lineno, item[1].col_offset))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotPatchableError(Message("patch.file-no-python-read")) from error
    rows = text.split("\n")
    starts = [0, *accumulate(len(row) + 1 for row in rows)]
    return [_setting(text, rows, starts, key, node, scope) for key, node, scope in found]


def _setting(text: str, rows: list[str], starts: list[int], key: str, node: ast.expr, scope: str) -> Setting:
    def offset(line: int, column: int) -> int:
        # The parser counts the bytes of a row.
        return starts[line - 1] + len(rows[line - 1].encode()[:column].decode())

    start = offset(node.lineno, node.col_offset)
    end = offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    value = ast.literal_eval(node)
    place = place_at(text, start, scope, lambda to: TextEdit(start, end, repr(to)))
    return Setting(key, str(value)[:LONGEST], place.line, "dump", place)


def _values(tree: ast.AST) -> Iterator[tuple[str, ast.expr, str]]:
    """Give key, value and scope of each plain value."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_plain(value):
                yield name, value, ""
            case ast.Call():
                yield from _arguments(node)
            case ast.Dict():
                yield from (
                    (key.value, value, "{}")
                    for key, value in zip(node.keys, node.values, strict=True)
                    if isinstance(key, ast.Constant) and isinstance(key.value, str) and _is_plain(value)
                )


def _arguments(call: ast.Call) -> Iterator[tuple[str, ast.expr, str]]:
    """Give a call's plain keyword arguments; of an option, its `default` alone, by the option's name."""
    scope = ast.unparse(call.func)
    words = (word.value for word in call.args if isinstance(word, ast.Constant))
    option = next((word for word in words if isinstance(word, str) and word.startswith("--")), "")
    for keyword in call.keywords:
        # The help, the action and the type of an option are no settings.
        if keyword.arg and _is_plain(keyword.value) and (not option or keyword.arg == "default"):
            yield unsigned(option) if option else keyword.arg, keyword.value, scope


def _is_plain(node: ast.expr) -> bool:
    """Tell a number, a switch or a string; a sign before a number is part of it."""
    inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    is_number = isinstance(inner, ast.Constant) and isinstance(inner.value, int | float)
    return is_number or (isinstance(node, ast.Constant) and isinstance(node.value, str))
