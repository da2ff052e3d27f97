"""Settings declared as fields of dataclasses, pydantic models and structs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from corpus.extract.annotations import SettingType, shape
from corpus.extract.declarations import Declaration, Style, kind_of, styled
from corpus.extract.expressions import UNKNOWN, Field, Source, fields_of, keyword, last_word, value

_DEEPEST = 6


def read(source: Source, roots: Mapping[str, str], style: Style) -> Iterator[Declaration]:
    """Give the fields of the classes that `roots` names, each class with the dotted place of its fields."""
    for pattern, place in roots.items():
        for name in (name for name in source.classes if fnmatchcase(name, pattern)):
            yield from of_class(name, source, place, style)


def of_class(
    name: str, source: Source, place: str = "", style: Style = "as-is", depth: int = 0
) -> Iterator[Declaration]:
    """Give the fields of one class; a field that holds a known class gives that class's fields below it."""
    for field in fields_of(name, source).values():
        marks = [keyword(note, "no_cli") for note in _notes(field)]
        init = keyword(field.default, "init") if isinstance(field.default, ast.Call) else None
        is_hidden = any(isinstance(mark, ast.Constant) and mark.value is True for mark in marks) or (
            isinstance(init, ast.Constant) and init.value is False
        )
        if field.name.startswith("_") or last_word(field.annotation) == "ClassVar" or is_hidden:
            continue
        found = shape(field.annotation, source)
        # A field's name in configurations; pydantic lets `alias` replace it.
        alias = (
            value(keyword(field.default, "alias"), source) if isinstance(field.default, ast.Call) else None
        )
        own_name = alias if isinstance(alias, str) else field.name
        key = place + own_name
        if found.nested and depth < _DEEPEST and fields_of(found.nested, source):
            yield from of_class(found.nested, source, f"{key}.", style, depth + 1)
        else:
            yield _declared(field, found, key, source, style)


def _declared(field: Field, found: SettingType, key: str, source: Source, style: Style) -> Declaration:
    default = value(field.default, source)
    known = None if default is UNKNOWN else default
    low, high = bounds(field.default, source)
    aliases, cli_name = _noted(field, "aliases", source), _noted(field, "cli_name", source)
    names = [*aliases, cli_name] if isinstance(aliases, list) else [cli_name]
    choices = _noted(field, "choices", source)
    return Declaration(
        key=styled(key, style),
        type=kind_of(known) if found.type == "any" else found.type,
        default=known,
        choices=found.choices or (tuple(choices) if isinstance(choices, list) else ()),
        min=low,
        max=high,
        spellings=tuple(name for name in names if isinstance(name, str)),
    )


def bounds(node: ast.expr | None, source: Source) -> tuple[float | None, float | None]:
    """Give the least and the greatest value that `Field(ge=..., le=...)` allows."""
    if not isinstance(node, ast.Call):
        return None, None
    low, high = value(keyword(node, "ge"), source), value(keyword(node, "le"), source)
    return (low if isinstance(low, int | float) else None), (high if isinstance(high, int | float) else None)


def _notes(field: Field) -> list[ast.Call]:
    """Give the calls that stand as notes in `Annotated[T, Arg(...)]`."""
    inner = field.annotation.slice if isinstance(field.annotation, ast.Subscript) else None
    return [item for item in inner.elts if isinstance(item, ast.Call)] if isinstance(inner, ast.Tuple) else []


def _noted(field: Field, name: str, source: Source) -> object:
    return next(
        (value(found, source) for note in _notes(field) if (found := keyword(note, name)) is not None), None
    )
