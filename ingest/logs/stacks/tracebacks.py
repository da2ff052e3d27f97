"""Tracebacks in a log: Python's, chained, grouped, quoted or remote, and the stacks of other languages.

Grammar: CPython's `traceback` module, Ray's `RayTaskError.__str__` (python/ray/exceptions.py), the
`error_file` of torch.distributed.elastic. Several processes may print at once; each is read by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from ingest.logs.lines import Line, printable
from ingest.logs.scanner import Block
from ingest.logs.stacks import boxes, native, panics, stack
from ingest.logs.stacks.stack import Frame, Link, Traceback

__all__ = ["Frame", "Link", "Traceback", "at", "quotes"]

# Other output of the same process between two frames (a progress bar, say) that is passed over.
MAX_NOISE = 20
NOTES = 6

_START = re.compile(r"Traceback \(most recent call last\):\s*$")
# The same on one line with its line ends escaped: an `error_file`, a JSON log.
_ESCAPED = re.compile(r"Traceback \(most recent call last\):(?:\\{1,8}r)?\\{1,8}n.*")
# JSON escapes the quotes as well; Python's repr of a traceback leaves them.
_JSON = re.compile(r'[^"]*\\"')
_STRING = re.compile(r'(?:[^"\\]|\\.)*')
_NEWLINE = re.compile(r"(?:\\{1,8}r)?\\{1,8}n")
_FRAME = re.compile(r'^\s*(?:[|>│] ?)?\s*File "(?P<file>[^"]+)", line (?P<line>\d{1,9})(?:, in (?P<function>.+))?')
_REPEATED = re.compile(r"\s*\[Previous line repeated \d{1,9} more times?\]")
_REMOTE = re.compile(r"\bray::(?P<call>[\w.:<>]+)\(\)? ?.*?\(?pid=(?P<pid>\d+)(?:, ip=(?P<ip>[\w.:]+))?")
_PROCESS = re.compile(r"-- (?P<call>Process \d+) terminated with the following error:")
# What parts notes from what comes after them: the end of a quotation, the line between a group's members.
_RULE = re.compile(r'\s*(?:"""|\+[-+]*----)')
_SYNTAX = re.compile(r'^\s*File "[^"]+", line \d{1,9}\s*$')
_QUOTED = re.compile(r"\s|[│|] |-+>? *\d+ ")


def at(block: Block, offset: int, number: int, known: dict[int, Line] | None = None) -> list[Traceback]:
    """Read the stack whose first line holds `offset`, and Ray's remote part after it, if any.

    `known` keeps parsed lines by their place in the block: many processes' stacks stand among each other.
    """
    known = {} if known is None else known
    lines = stack.below(block, offset, number, known)
    first = next(lines, None)
    if first is None:
        return []
    earlier = stack.of(first.source, stack.above(block, offset, number, known), 6)
    for reader in _READERS:
        found = reader(first, lines, earlier)
        if found is not None:
            return found
    return []


def quotes(body: str) -> bool:
    """Tell whether a line between a traceback's first and last is source code that it shows."""
    return _QUOTED.match(body) is not None


def _plain(first: Line, lines: Iterator[Line], earlier: Iterator[Line]) -> list[Traceback] | None:
    return _collect(first, lines, earlier) if _START.search(first.body) else None


def _escaped(first: Line, _lines: Iterator[Line], _earlier: Iterator[Line]) -> list[Traceback] | None:
    match = _ESCAPED.search(first.text)
    if match is None:
        return None
    head, *rows = [replace(first, body=row) for row in printable(_unescaped(match[0]), keep="\t\n").split("\n")]
    return _collect(head, iter(rows), iter(()))


def _unescaped(text: str) -> str:
    for _ in range(3):  # a message inside a JSON document inside another
        string = _STRING.match(text) if _JSON.match(text) else None
        try:
            text = str(json.loads(f'"{string[0]}"', strict=False)) if string else text
        except ValueError:  # cut off: the line ends are what matters
            break
        if not _NEWLINE.search(text):
            return text
    return _NEWLINE.sub("\n", text).replace('\\"', '"')


def _uncompiled(first: Line, lines: Iterator[Line], earlier: Iterator[Line]) -> list[Traceback] | None:
    """Read a script's syntax error, which Python prints without a header: nothing was called yet."""
    if not _SYNTAX.match(first.body):
        return None
    above = next(earlier, None)
    if above is not None and (above.body[:1].isspace() or _START.search(above.body)):
        return []
    frame = _FRAME.match(first.body)
    reading = _Reading(first)
    reading.frames = [_frame(frame)] if frame else []
    return [one for one in reading.all(islice(lines, MAX_NOISE)) if one.exception]


