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
    """Commands, files, variables and settings by an expression, and the jobs that have no use for them.

    Those with one of the traits `absent`, and those with none of `needs`, where any are given.
    """

    expression: Expression
    absent: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    def serves(self, job: frozenset[str]) -> bool:
        """Tell whether a job of this kind and these traits has a use for them."""
        return job.isdisjoint(self.absent) and (not self.needs or not job.isdisjoint(self.needs))


class ForeignPhrase(MachineTool):
    """Words that no text says to jobs that have no use for them, by an expression, and what stands instead.

    Whose these are tell `absent` and `needs`, as of a `MachineTool`. Without `instead` the whole sentence is
    left out.
    """

    instead: str | None = None


class JobTable(Record):
    """Kinds, of which the first that is shown counts, traits, which each stand alone, and machines' tools.

    `phrases` are of the prose of an answer.
    """

    kinds: tuple[JobSigns, ...] = ()
    traits: tuple[JobSigns, ...] = ()
    tools: tuple[MachineTool, ...] = ()
    phrases: tuple[ForeignPhrase, ...] = ()

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
    phrases: tuple[ForeignPhrase, ...] = ()
    for folder in folders:
        if (path := folder / FILE).exists():
            table = library.validated_table(JobTable, library.read_yaml(path), path)
            kinds, traits = (*table.kinds, *kinds), (*table.traits, *traits)
            tools, phrases = (*table.tools, *tools), (*table.phrases, *phrases)
    return JobTable(kinds=kinds, traits=traits, tools=tools, phrases=phrases)
