"""Paths and names that documentation writes in place of its reader's own: the rows of `stand_ins.yaml`."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pydantic import Field

from corpus.expressions import compiled
from corpus.library import pages, read_yaml, validated_table
from corpus.schema import Expression, Record

STAND_INS = "stand_ins.yaml"


class StandIn(Record):
    """A form of such a value; `expression` is the whole of it."""

    id: str
    expression: Expression
    examples: Annotated[tuple[str, ...], Field(min_length=1)]


class StandInPage(Record):
    """One file of such rows."""

    rows: tuple[StandIn, ...]


@cache
def known_stand_ins() -> tuple[StandIn, ...]:
    """Give the rows of every folder of knowledge; raises InvalidCorpusError naming the field."""
    found = [validated_table(StandInPage, {"rows": read_yaml(path)}, path) for path in pages(STAND_INS)]
    return tuple(row for page in found for row in page.rows)


def is_stand_in(value: str) -> bool:
    """Tell whether a value is one that documentation writes for its reader's own."""
    plain = value.strip().strip("'\"")
    return any(compiled(row.expression).fullmatch(plain) for row in known_stand_ins() if plain)
