"""Where a file that several runs were written into has another run begin.

A log that is appended to, a loop that tries again and a job that is put back into its queue all print the
same first lines again. What an earlier run died of is no cause of the last one's end, nor its consequence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from corpus.paths import base_name
from ingest.logs import phases
from ingest.logs.events import Event
from ingest.logs.inputs.notebooks import is_notebook
from ingest.logs.progress import Progress
from ingest.logs.scanner import Block
from ingest.logs.timeline import Timeline

# So many of a file's first lines are looked for again, and so many of them must come, in their order, within
# so many bytes. The first is looked for so often: who prints it more often prints it all the time.
HEAD = 12
ALIKE = 3
REACH = 16 << 10
MOST = 200
# So many parts a checkpoint that is loaded may have.
SHARDS = 12
# A line with fewer letters in a row tells no program from another.
WORDS = 12

_PIECE = re.compile(rb"[^\d\n\r]{%d,200}" % WORDS)
_LETTERS = re.compile(rb"[A-Za-z]{3}")
# What a program says as it starts, and hardly one that goes through its loop once more.
_SETS_UP = re.compile(
    rb"(?i)config|argument|namespace|\bargs\b|\bseed|version|initiali[sz]|world[ _]size|launch|python|"
    rb"parameters\b|\bcommand|\bhost|\bdevice|\bcuda\b|tokenizer|\bcommit\b|starting up|\bjob[ _-]?id\b|"
    rb"nodelist"
)


# How a parser leaves a program whose command line it refuses: Lib/argparse.py, ArgumentParser.error.
_REFUSED = re.compile(r"(?:^|\s)(?P<program>[\w.-]+\.py): error: ")
_UNCOMPILED = frozenset({"SyntaxError", "IndentationError", "TabError"})


@dataclass
class _Head:
    """A file's first lines: what of each is looked for, and the lines in which they begin to come again.

    Only the first is looked for everywhere, the others where it is found: a scan's rate is not to fall.
    """

    pieces: list[bytes] = field(default_factory=list)
    count: int = 0
    starts: list[int] = field(default_factory=list)

    def learn(self, data: bytes) -> None:
        """Take the first lines that have words, each wording once; none from the first traceback on.

        What the cells of a notebook begin with, each of them begins with.
        """
        if is_notebook(data[:REACH]):
            return
        for row in data[:REACH].partition(b"Traceback (")[0].split(b"\n")[:40]:
            piece = max(_PIECE.findall(row), key=len, default=b"")
            if len(self.pieces) < HEAD and _LETTERS.search(piece) and piece not in self.pieces:
                self.pieces.append(piece)

    @property
    def sets_up(self) -> bool:
        """Tell whether the first lines are a program's that starts, and no loop's that a file begins amid."""
        return self.count < MOST and any(_SETS_UP.search(piece) for piece in self.pieces)

    def search(self, block: Block) -> None:
        """Note the lines of the block's own part from which on the first lines are said again."""
        if len(self.pieces) < ALIKE:
            return
        place = block.start
        while self.count < MOST and (place := block.data.find(self.pieces[0], place, block.stop)) >= 0:
            self.count += 1
            if self.count > 1 and self._goes_on(block.data, place):
                self.starts.append(block.number(place))
            place += len(self.pieces[0])

    def _goes_on(self, data: bytes, place: int) -> bool:
        """Tell whether the other first lines follow a place in their order, as far as most of them go."""
        said, end = 1, place + REACH
        for piece in self.pieces[1:]:
            found = data.find(piece, place, end)
            if found >= 0:
                place, said = found, said + 1
        return said >= max(ALIKE, len(self.pieces) // 2)


class RunStarts:
    """The starts of further runs in the files of one job."""

    def __init__(self) -> None:
        self._heads: list[_Head] = []
        self._is_new = False

    def begin(self) -> None:
        """Begin a file."""
        self._heads.append(_Head())
        self._is_new = True

    def see(self, block: Block) -> list[int]:
        """Look through the next block; give the lines in it where a program surely starts anew."""
        head = self._heads[-1]
        if self._is_new:
            head.learn(block.data)
            self._is_new = False
        known = len(head.starts)
        head.search(block)
        return head.starts[known:] if head.sets_up else []

    def lines(self) -> list[int]:
        """Give the lines that further runs begin with."""
        return [line for head in self._heads if head.count < MOST for line in head.starts]


def runs_after_failures(
    events: Sequence[Event], starts: Sequence[int], timeline: Timeline
) -> tuple[int, ...]:
    """Give those starts above which a run ended by a failure, after it had said its own first lines.

    Ranks that begin together only say the same, and a message that comes again begins no run.
    """
    ends = [event for event in events if _ends_run(event, Progress())]
    found: list[int] = []
    for start in starts:
        part = timeline.number(start)
        begin = max(timeline.parts[part].first if timeline.parts else 1, found[-1] if found else 1)
        if any(begin + ALIKE <= (event.traceback or event.line) and event.last < start for event in ends):
            found.append(start)
    return tuple(found)


def with_runs(
    events: Sequence[Event], starts: Sequence[int], runs: Sequence[Progress], timeline: Timeline
) -> tuple[Event, ...]:
    """Mark the events of earlier runs, where the last run has a failure of its own.

    A last run that shows none may have been cut: then what stands before it is all that is known.
    """
    first = 0
    further = [*_back_at_start(events, runs, timeline), *_tried_again(events, timeline)]
    for start in sorted([*starts, *further], reverse=True):
        part = timeline.number(start)
        own = [event for event in events if event.last >= start and timeline.number(event.last) == part]
        if any(_ends_run(event, runs[part]) for event in own):
            first = start
            break
    if not first:
        return tuple(events)
    part = timeline.number(first)
    return tuple(
        replace(event, earlier_run=event.last < first and timeline.number(event.last) == part)
        for event in events
    )


def _tried_again(events: Sequence[Event], timeline: Timeline) -> list[int]:
    """Give the lines behind a program's ends before it ran, where the same program ran and failed below.

    Its parser had refused the command line, or its own file did not compile: that process did nothing more.
    """
    ended = [(event, program) for event in events if (program := _never_ran(event))]
    return [
        event.last + 1
        for event, program in ended
        if any(
            other.line > event.last
            and not _never_ran(other)
            and timeline.number(other.line) == timeline.number(event.last)
            and any(
                frame.function == "<module>" and base_name(frame.file) == program
                for frame in other.frames[:1]
            )
            for other in events
        )
    ]


def _never_ran(event: Event) -> str:
    """Name the file of a program that ended before it ran; empty for any other end."""
    if refused := _REFUSED.search(event.body):
        return refused["program"]
    is_whole = event.exception in _UNCOMPILED and len(event.frames) == 1
    return base_name(event.frames[0].file) if is_whole else ""


def _ends_run(event: Event, run: Progress) -> bool:
    """Tell whether an event may be what a run ended by."""
    is_failure = event.kind != "warning" and event.pattern_role == "origin"
    is_failure = is_failure and (event.traceback > 0 or not event.passing)
    tells = event.traceback > 0 or (event.cause is not None and event.strength != "hints")
    return is_failure and tells and not event.usual and not run.goes_on_after(event.last)


def _back_at_start(events: Sequence[Event], runs: Sequence[Progress], timeline: Timeline) -> list[int]:
    """Give the tracebacks of a program that sets up, though its process had counted steps and failed before.

    So ends a file that begins amid an earlier run: a process that has got to its steps starts no more. A
    launcher that reports what its processes died of prints the calls by which it had started them.
    """
    reports = {event.traceback for event in events if event.pattern_role == "wrapper"}
    found = []
    for event in events:
        if not event.traceback or event.traceback in reports or not phases.sets_up(event.frames):
            continue
        run = runs[timeline.number(event.line)]
        # A bar counts work only from some steps on: it may be that of a checkpoint's few parts.
        counted = any(
            mark.step >= (SHARDS if mark.is_bar else 1) and mark.line < event.traceback for mark in run.latest
        )
        earlier = [
            other
            for other in events
            if other.last < event.traceback and other.source == event.source and _ends_run(other, Progress())
        ]
        # Ranks that start together also fail together while they set up, one after the other in the text.
        alone = not any(phases.sets_up(other.frames) for other in earlier)
        if counted and earlier and alone and not run.goes_on_after(event.line):
            found.append(event.traceback)
    return found
