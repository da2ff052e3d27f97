"""Other ways to read the lines of a short text, which somebody pasted rather than a program wrote.

A terminal or a mail wrapped a line; a message stands in a sentence, a table's cell, a list, or escaped on
one line. Such a reading is taken only where a pattern knows what it says and knew less of the lines as they
stand. Lines keep their numbers: joined rows stand at the first one's, with blank rows behind, and the parts
of a row are told apart as those of a redrawn one, by a carriage return.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice, pairwise

from corpus.log_patterns import Pattern, PatternTable
from ingest.logs.copied_text import dedented, restored
from ingest.logs.lines import parse_line
from ingest.logs.samples import without_samples
from ingest.logs.scanner import Block, Scanner
from ingest.logs.stacks.stack import EXCEPTION
from ingest.logs.wording import counts_failed, holds

# Larger texts are a program's own; of a smaller one so many rows are read in another way.
MOST_BYTES = 128 << 10
MOST_READINGS = 300
# Of a text of more rows only wrapped ones are joined; of a row so many ends of a clause are tried.
MOST_ROWS = 80
MOST_SAID = 4
# How wide a wrapped row is, and how many rows one line became.
NARROWEST, WIDEST = 40, 260
MOST_JOINED = 24

# A row of a box with text alone between its sides, and any row of a drawn one.
_BOX_ROW = re.compile(r"\s*[│|] *(?P<text>[^│|\n]*?) *[│|]\s*$")
_DRAWN = re.compile(r"\s*[│|╭╰+┌└].*[│|╮╯+┐┘]\s*$")
_CALL = re.compile(r'\s*File "[^"\n]+", line \d')
# A whole call of a traceback, whose statement stands indented below.
_WHOLE_CALL = re.compile(r'(?P<margin>\s*)File "[^"\n]+", line \d{1,9}, in [\w.<>]+\s*$')
_QUOTED = re.compile(r"`{1,3}([^`\n]{3,})`{1,3}|\"([^\"\n]{3,})\"")
_LISTED = re.compile(r"'((?:[^'\\\n]|\\.){3,})'|\"((?:[^\"\\\n]|\\.){3,})\"")
_ESCAPED_END = re.compile(r"(?:\\{1,4}r)?\\{1,4}n")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\([\"'/t])")
# Halves of characters; what stands for a byte that is no UTF-8 is left, unless JSON says it is a half.
_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udc7f\udd00-\udfff]")
_ESCAPED = {"t": "\t"}
_SAID = re.compile(r"(?<=\S)[:：] ?(?=\S)|(?<=\S) [-–—>]{1,2} (?=\S)|[。，；] ?(?=\S)")
# What a list, a page's clock or a column of numbers puts before a line.
_BEFORE = re.compile(
    r"[\s\d:.,/|)\]\[(→*•#-]*(?:(?:AM|PM|am|pm|UTC|GMT|Z|T|L(?=\d)|@|Mon|Tue|Wed|Thu|Fri|Sat|Sun|"
    r"Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b[\s\d:.,/|)\]\[(→*•#@-]*){0,6}"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """Rows of a text, from `first` to `last` by their index, as one line: the `parts` that it falls into."""

    first: int
    last: int
    parts: tuple[str, ...]

    @property
    def rows(self) -> list[str]:
        """Give what stands in the place of the rows."""
        return ["\r".join(self.parts), *[""] * (self.last - self.first)]


class Pastes:
    """Reads short texts as they were before they were pasted; not to be shared between threads."""

    def __init__(self, scanner: Scanner, table: PatternTable) -> None:
        self._scanner = scanner
        self._rows = table.rows

    def restored(self, block: Block) -> Block:
        """Give a block as it was before it was pasted; one that is not the whole of a short text as it is."""
        if block.start or block.stop < len(block.data) or len(block.data) > MOST_BYTES:
            return block
        data = self._read(restored(block.data))
        return block if data == block.data else replace(block, data=data, stop=len(data))

    def _read(self, data: bytes) -> bytes:
        rows = data.decode("utf-8", "surrogateescape").split("\n")
        joins = list(islice(chain(_boxed(rows), _joins(rows)), MOST_READINGS))
        if not joins and len(rows) > MOST_ROWS:
            return data
        known = self._known(rows)
        taken = self._better_readings(joins, known)
        # Where a line says what became of the job, no other reading is needed.
        is_told = any(
            (row.fails and not row.last_resort) or row.kind in ("progress", "finish", "end")
            for found in known
            for row in found
        )
        if not taken and len(rows) <= MOST_ROWS and not is_told:
            bare = dedented(rows)
            whole = [Reading(place, place, (row,)) for place, row in enumerate(bare or ()) if row.strip()]
            taken = self._better_readings(whole, known) or self._better_readings(_parts(rows), known)
            rows = bare if bare and taken and taken[0] in whole else rows
        for reading in taken:
            rows[reading.first : reading.last + 1] = reading.rows
        return "\n".join(rows).encode("utf-8", "surrogateescape") if taken else data

    def _better_readings(
        self, readings: Iterable[Reading], known: Sequence[frozenset[Pattern]]
    ) -> list[Reading]:
        """Give the readings that say something that their rows do not; at most one of each row."""
        tried = list(islice(readings, MOST_READINGS))
        said = iter(self._known([part for reading in tried for part in reading.parts]))
        best: dict[int, tuple[int, Reading]] = {}
        for reading in tried:
            new = frozenset().union(*islice(said, len(reading.parts)))
            if counts_failed(" ".join(reading.parts)):
                # An end of which a part failed is none, however the row is taken apart.
                new = frozenset(row for row in new if row.kind not in ("finish", "end"))
            old = frozenset().union(*known[reading.first : reading.last + 1])
            gain = len({row for row in new - old if not row.last_resort})
            if _says_more(new, old) and gain > best.get(reading.first, (-1, reading))[0]:
                best[reading.first] = gain, reading
        taken: list[Reading] = []
        for _, (_, reading) in sorted(best.items()):
            if not taken or reading.first > taken[-1].last:
                taken.append(reading)
        return taken

    def _known(self, texts: Sequence[str]) -> list[frozenset[Pattern]]:
        """Give the patterns that hold for each text."""
        data = "\n".join(texts).encode("utf-8", "surrogateescape")
        found: list[set[int]] = [set() for _ in texts]
        for match in self._scanner.peek(data):
            found[match.line - 1].add(match.row)
        known = []
        for text, numbers in zip(texts, found, strict=True):
            rows = [self._rows[number] for number in numbers]
            # An anchored one is proposed for a whole row of text, and may hold for a part of it alone.
            parts = text.split("\r") if any(row.is_anchored for row in rows) else ()
            lines = [parse_line(part.encode("utf-8", "surrogateescape"), 1) for part in parts]
            holding = (row for row in rows if not row.is_anchored or any(holds(row, line) for line in lines))
            known.append(frozenset(holding))
        return known


def _says_more(new: frozenset[Pattern], old: frozenset[Pattern]) -> bool:
    """Tell whether a reading says what its rows do not, and leaves out no failure that they tell."""
    failing = {row for row in old if row.fails and not row.last_resort}
    telling = any((row.fails and not row.last_resort) or row.kind in ("finish", "end") for row in new - old)
    # A row that begins a printed configuration says nothing by itself, and what is inside one looks like it.
    notes = any(row.handler != "settings" for row in new)
    return failing <= new and (telling or (not old and notes))


def _boxed(rows: Sequence[str]) -> Iterator[Reading]:
    """Give the rows of each paragraph in a drawn box as the line that they were; a table's have none."""
    texts = [match["text"] if (match := _BOX_ROW.match(row)) else "" for row in rows]
    for is_text, group in groupby(range(len(rows)), key=lambda place: bool(texts[place])):
        places = list(group)
        if is_text and 1 < len(places) <= MOST_JOINED:
            first, last = places[0], places[-1]
            yield Reading(first, last, (" ".join(texts[first : last + 1]),))


