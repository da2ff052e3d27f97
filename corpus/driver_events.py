"""What the numbered errors of a GPU's driver mean and ask for: rows of `driver_events.yaml`."""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from corpus import library
from corpus.schema import Record, Text

FILE = "driver_events.yaml"
# Kinds of facts, and of numbers: of a GPU, of an NVSwitch.
KINDS = frozenset(("xid", "sxid"))

SpeaksFor = Literal["hardware", "link", "firmware", "program", "consequence", "notice"]
Recovery = Literal[
    "ignore",
    "restart-app",
    "check-app",
    "reset-gpu",
    "reboot",
    "restart-vm",
    "check-links",
    "check-fabric-manager",
    "check-power",
    "update-software",
    "contact-support",
    "follow-other",  # what another number of the same moment asks for
    "as-told",  # what the line itself names
]


class DriverEvent(Record):
    """Numbers of one meaning; `recovery` is the vendor's first step, `later` the one after it."""

    event: Literal["xid", "sxid"]
    codes: Annotated[tuple[int, ...], Field(min_length=1)]
    name: str
    speaks_for: SpeaksFor
    recovery: Recovery
    later: Recovery | None = None
    cards: tuple[str, ...] = ()
    title: Text


class DriverEvents(Record):
    """All rows; a number stands in one of its kind."""

    rows: Annotated[tuple[DriverEvent, ...], Field(min_length=1)]

    @cached_property
    def _by_code(self) -> dict[tuple[str, int], DriverEvent]:
        return {(row.event, code): row for row in self.rows for code in row.codes}

    @model_validator(mode="after")
    def _is_unique(self) -> Self:
        if len(self._by_code) < sum(len(row.codes) for row in self.rows):
            raise ValueError("a number stands in two rows")
        return self

    def of(self, event: str, code: object) -> DriverEvent | None:
        """Give the row of a number, if it is in the catalogue."""
        return self._by_code.get((event, code)) if isinstance(code, int) else None


@cache
def load() -> DriverEvents:
    """Load the table; raises InvalidCorpusError naming the field that is wrong."""
    path = Path(__file__).with_name(FILE)
    return library.validated(DriverEvents, {"rows": library.read_yaml(path)}, str(path))
