"""A row of a log as configuration, and the bounded log of the settings that were seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ingest.configfiles.settings import Setting


class ConfigLine(NamedTuple):
    """A line of the log: its number, and its text without the prefixes of launchers and loggers."""

    number: int
    body: str


class SettingLog:
    """The settings of one log; the first line that shows a value keeps it, up to a bound.

    Of several runs in one log the last counts: a row that prints all options of a program, as an earlier one
    has done, begins another run of it.
    """

    LIMIT = 5000
    # Names that a row at least prints which is a program's whole command line.
    WHOLE = 8

    def __init__(self) -> None:
        self._found: dict[str, Setting] = {}
        self._whole: dict[frozenset[str], int] = {}

    def add(self, settings: Iterable[Setting]) -> None:
        """Take in settings; a later value of the same key does not replace the first of the same run."""
        given = list(settings)
        before = self._earlier_run(given)
        for setting in given:
            held = self._found.get(setting.key)
            if held is not None and before and held.line == before:
                self._found[setting.key] = setting
            elif len(self._found) < self.LIMIT:
                self._found.setdefault(setting.key, setting)

    def _earlier_run(self, settings: Sequence[Setting]) -> int:
        """Give the row that printed the very same options before; 0 where none did."""
        lines = {setting.line for setting in settings}
        if len(settings) < self.WHOLE or len(lines) > 1:
            return 0
        names = frozenset(setting.key for setting in settings)
        before = self._whole.get(names, 0)
        self._whole[names] = lines.pop()
        return before

    def all(self) -> tuple[Setting, ...]:
        """Give what was found, in the order in which it was added."""
        return tuple(self._found.values())
