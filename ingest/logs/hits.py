"""What matched in one block: each pattern once a line, and of what a healthy run repeats a few."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ingest.logs.scan_windows import LONG_LINE, SAMPLED_OVER, is_overrun

# How often a pattern that only tells of a version is noted.
SCARCE = 3
# How many of a block's first and last lines of progress are kept; in a large block, whose neighbours tell
# too.
FEW = 48
FEWER = 8

_SPACE = ord(" ")
# Is told the number of a row, and where a match begins and ends; what else Hyperscan tells says nothing.
Note = Callable[[int, int, int, int, object], None]
# Searches some bytes.
Scan = Callable[[bytes, Note], None]


class Hits:
    """What matched in one block, of whose bytes those between two places are its own."""

    def __init__(
        self,
        data: bytes,
        own: tuple[int, int],
        rows: int,
        plenty: frozenset[int],
        scarce: frozenset[int],
        seen: dict[int, int],
        signed: frozenset[int],
    ) -> None:
        self._data, (self._start, self._stop) = data, own
        # Where in the block the bytes begin that are searched.
        self._begin = 0
        self._signed = signed
        self._plenty, self._scarce, self._seen = plenty, scarce, seen
        # How far a pattern is silent: to the end of the line that it has matched in.
        self._quiet = [0] * rows
        self._few = FEW if self._stop - self._start <= SAMPLED_OVER else FEWER
        self._counts = dict.fromkeys(plenty, 0)
        self._latest: dict[int, deque[int]] = {}
        self.found: list[tuple[int, int]] = []
        # Where signs of rows end, once a line.
        self.signs: list[int] = []
        self._is_noted = dict.fromkeys(signed, 0)

    def search(self, scan: Scan, begin: int, end: int) -> None:
        """Note what is found in a part of the block; the rows' own expressions, not their signs."""
        self._signed, self._begin = frozenset(), begin
        scan(self._data[begin:end], self.note)

    def note(self, row: int, _start: int, end: int, _flags: int, _context: object) -> None:
        """Note that a row's expression ends at a place of what is searched, or its sign."""
        end += self._begin
        # Asked first: most matches repeat what was said on this line already.
        if end <= self._quiet[row]:
            return
        data = self._data
        if row in self._signed:
            # Also of a neighbour's part: the row's own match may end further on.
            if end > self._is_noted[row]:
                newline = data.find(b"\n", end, end + LONG_LINE)
                self._is_noted[row] = newline if newline >= 0 else end + LONG_LINE
                self.signs.append(end)
            return
        if not self._start < end <= self._stop or (data[end - 1] <= _SPACE and is_overrun(data, end)):
            return  # a neighbour block's own, or run over the line's end
        newline = data.find(b"\n", end, end + LONG_LINE)
        self._quiet[row] = newline if newline >= 0 else end + LONG_LINE
        if row in self._plenty:
            self._counts[row] += 1
            if self._counts[row] > self._few:
                if row not in self._latest:
                    self._latest[row] = deque(maxlen=self._few)
                self._latest[row].append(end)
                return
        elif row in self._scarce:
            self._seen[row] += 1
            if self._seen[row] > SCARCE:
                self._quiet[row] = len(data) + 1
                return
        self.found.append((end, row))

    def all(self) -> list[tuple[int, int]]:
        """Give ends and rows, by place."""
        return sorted(self.found + [(end, row) for row, ends in self._latest.items() for end in ends])
