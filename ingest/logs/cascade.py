"""Who failed first: give every event its role, and name the root.

The order of the rules is that of DESIGN.md: what progress followed was recovered from; what as a rule
follows another failure is collateral while an earlier candidate stands; the specific beats the generic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ingest.logs.events import Event


@dataclass(frozen=True, slots=True)
class Mark:
    """A line that tells of progress; `step` is -1 where it counts nothing."""

    line: int
    step: float


@dataclass
class Progress:
    """Marks of progress: how many, the latest ones, and where the run said that it was done.

    `step` is the last training step that the run itself counted; a progress bar may count anything.
    """

    LATEST = 256

    count: int = 0
    step: float | None = None
    latest: deque[Mark] = field(default_factory=lambda: deque(maxlen=Progress.LATEST))
    finished: int = 0

    def add(self, mark: Mark) -> None:
        """Note a mark; a bar redrawn at the same step is no new progress."""
        if not self.latest or mark.step < 0 or mark.step != self.latest[-1].step:
            self.count += 1
            self.latest.append(mark)

    def goes_on_after(self, line: int) -> bool:
        """Tell whether work went on after a line: the run ended well, or two later marks that count up."""
        if self.finished > line:
            return True
        after = [mark for mark in self.latest if mark.line > line]
        before = [mark for mark in self.latest if mark.line <= line]
        counted = [mark.step for mark in after if mark.step >= 0]
        reached = max((mark.step for mark in before), default=-1)
        if counted:
            return len({step for step in counted if step > reached}) > 1
        return len(after) > 2


@dataclass(frozen=True)
class Cascade:
    """The events with their roles, by line; `root` is None where nothing failed."""

    events: tuple[Event, ...]
    root: Event | None


# What an event is worth as the root, best first. The same worth goes by place in the log.
_CLEAR, _PLAIN, _HINTED, _FOLLOWED, _REPEATED = range(5)


def arrange(events: Sequence[Event], progress: Progress) -> Cascade:
    """Give each event its role and name the root among the failures that stand."""
    standing = [event for event in events if not progress.goes_on_after(event.last)]
    recovered = {id(event) for event in events} - {id(event) for event in standing}
    root = min(standing, key=_worth, default=None)
    placed: list[Event] = []
    chosen: Event | None = None
    for event in events:
        if event is root:
            chosen = replace(event, role="root")
            placed.append(chosen)
        else:
            placed.append(replace(event, role="recovered" if id(event) in recovered else "collateral"))
    return Cascade(tuple(placed), chosen)


def _worth(event: Event) -> tuple[int, int]:
    if event.pattern_role == "wrapper":
        return _REPEATED, event.line
    if event.pattern_role == "collateral":
        return _FOLLOWED - bool(event.cause and event.strength == "states"), event.line
    if event.cause and event.strength != "hints":
        return _CLEAR, event.line
    return (_HINTED if event.kind == "warning" else _PLAIN), event.line
