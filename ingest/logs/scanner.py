"""Find every notable line in one pass over the bytes.

The patterns are compiled into one Hyperscan database, so the cost of a byte does not grow with the table.
A log is cut into blocks; each block carries some bytes of its neighbours, so that what belongs to a
match (a traceback, say) is at hand without going back to the source.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import chain
from operator import itemgetter
from pathlib import Path

import hyperscan

from corpus.errors import InvalidCorpusError
from corpus.log_patterns import Pattern
from ingest import shipped
from ingest.errors import InvalidExpressionError
from ingest.logs.hits import Hits, Note, Scan
from ingest.logs.line_index import LineIndex
from ingest.logs.matches import NONE, ROW_BITS, Found, Match, find_headings
from ingest.logs.scan_windows import LONG_LINE, signed_lines, told_until, windows

BLOCK = 4 << 20
BEFORE = 64 << 10
AFTER = 256 << 10
LONGEST_ESCAPE = 4096
# From so many bytes on Hyperscan finds a text several times as fast as `bytes.find`, which is ready at once.
SEARCHED_FROM = 512 << 10
# Kinds of which a healthy run prints so much that they cost more than all the rest.
AT_WORK = ("progress", "work")

# Who quotes a message puts marks around it, and may end it as a sentence; the last two are full stops of
# Chinese.
_ANCHORS = {
    "^": r"(?:^|[\r\t \]):|>*`])",
    "$": r"(?:(?:[`*.,;!)\]]|\xe3\x80\x82|\xef\xbc\x81){0,4} ?(?:$|\r))",
}
# An escaped character, a class of characters, or an anchor: only the last is one of `_ANCHORS`.
_ANCHORED = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]?|[\^$]", re.DOTALL)
# Colours stand in JSON, as in notebooks and logs of containers, with their escape character written out.
_ESCAPED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_WRITTEN = re.compile(rb"\\u001[bB]\[[0-9;]{0,20}m")
ESCAPES = re.compile(_ESCAPED.pattern + rb"|" + _WRITTEN.pattern)
_WRITTEN_OUT = b"\\u001"
_CUT_OFF = re.compile(rb"\\(?:u(?:0(?:0(?:1(?:[bB](?:\[[0-9;]{0,20})?)?)?)?)?)?\Z")


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a log: matches that end in `data[start:stop]` are its own, the rest is surroundings.

    `line` is the 1-based number of the line that `data` begins with. Terminal escapes are taken out.
    `notes` is what its readers have found out about all of it, by a name of theirs.
    """

    data: bytes
    line: int
    start: int
    stop: int
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)
    index: LineIndex = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the lines, when somebody first asks for them."""
        object.__setattr__(self, "index", LineIndex(self.data, literal_places))

    def line_bounds(self, offset: int) -> tuple[int, int]:
        """Give start and end (without its newline) of the line that holds `offset`."""
        end = self.data.find(b"\n", offset)
        return self.data.rfind(b"\n", 0, offset) + 1, len(self.data) if end < 0 else end

    def number(self, place: int) -> int:
        """Give the number of the line that a place is in."""
        return self.line + self.index.before(place)


@dataclass
class Tally:
    """How much was read: bytes of the source as given, and lines."""

    size: int = 0
    lines: int = 0


def blocks(chunks: Iterable[bytes], tally: Tally, size: int = BLOCK, first: int = 1) -> Iterator[Block]:
    """Cut chunks of bytes into blocks whose own parts join without gap or overlap.

    `first` is the first line's number.
    """
    line, start, held, carry = first, 0, b"", b""
    parts: list[bytes] = []
    filled = 0
    for chunk in chunks:
        tally.size += len(chunk)
        # An escape sequence, or CR LF, may be cut by the chunk's end; its beginning waits for the next one.
        text = held + chunk if held else chunk
        cut = _whole(text)
        text, held = text[:cut], text[cut:]
        plain = _plain(carry + (without_escapes(text)))
        carry = plain[len(plain) - plain.endswith(b"\r") :]
        parts.append(plain[: len(plain) - len(carry)])
        filled += len(parts[-1])
        if filled - start < size + AFTER:
            continue
        data = b"".join(parts)
        while len(data) - start >= size + AFTER:
            # At the last line's end before the size that is wished for, or amid a line that is longer.
            line_end = data.rfind(b"\n", start, start + size) + 1
            stop = line_end if line_end > start else start + size
            block = Block(data, line, start, stop)
            yield block
            # How many bytes before `stop` nobody needs any more: whole lines, or a piece of one without end.
            wish = max(0, stop - BEFORE)
            newline = data.rfind(b"\n", 0, wish) + 1
            drop = newline if newline or wish < LONG_LINE else wish
            line = block.number(drop)
            data, start = data[drop:], stop - drop
        parts, filled = [data], len(data)
    data = b"".join((*parts, _plain(carry + without_escapes(held))))
    block = Block(data, line, start, len(data))
    tally.lines = block.number(len(data)) - first + (bool(data) and not data.endswith(b"\n"))
    if len(data) > start:
        yield block


def without_escapes(text: bytes) -> bytes:
    """Take colours and other terminal sequences out of a text."""
    # A single sign is found much faster than several, and an expression that begins with a literal ten times
    # as fast as one of two alternatives.
    is_written_out = b"\\" in text and bool(held_literals(text, (_WRITTEN_OUT,)))
    if b"\x1b" not in text:
        return _WRITTEN.sub(b"", text) if is_written_out else text
    return (ESCAPES if is_written_out else _ESCAPED).sub(b"", text)


def _plain(text: bytes) -> bytes:
    """Take the CR out of CR LF; no line begins or ends elsewhere for it."""
    is_ended_so = b"\r" in text and held_literals(text, (b"\r\n",))
    return text.replace(b"\r\n", b"\n") if is_ended_so else text


def _whole(text: bytes) -> int:
    """Give how far text goes without an escape sequence that its end cuts."""
    done = max(0, len(text) - LONGEST_ESCAPE)
    place = text.find(b"\x1b", done)
    while place >= 0:
        match = ESCAPES.match(text, place)
        if match is None:
            return place
        done = match.end()
        place = text.find(b"\x1b", done)
    cut = _CUT_OFF.search(text, done)
    return len(text) if cut is None else cut.start()


def relaxed(expression: str) -> str:
    """Let `^` and `$` also hold behind a prefix and before a redrawn part of the line.

    What the scanner finds so is a proposal: the reader holds the row's own expression against the line
    with its prefixes taken off.
    """
    return _ANCHORED.sub(lambda part: _ANCHORS.get(part[0], part[0]), expression)


class Scanner:
    """A compiled table of patterns.

    What may fail, and whatever is rare, is looked for everywhere; progress lines are a database of their own,
    since in a log that consists of them they cost more than all the rest, and so are the headings of samples,
    which are asked for beside other matches alone.

    The last `own` rows are the user's, and compiled apart: those that ship stay as they were compiled before.
    """

    def __init__(self, rows: tuple[Pattern, ...], cache: Path | None = None, own: int = 0) -> None:
        self._count = len(rows)
        # What only tells that a framework is there needs to be seen a few times, not a million.
        self._scarce = frozenset(n for n, row in enumerate(rows) if row.kind == "version")
        self._seen = dict.fromkeys(self._scarce, 0)
        # What a healthy run prints at every step: of a block's, the first and the last ones tell enough.
        self._plenty = frozenset(
            n
            for n, row in enumerate(rows)
            if row.kind in (*AT_WORK, "end", "fact") and not (row.handler or row.sample)
        )
        self._telling = frozenset(n for n, row in enumerate(rows) if row.fails)
        always = [item for item in enumerate(rows) if item[1].kind not in AT_WORK and not item[1].sample]
        progress = [item for item in enumerate(rows) if item[1].kind in AT_WORK]
        self._signed = frozenset(n for n, row in always if row.sign)
        # A row's sign stands for it at first; its own expression is searched for in the lines that hold it.
        sets = (
            [(n, row.as_sign if row.sign else row) for n, row in always],
            [item for item in always if item[1].sign],
            progress,
            [item for item in enumerate(rows) if item[1].sample],
        )
        made = list(_compiled(sets, cache, len(rows) - own))
        self._always, self._behind_signs, self._progress, self._samples = made

    def fresh(self) -> None:
        """Forget what earlier logs held; call before each log."""
        self._seen = dict.fromkeys(self._scarce, 0)

    def scan(self, source: Iterable[Block]) -> Iterator[tuple[Block, Found]]:
        """Give each block with its matches; while one is worked on, the next is scanned on another core."""
        blocks_left = iter(source)
        first = next(blocks_left, None)
        second = next(blocks_left, None)
        if first is not None and second is None:
            yield first, self.find(first)  # a thread would cost more than it saves
        if first is None or second is None:
            return
        waiting: deque[tuple[Block, Future[Found]]] = deque()
        with ThreadPoolExecutor(1, "scan") as pool:  # one: what the callback counts must go in order
            for block in chain((first, second), blocks_left):
                waiting.append((block, pool.submit(self.find, block)))
                yield from _results(waiting, 2)
            yield from _results(waiting, 0)

    def matches(self, block: Block) -> list[Match]:
        """Give the matches of the block's own part, by place, headings of samples among them."""
        matches, headings = self.find(block)
        return sorted((*matches, *map(Match, *headings)), key=lambda match: (match.offset, match.row))

    def find(self, block: Block) -> Found:
        """Give the matches of the block's own part, each pattern once a line, and headings of samples."""
        ends = self._ends(block)
        places = [max(0, end - 1) for end, _ in ends]
        headings = NONE
        if self._samples:
            own = block.start, block.stop
            ends_in = partial(_ends_in, self._samples.scan)
            headings = find_headings(ends_in, block.data, block.index, own, places, block.line)
        lines = [block.line + above for above in block.index.before_each(places)]
        # Past the constructor: there are hundreds of thousands in a large log.
        rows = [row for _, row in ends]
        matches = list(map(partial(tuple.__new__, Match), zip(rows, lines, places, strict=True)))
        return Found(matches, headings)

    def peek(self, data: bytes) -> list[Match]:
        """Give the matches of a text that is no part of a log, which counts for none."""
        seen, self._seen = self._seen, dict.fromkeys(self._scarce, 0)
        try:
            return self.find(Block(data, 1, 0, len(data))).matches
        finally:
            self._seen = seen

    def _ends(self, block: Block) -> list[tuple[int, int]]:
        own = block.start, block.stop
        hits = Hits(block.data, own, self._count, self._plenty, self._scarce, self._seen, self._signed)
        if self._always:
            reach = told_until(block.data, block.stop)
            data = block.data[:reach] if reach < len(block.data) else block.data
            self._always.scan(data, hits.note)
        if self._behind_signs and hits.signs:
            for begin, end in signed_lines(block.data, sorted(hits.signs)):
                hits.search(self._behind_signs.scan, begin, end)
        if self._progress:
            for begin, end in windows(
                block.data,
                block.start,
                block.stop,
                (place for place, row in hits.found if row in self._telling),
            ):
                hits.search(self._progress.scan, begin, end)
        return hits.all()


