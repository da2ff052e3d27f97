"""Commands that a message may tell its reader to run: the rows of `stated_commands.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated

from pydantic import Field

from corpus.library import pages, read_yaml, validated_table
from corpus.schema import Expression, Record, Text

STATED_COMMANDS = "stated_commands.yaml"
# What stands in the expressions for the parts that differ: no blank, quote or sign that a shell reads.
_PARTS: Mapping[str, str] = {
    "{name}": r"[A-Za-z0-9][\w./:@+=-]{0,100}",
    "{options}": r"(?: --?[A-Za-z][\w-]{0,40}(?:[ =][\w./:@+-]{1,80})?){0,6}",
}


class StatedCommandExample(Record):
    """A message and the command that is read in it."""

    message: str
    command: str


class StatedCommand(Record):
    """A command's harmless form, with what it is run for.

    `expression` is all of the command, `command` what it is told as where that differs, filled with named
    groups of the expression. `launches` tells that it starts the job's own program, so that bare it is
    completed; `own` that it runs a file of the job's, which must be known to be one.
    """

    id: str
    expression: Expression
    command: str = ""
    to: Text
    launches: bool = False
    own: bool = False
    examples: Annotated[tuple[StatedCommandExample, ...], Field(min_length=1)]

    @property
    def form(self) -> str:
        """Give the expression with what stands for names and options."""
        found = self.expression
        for part, expression in _PARTS.items():
            found = found.replace(part, expression)
        return found


class StatedCommandPage(Record):
    """One file of such rows."""

    rows: tuple[StatedCommand, ...]


@cache
def known_stated_commands() -> tuple[StatedCommand, ...]:
    """Give the rows of every folder of knowledge; raises InvalidCorpusError naming the field."""
    return tuple(
        row
        for path in pages(STATED_COMMANDS)
        for row in validated_table(StatedCommandPage, {"rows": read_yaml(path)}, path).rows
    )
