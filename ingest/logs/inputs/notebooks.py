"""A Jupyter notebook as the output of a job: what its cells printed and raised, on the lines of its file.

The file is JSON (nbformat 3 and 4, as Jupyter, Colab, Kaggle and Databricks write it), with one string of a
cell's text a line. The strings of outputs become the text that they hold, so that a message stands as the
job said it; those of a cell's code stand behind IPython's prompt, by which `ingest.logs.transcripts` tells
that nobody said them. All else stays, and no line comes or goes. A file that is one line alone is laid out as
Jupyter does, and its lines are counted there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain

from ingest.logs.inputs.notebook_order import past_cells
from ingest.logs.transcripts import past, prompted

# A longer line is a picture's data.
LONGEST = 1 << 20
# A larger file is read row by row alone: neither the order of its cells is looked at, nor one long line.
LONGEST_FILE = 32 << 20
# So many values make a file too large to be held at once, however few bytes each has.
MOST_VALUES = 1_000_000
# A cell's output lies at the fifth level or so; one of JSON may go on.
DEEPEST = 40
# Rows between the message of an exception and its traceback.
MOST_BETWEEN = 4
# The name of a longer exception is none: it would be written on each line that tells what was raised.
LONGEST_NAME = 200
# The keys with which a notebook's file begins.
_BEGINS = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:cells|metadata|nbformat|worksheets)(?:"|_)')
_CELL = re.compile(rb'"cell_type"\s*:|"cells"\s*:\s*\[')
# What a cell printed, what tells of its exception, and its code (`input` until nbformat 3); Databricks has
# keys of its own. A list begins, or the text stands on the row.
_TEXT = re.compile(
    rb'\s*"(?:(?P<code>source|input)|text|text/plain|traceback|data|errorSummary)"\s*:\s*'
    rb'(?P<value>\[\s*|\[.*\]|".*")(?:,\s*)?$'
)
_END = re.compile(rb"\s*\],?\s*$")
_KIND = re.compile(rb'(?P<indent>\s*)"cell_type"\s*:\s*"(?P<kind>\w+)"')
_COUNT = re.compile(rb'\s*"(?:execution_count|prompt_number)"\s*:\s*(?P<count>\d{1,9}|null)')
# What was raised, in two keys; the list of the traceback may be empty.
_NAMED = re.compile(rb'\s*"(?P<key>ename|evalue)"\s*:\s*(?P<said>".*"),?\s*$')


def is_notebook(head: bytes) -> bool:
    """Tell whether a file begins as a notebook's does."""
    return _BEGINS.match(head) is not None and _CELL.search(head) is not None


