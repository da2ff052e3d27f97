"""Python tracebacks in a log: chained ones, Ray's remote ones, and several processes' at once.

Grammar: CPython's `traceback` module and Ray's `RayTaskError.__str__` (python/ray/exceptions.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from ingest.logs.lines import Line, parse
from ingest.logs.scanner import Block

MAX_LINES = 600
# How many lines of all processes one traceback may be spread over.
MAX_AMONG = 6000
# Other output of the same process between two frames (a progress bar, say) that is passed over.
MAX_NOISE = 20

_START = re.compile(r"Traceback \(most recent call last\):\s*$")
_FRAME = re.compile(r'^\s*(?:\| ?)?\s*File "(?P<file>[^"]+)", line (?P<line>\d{1,9})(?:, in (?P<function>.+))?')
_EXCEPTION = re.compile(
    r"^(?:\|\s*)?(?P<type>(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*|error|timeout|herror|gaierror))(?P<inner>\([\w.]+\))?(?:: (?P<message>.*)|:?\s*$)"
)
_REMOTE = re.compile(r"\bray::(?P<call>[\w.:<>]+)\(\)? ?.*?\(?pid=(?P<pid>\d+)(?:, ip=(?P<ip>[\w.:]+))?")
_CHAIN = re.compile(r"^(?:During handling of the above exception|The above exception was the direct cause)")


@dataclass(frozen=True, slots=True)
class Frame:
    """One call of a traceback; `code` is the line of source that Python quotes, where it could."""

    file: str
    line: int
    function: str
    code: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.function}"


@dataclass(frozen=True, slots=True)
class Traceback:
    """One exception with its frames, outermost first.

    `end` is the line that names the exception; where the log ends before it, `exception` is empty. `remote` is Ray's name of the remote call where the
    exception came out of another process.
    """

    start: int
    end: int
    source: str
    frames: tuple[Frame, ...]
    exception: str
    message: str
    text: str
    remote: str = ""


def at(block: Block, offset: int, number: int, known: dict[int, Line] | None = None) -> list[Traceback]:
    """Read the traceback whose first line holds `offset`, and Ray's remote part after it, if any.

    `known` keeps parsed lines by their place in the block: many processes' tracebacks stand among each other.
    """
    lines = _lines(block, offset, number, {} if known is None else known)
    first = next(lines, None)
    if first is None or not _START.search(first.body):
        return []
    return _collect(first, lines)


def _lines(block: Block, offset: int, number: int, known: dict[int, Line]) -> Iterator[Line]:
    begin, _ = block.line_bounds(offset)
    for _ in range(MAX_AMONG):
        if begin >= len(block.data):
            return
        end = block.data.find(b"\n", begin)
        end = len(block.data) if end < 0 else end
        if begin not in known:
            known[begin] = parse(block.data[begin : min(end, begin + 65536)], number)
        yield known[begin]
        begin, number = end + 1, number + 1


def _collect(first: Line, lines: Iterator[Line]) -> list[Traceback]:
    found: list[Traceback] = []
    frames: list[Frame] = []
    start, remote, noise, last = first.number, "", 0, first
    indent = len(first.body) - len(first.body.lstrip())
    for line in islice((line for line in lines if line.source == first.source), MAX_LINES):
        body = line.body[indent:] if line.body[:indent].isspace() else line.body
        if frame := _FRAME.match(body):
            frames.append(Frame(frame["file"], int(frame["line"]), frame["function"] or "<module>"))
            noise = 0
        elif _START.search(body) or _CHAIN.match(body):
            return found
        elif not body.strip() or body[0].isspace():
            if frames and not frames[-1].code and body.strip():
                frames[-1] = replace(frames[-1], code=body.strip())
        elif (exception := _EXCEPTION.match(body)) and frames:
            found.append(_built(start, line, first.source, frames, exception, remote))
            again = _REMOTE.search(body)
            if again is None:
                return found
            start, frames, remote = line.number, [], again["call"]
        else:
            noise += 1
            if noise > MAX_NOISE:
                return found
        last = line
    return found if found or not frames else [_cut(start, last, first.source, frames)]


def _cut(start: int, last: Line, source: str, frames: list[Frame]) -> Traceback:
    """Give a traceback that the log ends in before it names its exception."""
    return Traceback(start, last.number, source, tuple(frames), "", "", last.text)


def _built(
    start: int, line: Line, source: str, frames: list[Frame], exception: re.Match[str], remote: str
) -> Traceback:
    name = exception["type"] + (exception["inner"] or "")
    return Traceback(start, line.number, source, tuple(frames), name, exception["message"] or "", line.text, remote)
