"""A setting of the job, and the bounded log of those that were seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

Spelling = Literal["hydra", "flag", "env", "dump", "yaml", "json", "package", "directive"]

# A dotted path of names; what else stands before a colon or equals sign is no setting's name.
_KEY = re.compile(r"[\w$@/+~-][\w.$@/+~-]{0,299}")
_VARIABLE = re.compile(r"(?:^|\.)(?:env_vars|environment|env)\.(?P<name>[A-Z_][A-Z0-9_]*|RAY_\w+)$")
LONGEST = 4000


class ConfigLine(NamedTuple):
    """A line of the log: its number, and its text without the prefixes of launchers and loggers."""

    number: int
    body: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the job: name and value as written, and the line that shows it."""

    key: str
    value: str
    line: int
    spelled: Spelling


def printed(pairs: Iterable[tuple[str, str, int]], spelled: Spelling = "dump") -> Iterator[Setting]:
    """Make settings of printed (path, value, line).

    A variable below `env_vars` or `env` goes by its own name.
    """
    for path, value, line in pairs:
        if match := _VARIABLE.search(path):
            yield Setting(match["name"], value[:LONGEST], line, "env")
        elif _KEY.fullmatch(path):
            yield Setting(path, value[:LONGEST], line, spelled)


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
        """Give what was found, by line."""
        return tuple(self._found.values())
