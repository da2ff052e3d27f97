"""What a stack in a log is made of, and how the lines around it are walked: one process's among all."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Literal

from corpus.paths import base_name
from ingest.logs.lines import MAX_TEXT, SHAPED, Line, line_like, names_source, parse_line, printed_layout
from ingest.logs.prefixes import marks_within, rank_marks
from ingest.logs.scanner import Block

MAX_LINES = 600
# How many lines of all processes one stack may be spread over.
MAX_AMONG = 6000
# How far back a line of the same process is looked for.
MAX_BACK = 400
LONGEST = 65536
# So many lines above one are looked at for what they are known to be.
GLANCED = 8
# In how many bytes at once the next line of a process is looked for: at first, and where none was found.
STRIDE, LONGEST_STRIDE = 1 << 10, 64 << 10
# Lines below an exception that may still tell of its chain.
MAX_BELOW = 12

EXCEPTION = re.compile(
    r"^(?P<type>(?:(?:[A-Za-z_]\w*|<locals>)\.)*(?:_?[A-Z]\w*|error|timeout|herror|gaierror))"
    r"(?P<inner>\([\w.]+\))?(?:: (?P<message>.*)|:?\s*$)"
)

# Under which name a block keeps how its ranks are marked.
_MARKS = "marks of ranks"
Language = Literal["python", "native", "rust", "go", "java"]
# What stands in a line as it does in its source's name: no truth value of JSON, no number that may be written
# otherwise, and no sign that a writer of JSON may write with an escape.
_PLAIN = re.compile(
    r"(?!(?:True|False|-?(?:inf|nan|\d+\.\d+|\d[\d.]*e[+-]\d+))$)[\w.:-](?:[\w .:-]*[\w.:-])?", re.ASCII
)
_DRIVE = re.compile(r"[A-Za-z]:\\")
_LINK = re.compile(r"\W*(?:During handling of the above exception|The above exception was the direct cause)")


@dataclass(frozen=True, slots=True)
class Frame:
    """One call of a traceback; `code` is the line of source that Python quotes, where it could.

    `failing` is the part of it that Python marks below the line as the one that failed, empty where it marks
    none. Of a compiled frame `file` is the library and `line` 0 where there are no debug symbols. `place` is
    how a person finds the row where it is none of the file's: `In [3]:5` of a notebook.
    """

    file: str
    line: int
    function: str
    code: str = ""
    failing: str = ""
    place: str = ""

    @property
    def found_at(self) -> str:
        """Name the row as a person finds it: the file without its folders, and the line."""
        return self.place or f"{base_name(self.file)}:{self.line}"

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


class LinesBelow(Iterator[Line]):
    """The line that holds a place in a block, and those after it; of a redrawn row its later parts too.

    `known` keeps parsed lines by their place in the block. `within` bounds how many lines of all processes
    are passed.
    """

    def __init__(
        self, block: Block, offset: int, number: int, known: dict[int, Line], within: int = MAX_AMONG
    ) -> None:
        self._block, self._known, self._left = block, known, within
        self._begin, end = block.line_bounds(offset)
        self._number = number
        self._parts: deque[Line] = deque()
        data = block.data
        is_redrawn = end - self._begin > MAX_TEXT or data.find(b"\r", self._begin, end) >= 0
        if is_redrawn and within and self._begin < len(data):
            # A redrawn row: the part that holds the byte, and those behind it.
            raw, column = data[self._begin : end], offset - self._begin
            self._parts.append(parse_line(raw, number, column))
            while column := raw.find(b"\r", column) + 1:
                self._parts.append(parse_line(raw, number, column))
            self._pass(end)

    def __next__(self) -> Line:
        """Give the next line, whoever printed it."""
        if self._parts:
            return self._parts.popleft()
        if self._left <= 0 or self._begin >= len(self._block.data):
            raise StopIteration
        end = self._block.data.find(b"\n", self._begin)
        end = len(self._block.data) if end < 0 else end
        line = parsed(self._block, self._begin, end, self._number, self._known)
        self._pass(end)
        return line

    def own(self, like: Line, until: int = sys.maxsize) -> Iterator[Line]:
        """Give the lines of one process, up to a number; what cannot be its own is passed unparsed."""
        marks, source = source_marks(like, self._block), like.source
        while self._parts or (self._number <= until and (marks is None or self._skip_to(marks))):
            if not source and not self._parts:
                self._pass_named(until)
            line = next(self, None)
            if line is None or line.number > until:
                return
            if line.source == source:
                yield line

    def has_below(self, words: Sequence[bytes], until: int) -> bool:
        """Tell whether a line, of whatever process, from the next one to a number holds one of some words.

        Parts of a redrawn row that are still to come may hold any.
        """
        if self._parts:
            return True
        first, last = self._number - self._block.line, until - self._block.line
        for word in words:
            numbers = self._block.index.lines_with(word).numbers
            at = bisect_left(numbers, first)
            if at < len(numbers) and numbers[at] <= last:
                return True
        return False

    def _pass_named(self, until: int) -> None:
        """Go down over lines that are known to say who printed them."""
        data = self._block.data
        while self._left > 0 and self._begin < len(data) and self._number <= until:
            end = data.find(b"\n", self._begin)
            end = len(data) if end < 0 else end
            if end - self._begin > SHAPED or not names_source(data[self._begin : end]):
                return
            self._pass(end)

    def _pass(self, end: int) -> None:
        self._begin, self._number, self._left = end + 1, self._number + 1, self._left - 1

    def _skip_to(self, marks: Sequence[bytes]) -> bool:
        """Go on to the next line that holds a mark; tell whether there is one."""
        data, stride = self._block.data, STRIDE
        while self._left > 0 and self._begin < len(data):
            end = data.find(b"\n", min(len(data), self._begin + stride))
            end = len(data) if end < 0 else end
            found = [hit for mark in marks if (hit := data.find(mark, self._begin, end)) >= 0]
            begin = max(self._begin, data.rfind(b"\n", self._begin, min(found)) + 1) if found else end + 1
            passed = data.count(b"\n", self._begin, begin)
            self._begin, self._number, self._left = begin, self._number + passed, self._left - passed
            if found:
                return self._left > 0
            stride = min(4 * stride, LONGEST_STRIDE)
        return False


class LinesAbove(Iterator[Line]):
    """The lines before the one that holds a place in a block, the nearest first; as `LinesBelow`."""

    def __init__(
        self, block: Block, offset: int, number: int, known: dict[int, Line], within: int = MAX_BACK
    ) -> None:
        self._block, self._known, self._left = block, known, within
        # Where the next line ends, and the number of the one below it.
        self._end, self._number = block.line_bounds(offset)[0] - 1, number

    def __next__(self) -> Line:
        """Give the next line up, whoever printed it."""
        if self._left <= 0 or self._end < 0:
            raise StopIteration
        begin = self._block.data.rfind(b"\n", 0, self._end) + 1
        self._number, self._left = self._number - 1, self._left - 1
        line = parsed(self._block, begin, self._end, self._number, self._known)
        self._end = begin - 1
        return line

    def own(self, like: Line) -> Iterator[Line]:
        """Give the lines of one process; what cannot be its own is passed unparsed."""
        marks, source = source_marks(like, self._block), like.source
        while marks is None or self._skip_to(marks):
            if not source:
                self._pass_named()
            line = next(self, None)
            if line is None:
                return
            if line.source == source:
                yield line

    def _pass_named(self) -> None:
        """Go up over lines that are known to say who printed them."""
        data = self._block.data
        while self._left > 0 and self._end >= 0:
            begin = data.rfind(b"\n", 0, self._end) + 1
            if self._end - begin > SHAPED or not names_source(data[begin : self._end]):
                return
            self._end, self._number, self._left = begin - 1, self._number - 1, self._left - 1

    def _skip_to(self, marks: Sequence[bytes]) -> bool:
        """Go up to the next line that holds a mark; tell whether there is one."""
        data, stride = self._block.data, STRIDE
        while self._left > 0 and self._end >= 0:
            begin = data.rfind(b"\n", 0, max(0, self._end - stride)) + 1
            hit = max(data.rfind(mark, begin, self._end) for mark in marks)
            newline = data.find(b"\n", hit, self._end) if hit >= 0 else begin - 1
            end = self._end if hit >= 0 > newline else newline
            passed = data.count(b"\n", max(0, end), self._end) + (end < 0)
            self._end, self._number, self._left = end, self._number - passed, self._left - passed
            if hit >= 0:
                return self._left > 0
            stride = min(4 * stride, LONGEST_STRIDE)
        return False


def nearest_above(block: Block, offset: int, line: Line, known: dict[int, Line]) -> Line | None:
    """Give the nearest line above that the same process printed; None where none is near."""
    if line.source:
        return next(LinesAbove(block, offset, line.number, known).own(line), None)
    # As `LinesAbove.own` does it, in fewer steps: it is asked of most lines that fail.
    data, number = block.data, line.number
    end = data.rfind(b"\n", 0, offset)
    for _ in range(MAX_BACK):
        if end < 0:
            break
        begin, number = data.rfind(b"\n", 0, end) + 1, number - 1
        if begin in known or end - begin > SHAPED or not names_source(data[begin:end]):
            row = parsed(block, begin, end, number, known)
            if not row.source:
                return row
        end = begin - 1
    return None


def body_above(block: Block, offset: int, known: dict[int, Line]) -> str | None:
    """Give what the nearest row above says that names no source, where that is known at a glance."""
    data, end = block.data, block.data.rfind(b"\n", 0, offset)
    for _ in range(GLANCED):
        if end < 0:
            break
        begin = data.rfind(b"\n", 0, end) + 1
        row = known.get(begin)
        if row is None:
            raw = data[begin:end]
            layout = printed_layout(raw)
            if layout is None:
                break
            if not layout.names_source:
                return line_like(layout, raw, 0).body
        elif not row.source:
            return row.body
        end = begin - 1
    return None


def stand_above(
    words: tuple[bytes, ...],
    block: Block,
    line: Line,
    known: dict[int, Line],
    within: int,
    holds: Callable[[str], bool] | None = None,
) -> bool:
    """Tell whether a row of the same process with one of some words is among so many lines above."""
    above = line.number - block.line
    return last_among(words, block, line.source, (above - within, above - 1), known, holds) is not None


def last_among(
    words: tuple[bytes, ...],
    block: Block,
    source: str,
    lines: tuple[int, int],
    known: dict[int, Line],
    holds: Callable[[str], bool] | None = None,
) -> int | None:
    """Give the last row of a process with one of some words among a block's lines, first and last.

    Few rows hold the words, so that this is known long before all rows of the process are parsed; who printed
    them is found out once.
    """

    def source_of(begin: int, end: int, number: int) -> str | None:
        row = parsed(block, begin, end, block.line + number, known)
        return row.source if holds is None or holds(row.body) else None

    name = "" if holds is None else holds.__name__
    return block.index.last_among(name, words, source, lines, source_of)


def under(block: Block, offset: int, line: Line, known: dict[int, Line], most: int) -> list[Line]:
    """Give the next lines of the process that printed a line."""
    return list(of(line, LinesBelow(block, offset, line.number, known), most + 1))[1:]


def bare_exception(body: str) -> re.Match[str] | None:
    """Give the name of an exception in a row that is all of it, whose message may stand below."""
    exception = EXCEPTION.match(body)
    return exception if exception is not None and not exception["message"] else None


class RememberedRows:
    """Rows that are walked as far as somebody asks for them, and may be gone through again."""

    def __init__(self, rows: Iterator[Line]) -> None:
        self._rows, self._walked = rows, list[Line]()

    def __iter__(self) -> Iterator[Line]:
        """Give the rows from the first one on."""
        place = 0
        while True:
            if place == len(self._walked):
                row = next(self._rows, None)
                if row is None:
                    return
                self._walked.append(row)
            yield self._walked[place]
            place += 1


def source_marks(line: Line, block: Block | None = None) -> tuple[bytes, ...] | None:
    """Give texts of which each line of the same process in a block holds one; None where none is known to.

    A number that a JSON record holds may be written otherwise there, and a name with escapes.
    """
    told = line.pid or line.actor or line.node
    if told:
        return (told.encode(),) if _PLAIN.fullmatch(told) else None
    if not line.rank.isdecimal():
        return None
    if block is None:
        return rank_marks(line.rank)
    if _MARKS not in block.notes:
        block.notes[_MARKS] = marks_within(block.data)
    return rank_marks(line.rank, block.notes[_MARKS])


def of(like: Line, lines: Iterator[Line], most: int = MAX_LINES) -> Iterator[Line]:
    """Give the lines of the process that printed one."""
    if isinstance(lines, LinesBelow | LinesAbove):
        return islice(lines.own(like), most)
    return islice((line for line in lines if line.source == like.source), most)


def near(lines: Iterator[Line], start: int, end: Line, own: int) -> Iterator[Line]:
    """Give the few lines of the same process below `end`, no farther than the stack's lines are apart."""
    until = reach(start, end.number, own)
    if isinstance(lines, LinesBelow):
        return islice(lines.own(end, until), MAX_BELOW)
    return of(end, takewhile(lambda line: line.number <= until, lines), MAX_BELOW)


def reach(start: int, end: int, own: int) -> int:
    """Give the last line in which a stack of so many frames of its own may go on behind its end."""
    return end + MAX_BELOW * (1 + (end - start) // max(1, own))


def links(body: str) -> bool:
    """Tell whether a line joins the exception above it to one below."""
    return _LINK.match(body) is not None


def parsed(block: Block, begin: int, end: int, number: int, known: dict[int, Line]) -> Line:
    """Give the line between two places, which is parsed once a block."""
    line = known.get(begin)
    if line is None:
        line = known[begin] = parse_line(block.data[begin : min(end, begin + LONGEST)], number)
    return line


def parsed_at(block: Block, offset: int, number: int, known: dict[int, Line]) -> Line:
    """Give the line that holds `offset`; of a redrawn or wide one the part there, parsed each time."""
    begin, end = block.line_bounds(offset)
    if end - begin > MAX_TEXT or block.data.find(b"\r", begin, end) >= 0:
        return parse_line(block.data[begin:end], number, offset - begin)
    return parsed(block, begin, end, number, known)
