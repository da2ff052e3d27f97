"""An object of JSON that is still being written: which fields are whole, and a text as far as it has come."""

from __future__ import annotations

import json
import re
from typing import Any

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BLANK = re.compile(r"[\s,:]*")
_DECODER = json.JSONDecoder()


def whole_fields(text: str) -> dict[str, Any]:
    """Give the fields of the outer object that are complete; empty where there is none yet."""
    return _read(text)[0]


def growing_text(text: str, name: str) -> tuple[str, bool]:
    """Give a text field as far as it is written, and whether it is complete."""
    fields, pending, rest = _read(text)
    if name in fields:
        return (fields[name] if isinstance(fields[name], str) else "", True)
    return (_unfinished(rest), False) if pending == name and rest.startswith('"') else ("", False)


def _read(text: str) -> tuple[dict[str, Any], str, str]:
    """Give the complete fields, the name of the field that is being written, and what is written of it."""
    place = text.find("{") + 1
    fields: dict[str, Any] = {}
    while place:
        place = _skip(text, place)
        name = _STRING.match(text, place)
        if name is None:
            return fields, "", ""
        start = _skip(text, name.end())
        value = _value(text, start)
        if value is None:
            return fields, _decoded(name[0]), text[start:]
        fields[_decoded(name[0])], place = value
    return fields, "", ""


def _skip(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return found.end() if found else place


def _value(text: str, start: int) -> tuple[Any, int] | None:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):  # no JSON yet, or a number or a nesting that is none
        return None
    # A number may go on; all else says itself where it ends.
    return None if isinstance(value, (int, float)) and end >= len(text) else (value, end)


def _decoded(text: str) -> str:
    try:
        return str(json.loads(text))
    except json.JSONDecodeError:
        return ""


def _unfinished(text: str) -> str:
    """Decode a string that has no end yet; an escape that is cut is left for later."""
    body = text[1:]
    for length in range(len(body), max(-1, len(body) - 12), -1):
        try:
            decoded = str(json.loads(f'"{body[:length]}"', strict=False))
        except json.JSONDecodeError:
            continue
        # Half of a pair is no character yet.
        return decoded[:-1] if decoded and "\ud800" <= decoded[-1] <= "\udbff" else decoded
    return ""
