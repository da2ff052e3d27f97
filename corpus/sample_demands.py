"""What a message says of the samples that a job's own data set gives: the rows of `sample_demands.yaml`."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from corpus.library import pages, read_yaml, validated_table
from corpus.schema import Expression, Record

SAMPLE_DEMANDS = "sample_demands.yaml"


class SampleDemand(Record):
    """One wording of what is wrong with a sample, or with a batch of them.

    `expression` is searched in the failing line, the exception's type before its message; `cue` stands in
    every such line. `demands` says what: a `key`, the group or the field `wanted`, which is not there; an
    entry of a `kind` that cannot be joined; entries of several sizes (`one`, `other`), or of several lengths.
    Where `code` is given, the row of a call on the stack holds it.
    """

    id: str
    demands: Literal["key", "kind", "size", "length"]
    cue: Annotated[str, Field(min_length=2)]
    expression: Expression
    wanted: str = ""
    code: Expression = ""
    examples: Annotated[tuple[str, ...], Field(min_length=1)]


class SampleDemandPage(Record):
    """One file of such rows."""

    rows: tuple[SampleDemand, ...]


@cache
def known_sample_demands() -> tuple[SampleDemand, ...]:
    """Give the rows of every folder of knowledge; raises InvalidCorpusError naming the field."""
    found = [
        validated_table(SampleDemandPage, {"rows": read_yaml(path)}, path) for path in pages(SAMPLE_DEMANDS)
    ]
    return tuple(row for page in found for row in page.rows)
