"""Values and types out of Python source: constants, class fields, annotations; nothing is run."""

from __future__ import annotations

import ast
import contextlib
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

_DEEPEST = 12
_LARGEST_POWER = 64


class Unknown:
    """The value of an expression that only running the program would tell."""


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Field:
    """One annotated attribute of a class."""

    name: str
    annotation: ast.expr
    default: ast.expr | None


@dataclass(frozen=True)
class Source:
    """The modules of a framework that were read, by name what they define."""

    modules: tuple[ast.Module, ...]
    constants: Mapping[str, ast.expr]
    classes: Mapping[str, ast.ClassDef]


def parsed(texts: Mapping[str, str]) -> Source:
    """Parse modules; one that this Python cannot parse is left out."""
    modules: list[ast.Module] = []
    for text in texts.values():
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):
            modules.append(ast.parse(text))
    constants: dict[str, ast.expr] = {}
    classes: dict[str, ast.ClassDef] = {}
    for module in modules:
        constants.update(_assigned(module.body))
        classes.update({node.name: node for node in ast.walk(module) if isinstance(node, ast.ClassDef)})
    return Source(tuple(modules), constants, classes)


def nodes(source: Source) -> Iterator[ast.AST]:
    """Walk through the nodes of all modules."""
    return chain.from_iterable(map(ast.walk, source.modules))


def _assigned(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for node in body:
        if isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value


def base_names(node: ast.ClassDef) -> list[str]:
    """Give the last words of a class's bases."""
    return [last_word(base) for base in node.bases]


def last_word(node: ast.expr) -> str:
    """Give `C` for `C`, `a.b.C` and `C[T]`; the empty string for anything else."""
    if isinstance(node, ast.Subscript):
        return last_word(node.value)
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def fields_of(name: str, source: Source, depth: int = 0) -> dict[str, Field]:
    """Give the annotated attributes of a class, those of its known bases first."""
    node = source.classes.get(name)
    if node is None or depth > _DEEPEST:
        return {}
    found: dict[str, Field] = {}
    for base in reversed(base_names(node)):
        if base != name:
            found.update(fields_of(base, source, depth + 1))
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            found[item.target.id] = Field(item.target.id, item.annotation, item.value)
    return found


def members(name: str, source: Source) -> list[Any] | None:
    """Give the values of an enumeration's members; None where `name` is no enumeration."""
    node = source.classes.get(name)
    if node is None or not any(base.endswith(("Enum", "IntFlag")) for base in base_names(node)):
        return None
    values = [value(expression, source) for _, expression in _assigned(node.body)]
    return [one for one in values if isinstance(one, bool | int | float | str)]


def value(node: ast.expr | None, source: Source, depth: int = 0) -> Any:
    """Give the value of an expression of constants, or UNKNOWN."""
    if node is None or depth > _DEEPEST:
        return UNKNOWN
    handler = _HANDLERS.get(type(node))
    return handler(node, source, depth + 1) if handler else UNKNOWN


def _unary(node: ast.UnaryOp, source: Source, depth: int) -> Any:
    inner = value(node.operand, source, depth)
    if isinstance(node.op, ast.USub) and isinstance(inner, int | float):
        return -inner
    return inner if isinstance(node.op, ast.UAdd) else UNKNOWN


_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}


def _arithmetic(node: ast.BinOp, source: Source, depth: int) -> Any:
    left, right = value(node.left, source, depth), value(node.right, source, depth)
    act = _ARITHMETIC.get(type(node.op))
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if (
        act is None
        or not numbers
        or (isinstance(node.op, ast.Pow | ast.LShift) and abs(right) > _LARGEST_POWER)
    ):
        return UNKNOWN
    try:
        return act(left, right)
    except (ArithmeticError, TypeError, ValueError):
        return UNKNOWN


def _sequence(node: ast.List | ast.Tuple, source: Source, depth: int) -> Any:
    items = [value(item, source, depth) for item in node.elts]
    return items if all(isinstance(item, bool | int | float | str) for item in items) else UNKNOWN


def _attribute(node: ast.Attribute, source: Source, depth: int) -> Any:
    if node.attr == "value" and isinstance(node.value, ast.Attribute):
        return _attribute(node.value, source, depth)
    owner = source.classes.get(last_word(node.value))
    if owner is None:
        return value(source.constants.get(node.attr), source, depth)
    field = fields_of(owner.name, source).get(node.attr)
    return value(field.default if field else dict(_assigned(owner.body)).get(node.attr), source, depth)


def keyword(node: ast.Call, name: str) -> ast.expr | None:
    """Give the expression of a keyword argument."""
    return next((word.value for word in node.keywords if word.arg == name), None)


def _field(node: ast.Call, source: Source, depth: int) -> Any:
    """Read `field(default=...)` of dataclasses and `Field(...)` of pydantic."""
    default = keyword(node, "default") or (node.args[0] if node.args else None)
    factory = keyword(node, "default_factory")
    if factory is None:
        return value(default, source, depth)
    if isinstance(factory, ast.Lambda):
        return value(factory.body, source, depth)
    return [] if last_word(factory) in ("list", "tuple") else UNKNOWN


def _first(node: ast.Call, source: Source, depth: int) -> Any:
    return value(node.args[0], source, depth) if node.args else UNKNOWN


def _whole(node: ast.Call, source: Source, depth: int) -> Any:
    number = _first(node, source, depth)
    return int(number) if isinstance(number, int | float) and abs(number) < 10**18 else UNKNOWN


def _class_field(node: ast.Call, source: Source, depth: int) -> Any:
    """Read `get_field(Class, "name")`."""
    name = value(node.args[1], source, depth) if len(node.args) > 1 else None
    field = fields_of(last_word(node.args[0]), source).get(str(name)) if node.args else None
    return value(field.default if field else None, source, depth)


_CALLS: dict[str, Callable[[ast.Call, Source, int], Any]] = {
    "field": _field,
    "Field": _field,
    "int": _whole,
    "pp_int": _whole,
    "get_field": _class_field,
    "float": _first,
}
_HANDLERS: dict[type, Callable[[Any, Source, int], Any]] = {
    ast.Constant: lambda node, _source, _depth: (
        node.value if node.value is None or isinstance(node.value, bool | int | float | str) else UNKNOWN
    ),
    ast.UnaryOp: _unary,
    ast.BinOp: _arithmetic,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Name: lambda node, source, depth: value(source.constants.get(node.id), source, depth),
    ast.Attribute: _attribute,
    ast.Call: lambda node, source, depth: (
        handler(node, source, depth) if (handler := _CALLS.get(last_word(node.func))) else UNKNOWN
    ),
}
