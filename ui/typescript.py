"""The answer's JSON schema as TypeScript types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

_NAME = re.compile(r"[A-Za-z_]\w*")
_PRIMITIVES = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
_WIDTH = 104


def types(schema: Mapping[str, Any], name: str) -> str:
    """Give one interface for the schema, called `name`, and one for each of its definitions."""
    parts = {name: schema, **schema.get("$defs", {})}
    return "\n".join(row for title, part in parts.items() for row in (*_interface(title, part), ""))


def _interface(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield from _comment(schema.get("description", ""), "")
    yield f"export interface {name} {{"
    for field, part in schema["properties"].items():
        yield from _comment(part.get("description", ""), "  ")
        shown = field if _NAME.fullmatch(field) else json.dumps(field)
        yield f"  {shown}{'' if field in schema.get('required', ()) else '?'}: {_type(part)};"
    yield "}"


def _comment(text: str, indent: str) -> Iterator[str]:
    plain = " ".join(text.replace("*/", "* /").split())
    rows = wrap(plain, _WIDTH - len(indent))
    if len(rows) == 1:
        yield f"{indent}/** {rows[0]} */"
    elif rows:
        yield from (f"{indent}/**", *(f"{indent} * {row}" for row in rows), f"{indent} */")


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(part) for part in schema["anyOf"]))
    match schema.get("type"):
        case "array":
            inner = _type(schema.get("items", {}))
            return f"({inner})[]" if " | " in inner else f"{inner}[]"
        case "object":
            return f"Record<string, {_type(schema.get('additionalProperties') or {})}>"
        case kind:
            return _PRIMITIVES.get(str(kind), "unknown")