def _joins(rows: Sequence[str]) -> Iterator[Reading]:
    """Give the rows that a terminal or a mail may have wrapped, as the line that they were.

    A row is full that is as wide as the widest of its paragraph, or has no room for the word below.
    """
    blank = [-1, *(place for place, row in enumerate(rows) if not row.strip()), len(rows)]
    for begin, end in ((before + 1, after) for before, after in pairwise(blank)):
        widest = max(map(len, rows[begin:end]), default=0)
        if end - begin < 2 or not NARROWEST <= widest <= WIDEST:
            continue
        words = [row.split(None, 1)[0] for row in rows[begin + 1 : end]]
        full = [
            len(row.rstrip()) + 1 + len(word) > widest and not (_DRAWN.match(row) or _is_called(row, below))
            for row, word, below in zip(rows[begin:end], words, rows[begin + 1 : end], strict=False)
        ]
        for first in (place for place, is_full in enumerate(full, begin) if is_full):
            last = first + 1
            while last < end - 1 and full[last - begin] and last - first < MOST_JOINED:
                last += 1
            cut = rows[first : last + 1]
            # Cut at a width, wherever that was in a word, or between words.
            whole = "".join(row if len(row) >= widest else f"{row.rstrip()} " for row in cut[:-1])
            yield Reading(first, last, (whole + cut[-1],))
            yield Reading(first, last, (" ".join(row.strip() for row in cut),))


