"""A text of Python code with its syntax tree, and where each node stands in it."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from ingest.configfiles.settings import TextEdit
from ingest.logs.stacks.code_rows import closing_brackets

# Code that is longer is data.
LONGEST = 400_000
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_COMMENT = re.compile(r"\s+#[^'\"]*$")


@lru_cache(maxsize=256)
def parsed(text: str) -> ast.Module | None:
    """Parse code; None for what is none."""
    if len(text) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            # What the code of others is warned of is none of ours.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class Fault(NamedTuple):
    """The row at which a parser stops, from 1, and what it says."""

    line: int
    message: str


@lru_cache(maxsize=64)
def fault(text: str) -> Fault | None:
    """Tell where code ceases to be some, and why; None where Python takes it, or nothing tells.

    What a parser lets pass, such as a `return` outside of a function, the compiler refuses; neither runs it.
    """
    if len(text) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<file>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return Fault(error.lineno, error.msg) if error.lineno else None
    except (ValueError, RecursionError, MemoryError):
        pass
    return None


def expression(text: str) -> ast.expr | None:
    """Parse one expression."""
    tree = parsed(f"({text}\n)")
    first = tree.body[0] if tree and len(tree.body) == 1 else None
    return first.value if isinstance(first, ast.Expr) else None


@dataclass(frozen=True)
class SourceText:
    """Code and its tree; what stands behind `limit` was only added so that it parses."""

    text: str
    tree: ast.Module
    limit: int

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(place.end() for place in re.finditer("\n", self.text))]

    def _offset(self, line: int, column: int) -> int:
        """Give the place of a row and a column as the parser tells them, which counts a row's bytes."""
        begin = self._starts[line - 1]
        if self.text.isascii():
            return begin + column
        end = self._starts[line] if line < len(self._starts) else len(self.text)
        return begin + len(self.text[begin:end].encode()[:column].decode("utf-8", "ignore"))

    def start(self, node: ast.AST) -> int:
        """Give the offset in the text at which a node begins."""
        return self._offset(getattr(node, "lineno", 1), getattr(node, "col_offset", 0))

    def end(self, node: ast.AST) -> int:
        """Give the offset behind a node's last character; of a node without a place, the text's end."""
        line, column = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
        return len(self.text) if line is None or column is None else self._offset(line, column)

    def source(self, node: ast.AST) -> str:
        """Give a node as it is written."""
        return self.text[self.start(node) : self.end(node)]

    def is_placed(self, node: ast.AST) -> bool:
        """Tell whether an expression really stands where the tree says; of parts of f-strings few do."""
        if self.end(node) > self.limit:
            return False
        if not isinstance(node, ast.expr):
            return True
        told = expression(self.source(node))
        return told is not None and ast.unparse(told) == ast.unparse(node)

    def row_start(self, line: int) -> int:
        """Give where a row begins."""
        return self._starts[min(line, len(self._starts)) - 1]

    def rows(self) -> list[str]:
        """Give the text's rows."""
        return self.text.split("\n")

    def indent(self, statement: ast.stmt) -> str | None:
        """Give the blanks before a statement; None where it does not begin its row."""
        before = self.text[self.row_start(statement.lineno) : self.start(statement)]
        return before if not before.strip() else None

    def edited(self, edits: list[TextEdit]) -> str:
        """Give the text with edits made."""
        text = self.text
        for edit in sorted(edits, reverse=True):
            text = text[: edit.start] + edit.new + text[edit.end :]
        return text


def whole_source(text: str) -> SourceText | None:
    """Read a file of Python code; None where it does not parse."""
    tree = parsed(text)
    return SourceText(text, tree, len(text)) if tree is not None else None


def printed_source(code: str) -> SourceText | None:
    """Read the row that a traceback quotes: open brackets are closed, a block's head gets a body."""
    row = code.strip()
    for lead, kept in (("elif ", "if "), ("async ", "")):
        if row.startswith(lead):
            row = kept + row.removeprefix(lead)
    bare = _COMMENT.sub("", row).rstrip("\\ ")
    closed = bare + closing_brackets(bare)
    for text in (closed, f"{closed} pass", f"{closed}: pass"):
        tree = parsed(text)
        if tree is not None and tree.body:
            return SourceText(text, tree, len(bare))
    return None


def head_nodes(statement: ast.AST) -> Iterator[ast.AST]:
    """Give a statement and all that it holds but the statements of its blocks."""
    yield statement
    for name, value in ast.iter_fields(statement):
        if name in _BLOCKS and isinstance(statement, ast.stmt):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from head_nodes(child) if not isinstance(child, ast.stmt) else ()


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Give all statements of a tree."""
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.stmt))
