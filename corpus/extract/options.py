"""Settings declared as options of commands with click."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from corpus.extract.declarations import Declaration, Kind, Style, kind_of, styled
from corpus.extract.expressions import UNKNOWN, Source, keyword, last_word, nodes, value

_TYPES: dict[str, Kind] = {
    "int": "int",
    "INT": "int",
    "float": "float",
    "FLOAT": "float",
    "str": "str",
    "STRING": "str",
    "bool": "bool",
}


def read(source: Source, commands: Sequence[str], style: Style) -> Iterator[Declaration]:
    """Give the options of the functions named in `commands`."""
    for node in nodes(source):
        if isinstance(node, ast.FunctionDef) and node.name in commands:
            yield from (
                row for call in node.decorator_list if (row := _option(call, source, style)) is not None
            )


def _option(call: ast.expr, source: Source, style: Style) -> Declaration | None:
    if not isinstance(call, ast.Call) or last_word(call.func) != "option":
        return None
    names = [
        found for arg in call.args if isinstance(found := value(arg, source), str) and found.startswith("--")
    ]
    if not names:
        return None
    key, *others = [styled(name.split("/")[0], style) for name in names]
    default = value(keyword(call, "default"), source)
    known = None if default is UNKNOWN else default
    declared = keyword(call, "type")
    choices: tuple[bool | int | float | str, ...] = ()
    if isinstance(declared, ast.Call) and last_word(declared.func) == "Choice" and declared.args:
        listed = value(declared.args[0], source)
        choices = tuple(listed) if isinstance(listed, list) else ()
    kind: Kind = "any"
    if value(keyword(call, "is_flag"), source) is True:
        kind = "bool"
    elif choices:
        kind = "enum"
    elif declared is not None:
        kind = _TYPES.get(last_word(declared), "any")
    return Declaration(
        key, kind_of(known) if kind == "any" else kind, known, choices, spellings=tuple(others)
    )
