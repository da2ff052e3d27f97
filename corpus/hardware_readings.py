"""Which readings of a tool's report on cards and ports are bad: rows of `hardware_readings.yaml`."""

from __future__ import annotations

import re
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from corpus import library
from corpus.expressions import compiled
from corpus.schema import Expression, Record

FILE = "hardware_readings.yaml"

# What DCGM writes for a field that holds nothing: blank, not found, not supported, not permitted, each for
# numbers of 32 and 64 bits and for floating ones (dcgm_structs.h).
_BLANKS = frozenset(first + more for first in (0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 1 << 47) for more in range(4))
_NUMBER = re.compile(r"^(\d{1,19})(?:\.0*)?(?:\s|$)")


class BadReading(Record):
    """A reading that is bad: where it stands, and the value's words or the number that it is above."""

    finding: str
    at: Expression = ""
    words: Annotated[Expression, Field(alias="is")] = ""
    above: int | None = None

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if bool(self.words) == (self.above is not None):
            raise ValueError("a reading is bad by words or by a number")
        return self

    def found(self, path: str, value: str) -> dict[str, str] | None:
        """Give what path and value name where they are bad, else None."""
        where = compiled(self.at).search(path)
        if where is None:
            return None
        if self.above is not None:
            number = _NUMBER.match(value)
            is_bad = number is not None and int(number[1]) not in _BLANKS and int(number[1]) > self.above
            return _named(where) if is_bad else None
        told = compiled(self.words).search(value)
        return _named(where) | _named(told) if told is not None else None


class ReportKind(Record):
    """One tool's report; `readings` finds name, value and perhaps device of those that no colon parts."""

    tool: str
    begins: Expression
    devices: Expression = ""
    readings: Expression = ""
    bad: Annotated[tuple[BadReading, ...], Field(min_length=1)]

    @cached_property
    def begin(self) -> re.Pattern[str]:
        """The expression for a report's first characters."""
        return re.compile(self.begins)

    @cached_property
    def device(self) -> re.Pattern[str] | None:
        """The expression for the heading of a device."""
        return re.compile(self.devices) if self.devices else None

    @cached_property
    def reading(self) -> re.Pattern[str] | None:
        """The expression for a name and its value, where the tool has a form of its own."""
        return re.compile(self.readings) if self.readings else None


class ReportTable(Record):
    """All kinds; the first counts that a report begins like."""

    rows: Annotated[tuple[ReportKind, ...], Field(min_length=1)]

    def of(self, head: str) -> ReportKind | None:
        """Give the kind of a report by its first characters."""
        if self.any_begin.search(head) is None:
            return None
        return next((row for row in self.rows if row.begin.search(head)), None)

    @cached_property
    def any_begin(self) -> re.Pattern[str]:
        """One expression for all beginnings: every file of a job is asked."""
        return re.compile("|".join(f"(?:{row.begins})" for row in self.rows))


def _named(found: re.Match[str]) -> dict[str, str]:
    return {name: value.strip() for name, value in found.groupdict().items() if value and value.strip()}


@cache
def load() -> ReportTable:
    """Load the table; raises InvalidCorpusError naming the field that is wrong."""
    path = Path(__file__).with_name(FILE)
    return library.validated(ReportTable, {"rows": library.read_yaml(path)}, str(path))
