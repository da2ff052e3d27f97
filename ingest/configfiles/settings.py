"""A setting of the job: its name, its value, and where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Spelling = Literal["hydra", "flag", "env", "dump", "yaml", "json", "package", "directive"]

# A dotted path of names; what else stands before a colon or equals sign is no setting's name.
_KEY = re.compile(r"[\w$@/+~-][\w.$@/+~-]{0,299}")
_VARIABLE = re.compile(r"(?:^|\.)(?:env_vars|environment|env)\.(?P<name>[A-Z_][A-Z0-9_]*|RAY_\w+)$")
LONGEST = 4000


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
