"""Tracebacks in a log: Python's, chained, grouped, quoted or remote, and the stacks of other languages.

Grammar: CPython's `traceback` module, Ray's `RayTaskError.__str__` (python/ray/exceptions.py), the
`error_file` of torch.distributed.elastic. Several processes may print at once; each is read by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile

from ingest.logs.lines import Line, printable
from ingest.logs.scanner import Block
from ingest.logs.stacks import boxed_traceback, cells, native, panics, stack
from ingest.logs.stacks.stack import Frame, Traceback
from ingest.logs.stacks.woven import read_woven

__all__ = ["Frame", "Traceback", "at", "headless", "last", "quotes"]

# Other output of the same process between two frames (a progress bar, say) that is passed over.
MAX_NOISE = 20
# How much of each line is kept that goes on with a message.
MAX_REST = 400

# torch.distributed.checkpoint joins the ranks' tracebacks and names the rank behind each header.
# What a TorchScript program raises has its own calls below the message that only says so (jit/serialization).
_START = re.compile(
    r"Traceback (?:of TorchScript(?:, \w+ code)? )?\(most recent call last\):(?: \(RANK \d+\))?\s*$"
)
# The same on one line with its line ends escaped: an `error_file`, a JSON log.
_ESCAPED = re.compile(r"Traceback \(most recent call last\):(?:\\{1,8}r)?\\{1,8}n.*")
# JSON escapes the quotes as well; Python's repr of a traceback leaves them.
_JSON = re.compile(r'[^"]*\\"')
_STRING = re.compile(r'(?:[^"\\]|\\.)*')
_NEWLINE = re.compile(r"(?:\\{1,8}r)?\\{1,8}n")
_FRAME = re.compile(
    r'^\s*(?:[|>│] ?)?\s*File "(?P<file>[^"]+)", line (?P<line>\d{1,9})(?:, in (?P<function>\S+(?: \S+)*))?'
)
# A frame that a narrow console broke: its path stands, or goes on, in the lines below.
_BROKEN = re.compile(r'^\s*File(?:\s*$|\s+"[^"]*(?:",?\s*)?$)')
_PIECE = re.compile(r'"/|[^"\s]{0,400}"?, line \d{1,9}(?:,|$)|line \d{1,9}, in ')
_BROKEN_OVER = 5
_CALL = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d{1,9}), in (?P<function>\S+(?: \S+)*)')
# The last frame of a text that was cut in it.
_CUT = re.compile(
    r'^\s*File "(?P<file>[^"]+)(?:"(?:, ?(?:l|li|lin|line|line (?P<line>\d+)(?:, '
    r"?i?n?)?)?)?)?\s*$(?P<function>)"
)
# A message that names nothing and promises the reason: it stands in the lines below.
_OPENS = re.compile(r"(?:^|:|(?i:\b(?:exceptions?|errors?|fail(?:ed|ures?)|following)\b[.!]?))\s*$")
# The first row of a Python warning; its message may go on over so many rows more, which may stand
# among so many of all processes.
_WARNS = re.compile(r"\S.{0,400}:\d{1,9}: [A-Z]\w*Warning:(?: |$)")
WARNED_OVER = 4
WARNED_AMONG = 12
# The statement below such a message where it calls what warns, which closes it whatever stands between, and
# how many rows of the process that may be: compilers list what they tried.
_WARNED = re.compile(r"\s{1,8}(?:[\w.]+\.)?warn(?:_once|_explicit)?\(")
WARNED_WITHIN = 60
_BOUND = re.compile("|".join(row.pattern for row in (_WARNS, _WARNED, _START)))
# Words without which no row above a line is a warning's first, a frame, or tells what a traceback came of.
_WARNING_WORDS = (b"Warning:",)
_TELLING = (b"terminated with the following error:", b"During handling of", b"The above exception was")
# Of lines below an exception that tell nothing of its message, none counts without one of these.
GOING_ON = (b"Traceback", b"File", b"above exception")
# How far from the end the last frame of a stack may stand that nothing announces.
REACH = 16 << 10
_REPEATED = re.compile(r"\s*\[Previous line repeated \d{1,9} more times?\]")
_REMOTE = re.compile(r"\bray::(?P<call>[\w.:<>]+)\(\)? ?.*?\(?pid=(?P<pid>\d+)(?:, ip=(?P<ip>[\w.:]+))?")
_PROCESS = re.compile(r"-- (?P<call>Process \d+) terminated with the following error:")
# What Python 3.11 and later put below a statement to mark the part that failed.
_MARKS = re.compile(r"\s*(?P<marks>~*\^+~*)")
_SYNTAX = re.compile(r'^\s*File "[^"]+", line \d{1,9}\s*$')
_QUOTED = re.compile(r"\s|[│|] |-+>? *\d+ ")
# What classes of exceptions are called, by their module or by custom. Behind other rows anything else with a
# capital and a colon may be a row of a table (`Platform: Linux-6.1`).
_CLASS = re.compile(
    r"\.|^[a-z]|(?:Error|Exception|Warning|Interrupt|Exit|Failure|Failed|Fault|Timeout|Empty|Full|Iteration|"
    r"Abort|Aborted|Cancelled|Denied|Exceeded|Found|Exists|Refused|Died|Lost|Killed|Unavailable|Invalid)$"
)
# The statement that raised, whose type a capture may have cut off before the message.
_RAISES = re.compile(r"raise (?P<type>(?:\w+\.)*[A-Z]\w*)\(")


def at(block: Block, offset: int, number: int, known: dict[int, Line] | None = None) -> list[Traceback]:
    """Read the stack whose first line holds `offset`, and Ray's remote part after it, if any.

    `known` keeps parsed lines by their place in the block: many processes' stacks stand among each other.
    """
    known = {} if known is None else known
    lines = stack.LinesBelow(block, offset, number, known)
    first = next(lines, None)
    if first is None:
        return []
    earlier = stack.of(first, stack.LinesAbove(block, offset, number, known), 6)
    if _START.search(first.body) and not may_come_of_another(block, first, known):
        earlier = iter(())
    for reader in _READERS:
        found = reader(first, lines, earlier)
        if found is not None:
            return found or _woven(block, offset, number, known)
    return []


def is_header(body: str) -> bool:
    """Tell whether a row is the first one of a traceback that Python prints."""
    return _START.search(body) is not None


def may_come_of_another(block: Block, first: Line, known: dict[int, Line]) -> bool:
    """Tell whether a row above a stack's first line may say what it came of."""
    return stack.stand_above(_TELLING, block, first, known, stack.MAX_BACK)


