"""What a stack in a log is made of, and how the lines around it are walked: one process's among all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Literal

from ingest.logs.lines import MAX_TEXT, Line, parse_line
from ingest.logs.scanner import Block

MAX_LINES = 600
# How many lines of all processes one stack may be spread over.
MAX_AMONG = 6000
# How far back a line of the same process is looked for.
MAX_BACK = 400
LONGEST = 65536
# Lines below an exception that may still tell of its chain.
MAX_BELOW = 12

EXCEPTION = re.compile(
    r"^(?P<type>(?:(?:[A-Za-z_]\w*|<locals>)\.)*(?:_?[A-Z]\w*|error|timeout|herror|gaierror))"
    r"(?P<inner>\([\w.]+\))?(?:: (?P<message>.*)|:?\s*$)"
)

Language = Literal["python", "native", "rust", "go", "java"]
_DRIVE = re.compile(r"[A-Za-z]:\\")
_LINK = re.compile(r"\W*(?:During handling of the above exception|The above exception was the direct cause)")


@dataclass(frozen=True, slots=True)
class Frame:
    """One call of a traceback; `code` is the line of source that Python quotes, where it could.

    Of a compiled frame `file` is the library and `line` 0 where there are no debug symbols.
    """

    file: str
    line: int
    function: str
    code: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.function}"


def posix_path(file: str) -> str:
    """Give a path of Windows, with its drive, as all others are written; any other as it is."""
    return file.replace("\\", "/") if _DRIVE.match(file) else file


@dataclass(frozen=True, slots=True)
class Traceback:
    """One exception with its frames, outermost first.

    `end` is the line that names the exception; where the log ends before it, `exception` is empty. A
    stack of compiled code names it first, so there `end` equals `start`. `remote` is the name of the
    remote call or process where the exception came out of another one. `linked` tells that it came of the
    one above it, while that was handled. `rest` are the next lines of the process, where the message opens
    what only they tell; `announces` tells that these are another stack, whose exception is the reason.
    `calm` is how many lines right above it its process said without a word of trouble,
    `logged` that a logger announced it, which has it in hand.
    """

    start: int
    end: int
    source: str
    frames: tuple[Frame, ...]
    exception: str
    message: str
    text: str
    remote: str = ""
    language: Language = "python"
    linked: bool = False
    rest: str = ""
    announces: bool = False
    calm: int = 0
    logged: bool = False

    @property
    def is_event(self) -> bool:
        """Tell whether the stack alone is a failure.

        That of compiled code needs a banner that some pattern knows.
        """
        return self.language in ("python", "go", "java")


def below(block: Block, offset: int, number: int, known: dict[int, Line]) -> Iterator[Line]:
    """Give the line that holds `offset`, and those after it."""
    begin, _ = block.line_bounds(offset)
    for place in range(MAX_AMONG):
        if begin >= len(block.data):
            return
        end = block.data.find(b"\n", begin)
        end = len(block.data) if end < 0 else end
        if place == 0 and (end - begin > MAX_TEXT or block.data.find(b"\r", begin, end) >= 0):
            # A redrawn row: the part that holds the byte, and those behind it.
            raw, column = block.data[begin:end], offset - begin
            yield parse_line(raw, number, column)
            while column := raw.find(b"\r", column) + 1:
                yield parse_line(raw, number, column)
        else:
            yield _parsed(block, begin, end, number, known)
        begin, number = end + 1, number + 1


def above(block: Block, offset: int, number: int, known: dict[int, Line]) -> Iterator[Line]:
    """Give the lines before the one that holds `offset`, the nearest first."""
    end = block.line_bounds(offset)[0] - 1
    for _ in range(MAX_BACK):
        if end < 0:
            return
        begin = block.data.rfind(b"\n", 0, end) + 1
        number -= 1
        yield _parsed(block, begin, end, number, known)
        end = begin - 1


def of(source: str, lines: Iterator[Line], most: int = MAX_LINES) -> Iterator[Line]:
    """Give the lines of one process."""
    return islice((line for line in lines if line.source == source), most)


def near(lines: Iterator[Line], start: int, end: Line, own: int) -> Iterator[Line]:
    """Give the few lines of the same process below `end`, no farther than the stack's lines are apart."""
    reach = end.number + MAX_BELOW * (1 + (end.number - start) // max(1, own))
    return of(end.source, takewhile(lambda line: line.number <= reach, lines), MAX_BELOW)


def links(body: str) -> bool:
    """Tell whether a line joins the exception above it to one below."""
    return _LINK.match(body) is not None


def _parsed(block: Block, begin: int, end: int, number: int, known: dict[int, Line]) -> Line:
    if begin not in known:
        known[begin] = parse_line(block.data[begin : min(end, begin + LONGEST)], number)
    return known[begin]
