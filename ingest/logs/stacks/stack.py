"""What a stack in a log is made of, and how the lines around it are walked: one process's among all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Literal

from ingest.logs.lines import MAX_TEXT, Line, parse
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
    r"^(?P<type>(?:(?:[A-Za-z_]\w*|<locals>)\.)*(?:[A-Z]\w*|error|timeout|herror|gaierror))"
    r"(?P<inner>\([\w.]+\))?(?:: (?P<message>.*)|:?\s*$)"
)

Language = Literal["python", "native", "rust", "go", "java"]
# How an exception came after the one above it: raised `from` it, or while it was being handled.
Link = Literal["", "cause", "context"]

_CHAIN: tuple[tuple[re.Pattern[str], Link], ...] = (
    (re.compile(r"\W*During handling of the above exception"), "context"),
    (re.compile(r"\W*The above exception was the direct cause"), "cause"),
)
# What these say is another exception's news: a child process's, a task's, a retried call's.
_MESSENGERS = frozenset({
    "ProcessRaisedException", "ProcessExitedException", "ChildFailedError", "RetryError", "RemoteTraceback", "_RemoteTraceback",
    "ExceptionGroup", "BaseExceptionGroup",
})
# What code asks for and handles every day; where another exception follows its handling, that one is the failure.
_PROBES = frozenset({
    "KeyError", "AttributeError", "ImportError", "ModuleNotFoundError", "StopIteration", "IndexError",
    "FileNotFoundError", "Empty",
})


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


@dataclass(frozen=True, slots=True)
class Traceback:
    """One exception with its frames, outermost first.

    `end` is the line that names the exception; where the log ends before it, `exception` is empty. A
    stack of compiled code names it first, so there `end` equals `start`. `remote` is the name of the
    remote call or process where the exception came out of another one. `follows` tells how it came after
    the exception above it, `followed` how the one below came after it; `causes` are the exceptions above,
    in the order they were raised. `notes` are the lines below the exception's own: more of its message,
    or notes (PEP 678), which look alike.
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
    follows: Link = ""
    followed: Link = ""
    causes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_event(self) -> bool:
        """Tell whether the stack alone is a failure; that of compiled code needs a banner that some pattern knows."""
        return self.language in ("python", "go", "java")

    @property
    def is_wrapper(self) -> bool:
        """Tell whether another link of its chain is to blame.

        The cause of a `raise ... from` is; of an exception while another was handled, the later one where
        the earlier is a mere probe, such as a key that a cache does not hold.
        """
        name = self.exception.rpartition(".")[2].split("(")[0]
        return self.follows == "cause" or name in _MESSENGERS or (self.followed == "context" and name in _PROBES)


def below(block: Block, offset: int, number: int, known: dict[int, Line]) -> Iterator[Line]:
    """Give the line that holds `offset`, and those after it."""
    begin, _ = block.line_bounds(offset)
    for place in range(MAX_AMONG):
        if begin >= len(block.data):
            return
        end = block.data.find(b"\n", begin)
        end = len(block.data) if end < 0 else end
        if place == 0 and end - begin > MAX_TEXT:
            yield parse(block.data[begin:end], number, offset - begin)
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
    """Give the few lines below `end` of the same process, no farther down than the stack's own lines are apart."""
    reach = end.number + MAX_BELOW * (1 + (end.number - start) // max(1, own))
    return of(end.source, takewhile(lambda line: line.number <= reach, lines), MAX_BELOW)


def linked(body: str) -> Link:
    """Tell which link of a chain a line announces."""
    return next((link for expression, link in _CHAIN if expression.match(body)), "")


def announced(lines: Iterable[Line]) -> Link:
    """Tell how the exception below came about, by the nearest line above it that has words."""
    body = next((line.body for line in lines if line.body.strip(' "|')), "")
    return linked(body)


def _parsed(block: Block, begin: int, end: int, number: int, known: dict[int, Line]) -> Line:
    if begin not in known:
        known[begin] = parse(block.data[begin : min(end, begin + LONGEST)], number)
    return known[begin]
