"""Choices that a program refuses: it compares them with those that it knows, and raises."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ingest.source_code.guarded_statement import GuardedStatement
from ingest.source_code.names_read import name_of

_HOLDER = re.compile(
    r"(?:^|[._])(?:args|opts?|options|cfg|conf|config|params|hparams|settings|flags)$", re.IGNORECASE
)


@dataclass(frozen=True)
class RefusedChoice:
    """A name that was none of the texts it was compared with; `choices` are those that the code has."""

    name: str
    choices: tuple[str, ...]


def refused_choices(raised: GuardedStatement) -> tuple[RefusedChoice, ...]:
    """Give the names that were compared with texts before a statement raised, and were none of them.

    `if kind == "a": ... elif kind == "b": ... else: raise`, and `if kind not in ("a", "b"): raise`.
    """
    found: dict[str, list[str]] = {}
    for condition in raised.conditions if raised.raises else ():
        test, holds = condition.expression, condition.holds
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, holds = test.operand, not holds
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            continue
        sign, other = test.ops[0], _followed(test.comparators[0], raised)
        differs = isinstance(sign, ast.Eq | ast.In) if not holds else isinstance(sign, ast.NotEq | ast.NotIn)
        if differs and _is_choice(other) and (name := name_of(test.left, raised.assigned)):
            found.setdefault(name, []).extend(_texts(other))
    # The nearest condition stands first, as the last branch does.
    return tuple(RefusedChoice(name, tuple(dict.fromkeys(texts[::-1]))) for name, texts in found.items())


def is_option(name: str) -> bool:
    """Tell whether a name is one of options: of two words or more, or held by what holds options."""
    holder, _, last = name.rpartition(".")
    return "_" in last or _HOLDER.search(holder) is not None


def _followed(part: ast.expr, raised: GuardedStatement) -> ast.expr:
    return raised.assigned.get(part.id, part) if isinstance(part, ast.Name) else part


def _is_choice(part: ast.expr) -> bool:
    """Tell whether an expression is a text, a list of them, or a member of an enumeration."""
    if isinstance(part, ast.List | ast.Tuple | ast.Set):
        return bool(part.elts) and all(map(_is_choice, part.elts))
    if isinstance(part, ast.Attribute):
        return part.attr.isupper() and isinstance(part.value, ast.Name)
    return isinstance(part, ast.Constant) and isinstance(part.value, str)


def _texts(part: ast.expr) -> list[str]:
    """Give the texts among choices, the last first."""
    parts = part.elts[::-1] if isinstance(part, ast.List | ast.Tuple | ast.Set) else [part]
    return [each.value for each in parts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
