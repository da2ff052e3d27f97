"""Calls that all ranks must make, and conditions that one rank alone meets: `rank_branches.yaml`."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pydantic import Field

from corpus.library import pages, read_yaml, validated_table
from corpus.schema import Expression, Record

RANK_BRANCHES = "rank_branches.yaml"


class RankBranch(Record):
    """A kind of call that waits for all ranks, and of condition that keeps the others away from it.

    `test` is the whole source of such a condition, `calls` that of what is called, as Python writes a tree
    back. Either says something where the failing line's cause is one of `causes`.
    """

    id: str
    causes: Annotated[tuple[str, ...], Field(min_length=1)]
    test: Expression
    calls: Expression


class RankBranchPage(Record):
    """One file of such rows."""

    rows: tuple[RankBranch, ...]


@cache
def known_rank_branches() -> tuple[RankBranch, ...]:
    """Give the rows of every folder of knowledge; raises InvalidCorpusError naming the field."""
    found = [
        validated_table(RankBranchPage, {"rows": read_yaml(path)}, path) for path in pages(RANK_BRANCHES)
    ]
    return tuple(row for page in found for row in page.rows)
