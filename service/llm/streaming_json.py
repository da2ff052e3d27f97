"""An object of JSON that is still being written: which fields are whole, and a text as far as it has come."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json


def whole_fields(text: str) -> dict[str, Any]:
    """Give the fields of the outer object that are complete; empty where there is none yet."""
    fields, is_closed = _read(text)
    if fields and not is_closed:
        fields.popitem()  # it may go on
    return fields


def growing_text(text: str, name: str) -> tuple[str, bool]:
    """Give a text field as far as it is written, and whether it is known to be complete."""
    fields, is_closed = _read(text)
    if name not in fields:
        return "", False
    said = fields[name]
    return said if isinstance(said, str) else "", is_closed or next(reversed(fields)) != name


def _read(text: str) -> tuple[dict[str, Any], bool]:
    """Give the fields as far as they are written, the last perhaps in part, and whether the object ends."""
    written = text[text.find("{") :]
    try:
        found, is_closed = from_json(written), True
    except ValueError:
        try:
            found, is_closed = from_json(written, allow_partial="trailing-strings"), False
        except ValueError:
            return {}, False
    return (found, is_closed) if isinstance(found, dict) else ({}, False)
