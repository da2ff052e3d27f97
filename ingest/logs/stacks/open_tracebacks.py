"""Tracebacks that are still open while a log goes by: their last lines may yet meet a pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ingest.logs.repeats import Sighting
from ingest.logs.stacks.tracebacks import Traceback

# A message may run over some lines after the one that names the exception.
MESSAGE_LINES = 6


@dataclass(slots=True)
class Stack:
    """A traceback, whether a pattern knew its last line, and how often its wording was seen."""

    traceback: Traceback
    sight: Sighting
    is_matched: bool = False
    # What looks above it for how it came, where nobody has looked yet.
    look_above: Callable[[Traceback], Traceback] | None = None
    # What reads its calls, where they are those of another that is like it.
    read_calls: Callable[[], Traceback] | None = None

    def whole(self) -> Traceback:
        """Give the traceback with its own calls and what stands above it."""
        if self.read_calls is not None:
            self.traceback, self.read_calls = self.read_calls(), None
        if self.look_above is not None:
            self.traceback, self.look_above = self.look_above(self.traceback), None
        return self.traceback


@dataclass
class Stacks:
    """Open tracebacks by the stream that printed them and the line that ends them."""

    _latest: dict[str, Traceback] = field(default_factory=dict)
    _ends: dict[str, dict[int, Stack]] = field(default_factory=dict)
    _lines: dict[int, Stack] = field(default_factory=dict)

    def open(
        self,
        source: str,
        traceback: Traceback,
        start: int,
        sight: Sighting,
        look_above: Callable[[Traceback], Traceback] | None = None,
        read_calls: Callable[[], Traceback] | None = None,
    ) -> None:
        """Note a traceback of a stream; `start` is the line that the whole chain begins with."""
        self._latest[source] = traceback if traceback.start == start else replace(traceback, start=start)
        stack = Stack(traceback, sight, not traceback.is_event, look_above, read_calls)
        self._ends.setdefault(source, {})[traceback.end] = self._lines[traceback.end] = stack

    def latest(self, source: str) -> Traceback | None:
        """Give the traceback that a stream printed last."""
        return self._latest.get(source)

    def ending(self, source: str, number: int) -> Stack | None:
        """Give the traceback that ends in a line."""
        return self._ends.get(source, {}).get(number)

    def reach(self, source: str, number: int) -> bool:
        """Tell whether a line may be of a traceback of its stream, or of the message that ends one."""
        latest, ends = self._latest.get(source), self._ends.get(source)
        if latest is not None and latest.start <= number <= latest.end:
            return True
        return ends is not None and not ends.keys().isdisjoint(range(number - MESSAGE_LINES, number + 1))

    def begins(self, source: str, number: int) -> bool:
        """Tell whether an open traceback of a stream begins in a line."""
        return any(stack.traceback.start == number for stack in self._ends.get(source, {}).values())

    def settle(self, number: int) -> None:
        """Note that a pattern knows the line, which was counted and not read."""
        if stack := self._lines.get(number):
            stack.is_matched = True

    def of(self, source: str, number: int) -> Traceback | None:
        """Give the traceback that a line ends, which is thereby known, or whose message it goes on with."""
        ends = self._ends.get(source, {})
        if number in ends:
            ends[number].is_matched = True
            return ends[number].traceback
        near = (ends[place] for place in range(number - 1, number - 1 - MESSAGE_LINES, -1) if place in ends)
        return next((stack.traceback for stack in near), None)

    def close(self, source: str | None = None, before: int | None = None) -> Iterator[Stack]:
        """Take out the tracebacks of one stream, or of all; give those that no pattern knew."""
        for name in [source] if source is not None else list(self._ends):
            ends = self._ends.get(name, {})
            chosen = [number for number in ends if before is None or number < before]
            stacks = [ends.pop(number) for number in chosen]
            for number in chosen:
                self._lines.pop(number, None)
            if not ends:
                self._ends.pop(name, None)
            yield from (stack for stack in stacks if not stack.is_matched)
        if source is not None:
            self._latest.pop(source, None)
