"""What a job was doing when it failed.

Told by the calls in its traceback, and by what its lines said before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from corpus import phases
from ingest.logs.stacks.tracebacks import Frame
from ingest.logs.timeline import Timeline

# So many changes between setting up and counting steps are kept; a job has a few for each start.
MOST_TURNS = 1000


class PhaseLine(NamedTuple):
    """A line that tells a phase, and the first one after it that counts a step (0 for none)."""

    line: int
    name: str
    passed: int = 0


@dataclass
class Phases:
    """What a job's lines tell of its phases while they go by."""

    _told: deque[PhaseLine] = field(default_factory=lambda: deque(maxlen=200))
    # Lines from which on steps were counted, or a start was seen.
    _changes: list[tuple[int, bool]] = field(default_factory=list)

    def tell(self, line: int, name: str, part: int) -> None:
        """Note a line that tells a phase; `part` is the first line of its file."""
        self._told.append(PhaseLine(line, name))
        if _is_first(name):
            self._change(line, part, counts=False)

    def count(self, line: int, part: int, step: float) -> None:
        """Note a line that counts a step; the zeroth is told before any was made."""
        if step <= 0:
            return
        self._change(line, part, counts=True)
        if self._told and not self._told[-1].passed:
            self._told[-1] = self._told[-1]._replace(passed=line)

    def _change(self, line: int, part: int, *, counts: bool) -> None:
        last = self._changes[-1] if self._changes else (0, False)
        if (last[1] != counts or last[0] < part) and len(self._changes) < MOST_TURNS:
            self._changes.append((line, counts))

    def has_begun(self, line: int, timeline: Timeline) -> bool:
        """Tell whether steps were counted before a line and since the last start that is seen before it.

        In a file of its own a process may count none, as its job's first rank does it for all: then the
        others' count.
        """
        part = timeline.number(line) if timeline.parts else 0
        own = [
            counts
            for at, counts in self._changes
            if at < line and (not timeline.parts or timeline.number(at) == part)
        ]
        if True in own:
            return own[-1]
        return timeline.has_parts and any(
            counts and timeline.number(at) != part for at, counts in self._changes
        )

    @property
    def counted_from(self) -> int | None:
        """Give the first line that counts a step.

        None where no line does and the job told that it was setting up, 0 where it told neither.
        """
        first = next((at for at, counts in self._changes if counts), 0)
        return None if not first and any(_is_set_up(told.name) for told in self._told) else first

    def before(self, line: int, *, has_begun: bool) -> str:
        """Name the phase that was told last before a failure, unless the job has left it behind."""
        last = next((told for told in reversed(self._told) if told.line <= line), None)
        if last is None or (has_begun and _is_first(last.name)):
            return ""
        phase = phases.load().by_name.get(last.name)
        return "" if phase and phase.passes and 0 < last.passed < line else last.name


def of_frames(frames: Sequence[Frame], *, has_begun: bool) -> str:
    """Name the phase that a traceback tells, or give the empty string.

    An object made within a turn of the loop is part of that turn, and once steps were counted nothing is
    initialised.
    """
    table = phases.load()
    for place, frame in reversed(list(enumerate(frames))):
        phase = table.of_call(f"{frame} {frame.code}")
        if phase and phase.first:
            # What turns of the loop the calls around a frame are, the innermost first.
            turns = (table.of_turn(around.function) for around in reversed(frames[:place]))
            phase = next((turn for turn in turns if turn), None if has_begun else phase)
        if phase:
            return phase.name
    return ""


def sets_up(frames: Sequence[Frame]) -> bool:
    """Tell whether an uncaught traceback shows a program that was just started: it imports, or sets up."""
    if not frames or frames[0].function != "<module>":
        return False
    if all(frame.function == "<module>" or "importlib" in frame.file for frame in frames):
        return True
    return _is_set_up(of_frames(frames, has_begun=False))


def _is_set_up(name: str) -> bool:
    phase = phases.load().by_name.get(name)
    return phase is not None and phase.sets_up


def _is_first(name: str) -> bool:
    phase = phases.load().by_name.get(name)
    return phase is not None and phase.first
