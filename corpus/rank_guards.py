"""Which calls all ranks must make, and how code lets one rank alone through: `rank_guards.yaml`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from corpus import library
from corpus.schema import Expression, Record

FILE = "rank_guards.yaml"


class CallOfAllRanks(Record):
    """A call by an expression for what is called.

    `needs` is the argument that makes it one of all ranks where not every call of it is, `instead` the one
    that makes it a call of one rank.
    """

    call: Expression
    needs: str = ""
    instead: str = ""


class RankGuards(Record):
    """The calls, and the tests that hold for one rank, or for all others."""

    one_rank: Expression
    other_ranks: Expression
    calls: Annotated[tuple[CallOfAllRanks, ...], Field(min_length=1)]


@cache
def load() -> RankGuards:
    """Load the table; raises InvalidCorpusError naming the field that is wrong."""
    path = Path(__file__).with_name(FILE)
    return library.validated(RankGuards, library.read_yaml(path), str(path))
