"""Which teams a home has forgotten, of those that another home of the same Chroma server forgot.

Kept beside the index: where that comes back from a backup, the marks of then come with it, and what was
forgotten since is forgotten again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path


def unmet(home: Path, marks: Mapping[str, str]) -> dict[str, str]:
    """Give the marks of a server that this home has not met."""
    met = _met(home)
    return {key: mark for key, mark in marks.items() if met.get(key) != mark}


def note(home: Path, marks: Mapping[str, str]) -> None:
    """Note marks as met."""
    path = _path(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps({**_met(home), **marks}), encoding="utf-8")
    part.replace(path)


def _met(home: Path) -> dict[str, str]:
    try:
        told = json.loads(_path(home).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # none yet; or a damaged file: better forgotten twice than not at all
    return {str(key): str(mark) for key, mark in told.items()} if isinstance(told, dict) else {}


def _path(home: Path) -> Path:
    return home / "index" / "FORGOTTEN"
