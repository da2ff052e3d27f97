"""The answer's contract as a JSON schema, for clients in other languages."""

from __future__ import annotations

from typing import Any

from service.schemas.diagnosis import Diagnosis

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ID = "urn:whycrash:schema:diagnosis:1"


def diagnosis_schema() -> dict[str, Any]:
    """Give the JSON schema of a diagnosis as it is served: each field that is told there is always there.

    Fields that it does not tell may be added, so it forbids none.
    """
    made = _open(Diagnosis.model_json_schema(mode="serialization"))
    return {"$schema": DIALECT, "$id": ID, **made}


def _open(value: Any) -> Any:
    """Take out what forbids fields, and the titles, which say a field's name again."""
    if isinstance(value, list):
        return [_open(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {
        name: _open(item)
        for name, item in value.items()
        if not (name == "additionalProperties" and item is False)
        and not (name == "title" and isinstance(item, str))
    }
    if isinstance(kept.get("properties"), dict):
        # Ids of a sentence's words are left out where it is nobody's message (`Translatable`).
        kept["required"] = [name for name in kept["properties"] if name != "messages"]
    return kept
