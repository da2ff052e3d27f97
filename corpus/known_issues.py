"""Known bugs of frameworks: which versions have them, what the log shows, and what gets round them."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any

from pydantic import Field, model_validator

from corpus.message import in_both
from corpus.schema import Action, Change, Expression, LogCondition, Record, Specifier, Text

# What an address leads to, by a part of it: the kind of a source, and how firmly it says what it says.
_SOURCES = {"/blob/": ("source", "evident"), "/pull/": ("issue", "maintainer"), "": ("issue", "community")}


class KnownIssue(Record):
    """One bug of a framework that its own maintainers know of.

    It is there in the versions `affected`, where those `beside` it are of the given ones; a version that
    the log does not show speaks against neither. `fixed` is the first version without it, empty where
    there is none. `message` finds what the failing line says, as in `examples`, which stand below calls
    such as `calls` (`file:function`, the outermost first); all of `when` must hold and none of `unless`.
    `says` tells in one or two sentences what goes wrong. `moves` are the packages that mend it; without
    any, the version that is `fixed`. What `workaround` proposes comes behind them. `refines` names cases
    that say less of it. `checked` is the day on which somebody last held both ends of `affected` against
    the source: the bug is in the first and the last of them, not in the releases next to those.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    framework: str
    affected: Specifier = ""
    fixed: str = ""
    beside: dict[str, Specifier] = Field(default_factory=dict)
    cause: str
    action: Action = "change-environment"
    message: Expression
    examples: Annotated[tuple[str, ...], Field(min_length=1)]
    calls: tuple[Annotated[str, Field(pattern=r"^[\w./-]+\.py:[\w<>]+$")], ...] = ()
    when: tuple[LogCondition, ...] = ()
    unless: tuple[LogCondition, ...] = ()
    says: Text
    moves: dict[str, str] = Field(default_factory=dict)
    workaround: tuple[Change, ...] = ()
    refines: tuple[str, ...] = ()
    source: Annotated[str, Field(pattern=r"^https://[^\s]+$")]
    checked: date | None = None

    @model_validator(mode="after")
    def _check_examples(self) -> KnownIssue:
        if missed := [line for line in self.examples if not re.search(self.message, line)]:
            raise ValueError(f"its message does not find {missed[0]!r}")
        return self

    def fields(self, package: str) -> dict[str, Any]:
        """Give the fields of the case that it is."""
        # From the lower bound to the upper one, as one reads a range.
        bounds = sorted(filter(None, self.affected.split(",")), key=lambda bound: bound.startswith("<"))
        versions = f" {','.join(bounds)}" if bounds else ""
        told = {"package": package, "versions": versions, "fixed": self.fixed}
        title = in_both("packages.known-bug" if self.fixed else "packages.known-bug-open", **told)
        why = Text(en=f"{title.en}.", zh=f"{title.zh}。")
        moves = self.moves or ({package: f">={self.fixed}"} if self.fixed else {})
        quoted = self.message.replace("'", r"\x27")
        said = f"message:'{quoted}'"
        # What the log says word for word is the sign of the package in the job, whether or not it is named.
        changes = [
            Change(framework="pip", kind="package", key=name, to=to, when=(said,), why=why)
            for name, to in moves.items()
        ]
        others = [change.model_copy(update={"when": (said, *change.when)}) for change in self.workaround]
        # The source of a release proves it, a merged change is the maintainers' word, a thread its writers'.
        kind, says = next(meant for mark, meant in _SOURCES.items() if mark in self.source)
        return {
            "id": f"{self.framework}/{self.id}",
            "title": title.model_dump(),
            "cause": self.cause,
            "action": self.action,
            "frameworks": {self.framework: self.affected, **self.beside},
            "signatures": {"all": [said, *self.when], "none": list(self.unless)},
            "refines": list(self.refines),
            "changes": [change.model_dump() for change in (*changes, *others)],
            "sources": [{"url": self.source, "kind": kind, "says": says}],
            "body": {"en": f"{why.en} {self.says.en}", "zh": f"{why.zh}{self.says.zh}"},
        }
