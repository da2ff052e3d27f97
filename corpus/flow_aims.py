"""What a failing line's message says of the values that led there: the rows of `flow_aims.yaml`."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from corpus.library import pages, read_yaml, validated_table
from corpus.schema import Expression, Record

FLOW_AIMS = "flow_aims.yaml"
Seeks = Literal[
    "path", "number", "word", "part", "guard", "empty", "switch", "made", "source", "table",
    "size", "key", "divisor",
]  # fmt: skip


class FlowAim(Record):
    """A kind of failure, and which of the options that reach the failing statement it speaks of.

    `expression` is searched in the failing line. What is sought: an option whose value is or builds the
    `path` of the group of that name; whose value is, or makes, a `number` of the group `numbers`; whose value
    is a `word` of the message; that is handed on as it is to the `part` which failed; that the condition of a
    check reads (`guard`); whose value decides whether there is anything at all (`empty`); that is a `switch`
    which is on, and without which the statement is not reached; that decides whether a part of the model is
    `made` that the message names; that names the file that was read (`source`), or that from which the
    `table` came which has not the name that is asked for; whose value is the `key` that
    a mapping has not; that what is divided by (`divisor`) is made of; or that is handed on as it is to a call
    on the stack and is a `size` or a count. Where `names` is given, only options of such names count, of a
    `switch`, a `size` or a `source`, else of those that name files; where `calls` is, only calls up to the
    outermost function of such a name; where `stands` is, a row of source on the stack holds it, and a
    `source` is sought at such rows alone; with `whole` a `path` has the option's value as a level, not within
    one. It holds for `causes`, and for all of the `categories`. `to` is the
    message that says in words what the option should become.
    """

    id: str
    seeks: Seeks
    expression: Expression
    causes: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    to: str
    names: Expression = ""
    calls: Expression = ""
    stands: Expression = ""
    whole: bool = False
    examples: Annotated[tuple[str, ...], Field(min_length=1)]


class FlowAimPage(Record):
    """One file of such rows."""

    rows: tuple[FlowAim, ...]


@cache
def known_flow_aims() -> tuple[FlowAim, ...]:
    """Give the rows of every folder of knowledge; raises InvalidCorpusError naming the field."""
    return tuple(
        row
        for path in pages(FLOW_AIMS)
        for row in validated_table(FlowAimPage, {"rows": read_yaml(path)}, path).rows
    )
