"""An object of a store, as its driver tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

# Where drivers tell when an object was written.
_WRITTEN = ("LastModified", "last_modified", "mtime", "updated", "created")


class ObjectFile(NamedTuple):
    """An object: its name below the address, its path in the store, when it was written, and its bytes."""

    name: str
    path: str
    written: datetime | None
    size: int


def time_written(row: Mapping[str, Any]) -> datetime | None:
    """Give when an object was last written, as its store's driver tells it; None where it does not."""
    told = next((row[key] for key in _WRITTEN if row.get(key)), None)
    try:
        if isinstance(told, int | float):
            return datetime.fromtimestamp(told, UTC)
        found = datetime.fromisoformat(told) if isinstance(told, str) else told
    except (ValueError, OverflowError, OSError):
        return None
    if not isinstance(found, datetime):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
