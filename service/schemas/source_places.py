"""Where code tells what a job's failure says: in the frameworks' releases, and on the machine at hand."""

from __future__ import annotations

from typing import Literal

from service.schemas.parts import Part, place_of


class SourcePlace(Part):
    """Where a framework's own source tells what a line of the log says.

    `line` and `file` are the log's. `path`, `source_line` and `symbol` are the place at `version`, which is
    the job's where that was read, `url` its address; `versions` leaves out the versions known to lack it.
    `settings` are those that the condition before it reads, or that the message names.
    """

    line: int
    file: str | None = None
    package: str
    versions: str
    version: str
    path: str
    source_line: int
    symbol: str
    exception: str = ""
    settings: tuple[str, ...] = ()
    url: str | None = None

    @property
    def place(self) -> str:
        """How the log's line is named."""
        return place_of(self.file, self.line)


class ReadStatement(Part):
    """What the code on the machine says of a call of the failing stack.

    `line` and `file` are the log's; `path`, `source_line` and `symbol` the call's. `statement` stands there
    and is reached only if the `conditions` hold, the nearest first; `settings` are those that they read, or
    that its message names. `standing` is `other-version` where the file at hand says something else there
    than the traceback, and `not-parsed` where it could not be read.
    """

    line: int
    file: str | None = None
    path: str
    source_line: int
    symbol: str
    standing: Literal["read", "other-version", "not-parsed"] = "read"
    statement: str = ""
    conditions: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """How the log's line is named."""
        return place_of(self.file, self.line)
