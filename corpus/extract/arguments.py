"""Settings declared as command-line arguments with argparse."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain
from typing import Any

from corpus.extract.annotations import shape
from corpus.extract.declarations import Declaration, Kind, Style, kind_of, styled
from corpus.extract.expressions import UNKNOWN, Field, Source, fields_of, keyword, last_word, nodes, value

_TYPES: dict[str, Kind] = {
    "int": "int",
    "nullable_int": "int",
    "human_readable_int": "int",
    "float": "float",
    "str": "str",
    "bool": "bool",
    "str2bool": "bool",
    "str_to_bool": "bool",
    "strtobool": "bool",
    "nullable_str": "str",
    "Path": "str",
}
_ACTIONS: dict[str, tuple[Kind, Any]] = {
    "store_true": ("bool", False),
    "store_false": ("bool", False),
    "append": ("list", None),
    "extend": ("list", None),
    "count": ("int", 0),
    "BooleanOptionalAction": ("bool", None),
    "StoreBoolean": ("bool", None),
    "check_env": ("any", None),
}
_NEGATABLE = "BooleanOptionalAction"


def read(source: Source, style: Style) -> Iterator[Declaration]:
    """Give every argument that the modules declare."""
    tables = _tables(source)
    for node in nodes(source):
        if not isinstance(node, ast.Call):
            continue
        if last_word(node.func) == "add_argument":
            yield from _argument(node, source, tables, style)
        elif last_word(node.func) == "ArgumentGroupFactory" and node.args:
            yield from _group(node, source, style)


def _tables(source: Source) -> dict[str, str]:
    """Give the variables that hold the arguments of a class's fields: `x = get_kwargs(Class)`."""
    return {
        target.id: last_word(node.value.args[0])
        for node in nodes(source)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and last_word(node.value.func) == "get_kwargs"
        and node.value.args
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _argument(node: ast.Call, source: Source, tables: dict[str, str], style: Style) -> Iterator[Declaration]:
    names = [
        found for arg in node.args if isinstance(found := value(arg, source), str) and found.startswith("-")
    ]
    long = [name for name in names if name.startswith("--")]
    if not long:
        return
    field = _from_class(node, source, tables)
    made = _from_field(field, source) if field else _from_words(node, source)
    key, *others = [styled(name, style) for name in long]
    short = [name for name in names if not name.startswith("--")] if style == "flag" else []
    yield Declaration(
        key=key, spellings=tuple(dict.fromkeys(name for name in (*others, *short) if name != key)), **made
    )
    action = keyword(node, "action")
    if style == "flag" and (
        made["type"] == "bool" if field else action is not None and last_word(action) == _NEGATABLE
    ):
        yield Declaration(key=f"--no-{key.removeprefix('--')}", type="bool")


def _from_class(node: ast.Call, source: Source, tables: dict[str, str]) -> Field | None:
    """Find the field behind `**table["field"]`."""
    for item in chain.from_iterable(map(_spread, node.keywords)):
        if isinstance(item, ast.Subscript) and isinstance(item.value, ast.Name):
            owner = tables.get(item.value.id, "")
            return fields_of(owner, source).get(str(value(item.slice, source)))
    return None


def _spread(word: ast.keyword) -> list[ast.expr]:
    """Give what `**` spreads into a call, that inside `**{**table["field"], "more": ...}` too."""
    if word.arg is not None:
        return []
    inner = word.value
    return (
        [item for key, item in zip(inner.keys, inner.values, strict=True) if key is None]
        if isinstance(inner, ast.Dict)
        else [inner]
    )


def _from_field(field: Field, source: Source) -> dict[str, Any]:
    found, default = shape(field.annotation, source), value(field.default, source)
    known = None if default is UNKNOWN else default
    return {
        "type": kind_of(known) if found.type == "any" else found.type,
        "default": known,
        "choices": found.choices,
    }


def _from_words(node: ast.Call, source: Source) -> dict[str, Any]:
    action = keyword(node, "action")
    act = value(action, source) if isinstance(action, ast.Constant) else last_word(action) if action else ""
    kind, default = _ACTIONS.get(str(act), ("any", None))
    given = value(keyword(node, "default"), source)
    choices = value(keyword(node, "choices"), source)
    known = tuple(choices) if isinstance(choices, list) else ()
    kind = kind if kind != "any" else _typed(node, source, given, bool(known))
    # `store_false` keeps the default of what it switches, not of the flag, which is absent by default.
    default = default if given is UNKNOWN or act == "store_false" else given
    return {"type": kind, "default": default, "choices": known}


def _typed(node: ast.Call, source: Source, default: Any, chosen: bool) -> Kind:
    repeated = value(keyword(node, "nargs"), source)
    if repeated in ("+", "*") or (isinstance(repeated, int) and not isinstance(repeated, bool)):
        return "list"
    declared = keyword(node, "type")
    unseen = any(word.arg is None for word in node.keywords)
    kind = _TYPES.get(last_word(declared), "any") if declared is not None else "any" if unseen else "str"
    if chosen and kind in ("str", "any"):
        return "enum"
    # An argument without a type is text, unless its default is of another type.
    return (
        kind_of(default) if kind == "any" or (declared is None and default not in (None, UNKNOWN)) else kind
    )


def _group(node: ast.Call, source: Source, style: Style) -> Iterator[Declaration]:
    """Read a factory that makes an argument of each field; a switch that is on by default gets `--no-`."""
    left_out = value(keyword(node, "exclude"), source)
    skipped = set(left_out) if isinstance(left_out, list) else set()
    for field in fields_of(last_word(node.args[0]), source).values():
        if field.name in skipped or field.name.startswith("_"):
            continue
        made = _from_field(field, source)
        names = _group_names(field, source) or [field.name]
        if made["type"] == "bool" and made["default"] is True:
            names, made = (
                [f"no_{names[0].lstrip('-')}", f"disable_{names[0].lstrip('-')}"],
                {"type": "bool", "default": False},
            )
        key, *others = [
            styled(name.replace("_", "-") if name.startswith("--") else name, style) for name in names
        ]
        yield Declaration(key=key, spellings=tuple(others), **made)


def _group_names(field: Field, source: Source) -> list[str]:
    """Find the names that a field's metadata gives to its argument."""
    tables = (
        (node for node in ast.walk(field.default) if isinstance(node, ast.Dict))
        if field.default is not None
        else ()
    )
    pairs = (pair for table in tables for pair in zip(table.keys, table.values, strict=True))
    named = next(
        (item for key, item in pairs if isinstance(key, ast.Constant) and key.value == "arg_names"), None
    )
    found = value(named, source)
    return found if isinstance(found, list) else []
