"""Find every notable line in one pass over the bytes.

The patterns are compiled into one Hyperscan database, so the cost of a byte does not grow with the table.
A log is cut into blocks; each block carries some bytes of its neighbours, so that what belongs to a
match (a traceback, say) is at hand without going back to the source.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import hyperscan

from corpus.errors import InvalidCorpusError
from ingest.logs.patterns import Pattern

BLOCK = 4 << 20
BEFORE = 64 << 10
AFTER = 256 << 10
# A match silences its pattern for the rest of the line; on a line of megabytes, for this far only.
LONG_LINE = 64 << 10
LONGEST_ESCAPE = 4096
# How often a pattern that only tells of a version is noted.
SCARCE = 3
FEW = 48

_ANCHORS = {"^": r"(?:^|[\r\t \]):|])", "$": r"(?:$|\r)"}
_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\^_])")


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a log: matches that end in `data[start:stop]` are its own, the rest is surroundings.

    `line` is the 1-based number of the line that `data` begins with. Terminal escapes are taken out.
    """

    data: bytes
    line: int
    start: int
    stop: int

    def line_bounds(self, offset: int) -> tuple[int, int]:
        """Give start and end (without its newline) of the line that holds `offset`."""
        end = self.data.find(b"\n", offset)
        return self.data.rfind(b"\n", 0, offset) + 1, len(self.data) if end < 0 else end


@dataclass(frozen=True, slots=True)
class Match:
    """A pattern's match: its row number, the line, and where in the block it ends."""

    row: int
    line: int
    offset: int


@dataclass
class Tally:
    """How much was read."""

    size: int = 0
    lines: int = 0
    open_line: bool = field(default=False, repr=False)

    def add(self, chunk: bytes) -> None:
        """Count a chunk of the source as given."""
        self.size += len(chunk)
        self.lines += chunk.count(b"\n")
        self.open_line = not chunk.endswith(b"\n")

    def close(self) -> None:
        """Count a last line that no newline ends."""
        self.lines += self.open_line
        self.open_line = False


def blocks(chunks: Iterable[bytes], tally: Tally, size: int = BLOCK) -> Iterator[Block]:
    """Cut chunks of bytes into blocks whose own parts join without gap or overlap."""
    data, line, start, held, carry = b"", 1, 0, b"", b""
    for chunk in chunks:
        tally.add(chunk)
        # An escape sequence, or CR LF, may be cut by the chunk's end; its beginning waits for the next one.
        text = held + chunk
        cut = _whole(text)
        text, held = text[:cut], text[cut:]
        plain = _plain(carry + (_ESCAPES.sub(b"", text) if b"\x1b" in text else text))
        carry = plain[len(plain) - plain.endswith(b"\r") :]
        data += plain[: len(plain) - len(carry)]
        while len(data) - start >= size + AFTER:
            stop = _line_end(data, start, start + size)
            yield Block(data, line, start, stop)
            drop = _droppable(data, stop)
            line += data.count(b"\n", 0, drop)
            data, start = data[drop:], stop - drop
    tally.close()
    data += _plain(carry + _ESCAPES.sub(b"", held))
    if len(data) > start:
        yield Block(data, line, start, len(data))


def _plain(text: bytes) -> bytes:
    """Take the CR out of CR LF; no line begins or ends elsewhere for it."""
    return text.replace(b"\r\n", b"\n") if b"\r\n" in text else text


def _whole(text: bytes) -> int:
    """Give how far text goes without an escape sequence that its end cuts."""
    place = text.find(b"\x1b", max(0, len(text) - LONGEST_ESCAPE))
    while place >= 0:
        match = _ESCAPES.match(text, place)
        if match is None:
            return place
        place = text.find(b"\x1b", match.end())
    return len(text)


def _droppable(data: bytes, stop: int) -> int:
    """Give how many bytes before `stop` nobody needs any more: whole lines, or a piece of one without end."""
    wish = max(0, stop - BEFORE)
    newline = data.rfind(b"\n", 0, wish) + 1
    return newline if newline or wish < LONG_LINE else wish


def _line_end(data: bytes, start: int, wish: int) -> int:
    end = data.rfind(b"\n", start, wish) + 1
    return end if end > start else wish


def _is_overrun(data: bytes, end: int) -> bool:
    """Tell whether a match only ends here because its last white space ran on over the end of its line."""
    last = data[end - 1 : end]
    if not last.isspace():
        return False
    return last == b"\n" or data[data.rfind(b"\n", 0, end - 1) + 1 : end].isspace()


