"""Settings that Python source reads from environment variables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any

from corpus.extract.annotations import shape
from corpus.extract.declarations import Declaration, Kind, kind_of
from corpus.extract.expressions import UNKNOWN, Source, last_word, nodes, value

_NAME = re.compile(r"[A-Z][A-Za-z0-9_]{2,79}")
# Functions that read a variable, and the type they make of it; "any" where the default tells it.
_READERS: dict[str, Kind] = {
    "getenv": "any",
    "get": "any",
    "pop": "any",
    "setdefault": "any",
    "get_bool_env_var": "bool",
    "get_int_env_var": "int",
    "env_bool": "bool",
    "env_int": "int",
    "env_float": "float",
    "env_integer": "int",
    "env_with_choices": "any",
    "get_env": "any",
    "maybe_convert_bool": "bool",
    "parse_flag_from_env": "bool",
    "get_env_variable": "any",
}
_ENVIRONMENTS = frozenset({"environ", "env"})
_FIELDS: dict[str, Kind] = {
    "EnvBool": "bool",
    "EnvInt": "int",
    "EnvFloat": "float",
    "EnvStr": "str",
    "EnvTuple": "list",
    "EnvBoolWithAlias": "bool",
}
_ON_OFF = frozenset({"0", "1", "true", "false", "True", "False"})


def read(source: Source, wanted: Sequence[str]) -> Iterator[Declaration]:
    """Give the variables whose names match one of `wanted`; declared ones before those only read."""
    declared: dict[str, Declaration] = {}
    for row in (*_typed(source), *_fields(source)):
        declared.setdefault(row.key, row)
    for row in _reads(source):
        declared.setdefault(row.key, replace(row, declared=False))
    yield from (row for row in declared.values() if any(fnmatchcase(row.key, pattern) for pattern in wanted))


def _typed(source: Source) -> Iterator[Declaration]:
    """Read `if TYPE_CHECKING: NAME: type = default`, as modules write that compute their attributes."""
    statements = chain.from_iterable(module.body for module in source.modules)
    blocks = (
        block
        for block in statements
        if isinstance(block, ast.If) and last_word(block.test) == "TYPE_CHECKING"
    )
    for node in chain.from_iterable(block.body for block in blocks):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and _NAME.fullmatch(node.target.id)
        ):
            found, default = shape(node.annotation, source), value(node.value, source)
            known = None if default is UNKNOWN else default
            annotated = Declaration(
                node.target.id, kind_of(known) if found.type == "any" else found.type, known, found.choices
            )
            yield annotated


def _fields(source: Source) -> Iterator[Declaration]:
    """Read classes of descriptors: `NAME = EnvBool(False)`."""
    for node in chain.from_iterable(owner.body for owner in source.classes.values()):
        if (
            not isinstance(node, ast.Assign)
            or not isinstance(node.value, ast.Call)
            or not isinstance(node.targets[0], ast.Name)
        ):
            continue
        kind = _FIELDS.get(last_word(node.value.func))
        if kind:
            default = value(node.value.args[0], source) if node.value.args else None
            yield Declaration(node.targets[0].id, kind, None if default is UNKNOWN else default)


def _reads(source: Source) -> Iterator[Declaration]:
    for node in nodes(source):
        if isinstance(node, ast.Call):
            yield from _read(node, source)
        elif isinstance(node, ast.Subscript) and last_word(node.value) == "environ":
            name = value(node.slice, source)
            if isinstance(name, str) and _NAME.fullmatch(name):
                yield Declaration(name)


def _read(node: ast.Call, source: Source) -> Iterator[Declaration]:
    word = last_word(node.func)
    owner = last_word(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if (
        word not in _READERS
        or not node.args
        or (word in ("get", "pop", "setdefault") and owner not in _ENVIRONMENTS)
    ):
        return
    name = value(node.args[0], source)
    if isinstance(name, str) and _NAME.fullmatch(name):
        default = value(node.args[1], source) if len(node.args) > 1 else None
        yield _made(name, _READERS[word], None if default is UNKNOWN else default)


def _made(name: str, kind: Kind, default: Any) -> Declaration:
    """Type a variable by what it is when unset: text of digits is a number, `true` a switch, `0` either."""
    if kind == "bool":
        return Declaration(
            name, "bool", str(default).lower() in ("1", "true") if default is not None else None
        )
    if not isinstance(default, str):
        return Declaration(name, kind_of(default) if kind == "any" else kind, default)
    if default.lower() in ("true", "false"):
        return Declaration(name, "bool", default.lower() == "true")
    if re.fullmatch(r"-?\d{1,18}", default) and default not in _ON_OFF:
        return Declaration(name, "int", int(default))
    return Declaration(name, "any" if default in _ON_OFF or not default else "str", default or None)
