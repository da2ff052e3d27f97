"""What a process is doing, told by the calls of its stack: rows of `stack_activities.yaml`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field

from corpus import library
from corpus.schema import Expression, Record, Text

FILE = "stack_activities.yaml"


class Activity(Record):
    """One thing that a process can be doing.

    `packages` is searched in a call's file, `calls` in `FILE:FUNCTION`. Who `waits` does so for other ranks.
    A `helper` is no rank. An `innermost` row fits the innermost call alone.
    """

    name: str
    title: Text
    packages: Expression = ""
    calls: Expression = ""
    waits: bool = False
    helper: bool = False
    innermost: bool = False

    @cached_property
    def _package(self) -> re.Pattern[str] | None:
        return re.compile(self.packages) if self.packages else None

    @cached_property
    def _call(self) -> re.Pattern[str] | None:
        return re.compile(self.calls) if self.calls else None

    def is_package(self, file: str) -> bool:
        """Tell whether a file belongs to one of the packages."""
        return self._package is not None and self._package.search(file) is not None

    def fits(self, file: str, function: str) -> bool:
        """Tell whether a call is one of these."""
        is_call = self._call is not None and self._call.search(f"{file}:{function}") is not None
        return is_call or self.is_package(file)


class ActivityTable(Record):
    """All rows, in the order in which they are asked."""

    rows: Annotated[tuple[Activity, ...], Field(min_length=1)]

    def of(self, calls: Sequence[tuple[str, str]]) -> tuple[Activity | None, int]:
        """Tell what a stack does, and the place of the call that tells; calls are outermost first.

        A stack is a file and a function each. Place is -1 where no row fits.
        """
        for helper in (row for row in self.rows if row.helper):
            place = next((place for place, call in enumerate(calls) if helper.fits(*call)), -1)
            if place >= 0:
                return helper, place
        for place in reversed(range(len(calls))):
            for row in self.rows:
                if (not row.innermost or place == len(calls) - 1) and row.fits(*calls[place]):
                    return row, place
        return None, -1

    def knows_package(self, file: str) -> bool:
        """Tell whether a file belongs to a package that any row names."""
        return any(row.is_package(file) for row in self.rows)


@cache
def load() -> ActivityTable:
    """Load the table; raises InvalidCorpusError naming the field that is wrong."""
    path = Path(__file__).with_name(FILE)
    return library.validated(ActivityTable, {"rows": library.read_yaml(path)}, str(path))