def plain_end(body: str) -> re.Match[str] | None:
    """Give the exception of a row that ends a traceback whatever stands below; None where it may go on."""
    raised = stack.EXCEPTION.match(body)
    if (
        raised is None
        or _START.search(body)
        or _REMOTE.search(body)
        or _OPENS.search(raised["message"] or "")
    ):
        return None
    return raised


def _woven(block: Block, offset: int, number: int, known: dict[int, Line]) -> list[Traceback]:
    """Read a stack that broke off as another one's first line came, where their rows can be told apart."""
    lines = stack.LinesBelow(block, offset, number, known)
    first = next(lines)
    if not _START.search(first.body):
        return []
    return read_woven(
        first,
        stack.of(first, lines),
        lambda body: _START.search(body) is not None,
        lambda body: _frame(match) if (match := _FRAME.match(body)) else None,
    )


def headless(
    block: Block, offset: int, line: Line, known: dict[int, Line], nearby: Line | None = None
) -> Traceback | None:
    """Read the calls above the line of an exception, where the text begins in the middle of a traceback.

    The message may begin in the line below the exception's name. `nearby` is a row above of the same process.
    """
    exception = stack.EXCEPTION.match(line.body)
    # As a rule the row above tells it at a glance.
    glanced = None if line.source else stack.body_above(block, offset, known)
    if glanced is not None and not (_is_inside(glanced) if exception else stack.bare_exception(glanced)):
        return None
    place = line.number - block.line
    among = place - 2 * stack.MAX_BACK, place - 1
    called = stack.last_among((b"File",), block, line.source, among, known)
    # Calls stand right above, with no row between that ends their traceback.
    between = nearby.body if nearby and block.line + (called or 0) < nearby.number else " "
    if called is None or not (_is_inside(between) or stack.bare_exception(between)):
        return None
    above = stack.nearest_above(block, offset, line, known)
    raised = exception or (stack.bare_exception(above.body) if above else None)
    if above is None or raised is None or (exception and not _is_inside(above.body)):
        return None
    begin = offset if exception else max(0, block.line_bounds(offset)[0] - 1)
    inside = _inside(block, begin, line if exception else above, known)
    frames = _read(inside)
    name = raised["type"] + (raised["inner"] or "")
    return (
        Traceback(
            inside[0].number, line.number, line.source, frames, name, raised["message"] or "", line.text
        )
        if frames
        else None
    )