class _CompiledRows:
    """Numbered rows as databases, of which there may be none."""

    def __init__(self, databases: list[hyperscan.Database]) -> None:
        self._databases = databases

    def __bool__(self) -> bool:
        return bool(self._databases)

    def scan(self, data: bytes, note: Note) -> None:
        """Tell of each match in some bytes, in no order."""
        for database in self._databases:
            database.scan(data, match_event_handler=note)


def _ends_in(scan: Scan, data: bytes) -> list[int]:
    """Give where matches end in some bytes, each with its row in its last bits."""
    found: list[int] = []
    scan(data, lambda row, _start, end, _flags, _context: found.append(end << ROW_BITS | row))
    return found


def _results(waiting: deque[tuple[Block, Future[Found]]], left: int) -> Iterator[tuple[Block, Found]]:
    """Give what is scanned until only `left` blocks wait."""
    while len(waiting) > left:
        block, future = waiting.popleft()
        yield block, future.result()


class Finder:
    """A compiled set of expressions that tells where in some bytes each of them ends; any thread may ask.

    Those numbered in `once` are told of a single time.
    """

    def __init__(
        self, expressions: Sequence[str], cache: Path | None = None, once: Sequence[int] = ()
    ) -> None:
        """Compile them, or load them; raises InvalidExpressionError where Hyperscan refuses one."""
        flags = [
            hyperscan.HS_FLAG_MULTILINE | (hyperscan.HS_FLAG_SINGLEMATCH if number in once else 0)
            for number in range(len(expressions))
        ]
        numbers = list(range(len(expressions)))
        try:
            self._database = _database([text.encode() for text in expressions], numbers, flags, cache)
        except hyperscan.error as error:
            raise InvalidExpressionError(str(error)) from error
        self._local = threading.local()

    def ends(self, data: bytes) -> list[tuple[int, int]]:
        """Give the number of each expression that matches, with each place where it ends, by place."""
        scratch = getattr(self._local, "scratch", None)
        if scratch is None:  # a scratch serves one scan at a time
            scratch = self._local.scratch = hyperscan.Scratch(self._database)
        found: list[tuple[int, int]] = []
        self._database.scan(
            data,
            match_event_handler=lambda number, _start, end, _flags, _context: found.append((number, end)),
            scratch=scratch,
        )
        return found


