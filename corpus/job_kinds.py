"""The kinds and traits of jobs, which the condition `job:NAME` asks for: rows of `job_kinds.yaml`."""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field

from corpus import library
from corpus.schema import Expression, LogCondition, Record

FILE = "job_kinds.yaml"
# The kind of a job that no row tells.
UNKNOWN = "unknown"


class JobSigns(Record):
    """What shows a kind or trait: one of `any` holds, and none of `unless`.

    A kind of job that `trains` takes steps; what is known of trainers is nothing for one that does not.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z-]*$")]
    any: Annotated[tuple[LogCondition, ...], Field(min_length=1)]
    unless: tuple[LogCondition, ...] = ()
    trains: bool = True


class MachineTool(Record):
    """Commands, files and variables by an expression, and the traits of jobs whose machines have none."""

    expression: Expression
    absent: Annotated[tuple[str, ...], Field(min_length=1)]


class JobTable(Record):
    """Kinds, of which the first that is shown counts, traits, which each stand alone, and machines' tools."""

    kinds: tuple[JobSigns, ...] = ()
    traits: tuple[JobSigns, ...] = ()
    tools: tuple[MachineTool, ...] = ()

    @cached_property
    def names(self) -> frozenset[str]:
        """What a condition may ask for."""
        return frozenset(row.name for row in (*self.kinds, *self.traits)) | {UNKNOWN}


def load(*folders: Path) -> JobTable:
    """Load the table of each folder of knowledge; raises InvalidCorpusError naming the field that is wrong.

    What a later folder adds counts before the rows of the earlier ones.
    """
    return _loaded(folders or library.roots())


@cache
def _loaded(folders: tuple[Path, ...]) -> JobTable:
    kinds: tuple[JobSigns, ...] = ()
    traits: tuple[JobSigns, ...] = ()
    tools: tuple[MachineTool, ...] = ()
    for folder in folders:
        if (path := folder / FILE).exists():
            table = library.validated_table(JobTable, library.read_yaml(path), path)
            kinds, traits = (*table.kinds, *kinds), (*table.traits, *traits)
            tools = (*table.tools, *tools)
    return JobTable(kinds=kinds, traits=traits, tools=tools)
