"""What ranks must agree on when they call a collective: rows of `collectives.yaml`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from corpus import library
from corpus.expressions import compiled
from corpus.schema import Expression, Record

FILE = "collectives.yaml"
Side = Literal["given", "result"]


class CollectiveKind(Record):
    """Operations by an expression, and which of their arguments must be equal on all ranks."""

    operation: Expression
    equal: tuple[Side, ...]


class CollectiveTable(Record):
    """All kinds; the first that fits counts, and the last fits all."""

    kinds: Annotated[tuple[CollectiveKind, ...], Field(min_length=1)]

    def equal_sides(self, operation: str) -> tuple[Side, ...]:
        """Name the sides of a collective that must be equal on all ranks."""
        return next(kind.equal for kind in self.kinds if compiled(kind.operation).search(operation))


@cache
def load() -> CollectiveTable:
    """Load the table; raises InvalidCorpusError naming the field that is wrong."""
    path = Path(__file__).with_name(FILE)
    return library.validated(CollectiveTable, {"kinds": library.read_yaml(path)}, str(path))
