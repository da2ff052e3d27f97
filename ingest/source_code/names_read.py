"""The names that an expression reads, each with the objects that hold it: `config.max_model_len`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from itertools import islice

# How many assignments of a function are followed from a name to what it stands for.
FOLLOWED = 3
# Names of one expression; what reads more is generated.
MOST_NAMES = 24
_BUILT_IN = frozenset(dir(builtins))
_ENVIRONMENT = ("os.environ", "environ")
_BY_KEY = ("get", "getenv", "pop", "getattr", "hasattr")


def names_read(
    expression: ast.expr, assigned: Mapping[str, ast.expr], depth: int = FOLLOWED
) -> Iterator[str]:
    """Give the names of an expression from left to right; a local name is given as what it stands for."""
    name = name_of(expression, assigned)
    if isinstance(expression, ast.Name) and name == expression.id:
        behind = assigned.get(expression.id) if depth else None
        read = list(islice(names_read(behind, assigned, depth - 1), MOST_NAMES)) if behind is not None else []
        yield from read or ([name] if name else [])
    elif name:
        yield name
    elif isinstance(expression, ast.Call):
        if isinstance(expression.func, ast.Attribute):
            yield from names_read(expression.func.value, assigned, depth)
        for part in (*expression.args, *(word.value for word in expression.keywords)):
            yield from names_read(part, assigned, depth)
    elif not isinstance(expression, ast.Lambda):
        for inner in ast.iter_child_nodes(expression):
            if isinstance(inner, ast.expr):
                yield from names_read(inner, assigned, depth)


def name_of(expression: ast.expr, assigned: Mapping[str, ast.expr], depth: int = FOLLOWED) -> str:
    """Give the dotted name that an expression is and nothing else; the empty string for any other."""
    match expression:
        case ast.Name(id=name):
            behind = assigned.get(name) if depth else None
            followed = name_of(behind, assigned, depth - 1) if behind is not None else ""
            return followed or ("" if name in _BUILT_IN else name)
        case ast.Attribute(value=holder, attr=name):
            return _joined(_plain(holder), name)
        case ast.Subscript(value=mapping, slice=ast.Constant(value=str(key))):
            return _keyed(_plain(mapping), key)
        case ast.Call(func=called, args=args):
            return _name_looked_up(called, args)
        case _:
            return ""


def _name_looked_up(called: ast.expr, args: list[ast.expr]) -> str:
    """Give what a call asks a mapping or an object for by its name."""
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    keys = [arg.value for arg in args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    if name not in _BY_KEY or not keys:
        return ""
    if name in ("getattr", "hasattr"):
        return _joined(_plain(args[0]), keys[0])
    return keys[0] if name == "getenv" else _keyed(_plain(getattr(called, "value", called)), keys[0])


def _keyed(owner: str, key: str) -> str:
    if not key.replace("-", "_").isidentifier():
        return ""
    return key if owner in _ENVIRONMENT else _joined(owner, key)


def _plain(owner: ast.expr) -> str:
    """Give an object as it is written, as far as it is a chain of names."""
    return name_of(owner, {}, 0)


def _joined(owner: str, name: str) -> str:
    return f"{owner}.{name}" if owner else ""
