"""What an exception that no pattern knows means, by its kind, and by whose code raised it and where.

`exceptions.yaml` has the meanings and how each kind of trouble is told; `exception_classes.yaml` the kinds of
the exception classes of packages, which `python -m corpus.extract exceptions` reads from their sources.
"""

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
CLASSES = "exception_classes.yaml"
# Stands for all classes of a package that nothing else tells the kind of.
ANY = "*"
# Whose code the innermost call is: a `library` only does what the user's own script calls it for, a `package`
# is installed, no framework that is known, and called by the user's own script.
Owner = Literal["user", "library", "package", "engine", "framework"]


class ExceptionKind(Record):
    """A kind of trouble, whoever tells of it.

    `messages` is searched in the exception's message in lower case, `names` in the own name of a class that
    no table knows.
    """

    id: str
    messages: Expression = ""
    names: Expression = ""


class ExceptionMeaning(Record):
    """A cause of exceptions for which all conditions hold that are given.

    `kinds` are those of which one must be told, `owners` tells whose code must have raised it (none:
    anybody's), `types` is searched in the exception's type, `messages` names lists of wordings of which each
    must have one in the message, `code` is searched in the innermost call's source line, `through` in that
    of the owner's own call, `asked` in that of the innermost call of the job's own code, and `calls` in the
    calls, innermost last (of the last `within`, where that is given). With `hinted`, the line's own pattern
    must have hinted at this cause. `called_by_job` asks that the job's own code is among the calls, or that
    it is not.
    """

    cause: str
    strength: Strength = "suggests"
    kinds: tuple[str, ...] = ()
    owners: tuple[Owner, ...] = ()
    types: Expression = ""
    messages: tuple[str, ...] = ()
    code: Expression = ""
    through: Expression = ""
    asked: Expression = ""
    calls: Expression = ""
    within: int = 0
    hinted: bool = False
    called_by_job: bool | None = None


class ExceptionMeanings(Record):
    """The whole table: the first meaning that fits counts.

    `open` names the causes that a pattern may hint at and that a better meaning replaces, `tools` packages
    whose exceptions are their callers'. `classes` holds by package and kind the names of exception classes.
    `defaults` are what exceptions mean of which nothing else is told, their words included.
    """

    open: tuple[str, ...] = ()
    tools: tuple[Expression, ...] = ()
    kinds: tuple[ExceptionKind, ...] = ()
    classes: Mapping[str, Mapping[str, tuple[str, ...]]] = Field(default_factory=dict)
    wordings: Mapping[str, tuple[Expression, ...]] = Field(default_factory=dict)
    meanings: tuple[ExceptionMeaning, ...] = ()
    defaults: tuple[ExceptionMeaning, ...] = ()

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        kinds = {kind.id for kind in self.kinds}
        meanings = (*self.meanings, *self.defaults)
        told = {name for row in meanings for name in row.kinds}
        told.update(name for names in self.classes.values() for name in names)
        if unknown := told - kinds:
            raise ValueError(f"there is no kind {sorted(unknown)[0]!r}")
        for row in meanings:
            if unknown := set(row.messages) - self.wordings.keys():
                raise ValueError(f"{row.cause}: there are no wordings {sorted(unknown)[0]!r}")
            if row.strength == "hints":
                raise ValueError(f"{row.cause}: a meaning that only hints would not be told from none")
        return self

    @cached_property
    def worded(self) -> dict[str, re.Pattern[str]]:
        """Each list of wordings as one expression."""
        return {name: re.compile("|".join(texts)) for name, texts in self.wordings.items()}

    @cached_property
    def tool(self) -> re.Pattern[str]:
        """What the path of a tool's file has."""
        return re.compile(
            rf"(?:site|dist)-packages/(?:{'|'.join(self.tools)})[/.]" if self.tools else r"(?!)"
        )

    @cached_property
    def _kinds(self) -> tuple[tuple[str, re.Pattern[str] | None, re.Pattern[str] | None], ...]:
        return tuple(
            (
                kind.id,
                re.compile(kind.messages) if kind.messages else None,
                re.compile(kind.names) if kind.names else None,
            )
            for kind in self.kinds
        )

    @cached_property
    def _class_kinds(self) -> dict[tuple[str, str], str]:
        return {
            (package, name): kind
            for package, kinds in self.classes.items()
            for kind, names in kinds.items()
            for name in names
        }

    def kind(self, type_name: str, message: str) -> str | None:
        """Tell the kind of an exception by its message, its class, its class's words, or its package.

        `type_name` is as a traceback prints it, with the module: modules move between releases, so the class
        is looked up by its package alone. Empty where a line names no exception.
        """
        message = message.lower()
        told = (kind for kind, said, _ in self._kinds if said and said.search(message))
        package, name = type_name.partition(".")[0], type_name.rpartition(".")[2]
        known = next(told, None) or self._class_kinds.get((package, name))
        if known or not name:
            return known
        named = (kind for kind, _, called in self._kinds if called and called.search(name))
        return next(named, None) or self._class_kinds.get((package, ANY))


def load(*folders: Path) -> ExceptionMeanings:
    """Load the table of each folder of knowledge; raises InvalidCorpusError naming the field that is wrong.

    What a later folder adds counts before the meanings of the earlier ones.
    """
    found = ExceptionMeanings()
    for folder in folders or library.roots():
        if not any((folder / name).exists() for name in (FILE, CLASSES)):
            continue
        rows = library.read_yaml(folder / FILE) if (folder / FILE).exists() else {}
        classes = library.read_yaml(folder / CLASSES) if (folder / CLASSES).exists() else {}
        # What its meanings may name: its own kinds and wordings, and those that are known already.
        rows["kinds"] = (*rows.get("kinds", ()), *(kind.model_dump() for kind in found.kinds))
        rows["wordings"] = {**found.wordings, **rows.get("wordings", {})}
        rows["classes"] = {**found.classes, **classes}
        own = library.validated(ExceptionMeanings, rows, str(folder / FILE))
        found = own.model_copy(
            update={
                "open": (*found.open, *own.open),
                "tools": (*found.tools, *own.tools),
                "meanings": (*own.meanings, *found.meanings),
                "defaults": (*own.defaults, *found.defaults),
            }
        )
    return found