def held_literals(data: bytes, literals: tuple[bytes, ...]) -> set[bytes]:
    """Give those of some texts that stand in some bytes."""
    if len(data) < SEARCHED_FROM:
        return {literal for literal in literals if literal in data}
    return {literals[number] for number, _ in _literal_finder(literals, is_once=True).ends(data)}


def literal_places(data: bytes, literal: bytes) -> list[int]:
    """Give where a text begins in some bytes, in order."""
    if len(data) >= SEARCHED_FROM:
        return [end - len(literal) for _, end in _literal_finder((literal,)).ends(data)]
    places, place = [], data.find(literal)
    while place >= 0:
        places.append(place)
        place = data.find(literal, place + len(literal))
    return places


@lru_cache(64)
def _literal_finder(literals: tuple[bytes, ...], *, is_once: bool = False) -> Finder:
    return Finder([re.escape(text.decode()) for text in literals], once=range(len(literals) * is_once))


class SpanFinder:
    """A compiled expression that tells what it covers in some bytes; any thread may ask."""

    def __init__(self, expression: str) -> None:
        """Compile it; raises InvalidExpressionError where it cannot be matched in linear time."""
        flags = [hyperscan.HS_FLAG_MULTILINE | hyperscan.HS_FLAG_SOM_LEFTMOST]
        try:
            self._database = _database([expression.encode()], [0], flags, None)
        except hyperscan.error as error:
            # Behind a semicolon it names a flag of its own.
            raise InvalidExpressionError(str(error).split(";")[0].rstrip(".")) from error

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Give the places that matches cover, in their order; those that overlap or touch are one."""
        found: list[tuple[int, int]] = []
        self._database.scan(
            data,
            match_event_handler=lambda _number, start, end, _flags, _context: found.append((start, end)),
            scratch=hyperscan.Scratch(self._database),
        )
        joined: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
        return joined


def _compiled(
    sets: Sequence[Sequence[tuple[int, Pattern]]], cache: Path | None, own_from: int
) -> Iterator[_CompiledRows]:
    """Compile sets of rows, each in the order of their numbers, at once; those from a number on apart.

    Hyperscan needs no interpreter's lock for it.
    """
    with ThreadPoolExecutor(2 * len(sets), "compile") as pool:
        making = []
        for rows in sets:
            at = bisect_left(rows, own_from, key=itemgetter(0))
            parts = filter(None, (rows[:at], rows[at:]))
            making.append([pool.submit(_compiled_rows, part, cache) for part in parts])
        for databases in making:
            yield _CompiledRows([made.result() for made in databases])


def _compiled_rows(rows: Sequence[tuple[int, Pattern]], cache: Path | None) -> hyperscan.Database:
    """Compile numbered rows into a database, or load it where the same was compiled before."""
    ids = [number for number, _ in rows]
    expressions = [relaxed(row.expression).encode() for _, row in rows]
    flags = [
        hyperscan.HS_FLAG_MULTILINE | (hyperscan.HS_FLAG_CASELESS if row.caseless else 0) for _, row in rows
    ]
    try:
        return _database(expressions, ids, flags, cache)
    except hyperscan.error as error:
        names = ", ".join(row.id for _, row in rows[:3])
        raise InvalidCorpusError(
            f"patterns ({names} ...): Hyperscan refuses an expression: {error}"
        ) from error


def _database(
    expressions: list[bytes], ids: list[int], flags: list[int], cache: Path | None
) -> hyperscan.Database:
    """Compile expressions, or load what the same ones were compiled to before."""
    key = hashlib.sha256(repr((version("hyperscan"), ids, expressions, flags)).encode()).hexdigest()[:16]
    name = f"patterns-{key}.hsdb"
    stored = cache / name if cache else None
    for made in filter(None, (stored, shipped.FOLDER / name)):
        with contextlib.suppress(OSError, hyperscan.error):  # none, or of another processor: compile anew
            database = hyperscan.loadb(made.read_bytes(), mode=hyperscan.HS_MODE_BLOCK)
            database.scratch = hyperscan.Scratch(database)  # a loaded database comes without one
            return database
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(expressions=expressions, ids=ids, elements=len(ids), flags=flags)
    if stored:
        with contextlib.suppress(OSError):  # a folder that cannot be written costs time at the next start
            stored.parent.mkdir(parents=True, exist_ok=True)
            part = stored.with_suffix(".part")
            part.write_bytes(hyperscan.dumpb(database))
            part.replace(stored)
    return database
