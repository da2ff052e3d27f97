"""What a type annotation says of a setting: its type, its choices, or the class whose settings it holds."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from corpus.extract.declarations import Kind
from corpus.extract.expressions import Source, last_word, members, value
from corpus.schema import Scalar

_PLAIN: dict[str, Kind] = {
    "bool": "bool",
    "StrictBool": "bool",
    "int": "int",
    "PositiveInt": "int",
    "NonNegativeInt": "int",
    "float": "float",
    "PositiveFloat": "float",
    "NonNegativeFloat": "float",
    "str": "str",
    "Path": "str",
    "PathLike": "str",
    "list": "list",
    "List": "list",
    "tuple": "list",
    "Tuple": "list",
    "Sequence": "list",
    "set": "list",
    "Set": "list",
}
_WRAPPERS = frozenset({"Optional", "Annotated", "A", "SkipValidation", "Final", "InitVar"})
_DEEPEST = 8


@dataclass(frozen=True)
class SettingType:
    """A setting's type; `nested` names a class whose fields are settings themselves."""

    type: Kind = "any"
    choices: tuple[Scalar, ...] = ()
    nested: str = ""


def shape(node: ast.expr | None, source: Source, depth: int = 0) -> SettingType:
    """Read an annotation; one that cannot be read says `any`."""
    if node is None or depth > _DEEPEST:
        return SettingType()
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            quoted = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return SettingType()
        return shape(quoted, source, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([node.left, node.right], source, depth)
    if isinstance(node, ast.Subscript):
        return _subscript(node, source, depth)
    return _named(node, source, depth)


def _subscript(node: ast.Subscript, source: Source, depth: int) -> SettingType:
    word, inner = last_word(node.value), node.slice
    if word == "Literal":
        found = value(inner if isinstance(inner, ast.Tuple) else ast.List([inner], ast.Load()), source)
        return SettingType("enum", tuple(found)) if isinstance(found, list) else SettingType()
    if word == "Union" and isinstance(inner, ast.Tuple):
        return _union(inner.elts, source, depth)
    if word in _WRAPPERS:
        return shape(inner.elts[0] if isinstance(inner, ast.Tuple) else inner, source, depth + 1)
    return _named(node.value, source, depth)


def _named(node: ast.expr, source: Source, depth: int) -> SettingType:
    word = last_word(node)
    if word in _PLAIN:
        return SettingType(_PLAIN[word])
    choices = members(word, source)
    if choices is not None:
        return SettingType("enum", tuple(choices))
    if word in source.classes:
        return SettingType(nested=word)
    return shape(source.constants.get(word), source, depth + 1)


def _union(parts: list[ast.expr], source: Source, depth: int) -> SettingType:
    kept = [part for part in parts if not (isinstance(part, ast.Constant) and part.value is None)]
    shapes = [shape(part, source, depth + 1) for part in kept]
    kinds = {one.type for one in shapes}
    nested = [one for one in shapes if one.nested]
    if len(shapes) == 1 or len(nested) == 1:
        return nested[0] if nested else shapes[0]
    if kinds == {"enum"}:
        return SettingType("enum", tuple(dict.fromkeys(choice for one in shapes for choice in one.choices)))
    return SettingType("float" if kinds == {"int", "float"} else "str" if kinds <= {"str", "enum"} else "any")
