"""A row of a log as configuration, and the bounded log of the settings that were seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ingest.configfiles.settings import Setting


class ConfigLine(NamedTuple):
    """A line of the log: its number, and its text without the prefixes of launchers and loggers."""

    number: int
    body: str


class SettingLog:
    """The settings of one log; the first line that shows a value keeps it, up to a bound."""

    LIMIT = 5000

    def __init__(self) -> None:
        self._found: dict[str, Setting] = {}

    def add(self, settings: Iterable[Setting]) -> None:
        """Take in settings; a later value of the same key does not replace the first."""
        for setting in settings:
            if len(self._found) < self.LIMIT:
                self._found.setdefault(setting.key, setting)

    def all(self) -> tuple[Setting, ...]:
        """Give what was found, in the order in which it was added."""
        return tuple(self._found.values())