def as_output(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Give the bytes of a notebook's file with the text of its outputs in the place of its strings."""
    head, rest = _whole(chunks)
    cells, held = _Cells(head[1]), b""
    for chunk in chain([head[0]], rest):
        *rows, held = (held + chunk).split(b"\n")
        if made := [told for row in rows for told in cells.rows(row)]:
            yield b"\n".join(made) + b"\n"
        if len(held) > LONGEST:
            yield held
            held = b""
    yield b"\n".join([*cells.rows(held), *cells.rest()] if held else [*cells.rest()])


def _whole(chunks: Iterator[bytes]) -> tuple[tuple[bytes, frozenset[int]], Iterator[bytes]]:
    """Give the file with the cells that are past, as far as it is read at once, and what is left of it.

    One that is a line alone is laid out as Jupyter does.
    """
    parts, size = list[bytes](), 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > LONGEST_FILE:
            return (b"".join(parts), frozenset()), chunks
    head = b"".join(parts)
    if sum(map(head.count, (b",", b"[", b"{"))) > MOST_VALUES:
        return (head, frozenset()), iter(())
    try:
        held = json.loads(head)
        is_whole = b"\n" in head.strip()
        # What stands before the rows would grow with the square of how deep they are.
        if not is_whole and _is_deeper(held, DEEPEST):
            return (head, frozenset()), iter(())
        laid_out = head if is_whole else json.dumps(held, indent=1).encode()
    except (ValueError, RecursionError):
        return (head, frozenset()), iter(())  # cut off: read as it is
    return (laid_out, past_cells(held)), iter(())


def _is_deeper(held: object, levels: int) -> bool:
    """Tell whether a value of JSON is nested deeper than so many levels."""
    parts = held.values() if isinstance(held, dict) else held if isinstance(held, list) else ()
    return levels < 0 or any(_is_deeper(part, levels - 1) for part in parts)


class _Cells:
    """Reads the rows of a notebook's file, one after the other.

    `past` are the cells, by place, of which nothing is told any more.
    """

    def __init__(self, past: frozenset[int]) -> None:
        self._past, self._cell = past, -1
        self._raised = ""
        self._indent: bytes | None = None
        # What was raised, until it is seen whether the traceback says it again; and the rows since.
        self._held: list[bytes] = []
        # Of the list that is open: whether it is code, and how many rows it had.
        self._is_code, self._place = False, -1
        self._kind, self._count = "code", ""
        self._said = False

    def rows(self, row: bytes) -> Iterator[bytes]:
        """Give the rows that are told by now: as a rule this one, as the job said it."""
        raised = self._raised_in(row)
        if raised is not None:
            yield from self.rest()
            self._held = [raised]
            return
        told = self._row(row)
        if not self._held:
            yield told
            return
        self._held.append(told)
        if self._said:
            # The traceback ends with it.
            self._held[0] = b""
        if self._said or len(self._held) > MOST_BETWEEN:
            yield from self.rest()

    def rest(self) -> Iterator[bytes]:
        """Give the rows that wait for what comes."""
        held, self._held = self._held, []
        yield from held

    def _row(self, row: bytes) -> bytes:
        self._said = False
        if self._place >= 0:
            if _END.match(row):
                self._place = -1
                return row
            self._place += 1
            return self._told(row, row.strip().removesuffix(b","))
        found = _TEXT.match(row)
        if found is None:
            return self._structure(row)
        self._is_code, value = found["code"] is not None, found["value"].strip()
        if value == b"[":
            self._place = 0
            return row
        self._place = 1
        told = self._told(row, value)
        self._place = -1
        return told

    def _told(self, row: bytes, written: bytes) -> bytes:
        said = _string(written)
        if not self._is_code:
            self._said = bool(said and said.strip())
            return row if said is None else self._printed(said)
        if self._kind != "code":
            return b""
        text = row.decode("utf-8", "replace") if said is None else said
        return prompted(text, self._count, is_first=self._place == 1).encode("utf-8", "replace")

    def _printed(self, said: str) -> bytes:
        told = past(said, self._count) if self._cell in self._past else said
        return told.encode("utf-8", "replace")

    def _raised_in(self, row: bytes) -> bytes | None:
        """Give what was raised, on one row as Python would say it, where a row is the second of its two."""
        named = _NAMED.match(row) if self._place < 0 else None
        said = _string(named["said"]) if named else None
        if said is None or named is None or named["key"] == b"ename":
            return None
        name, self._raised = self._raised, ""
        return self._printed(f"{name}: {said}" if name else said)

    def _structure(self, row: bytes) -> bytes:
        """Take in a row that holds no text: the name of what was raised, a cell's kind and count."""
        if named := _NAMED.match(row):
            self._raised = (_string(named["said"]) or "")[:LONGEST_NAME]
            return b""
        kind = _KIND.match(row)
        # An output of JSON may hold such a key as well: cells' own stand where the first one's does.
        if kind and self._indent in (None, kind["indent"]):
            self._indent = kind["indent"]
            self._kind, self._count, self._cell = kind["kind"].decode(), "", self._cell + 1
        elif count := _COUNT.match(row):
            self._count = count["count"].decode().replace("null", "")
        return row


def _string(written: bytes) -> str | None:
    """Read a string of JSON, or a list of them, as a row of text; None for what is none."""
    try:
        said = json.loads(written) if written[:1] in (b'"', b"[") else None
    except (ValueError, RecursionError):
        return None
    if isinstance(said, list) and all(isinstance(part, str) for part in said):
        said = "".join(said)
    # A call of a traceback is one string of several rows.
    return said.strip("\n").replace("\n", "\\n") if isinstance(said, str) else None
