"""Which statement of the job's own code printed the last line of the log that any of it prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ingest.configfiles.formats import CODE
from ingest.logs.lines import message_of
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.code_edits.source_text import parsed

# Last lines of the log that are looked at, letters that a text has to have, and the most texts of a job.
LOOKED_AT, LETTERS, MOST = 60, 8, 4000
_PRINTS = frozenset({"print", "info", "warning", "warn", "error", "debug", "critical", "log", "write"})
_ECHO = re.compile(r"^\s*(?:echo|printf)\s+(?:-\w+\s+)*(?P<text>[^>|;&\n]+)")
# What stands for a value: of `%`, of `format`, of a shell.
_VALUE = re.compile(r"%[-+ #0]*[\d.*]*[a-zA-Z]|\{[^{}]*\}|\$\{[^}]*\}|\$\([^)]*\)|\$\w+")


class LastPrint(NamedTuple):
    """A statement, by its file and row, and the line of the log that it printed."""

    line: int
    file: JobFile
    row: int


class _Printed(NamedTuple):
    file: JobFile
    row: int
    parts: tuple[str, ...]

    def is_in(self, text: str) -> bool:
        """Tell whether a text has the parts in their order; the first place of each does, if any does."""
        place = 0
        for part in self.parts:
            place = text.find(part, place)
            if place < 0:
                return False
            place += len(part)
        return True


def last_print(report: CrashReport, files: Sequence[JobFile]) -> LastPrint | None:
    """Find the last line that one statement alone of the job's files prints; None where none is such."""
    forms = [form for file in files for form in _printed(file)][:MOST]
    for number, text in reversed(report.tail[-LOOKED_AT:]):
        said = message_of(text)
        found = [each for each in forms if each.is_in(said)]
        if len(found) == 1:
            return LastPrint(number, found[0].file, found[0].row)
    return None


def _printed(file: JobFile) -> Iterator[_Printed]:
    if file.name.endswith(CODE):
        tree = parsed(file.text)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Call) and _name(node.func) in _PRINTS and node.args:
                form = _form("".join(_pieces(node.args[0])))
                if form is not None:
                    yield _Printed(file, node.end_lineno or node.lineno, form)
    elif file.name.endswith((".sh", ".slurm", ".sbatch", ".bash")):
        for row, text in enumerate(file.text.split("\n"), 1):
            if (echo := _ECHO.match(text)) and (
                form := _form(_VALUE.sub("\0", echo["text"].strip().strip("'\"")))
            ):
                yield _Printed(file, row, form)


def _name(called: ast.expr) -> str:
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""


def _pieces(node: ast.expr) -> Iterator[str]:
    """Yield the texts of an expression in their order, a NUL for each value between them."""
    match node:
        case ast.Constant(value=str(text)):
            yield _VALUE.sub("\0", text)
        case ast.JoinedStr(values=values):
            for value in values:
                is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
                yield str(value.value) if is_text and isinstance(value, ast.Constant) else "\0"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _pieces(left)
            yield from _pieces(right)
        case ast.BinOp(left=left, op=ast.Mod()):
            yield from _pieces(left)
        case ast.Call(func=ast.Attribute(value=text, attr="format")):
            yield from _pieces(text)
        case _:
            yield "\0"


def _form(text: str) -> tuple[str, ...] | None:
    """Give what finds a printed text: the parts of its longest row between values, which may be anything."""
    row = max(text.split("\n"), key=len).strip()
    if sum(sign.isalpha() for sign in row) < LETTERS:
        return None
    return tuple(filter(None, row.split("\0")))
