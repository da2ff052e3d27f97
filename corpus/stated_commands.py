"""Commands that a message may tell its reader to run: the rows of `stated_commands.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated

from pydantic import Field

from corpus.library import pages, read_yaml, validated_table
from corpus.schema import Expression, Record, Text

STATED_COMMANDS = "stated_commands.yaml"
# No more of a name; a bound of every repetition keeps the reading of a hostile row linear.
_TAIL = r"(?:[A-Za-z0-9_+-]|\.(?=[A-Za-z0-9_])){0,59}"
_WORD = rf"[A-Za-z0-9_]{_TAIL}"
# What stands in the expressions for the parts that differ: no blank, quote or sign that a shell reads, no
# `..`, no address, no absolute path. An owner has no dot, as a host would.
_PARTS: Mapping[str, str] = {
    "{tail}": _TAIL,
    "{name}": rf"[A-Za-z0-9]{_TAIL}",
    "{model}": rf"(?:[A-Za-z0-9][A-Za-z0-9_-]{{0,59}}/)?[A-Za-z0-9]{_TAIL}",
    "{file}": r"[A-Za-z0-9][A-Za-z0-9_+-]{0,39}(?:\.[A-Za-z0-9_+-]{1,19}){1,3}",
    "{path}": rf"{_WORD}(?:/{_WORD}){{0,5}}",
    "{script}": rf"(?:\./)?(?:{_WORD}/){{0,5}}{_WORD}(?<=\.py)",
    "{counts}": (
        r"(?: --(?:nproc[_-]per[_-]node|nnodes|num[_-](?:processes|machines|gpus|nodes))[ =]\d{1,4}){0,3}"
    ),
}


class StatedCommandExample(Record):
    """A message and the command that is read in it."""

    message: str
    command: str


class StatedCommand(Record):
    """A command's harmless form, with what it is run for.

    `expression` is all of the command, `command` what it is told as where that differs, filled with named
    groups of the expression. `launches` tells that it starts the job's own program, so that bare (its group
    `bare`) it is completed; `own` that it runs a file of the job's, which must be known to be one: `script`.
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
        """Give the expression with what stands for the parts that differ."""
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
