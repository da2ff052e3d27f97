"""The project's own modules as syntax trees: rules that hold for all code are tested on them.

All of them are parsed once in a process, which takes seconds; tests of such rules run in one process
(`tests/order.py`).
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
FOLDERS = ("corpus", "ingest", "service", "eval", "ui", "whycrash")
# What rules are about; what most of a tree consists of, names and operators, is in none of them.
_KINDS = (
    ast.AsyncFunctionDef,
    ast.Call,
    ast.ClassDef,
    ast.Constant,
    ast.FunctionDef,
    ast.Import,
    ast.ImportFrom,
    ast.JoinedStr,
)


class Module(NamedTuple):
    """A module: its path from the project's folder, its tree, and what of it rules are about, in the order of
    `ast.walk`.
    """

    name: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]

    @property
    def texts(self) -> Iterator[tuple[int, str]]:
        """Give the line of each literal text, and the text."""
        for node in self.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.lineno, node.value


@cache
def _all_modules() -> tuple[Module, ...]:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    trees = [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths]
    made = tuple(
        Module(
            path.relative_to(ROOT).as_posix(),
            tree,
            tuple(node for node in ast.walk(tree) if isinstance(node, _KINDS)),
        )
        for path, tree in trees
    )
    gc.freeze()  # hundreds of thousands of nodes that stay
    return made


def modules(*folders: str) -> list[Module]:
    """Give the modules below some folders, or all; a folder may also be one of these folders' own."""
    if not folders:
        return list(_all_modules())
    return [module for module in _all_modules() if module.name.startswith(tuple(f"{f}/" for f in folders))]
