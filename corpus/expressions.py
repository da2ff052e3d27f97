"""The small language of values: arithmetic, comparisons and named operators, written as in Python.

An expression is checked where it is written; its evaluation lives with what the operators look at. What is
not known is missing: so is an expression with a missing part, unless an operator says otherwise.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

# Evaluates the arguments of an operator itself, one by one, as some of them may be missing.
Operator = Callable[[tuple[Callable[[], object], ...]], object]

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARING: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_NODES = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Call, ast.IfExp, ast.Compare, ast.BoolOp,
    ast.And, ast.Or,
    ast.BinOp, ast.UnaryOp, ast.USub, ast.Not, *_BINARY, *_COMPARING,
)  # fmt: skip


class MissingError(Exception):
    """Something that an expression needs is not known."""


@lru_cache(maxsize=2048)
def parse_expression(text: str) -> ast.expr:
    """Parse one expression; raises ValueError where it is none or uses more than this language has."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{text!r} is no expression: {error.msg}") from error
    for node in ast.walk(tree):
        named = not isinstance(node, ast.Call) or (isinstance(node.func, ast.Name) and not node.keywords)
        if not isinstance(node, _NODES) or not named:
            raise ValueError(f"{text!r}: {type(node).__name__} is no part of an expression")
    return tree.body


def names_of(text: str) -> frozenset[str]:
    """Give the names and operators that an expression uses."""
    return frozenset(node.id for node in ast.walk(parse_expression(text)) if isinstance(node, ast.Name))


def evaluate(text: str, names: Mapping[str, object], operators: Mapping[str, Operator]) -> object | None:
    """Give the expression's value; None where a part of it is missing, such as a division by nothing."""
    try:
        return _value(parse_expression(text), names, operators)
    except (MissingError, ZeroDivisionError):
        return None


def _value(node: ast.expr, names: Mapping[str, object], operators: Mapping[str, Operator]) -> object:
    """Evaluate a part; raises MissingError where it is missing."""

    def value(part: ast.expr) -> Any:
        return _value(part, names, operators)

    made: object = None
    if isinstance(node, ast.Constant):
        made = node.value
    elif isinstance(node, ast.Name):
        made = names.get(node.id)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        made = operators[node.func.id](tuple(partial(value, part) for part in node.args))
    elif isinstance(node, ast.IfExp):
        made = value(node.body if value(node.test) else node.orelse)
    else:
        made = _combined(node, value)
    if made is None:
        raise MissingError
    return made


def _combined(node: ast.expr, value: Callable[[ast.expr], Any]) -> object:
    """Evaluate a part that joins others by a sign or a word."""
    match node:
        case ast.BinOp():
            return _BINARY[type(node.op)](value(node.left), value(node.right))
        case ast.UnaryOp():
            return not value(node.operand) if isinstance(node.op, ast.Not) else -value(node.operand)
        case ast.BoolOp():
            is_all = isinstance(node.op, ast.And)
            return next((found for part in node.values if bool(found := value(part)) is not is_all), is_all)
        case ast.Compare():
            parts = [node.left, *node.comparators]
            return all(
                _COMPARING[type(op)](value(left), value(right))
                for left, op, right in zip(parts, node.ops, parts[1:], strict=False)
            )
    return None
