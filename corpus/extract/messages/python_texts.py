"""What Python source says in a string, and which names an expression reads; nothing is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from corpus.extract.messages.sites import Pieces

# A message that is put together in branches has several texts; so many are followed.
_MOST_TEXTS = 4
_DEEPEST = 6
_PERCENT = re.compile(r"%(?:\(\w+\))?[-#0 +]*(?:\d+|\*)?(?:\.(?:\d+|\*))?[diouxXeEfFgGcrsa]")
_BRACES = re.compile(r"\{[^{}]*\}")
_WRAPPERS = frozenset({"dedent", "cleandoc", "strip", "_", "str", "fill", "colored"})
# Objects that hold settings: what hangs on them is a setting, they themselves are none.
_HOLDERS = frozenset(
    ["self", "cls", "args", "kwargs", "config", "cfg", "conf", "opts", "options", "envs", "os", "environ"]
)
_READERS = frozenset({"get", "getenv", "getattr", "pop", "select", "hasattr"})


@dataclass
class Scope:
    """The function around a statement: what its names were given, and which are its arguments."""

    node: ast.AST
    outer: Scope | None = None
    constants: dict[str, list[ast.expr]] = field(default_factory=dict)

    @cached_property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """Every expression that a name was given, in order."""
        found: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.node):
            if isinstance(node, ast.Assign):
                targets, value = node.targets, node.value
            elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
                targets, value = [node.target], node.value
            else:
                continue
            for target in targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(value)
        return found

    @cached_property
    def arguments(self) -> frozenset[str]:
        """The names of the function's arguments."""
        if not isinstance(self.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return frozenset()
        given = self.node.args
        return frozenset(one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs))

    def values(self, name: str) -> list[ast.expr]:
        """Give what a name was given in the function, or else in the module."""
        return self.assigned.get(name) or self.constants.get(name, [])


def texts(node: ast.expr | None, scope: Scope, depth: int = 0) -> list[Pieces]:
    """Give the texts that an expression may have; of what is no string, one hole."""
    if node is None or depth > _DEEPEST:
        return [[None]]
    if isinstance(node, ast.Constant):
        return [[node.value]] if isinstance(node.value, str) else [[None]]
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
        return [[part if isinstance(part, str) else None for part in parts]]
    if isinstance(node, ast.BinOp):
        return _operated(node, scope, depth)
    if isinstance(node, ast.Call):
        return _called(node, scope, depth)
    if isinstance(node, ast.IfExp):
        return [*texts(node.body, scope, depth + 1), *texts(node.orelse, scope, depth + 1)][:_MOST_TEXTS]
    if isinstance(node, ast.Name):
        values = scope.values(node.id)[-_MOST_TEXTS:]
        found = [text for value in values for text in texts(value, scope, depth + 2)]
        return [text for text in found if any(text)][:_MOST_TEXTS] or [[None]]
    return [[None]]


def _operated(node: ast.BinOp, scope: Scope, depth: int) -> list[Pieces]:
    left = texts(node.left, scope, depth + 1)
    if isinstance(node.op, ast.Mod):
        return [_parted(text, _PERCENT) for text in left]
    if isinstance(node.op, ast.Add):
        right = texts(node.right, scope, depth + 1)
        return [[*one, *other] for one, other in product(left, right)][:_MOST_TEXTS]
    return [[None]]


def _called(node: ast.Call, scope: Scope, depth: int) -> list[Pieces]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "format" and isinstance(node.func, ast.Attribute):
        return [_parted(text, _BRACES) for text in texts(node.func.value, scope, depth + 1)]
    if name == "join" and node.args and isinstance(node.args[0], (ast.List, ast.Tuple)):
        between: Pieces = [" "]
        options = [texts(item, scope, depth + 1)[0] for item in node.args[0].elts]
        return [[piece for option in options for piece in (*option, *between)]]
    if name in _WRAPPERS and (node.args or isinstance(node.func, ast.Attribute)):
        inner = node.args[0] if node.args else getattr(node.func, "value", None)
        return texts(inner, scope, depth + 1)
    return [[None]]


def percent_parted(text: Pieces) -> Pieces:
    """Put holes where a format of the old kind, as loggers take it, has its fields."""
    return _parted(text, _PERCENT)


def _parted(text: Pieces, fields: re.Pattern[str]) -> Pieces:
    found: Pieces = []
    for part in text:
        if part is None:
            found.append(None)
            continue
        first, *others = fields.split(part)
        found.append(first)
        for other in others:
            found += [None, other]
    return found


def names_read(node: ast.expr | None, scope: Scope, depth: int = 0) -> Iterator[str]:
    """Give the settings, arguments and variables that an expression reads, as `config.actor.lr`.

    A local name stands for what it was computed from.
    """
    if node is None or depth > 3:
        return
    name = dotted(node)
    if name and isinstance(node, ast.Name):
        if name in scope.arguments:
            yield name
        for value in scope.values(name)[-1:]:
            yield from names_read(value, scope, depth + 1)
        return
    if name:
        kept = _settings_part(name)
        if kept:
            yield kept
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from names_read(child, scope, depth)
        elif isinstance(child, (ast.keyword, ast.comprehension)):
            yield from names_read(child.value if isinstance(child, ast.keyword) else child.iter, scope, depth)


def dotted(node: ast.expr) -> str:
    """Give an access by name, index or getter as a dotted name; the empty string for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    if isinstance(node, ast.Subscript):
        inner = dotted(node.value)
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return f"{inner}.{key}" if inner and isinstance(key, str) else ""
    if isinstance(node, ast.Call):
        return _name_looked_up(node)
    return ""


def _name_looked_up(node: ast.Call) -> str:
    """Give what `x.get("y")`, `getattr(x, "y")` and `os.getenv("Y")` read."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in _READERS or not node.args:
        return ""
    key = node.args[-1] if name in ("getattr", "hasattr") and len(node.args) == 2 else node.args[0]
    if name in ("getattr", "hasattr", "select") and len(node.args) > 1:
        key = node.args[1]
    if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
        return ""
    holder = node.args[0] if name in ("getattr", "hasattr", "select") else getattr(node.func, "value", None)
    inner = dotted(holder) if holder is not None else "os"
    return f"{inner}.{key.value}" if inner else ""


def _settings_part(name: str) -> str:
    """Give the part of a dotted name that may name a setting: what hangs on a holder of settings."""
    levels = name.split(".")
    while len(levels) > 1 and (levels[0] in _HOLDERS or levels[0].startswith("_")):
        levels.pop(0)
    last = levels[-1].strip("_")
    is_told = len(last) > 3 and re.fullmatch(r"[A-Za-z][\w-]{2,60}", last) and last not in _HOLDERS
    return ".".join(level.strip("_") for level in levels[-3:]) if is_told else ""