def relaxed(expression: str) -> str:
    """Let `^` and `$` also hold behind a prefix and before a redrawn part of the line.

    What the scanner finds so is a proposal: the reader holds the row's own expression against the line
    with its prefixes taken off.
    """
    parts: list[str] = []
    escaped = in_class = False
    for char in expression:
        plain = not escaped and not in_class
        parts.append(_ANCHORS.get(char, char) if plain else char)
        in_class = (in_class and (escaped or char != "]")) or (plain and char == "[")
        escaped = char == "\\" and not escaped
    return "".join(parts)


class Scanner:
    """A compiled table of patterns."""

    def __init__(self, rows: tuple[Pattern, ...], cache: Path | None = None) -> None:
        self._rows = rows
        # What only tells that a framework is there needs to be seen a few times, not a million.
        self._scarce = frozenset(n for n, row in enumerate(rows) if row.kind == "version")
        self._seen = dict.fromkeys(self._scarce, 0)
        # What a healthy run prints at every step: of a block's, the first and the last ones tell enough.
        self._plenty = frozenset(
            n for n, row in enumerate(rows) if row.kind in ("progress", "fact") and not row.id.startswith("structure.")
        )
        self._database = self._load(cache)

    def _load(self, cache: Path | None) -> hyperscan.Database:
        expressions = [relaxed(row.expression).encode() for row in self._rows]
        flags = [
            hyperscan.HS_FLAG_MULTILINE | (hyperscan.HS_FLAG_CASELESS if row.caseless else 0) for row in self._rows
        ]
        key = hashlib.sha256(repr((version("hyperscan"), expressions, flags)).encode()).hexdigest()[:16]
        stored = cache / f"patterns-{key}.hsdb" if cache else None
        if stored and stored.is_file():
            with contextlib.suppress(hyperscan.error):  # written on another processor: compile anew
                database = hyperscan.loadb(stored.read_bytes(), mode=hyperscan.HS_MODE_BLOCK)
                database.scratch = hyperscan.Scratch(database)  # a loaded database comes without one
                return database
        database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        count = len(expressions)
        try:
            database.compile(expressions=expressions, ids=list(range(count)), elements=count, flags=flags)
        except hyperscan.error as error:
            names = ", ".join(row.id for row in self._rows[:3])
            raise InvalidCorpusError(f"patterns ({names} ...): Hyperscan refuses an expression: {error}") from error
        if stored:
            with contextlib.suppress(OSError):  # a folder that cannot be written costs time at the next start
                stored.parent.mkdir(parents=True, exist_ok=True)
                part = stored.with_suffix(".part")
                part.write_bytes(hyperscan.dumpb(database))
                part.replace(stored)
        return database

    def fresh(self) -> None:
        """Forget what earlier logs held; call before each log."""
        self._seen = dict.fromkeys(self._scarce, 0)

    def matches(self, block: Block) -> list[Match]:
        """Give the matches of the block's own part, by line, each pattern once a line."""
        ends = self._ends(block)
        found: list[Match] = []
        line, counted = block.line, 0
        for end, row in ends:
            begin = max(0, end - 1)
            line += block.data.count(b"\n", counted, begin)
            counted = begin
            found.append(Match(row, line, begin))
        return found

    def _ends(self, block: Block) -> list[tuple[int, int]]:
        data, quiet = block.data, [0] * len(self._rows)
        found: list[tuple[int, int]] = []
        seen, scarce, plenty = self._seen, self._scarce, self._plenty
        counts = dict.fromkeys(plenty, 0)
        latest: dict[int, deque[int]] = {}

        def note(row: int, _start: int, end: int, _flags: int, _context: object) -> None:
            if end <= quiet[row] or not block.start < end <= block.stop or _is_overrun(data, end):
                return  # said already on this line, a neighbour block's own, or run over the line's end
            newline = data.find(b"\n", end, end + LONG_LINE)
            quiet[row] = newline if newline >= 0 else end + LONG_LINE
            if row in scarce:
                seen[row] += 1
                if seen[row] > SCARCE:
                    quiet[row] = len(data) + 1
                    return
            if row in plenty:
                counts[row] += 1
                if counts[row] > FEW:
                    latest.setdefault(row, deque(maxlen=FEW)).append(end)
                    return
            found.append((end, row))

        self._database.scan(data, match_event_handler=note)
        found += [(end, row) for row, ends in latest.items() for end in ends]
        found.sort()
        return found