_Read = Callable[[Line, Iterator[Line], Iterator[Line]], "list[Traceback] | None"]
_READERS: tuple[_Read, ...] = (_plain, boxes.read, _escaped, native.read, panics.read, _uncompiled)


def _collect(first: Line, lines: Iterator[Line], earlier: Iterator[Line]) -> list[Traceback]:
    reading = _Reading(first)
    told = next((body for line in earlier if (body := reading.cut(line.body)).strip(' "|')), "")
    reading.follows = stack.linked(told)
    if process := _PROCESS.search(told):
        reading.remote = process["call"]
    return reading.all(lines)


@dataclass
class _Reading:
    """What is gathered of one traceback, and of Ray's remote parts, while its process's lines go by."""

    first: Line
    found: list[Traceback] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    remote: str = ""
    follows: Link = ""

    def __post_init__(self) -> None:
        """Measure the margin that the header stands behind: a group's bars, a summary's indentation."""
        self._start = self.first.number
        self._last = self.first
        self._noise = 0
        self._is_broken = False
        width = len(self.first.body) - len(self.first.body.lstrip(" |+│"))
        self._margin = re.compile(rf"[\s|+│]{{{width}}}")

    def cut(self, body: str) -> str:
        """Take off the header's margin, where the line has it."""
        match = self._margin.match(body)
        return body[match.end():] if match else body

    def all(self, lines: Iterator[Line]) -> list[Traceback]:
        """Read on to the end, and what stands below it."""
        while self._among(lines) and self._goes_on(lines):
            pass
        if self.found or self._is_broken or not self.frames:
            return self.found
        return [self._built(self._last, "", "")]

    def _among(self, lines: Iterator[Line]) -> bool:
        """Read frames up to the exception; tell whether it came."""
        for line in stack.of(self.first.source, lines):
            came = self._row(line, self.cut(line.body))
            if came is not None:
                self._is_broken = not came
                return came
            self._last = line
        return False

    def _row(self, line: Line, body: str) -> bool | None:
        """Take in a row; tell whether it is the exception (True) or the traceback broke off (False)."""
        if frame := _FRAME.match(body):
            self.frames.append(_frame(frame))
            self._noise = 0
            return None
        if not body.strip() or body[0].isspace():
            self._code(body)
            return None
        if _START.search(body) or stack.linked(body):
            return False
        return self._end(line, body)

    def _code(self, body: str) -> None:
        if self.frames and not self.frames[-1].code and body.strip() and not _REPEATED.match(body):
            self.frames[-1] = replace(self.frames[-1], code=body.strip())

    def _end(self, line: Line, body: str) -> bool | None:
        exception = stack.EXCEPTION.match(body)
        if exception is None or not (self.frames or self.found):
            self._noise += 1
            return False if self._noise > MAX_NOISE else None
        self.found.append(self._built(line, exception["type"] + (exception["inner"] or ""), exception["message"] or ""))
        self._last = line
        again = _REMOTE.search(body)
        if again is None:
            return True
        self._part(line, again["call"], "")
        return None

    def _part(self, line: Line, call: str, follows: Link) -> None:
        self._start, self.frames, self.remote, self.follows = line.number, [], call, follows

    def _goes_on(self, lines: Iterator[Line]) -> bool:
        """Look below the exception for notes and the next link; tell whether Ray's next part begins there."""
        rows: list[Line] = []
        followed: Link = ""
        call: re.Match[str] | None = None
        for line in stack.near(lines, self._start, self._last, len(self.frames)):
            body = self.cut(line.body)
            if _START.search(body) or _FRAME.match(body):
                break
            if followed and body.strip():
                call = _REMOTE.match(body)
                break
            followed = followed or stack.linked(body)
            rows.append(line)
        self.found[-1] = replace(self.found[-1], notes=tuple(self._notes(rows[:NOTES])), followed=followed)
        if call:
            self._part(line, call["call"], followed)
        return call is not None

    def _notes(self, rows: list[Line]) -> Iterator[str]:
        for line in rows:
            body = self.cut(line.body)
            if not body.strip() or _RULE.match(body) or stack.linked(body) or bool(line.time) != bool(self._last.time):
                return
            yield body

    def _built(self, line: Line, exception: str, message: str) -> Traceback:
        return Traceback(
            self._start, line.number, self.first.source, tuple(self.frames), exception, message, line.text, self.remote,
            follows=self.follows,
        )


def _frame(match: re.Match[str]) -> Frame:
    return Frame(match["file"], int(match["line"]), match["function"] or "<module>")