def last(block: Block) -> Traceback | None:
    """Read the stack without a header that stands last in a log, which may break off in it."""
    place = block.data.rfind(b'File "', max(0, len(block.data) - REACH))
    if place < 0:
        return None
    known: dict[int, Line] = {}
    lines = stack.LinesBelow(block, place, block.number(place), known)
    first = next(lines)
    # Of what dumps all threads, on request too, no frame has the comma.
    frame = _CALL.match(first.body) or (
        _CUT.match(first.body) if b"\n" not in block.data[place:].rstrip() else None
    )
    if frame is None:
        return None
    above = _inside(block, place, first, known)
    reading = _OpenTraceback(first)
    reading.frames = [*_read(above), _frame(frame)]
    found = next(iter(reading.all(lines)), None)
    return replace(found, start=above[0].number) if found and above else found


def warns(body: str) -> bool:
    """Tell whether a row is the first one of a warning that Python prints."""
    return _WARNS.match(body.lstrip()) is not None


def is_warning_call(body: str) -> bool:
    """Tell whether a row is the statement that Python shows below a warning, which may hold its message."""
    return _WARNED.match(body) is not None


def ends_warning(block: Block, offset: int, line: Line, known: dict[int, Line]) -> bool:
    """Tell whether a line goes on with the message of a warning that Python prints.

    Its first row names file, line and category, and the statement that warned stands below the message,
    indented (CPython, `warnings.formatwarning`). The message may have several rows, blank ones too, and a
    progress bar may stand open before it or be drawn among them.
    """
    if not _is_warned_above(block, line, known, WARNED_AMONG):
        return False
    near = islice(stack.LinesBelow(block, offset, line.number, known), 1, 1 + WARNED_AMONG)
    below = (row.body for row in stack.of(line, near, WARNED_OVER) if row.body.strip())
    statement = next((body for body in below if body[0].isspace() or _START.search(body)), "")
    if not statement[:1].isspace() or _FRAME.match(statement):
        return False
    above = stack.LinesAbove(block, offset, line.number, known, WARNED_AMONG)
    for row in stack.of(line, above, WARNED_OVER):
        if _WARNS.match(row.body.lstrip()):
            return True
        if row.body[:1].isspace() and row.body.strip():
            return False
    return False


def is_in_warning(block: Block, offset: int, line: Line, known: dict[int, Line]) -> bool:
    """Tell whether a line is of the message of a Python warning that goes on over many rows.

    Either the statement that warned closes it below, or the line is one of the details that are indented in
    it, with no record of a logger since the warning's first row.
    """
    if not _is_warned_above(block, line, known, stack.MAX_BACK):
        return False
    above = stack.of(line, stack.LinesAbove(block, offset, line.number, known), WARNED_WITHIN)
    found = next((row for row in above if row.time or row.level or _BOUND.match(row.body)), None)
    if found is None or not _WARNS.match(found.body):
        return False
    if line.body[:1].isspace():
        return True
    lines = stack.LinesBelow(block, offset, line.number, known)
    next(lines, None)
    below = stack.of(line, lines, WARNED_WITHIN)
    return _WARNED.match(next((row.body for row in below if _BOUND.match(row.body)), "")) is not None


def _is_warned_above(block: Block, line: Line, known: dict[int, Line], within: int) -> bool:
    """Tell whether a warning of the same process begins among so many lines above."""
    return stack.stand_above(_WARNING_WORDS, block, line, known, within, warns)


