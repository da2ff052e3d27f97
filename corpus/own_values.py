"""How values of a job program's own settings follow from messages: the rows of `own_values.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from corpus.library import pages, read_yaml, validated_table
from corpus.rules import ValueExpression
from corpus.schema import Expression, Record, Scalar, Text

OWN_VALUES = "own_values.yaml"


class OwnValueExample(Record):
    """A message, settings of the job beside it, and what becomes of the one that the row is for."""

    message: str
    settings: Mapping[str, str]
    spelled: Literal["flag", "yaml"] = "flag"
    key: str
    to: Scalar | None = None


class OwnValueRow(Record):
    """What a message says of a setting that it does not name, or names without a value.

    `cue` stands in every such message, `expression` is searched in the failing line and the few rows around
    it. `setting` finds the setting among the job's own by its key, `beside` others whose numbers are needed.
    `when` and `to` are expressions over `now`, the setting's value, as a number where it is one, `text`, the
    same as it is written, `spelled`, how it is given (`yaml`, `flag`, ...), `leaf`, the last level of its
    key, `line`, the row of the message up to where the expression ends, its named groups and the names of
    `beside`; `when` says which value of the setting the message speaks of. Without `to` the setting is to be
    taken out. `adds` tells that an option which the program defines and the job does not give may be given.
    `own` leaves out settings of the job's frameworks, which have rules of their own. More than one setting
    that fits is none, unless `every` takes them all together. `causes` are those for which the row holds, all
    without any. `proves` tells that the value suffices.
    """

    id: str
    cue: Annotated[str, Field(min_length=2)]
    expression: Expression
    setting: Expression
    beside: Mapping[str, Expression] = Field(default_factory=dict)
    when: ValueExpression = "true"
    to: ValueExpression | None = None
    adds: bool = False
    own: bool = False
    every: bool = False
    causes: tuple[str, ...] = ()
    proves: bool = False
    why: Text
    examples: Annotated[tuple[OwnValueExample, ...], Field(min_length=1)]


class OwnValuePage(Record):
    """One file of such rows."""

    rows: tuple[OwnValueRow, ...]


@cache
def known_own_values() -> tuple[OwnValueRow, ...]:
    """Give the rows of every folder of knowledge; raises InvalidCorpusError naming the field."""
    return tuple(
        row
        for path in pages(OWN_VALUES)
        for row in validated_table(OwnValuePage, {"rows": read_yaml(path)}, path).rows
    )