def _is_called(row: str, below: str) -> bool:
    """Tell whether the row below is the statement of a traceback's call; no console indents one."""
    call = _WHOLE_CALL.match(row)
    return call is not None and below.startswith(f"{call['margin']}  ")


def _parts(rows: Sequence[str]) -> Iterator[Reading]:
    """Give the parts of rows that may each be a message: of a sentence, a table, a list, an escaped text."""
    is_stack = any(_CALL.match(row) for row in rows)
    for place, row in enumerate(rows):
        if is_stack and EXCEPTION.match(row):
            continue  # a traceback's last line is whole, whatever its message quotes
        if without_samples(row) != row:
            continue  # nor is a sample's text anybody's message
        seen: set[tuple[str, ...]] = {(row,)}
        for split in _splits(row):
            as_cut = tuple(_HALVES.sub(_joined, part) for part in split if part.strip())
            ways = dict.fromkeys((as_cut, tuple(part.strip() for part in as_cut)))
            new = [parts for parts in ways if parts and parts not in seen]
            seen.update(new)
            yield from (Reading(place, place, parts) for parts in new)


def _splits(row: str) -> Iterator[Sequence[str]]:
    """Give the ways to take a row apart, those that say most of where its parts begin first."""
    if row.lstrip()[:1] == "{":
        yield _record(row)
    if _ESCAPED_END.search(row):
        yield _ESCAPED_END.split(_unescaped(row.strip().strip("\"'`,;")))
    if row.lstrip()[:1] in ("|", "│"):
        yield re.split(r"[|│]", row)
    if "\t" in row.strip():
        yield row.split("\t")
    if row.lstrip()[:1] in ("[", "("):
        yield [_unescaped(one or other) for one, other in _LISTED.findall(row)]
    half = len(row.strip()) // 2
    if half and row.strip()[:half] == row.strip()[half:]:
        yield [row.strip()[:half]] * 2
    yield [row.partition("`")[0], *(one or other for one, other in _QUOTED.findall(row))]
    yield [row.lstrip(" \t*-•>")]
    yield [_BEFORE.sub("", row, count=1)]
    if row.isupper():
        yield from ([row.lower()], [row.capitalize()])
    for match in [*_SAID.finditer(row)][:MOST_SAID]:
        yield [row[: match.end()], row[match.end() :]]


def _record(row: str) -> list[str]:
    """Give the lines of all texts of a record in JSON."""
    try:
        record = json.loads(row)
    except (ValueError, RecursionError):
        return []
    values = record.values() if isinstance(record, dict) else ()
    return [line for value in values if isinstance(value, str) for line in value.split("\n")]


def _joined(halves: re.Match[str]) -> str:
    """Give the character of two halves that JSON escapes by themselves; a half alone is none."""
    if len(halves[0]) == 1:
        return "\ufffd"
    return halves[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _unescaped(text: str) -> str:
    """Undo the escapes of a string in JSON or Python, but for those of its line ends."""
    return _ESCAPE.sub(
        lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2]), text
    )
