"""What all parts of an answer have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A part of the answer; immutable, unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


def place_of(file: str | None, line: int) -> str:
    """Name a line of a log: `L12`, or `rank0.log:L12` where the output is in several files."""
    return f"{file}:L{line}" if file else f"L{line}"
