"""What an exception that no pattern knows means, by whose code raised it and where (`exceptions.yaml`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from corpus import library
from corpus.schema import Expression, Record, Strength

FILE = "exceptions.yaml"
# Whose code the innermost call is.
Owner = Literal["user", "engine", "framework"]


class ExceptionMeaning(Record):
    """A cause of exceptions for which all conditions hold that are given.

    `owners` tells whose code must have raised it (none: anybody's), `types` is searched in the exception's
    type, `messages` names lists of wordings of which each must have one in the message, `code` is searched in
    the innermost call's source line, and `calls` in the calls, innermost last (of the last `within`, where
    that is given). With `hinted`, the line's own pattern must have hinted at this cause.
    """

    cause: str
    strength: Strength = "suggests"
    owners: tuple[Owner, ...] = ()
    types: Expression = ""
    messages: tuple[str, ...] = ()
    code: Expression = ""
    calls: Expression = ""
    within: int = 0
    hinted: bool = False


class ExceptionMeanings(Record):
    """The whole table: the first meaning that fits counts.

    `open` names the causes that a pattern may hint at and that a better meaning replaces.
    """

    open: tuple[str, ...] = ()
    wordings: Mapping[str, tuple[Expression, ...]] = Field(default_factory=dict)
    meanings: tuple[ExceptionMeaning, ...] = ()

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        for row in self.meanings:
            if unknown := set(row.messages) - self.wordings.keys():
                raise ValueError(f"{row.cause}: there are no wordings {sorted(unknown)[0]!r}")
            if row.strength == "hints":
                raise ValueError(f"{row.cause}: a meaning that only hints would not be told from none")
        return self

    @cached_property
    def worded(self) -> dict[str, re.Pattern[str]]:
        """Each list of wordings as one expression."""
        return {name: re.compile("|".join(texts)) for name, texts in self.wordings.items()}


def load(*folders: Path) -> ExceptionMeanings:
    """Load the table of each folder of knowledge; raises InvalidCorpusError naming the field that is wrong.

    What a later folder adds counts before the meanings of the earlier ones.
    """
    found = ExceptionMeanings()
    for folder in folders or library.roots():
        if (folder / FILE).exists():
            rows = library.read_yaml(folder / FILE)
            rows["wordings"] = {**found.wordings, **rows.get("wordings", {})}
            own = library.validated(ExceptionMeanings, rows, str(folder / FILE))
            found = ExceptionMeanings(
                open=(*found.open, *own.open),
                wordings=own.wordings,
                meanings=(*own.meanings, *found.meanings),
            )
    return found
