"""A setting of the job: its name, its value, and where it stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from corpus.schema import Scalar

Spelling = Literal["hydra", "flag", "env", "dump", "yaml", "json", "package", "directive"]

# A dotted path of names; what else stands before a colon or equals sign is no setting's name.
_KEY = re.compile(r"[\w$@/+~-][\w.$@/+~-]{0,299}")
_VARIABLE = re.compile(r"(?:^|\.)(?:env_vars|environment|env)\.(?P<name>[A-Z_][A-Z0-9_]*|RAY_\w+)$")
LONGEST = 4000


class Edit(Protocol):
    """A piece of a file's text that goes, and what comes there; a format may know more of its edits."""

    @property
    def start(self) -> int:
        """The offset of the first character that goes."""

    @property
    def end(self) -> int:
        """The offset behind the last character that goes."""

    @property
    def new(self) -> str:
        """The text that comes there."""


class TextEdit(NamedTuple):
    """Replace text[start:end] by `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Where a setting's value stands in its file: offsets, 1-based line and column, and whose it is.

    `scope` is the program, the container or the part of the file that gets the setting; empty for the whole
    file. `write` gives the edit that puts another value there; it raises NotPatchableError.
    """

    start: int
    line: int
    column: int
    scope: str
    write: Callable[[Scalar], Edit] = field(compare=False, repr=False)


def edited(text: str, edit: Edit) -> str:
    """Give a text with one edit made."""
    return text[: edit.start] + edit.new + text[edit.end :]


def place_at(text: str, start: int, scope: str, write: Callable[[Scalar], Edit]) -> FilePlace:
    """Make the place of an offset; only newlines end lines."""
    return FilePlace(start, text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start), scope, write)


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the job: name and value as written, and the line that shows it.

    `place` is where a file of the job can be edited to change it; None for what a log shows, what is
    computed, and what stands in a file that is damaged. `file` names the file of the job's that it is of,
    empty for what the log shows; `row` is then the row of its value there, 0 where that is not known, and
    `scope` the program, the call or the part of the file that gets it, as in `FilePlace`.
    """

    key: str
    value: str
    line: int
    spelled: Spelling
    place: FilePlace | None = field(default=None, compare=False, repr=False)
    file: str = field(default="", compare=False)
    scope: str = field(default="", compare=False)
    row: int = field(default=0, compare=False)


def named_as_printed(path: str, value: str, line: int, spelled: Spelling) -> Setting | None:
    """Make a setting of a printed path; a variable below `env_vars` or `env` goes by its own name."""
    if match := _VARIABLE.search(path):
        return Setting(match["name"], value[:LONGEST], line, "env")
    return Setting(path, value[:LONGEST], line, spelled) if _KEY.fullmatch(path) else None


def printed(pairs: Iterable[tuple[str, str, int]], spelled: Spelling = "dump") -> Iterator[Setting]:
    """Make settings of printed (path, value, line); what is no setting's name is left out."""
    for path, value, line in pairs:
        if setting := named_as_printed(path, value, line, spelled):
            yield setting
