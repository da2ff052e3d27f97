"""Where a file that several runs were written into has another run begin.

A log that is appended to, a loop that tries again and a job that is put back into its queue all print the
same first lines again. What an earlier run died of is no cause of the last one's end, nor its consequence.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ingest.logs import phases
from ingest.logs.cascade import Progress, ProgressMark
from ingest.logs.events import Event
from ingest.logs.scanner import Block, newlines
from ingest.logs.timeline import Timeline

# So many of a file's first lines are looked for again, and so many of them must come, in their order, within
# so many lines. Each is looked for so often: more starts than a log has, of lines that come all the time.
HEAD = 12
ALIKE = 3
NEAR = 80
MOST = 200
# So many parts a checkpoint that is loaded may have.
SHARDS = 12
# A line with fewer letters in a row tells no program from another.
WORDS = 12

_PIECE = re.compile(rb"[^\d\n\r]{%d,200}" % WORDS)
_LETTERS = re.compile(rb"[A-Za-z]{3}")


@dataclass
class _Head:
    """A file's first lines: what of each is looked for, and in which lines it was found again."""

    pieces: list[bytes] = field(default_factory=list)
    found: list[list[int]] = field(default_factory=list)

    def learn(self, data: bytes) -> None:
        """Take the first lines that have words, each wording once; none from the first traceback on."""
        for row in data[: 16 << 10].partition(b"Traceback (")[0].split(b"\n")[:40]:
            piece = max(_PIECE.findall(row), key=len, default=b"")
            if len(self.pieces) < HEAD and _LETTERS.search(piece) and piece not in self.pieces:
                self.pieces.append(piece)
                self.found.append([])

    def search(self, block: Block) -> None:
        """Note the lines of the block's own part that say one of the first lines again."""
        for piece, lines in zip(self.pieces, self.found, strict=True):
            place, counted, number = block.start, 0, block.line
            while len(lines) < MOST and (place := block.data.find(piece, place, block.stop)) >= 0:
                number, counted = number + newlines(block.data, counted, place), place
                lines.append(number)
                place += len(piece)

    def starts(self) -> list[int]:
        """Give the lines in which the first lines begin to come again, in their order."""
        kept = [sorted(lines) for lines in self.found if len(lines) < MOST]
        needed = min(ALIKE, len(kept))
        if needed < ALIKE:
            return []
        begun: list[int] = []
        for number in kept[0][1:]:
            place, count = number, 1
            for lines in kept[1:]:
                at = bisect_right(lines, place)
                if at < len(lines) and lines[at] <= number + NEAR:
                    place, count = lines[at], count + 1
            if count >= max(needed, len(kept) // 2):
                begun.append(number)
        return begun


class RunStarts:
    """The starts of further runs in the files of one job."""

    def __init__(self) -> None:
        self._heads: list[_Head] = []
        self._is_new = False

    def begin(self) -> None:
        """Begin a file."""
        self._heads.append(_Head())
        self._is_new = True

    def see(self, block: Block) -> None:
        """Look through the next block of the file."""
        if self._is_new:
            self._heads[-1].learn(block.data)
            self._is_new = False
        self._heads[-1].search(block)

    def lines(self) -> list[int]:
        """Give the lines that further runs begin with."""
        return [line for head in self._heads for line in head.starts()]


def with_runs(
    events: Sequence[Event], starts: Sequence[int], runs: Sequence[Progress], timeline: Timeline
) -> tuple[Event, ...]:
    """Mark the events of earlier runs, where the last run has a failure of its own.

    A last run that shows none may have been cut: then what stands before it is all that is known.
    """
    first = 0
    for start in sorted([*starts, *_back_at_start(events, runs, timeline)], reverse=True):
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


def _ends_run(event: Event, run: Progress) -> bool:
    """Tell whether an event may be what a run ended by."""
    is_failure = event.kind != "warning" and event.pattern_role == "origin"
    is_failure = is_failure and (event.traceback > 0 or not event.passing)
    tells = event.traceback > 0 or (event.cause is not None and event.strength != "hints")
    return is_failure and tells and not event.usual and not run.goes_on_after(event.last)


def _back_at_start(events: Sequence[Event], runs: Sequence[Progress], timeline: Timeline) -> list[int]:
    """Give the tracebacks of a program that sets up, though its process had counted steps and failed before.

    So ends a file that begins amid an earlier run: a process that has got to its steps starts no more.
    """
    found = []
    for event in events:
        if not event.traceback or not phases.sets_up(event.frames):
            continue
        run = runs[timeline.number(event.line)]
        counted = any(_is_far(mark) and mark.line < event.traceback for mark in run.latest)
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


def _is_far(mark: ProgressMark) -> bool:
    """Tell whether a mark counts work; a bar may be that of a checkpoint's few parts."""
    return mark.step >= (SHARDS if mark.is_bar else 1)
