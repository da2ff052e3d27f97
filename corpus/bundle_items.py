"""What a bundle about a dead job is made of: rows of `bundle_items.yaml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from corpus import library
from corpus.schema import Expression, Record

FILE = "bundle_items.yaml"
# Blanks that a command or a path may have, by what it is done for.
_BLANKS: Mapping[str, frozenset[str]] = {
    "machine": frozenset(("home", "since")),
    "process": frozenset(("home", "since", "pid", "rank")),
    "job": frozenset(("home", "since", "name", "namespace")),
}
_BLANK = re.compile(r"\{(\w+)\}")


class JobForm(Record):
    """How the ids of one kind of job look: the whole id, with its parts as named groups."""

    kind: str
    form: Expression

    @cached_property
    def expression(self) -> re.Pattern[str]:
        """The form, compiled."""
        return re.compile(self.form)


class ProcessSigns(Record):
    """By what a process of a job is known: its command line, or a variable of its environment.

    `ranks` and `jobs` name the variables that hold its rank and its job's id.
    """

    commands: Expression
    variables: tuple[str, ...]
    ranks: tuple[str, ...]
    jobs: tuple[str, ...]

    @cached_property
    def command(self) -> re.Pattern[str]:
        """The expression for a command line, compiled."""
        return re.compile(self.commands)


class BundleItem(Record):
    """A command that only reads, or files; `to` is the name in the bundle, of files their folder."""

    name: str
    each: Literal["machine", "process", "job"] = "machine"
    kind: str = ""
    run: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    to: str
    seconds: Annotated[float, Field(gt=0, le=120)] = 15.0
    causes: Annotated[tuple[str, ...], Field(alias="for")] = ()

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if bool(self.run) == bool(self.files or self.variables):
            raise ValueError("an item is a command or files")
        if (self.each == "job") != bool(self.kind):
            raise ValueError("what is done for a job names its kind, and nothing else does")
        if self.run and _BLANK.search(self.run[0]):
            raise ValueError("the program of a command is fixed")
        used = {blank for text in (*self.run, *self.files, self.to) for blank in _BLANK.findall(text)}
        if unknown := used - _BLANKS[self.each]:
            raise ValueError(f"no such blank: {', '.join(sorted(unknown))}")
        return self

    def serves(self, wanted: frozenset[str] | None) -> bool:
        """Tell whether the item is gathered for these causes and categories; None wants everything."""
        return not self.causes or wanted is None or not wanted.isdisjoint(self.causes)


class BundleTable(Record):
    """Kinds of jobs, the signs of a process, and the items."""

    jobs: Annotated[tuple[JobForm, ...], Field(min_length=1)]
    processes: ProcessSigns
    items: Annotated[tuple[BundleItem, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        names = [item.name for item in self.items]
        if len(names) != len(set(names)):
            raise ValueError("two items have one name")
        if lost := {item.kind for item in self.items if item.kind} - {form.kind for form in self.jobs}:
            raise ValueError(f"no such kind of job: {', '.join(sorted(lost))}")
        return self

    def kind_of(self, job: str) -> tuple[str, Mapping[str, str]] | None:
        """Give the kind of a job by its id, with the id's parts; None where no form fits."""
        for row in self.jobs:
            if found := row.expression.fullmatch(job):
                return row.kind, {name: text or "default" for name, text in found.groupdict().items()}
        return None


@cache
def load() -> BundleTable:
    """Load the table; raises InvalidCorpusError naming the field that is wrong."""
    path = Path(__file__).with_name(FILE)
    return library.validated(BundleTable, library.read_yaml(path), str(path))
