"""Limits that a batch script asks a scheduler for in its directives: the rows of `batch_limits.yaml`."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from corpus.library import pages, read_yaml, validated_table
from corpus.schema import Expression, LogCondition, Record

BATCH_LIMITS = "batch_limits.yaml"


class BatchLimit(Record):
    """One limit as directives write it.

    It was reached where one of `when` holds. `expression` finds it in a directive's row: the group `number`
    is a size or a count of minutes, `clock` a time (`24:00`), whose last part counts as `last` says.
    """

    id: str
    of: Literal["memory", "time"]
    when: Annotated[tuple[LogCondition, ...], Field(min_length=1)]
    expression: Expression
    last: Literal["minutes", "seconds"] = "seconds"
    examples: Annotated[tuple[str, ...], Field(min_length=1)]
    near: tuple[str, ...] = ()


class BatchLimitPage(Record):
    """One file of such rows."""

    rows: tuple[BatchLimit, ...]


@cache
def known_batch_limits() -> tuple[BatchLimit, ...]:
    """Give the rows of every folder of knowledge; raises InvalidCorpusError naming the field."""
    found = [validated_table(BatchLimitPage, {"rows": read_yaml(path)}, path) for path in pages(BATCH_LIMITS)]
    return tuple(row for page in found for row in page.rows)
