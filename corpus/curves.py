"""Which numbers over steps are read as curves, and what is looked for in each: rows of `curves.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from corpus import library
from corpus.schema import Expression, Record, Text

FILE = "curves.yaml"
Tell = Literal["zero", "jump", "rise", "slow", "behind"]
# What stands between a name and its value, and how a value is written.
_VALUE = (
    r"['\"]?\s{0,2}[:=]?\s{0,4}['\"]?"
    r"(?P<value>[+-]?(?:\d[\d,]{0,15}(?:\.\d{0,24})?(?:e[+-]?\d{1,3})?|nan|inf(?:inity)?))(?![\w%]|\.\d)"
)


# A log that spells one kind in more ways is no course of one number.
_MOST_SPELLINGS = 64


class NamedValue(NamedTuple):
    """One number: its kind, how the line spells it, and its value."""

    kind: str
    spelled: str
    value: float


class CurveKind(Record):
    """One kind of number: its spellings, and what is looked for in it.

    `at` says what its points stand at, where these are no steps.
    """

    name: str
    spelled: Expression
    tells: tuple[Tell, ...]
    share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    title: Text
    at: Text | None = None

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return re.compile(self.spelled, re.IGNORECASE)

    def is_named(self, name: str) -> bool:
        """Tell whether a number that is logged under this name is of the kind."""
        return self._whole.fullmatch(name) is not None


class CurveTable(Record):
    """All kinds."""

    kinds: Annotated[tuple[CurveKind, ...], Field(min_length=1)]

    @cached_property
    def _spelled(self) -> re.Pattern[str]:
        rows = "|".join(f"(?P<k{place}>{kind.spelled})" for place, kind in enumerate(self.kinds))
        return re.compile(rf"(?<![\w/.-])['\"]?(?:{rows}){_VALUE}", re.IGNORECASE)

    def of(self, name: str) -> CurveKind | None:
        """Give the kind of a number by the name that it is logged under."""
        return next((kind for kind in self.kinds if kind.is_named(name)), None)

    def kind(self, name: str) -> CurveKind:
        """Give a kind by its own name."""
        return next(kind for kind in self.kinds if kind.name == name)

    def values(self, text: str) -> Iterator[NamedValue]:
        """Give the numbers of a line; of several of one kind the first."""
        found: set[str] = set()
        for match in self._spelled.finditer(text):
            groups = match.groupdict()
            place = next(place for place in range(len(self.kinds)) if groups[f"k{place}"] is not None)
            kind = self.kinds[place].name
            if kind not in found:
                found.add(kind)
                yield NamedValue(kind, groups[f"k{place}"], _number(groups["value"]))


class Spellings:
    """The spellings that one log has, which are found several times faster than all that there may be."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def learn(self, text: str) -> list[NamedValue]:
        """Give the numbers of a line, and remember how they are spelled."""
        found = list(load().values(text))
        new = {item.spelled: item.kind for item in found if item.spelled not in self._kinds}
        if new and len(self._kinds) < _MOST_SPELLINGS:
            self._kinds |= new
            names = "|".join(map(re.escape, sorted(self._kinds, key=len, reverse=True)))
            self._pattern = re.compile(rf"(?<![\w/.-])['\"]?(?P<name>{names}){_VALUE}", re.IGNORECASE)
        return found

    def values(self, text: str) -> list[NamedValue]:
        """Give the numbers of a line that are spelled as others before; of several of one kind the first."""
        found: dict[str, NamedValue] = {}
        for match in self._pattern.finditer(text) if self._pattern else ():
            kind = self._kinds.get(match["name"])
            if kind is not None and kind not in found:
                found[kind] = NamedValue(kind, match["name"], _number(match["value"]))
        return list(found.values())


def _number(text: str) -> float:
    return float(text.replace(",", ""))


@cache
def load() -> CurveTable:
    """Load the table; raises InvalidCorpusError naming the field that is wrong."""
    path = Path(__file__).with_name(FILE)
    return library.validated(CurveTable, {"kinds": library.read_yaml(path)}, str(path))