def _inside(block: Block, offset: int, line: Line, known: dict[int, Line]) -> list[Line]:
    """Give the frames and code above a line of the same process, in their order."""
    above = stack.of(line, stack.LinesAbove(block, offset, line.number, known))
    return list(takewhile(lambda row: _is_inside(row.body), above))[::-1]


def _is_inside(body: str) -> bool:
    """Tell whether a row can stand between the first line of a traceback and its last."""
    return body[:1].isspace() or _FRAME.match(body) is not None or _PIECE.match(body) is not None


def _read(rows: list[Line]) -> tuple[Frame, ...]:
    """Read the frames of rows that hold nothing else."""
    if not rows:
        return ()
    reading = _OpenTraceback(rows[0])
    for row in rows:
        reading.row(row, row.body)
    return tuple(reading.frames)


def quotes(body: str) -> bool:
    """Tell whether a line between a traceback's first and last is source code that it shows."""
    return _QUOTED.match(body) is not None or cells.is_call(body)


def _escaped(first: Line, _lines: Iterator[Line], _earlier: Iterator[Line]) -> list[Traceback] | None:
    match = _ESCAPED.search(first.text)
    if match is None:
        return None
    head, *rows = [
        first._replace(body=row) for row in printable(_unescaped(match[0]), keep="\t\n").split("\n")
    ]
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
    reading = _OpenTraceback(first)
    reading.frames = [_frame(frame)] if frame else []
    return [one for one in reading.all(islice(lines, MAX_NOISE)) if one.exception]


_Read = Callable[[Line, Iterator[Line], Iterator[Line]], "list[Traceback] | None"]
_READERS: tuple[_Read, ...] = (
    lambda first, lines, earlier: _collect(first, lines, earlier) if _START.search(first.body) else None,
    boxed_traceback.read_boxed,
    cells.read_cell,
    _escaped,
    native.read_native,
    panics.read_panic,
    _uncompiled,
)


def _collect(first: Line, lines: Iterator[Line], earlier: Iterator[Line]) -> list[Traceback]:
    reading = _OpenTraceback(first)
    told = next((body for line in earlier if (body := reading.cut(line.body)).strip(' "|')), "")
    if process := _PROCESS.search(told):
        reading.remote = process["call"]
    found = reading.all(lines)
    return [replace(found[0], linked=stack.links(told)), *found[1:]] if found else found


