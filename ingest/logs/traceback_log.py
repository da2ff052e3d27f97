"""The tracebacks of a log while it goes by.

One whose last line no pattern knows becomes an event of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import islice

from corpus.log_patterns import Handler, Pattern, PatternTable
from ingest.logs.events import Event, EventLog, GroupKey, Told, masked
from ingest.logs.job_notes import JobNotes
from ingest.logs.lines import Line
from ingest.logs.masking import SHOWN, Masking
from ingest.logs.placed_line import PlacedLine
from ingest.logs.repeats import Sighting, StackExtent
from ingest.logs.samples import SampleMarks
from ingest.logs.scanner import Block
from ingest.logs.stacks import tracebacks
from ingest.logs.stacks.known_stacks import KnownStacks
from ingest.logs.stacks.open_tracebacks import Stack, Stacks
from ingest.logs.stacks.own_calls import raised_by
from ingest.logs.stacks.stack import LinesAbove, RememberedRows
from ingest.logs.stacks.tracebacks import Traceback
from ingest.logs.survival import NEAR, calm, is_logged

# How many lines above a traceback may tell when it was printed.
CLOCK_ABOVE = 60
# How many of them, of all processes, may tell that its own had gone on calmly.
CALM_ABOVE = 24
# Of so many streams the last line is remembered.
STREAMS = 4096
# How many exceptions that Python ignores are remembered until their stacks are read.
_REMARKS = 64


class TracebackLog:
    """The tracebacks of one job's output, those that are open and those that became events."""

    def __init__(self, table: PatternTable, masking: Masking, notes: JobNotes, events: EventLog) -> None:
        self._table = table
        self._masking = masking
        self._notes = notes
        self._events = events
        self._stacks = Stacks()
        self._known_stacks = KnownStacks()
        # By stream, the latest lines below which stands an exception that Python said it ignores.
        self._ignored: dict[str, deque[int]] = {}
        # By stream, the last line that ended one.
        self._last_ignored: dict[str, Line] = {}
        # By stream, the last line that was read whole.
        self._latest: dict[str, Line] = {}
        # The lines of a block, first and last, that are known to have no time.
        self._timeless: tuple[Block | None, int, int] = (None, 0, 0)

    def begin(self, at: PlacedLine, sight: Sighting, extent: StackExtent | None) -> None:
        """Read the traceback that a line begins; `extent` tells where it stands, as far as that is known."""
        line = at.line
        if self._stacks.ending(line.source, line.number) or self.is_quoted_code(line):
            return  # the words stand in what another traceback says or shows
        # One that was read along with another, as it is woven into that.
        is_read = self._stacks.begins(line.source, line.number)
        known = self._known_stacks.like(at, extent) if extent and not is_read else None
        read = partial(tracebacks.at, at.block, at.offset, line.number, at.parsed)
        found = [known] if known else [] if is_read else read()
        if extent and known is None:
            self._known_stacks.learn(at, extent, found)
        own: Iterable[Line] = ()
        clock = line.time
        if found or is_read:
            nearest = LinesAbove(at.block, at.offset, line.number, at.parsed, CALM_ABOVE)
            own = RememberedRows(row for row in nearest.own(line) if row.body.strip())
            clock = clock or self._clock_above(at)
        if line.source in self._ignored:
            self._ignore_at(line, own)
        if found or (line.body.startswith("Traceback ") and not is_read):
            self.flush(line.source)
        for place, traceback in enumerate(found):
            look = partial(_with_rows_above, header=line, rows=own) if place == 0 else None
            read_calls = (lambda: read()[0]) if known else None
            self._stacks.open(line.source, traceback, line.number, sight, look, read_calls)
            self._notes.progress.timeline.event(traceback.end, clock)
            if known is None:  # its files tell of the same frameworks as those that were read
                self._notes.see_frames(traceback.frames, line.number)

    def _ignore_at(self, line: Line, own: Iterable[Line]) -> None:
        """Note a header below a line in which Python ignores what is raised, and maybe other headers."""
        # Ranks that print at once have their remarks and headers among each other.
        remark = next((row for row in own if not row.body.startswith("Traceback ")), line)
        if self._is_below_ignored(line.source, remark.number + 1):
            self.ignore_below(
                remark if remark.number + 1 == line.number else line._replace(number=line.number - 1)
            )

    def _clock_above(self, at: PlacedLine) -> str:
        """Give the time of the nearest line above that has one: Python prints none before a traceback."""
        line = at.line
        block, first, last = self._timeless
        first, last = (first, last) if block is at.block else (line.number, 0)
        least, time = max(line.number - CLOCK_ABOVE, at.block.line), ""
        for row in LinesAbove(at.block, at.offset, line.number, at.parsed, CLOCK_ABOVE):
            if row.time:
                least, time = row.number + 1, row.time
                break
            if first <= row.number <= last and first <= line.number - CLOCK_ABOVE:
                # From here up to the farthest of them none has a time, as an earlier look has shown.
                least = first
                break
        self._timeless = at.block, least, line.number - 1
        return time

    def ended_by(self, at: PlacedLine) -> Traceback | None:
        """Give the traceback that a failure's line ends, which is thereby known.

        Also one without a first line.
        """
        line = at.line
        if known := self._stacks.of(line.source, line.number):
            return known
        found = self.headless(at)
        if found:
            self._notes.see_frames(found.frames, line.number)
        return found

    def headless(self, at: PlacedLine) -> Traceback | None:
        """Read the calls above a line, where no header stands above them."""
        return tracebacks.headless(at.block, at.offset, at.line, at.parsed, self._latest.get(at.line.source))

    def see_line(self, line: Line, *, is_whole: bool) -> None:
        """Note a line, where it was read as a whole, after all that is asked of it."""
        if not is_whole:
            return
        if len(self._latest) >= STREAMS:
            self._latest.clear()
        self._latest[line.source] = line

    def told(self, traceback: Traceback) -> Traceback:
        """Give a traceback that a line ends with what stands above it."""
        stack = self._stacks.ending(traceback.source, traceback.end)
        return stack.whole() if stack is not None and stack.traceback is traceback else traceback

    def settle(self, number: int) -> None:
        """Note that a pattern knows the line, which was counted and not read."""
        self._stacks.settle(number)

    def ignore_below(self, line: Line) -> None:
        """Note a line in which Python says that it ignores the exception below, as in a `__del__`."""
        self._ignored.setdefault(line.source, deque(maxlen=_REMARKS)).append(line.number)

    def is_ignored(self, line: Line) -> bool:
        """Tell whether a line ends an exception that Python itself says it ignores."""
        stack = self._stacks.ending(line.source, line.number)
        begin = stack.traceback.start if stack else line.number
        last = self._last_ignored.get(line.source)
        is_again = last is not None and last.number + 1 == line.number and last.body == line.body
        found = is_again or self._is_below_ignored(line.source, begin)
        if found:
            self._last_ignored[line.source] = line
        return found

    def _is_below_ignored(self, source: str, number: int) -> bool:
        return number - 1 in self._ignored.get(source, ())

    def is_quoted_code(self, line: Line) -> bool:
        """Tell whether the line is source code that a traceback quotes, which only mentions a message."""
        traceback = self._stacks.latest(line.source)
        if traceback is None or not traceback.start < line.number < traceback.end:
            return False
        return self._stacks.ending(line.source, line.number) is None and tracebacks.quotes(line.body)

    def is_inside(self, line: Line) -> bool:
        """Tell whether a line stands in the traceback that its stream printed last."""
        traceback = self._stacks.latest(line.source)
        return traceback is not None and traceback.start <= line.number <= traceback.end

    def ending(self, line: Line) -> Stack | None:
        """Give the open traceback that a line ends."""
        return self._stacks.ending(line.source, line.number)

    def leave_alone(self, line: Line, stack: Stack | None) -> bool:
        """Tell whether nothing says more of a line than the traceback that it ends, where there is one.

        That is neither a remark that something is ignored nor another traceback.
        """
        source = line.source
        if source in self._ignored or source in self._last_ignored:
            return False
        return stack is not None or not self._stacks.reach(source, line.number)

    def flush(self, source: str | None = None, before: int | None = None) -> None:
        """Turn tracebacks whose last line no pattern knew into events of their own."""
        for stack in self._stacks.close(source, before):
            traceback = _completed(stack.traceback)
            handler: Handler = "unknown-exception" if traceback.exception else "cut-traceback"
            row = self._table.by_handler.get(handler)
            if row and not self._is_below_ignored(traceback.source, traceback.start):
                stack.sight.group = self._again(row, traceback) or self._events.add(
                    self._event(row, _completed(stack.whole()))
                )

    def note_last(self, block: Block, samples: SampleMarks | None) -> bool:
        """Note the stack without its first line that a file ends with; tell whether there is one."""
        found = tracebacks.last(block)
        if found is None or (samples and samples.enclose(found.start, found.source)):
            return False
        # The stack of an exception that Python ignores has its first line between it and that remark.
        if self._is_below_ignored(found.source, found.start - 1):
            return False
        self._stacks.open(found.source, found, found.start, Sighting())
        self.flush()
        self._notes.see_frames(found.frames, found.end)
        return True

    def end_file(self) -> None:
        """Forget what was open in a file."""
        self._stacks = Stacks()
        for told in (self._ignored, self._last_ignored, self._latest):
            told.clear()
        self._timeless = (None, 0, 0)

    def _again(self, pattern: Pattern, traceback: Traceback) -> GroupKey | None:
        """Count a traceback whose event would only be one more of its group; None where it is not."""
        said = _said(traceback)
        group = pattern.id, masked(said)
        is_short = said and len(traceback.text) <= SHOWN
        if not is_short or not self._events.only_counts(
            group, pattern.kind, traceback.frames, is_linked=traceback.linked
        ):
            return None
        if not self._masking.are_clear(traceback.text, said):
            return None
        source = self._masking.clean(traceback.source)
        return self._events.add_again(
            group, Told(pattern.kind, traceback.end, traceback.text, source, rank="", time="")
        )

    def _event(self, pattern: Pattern, traceback: Traceback) -> Event:
        text = self._masking.shown(traceback.text)
        said = _said(traceback)
        return Event(
            pattern.id,
            pattern.kind,
            pattern.role,
            traceback.end,
            text,
            self._masking.shown(said) if said else text.strip(),
            source=self._masking.clean(traceback.source),
            exception=self._masking.clean(traceback.exception),
            frames=self._masking.frames(traceback),
            remote=traceback.remote,
            traceback=traceback.start,
            linked=traceback.linked,
            rest=self._masking.clean(traceback.rest),
            announces=traceback.announces,
            calm=traceback.calm,
            logged=traceback.logged,
            handler=pattern.handler,
        )


def _completed(traceback: Traceback) -> Traceback:
    """Give a traceback that was cut before its last line with the exception that its statement must raise."""
    if traceback.exception or traceback.language != "python" or not traceback.frames:
        return traceback
    told = (raised_by(code) for code in (traceback.frames[-1].code, traceback.text.strip()))
    exception, message = next((pair for pair in told if pair[0]), ("", ""))
    return replace(traceback, exception=exception, message=message) if exception else traceback


def _said(traceback: Traceback) -> str:
    return f"{traceback.exception}: {traceback.message}" if traceback.message else traceback.exception


def _with_rows_above(traceback: Traceback, *, header: Line, rows: Iterable[Line]) -> Traceback:
    """Give a traceback with what the rows above its first line tell, which are its process's."""
    return replace(traceback, calm=calm(rows), logged=is_logged(header, [*islice(rows, NEAR)]))