@dataclass
class _OpenTraceback:
    """What is gathered of one traceback, and of Ray's remote parts, while its process's lines go by."""

    first: Line
    found: list[Traceback] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    remote: str = ""
    _broken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Measure the margin that the header stands behind: a group's bars, a summary's indentation."""
        self._start = self.first.number
        self._last = self._held = self.first
        self._noise = 0
        self._is_broken = self._is_linked = False
        # Where the last frame's statement begins in its row.
        self._indent = 0
        # The row below a statement that raises, which is the message where none with a type follows.
        self._untyped: tuple[Line, str, str] | None = None
        width = len(self.first.body) - len(self.first.body.lstrip(" |+│"))
        self._margin = re.compile(rf"[\s|+│]{{{width}}}")

    def cut(self, body: str) -> str:
        """Take off the header's margin, where the line has it."""
        match = self._margin.match(body)
        return body[match.end() :] if match else body

    def all(self, lines: Iterator[Line]) -> list[Traceback]:
        """Read on to the end, and what stands below it."""
        while self._among(lines) and self._goes_on(lines):
            pass
        if self.found or self._is_broken or not self.frames:
            return self.found
        return [self._built(*self._untyped) if self._untyped else self._built(self._held, "", "")]

    def _among(self, lines: Iterator[Line]) -> bool:
        """Read frames up to the exception; tell whether it came."""
        for line in stack.of(self.first, lines):
            came = self.row(line, self.cut(line.body))
            if came is not None:
                self._is_broken = not came
                return came
        return False

    def row(self, line: Line, body: str) -> bool | None:
        """Take in a row; tell whether it is the exception (True) or the traceback broke off (False)."""
        body = self._joined(body)
        if frame := _FRAME.match(body):
            self._broken.clear()
            self.frames.append(_frame(frame))
            self._noise, self._held = 0, line
            return None
        if not body.strip() or body[0].isspace():
            self._held = line if body.strip() else self._held
            if self.frames and body.strip() and not _REPEATED.match(body):
                self.frames[-1] = self._told(self.frames[-1], body.rstrip())
            return None
        if _START.search(body) or stack.links(body):
            return False
        return self._end(line, body)

    def _told(self, frame: Frame, body: str) -> Frame:
        """Take in a row below a frame: its statement, or the marks below that."""
        if not frame.code:
            self._indent = len(body) - len(body.lstrip())
            return Frame(frame.file, frame.line, frame.function, body.strip(), frame.failing)
        marks = _MARKS.fullmatch(body)
        if marks is None or frame.failing or marks.start("marks") < self._indent:
            return frame
        begin, end = (place - self._indent for place in marks.span("marks"))
        return replace(frame, failing=frame.code[begin:end])

    def _joined(self, body: str) -> str:
        """Put the rows of a frame together that a console broke.

        Its other rows count as blank until it is whole.
        """
        if not self._broken and not _BROKEN.match(body):
            return body
        plain = body.rstrip()
        self._broken.append(f"{plain} " if plain.endswith(("File", ",")) else plain)
        whole = "".join(self._broken)
        if _FRAME.match(whole) or len(self._broken) > _BROKEN_OVER:
            self._broken.clear()
            return whole
        return ""

    def _end(self, line: Line, body: str) -> bool | None:
        exception = stack.EXCEPTION.match(body)
        if exception is not None and self._noise and not _CLASS.search(exception["type"]):
            exception = None
        if exception is None or not (self.frames or self.found):
            raised = _RAISES.match(self.frames[-1].code) if self.frames and not self._noise else None
            if raised and not (line.level or line.time):
                self._untyped = line, raised["type"], body.strip()
            self._noise += 1
            return False if self._noise > MAX_NOISE else None
        self.found.append(
            self._built(line, exception["type"] + (exception["inner"] or ""), exception["message"] or "")
        )
        self._last = line
        again = _REMOTE.search(body)
        if again is None:
            return True
        self._part(line, again["call"])
        return None

    def _part(self, line: Line, call: str) -> None:
        self._start, self.frames, self.remote = line.number, [], call

    def _goes_on(self, lines: Iterator[Line]) -> bool:
        """Look below the exception; tell whether Ray's next part begins there."""
        is_linked = False
        opens = _OPENS.search(self.found[-1].message) is not None
        until = stack.reach(self._start, self._last.number, len(self.frames))
        if not opens and isinstance(lines, stack.LinesBelow) and not lines.has_below(GOING_ON, until):
            return False
        for line in stack.near(lines, self._start, self._last, len(self.frames)):
            body = self.cut(line.body)
            if _START.search(body) or _FRAME.match(body):
                announces = not is_linked and self.found[-1].message.rstrip().endswith(":")
                self.found[-1] = replace(self.found[-1], announces=announces)
                return False
            opens = opens and not line.level and not stack.links(body)
            if opens:
                rest = f"{self.found[-1].rest}{body.strip()[:MAX_REST]}\n"
                self.found[-1] = replace(self.found[-1], rest=rest)
            remote = _REMOTE.match(body) if opens else None
            if remote:
                # The reason that the message promises is what a remote call raised.
                self.found[-1] = replace(self.found[-1], announces=True)
                self._part(line, remote["call"])
                return True
            if is_linked and body.strip():
                call = _REMOTE.match(body)
                if call:
                    self._part(line, call["call"])
                    self._is_linked = True
                return call is not None
            is_linked = is_linked or stack.links(body)
        return False

    def _built(self, line: Line, exception: str, message: str) -> Traceback:
        return Traceback(
            self._start,
            line.number,
            self.first.source,
            tuple(self.frames),
            exception,
            message,
            line.text,
            self.remote,
            linked=self._is_linked,
        )


def _frame(match: re.Match[str]) -> Frame:
    return Frame(cells.named(match["file"]), int(match["line"] or 0), match["function"] or "<module>")
