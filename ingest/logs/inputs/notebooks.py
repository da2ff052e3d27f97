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
from contextlib import suppress
from itertools import chain

from ingest.logs.transcripts import prompted

# A longer line is a picture's data.
LONGEST = 1 << 20
# A file that is one line alone is read up to this size.
LONGEST_FILE = 32 << 20
# The keys with which a notebook's file begins.
_BEGINS = re.compile(rb'\s*\{\s*"(?:cells|metadata|nbformat|worksheets)(?:"|_)')
_CELL = re.compile(rb'"cell_type"\s*:|"cells"\s*:\s*\[')
# What a cell printed, what tells of its exception, and its code (`input` until nbformat 3); Databricks has
# keys of its own. A list begins, or the text stands on the row.
_TEXT = re.compile(
    rb'\s*"(?:(?P<code>source|input)|text|text/plain|traceback|data|errorSummary)"\s*:\s*'
    rb'(?P<value>\[\s*|\[.*\]|".*")(?:,\s*)?$'
)
_END = re.compile(rb"\s*\],?\s*$")
_KIND = re.compile(rb'\s*"cell_type"\s*:\s*"(?P<kind>\w+)"')
_COUNT = re.compile(rb'\s*"(?:execution_count|prompt_number)"\s*:\s*(?P<count>\d{1,9}|null)')
# What was raised, in two keys; the list of the traceback may be empty.
_NAMED = re.compile(rb'\s*"(?P<key>ename|evalue)"\s*:\s*(?P<said>".*"),?\s*$')


def is_notebook(head: bytes) -> bool:
    """Tell whether a file begins as a notebook's does."""
    return _BEGINS.match(head) is not None and _CELL.search(head) is not None


def as_output(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Give the bytes of a notebook's file with the text of its outputs in the place of its strings."""
    cells, held = _Cells(), b""
    for chunk in _laid_out(chunks):
        *rows, held = (held + chunk).split(b"\n")
        if rows:
            yield b"\n".join(map(cells.row, rows)) + b"\n"
        if len(held) > LONGEST:
            yield held
            held = b""
    if held:
        yield cells.row(held)


def _laid_out(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Give the chunks of a file with lines as they are; lay out one that is a line alone."""
    head = b""
    for chunk in chunks:
        head += chunk
        if b"\n" in head.strip() or len(head) > LONGEST_FILE:
            break
    if b"\n" not in head.strip() and len(head) <= LONGEST_FILE:
        # One that was cut off is read as it is.
        with suppress(ValueError, RecursionError):
            head = json.dumps(json.loads(head), indent=1).encode()
    yield from chain([head], chunks)


class _Cells:
    """Reads the rows of a notebook's file, one after the other."""

    def __init__(self) -> None:
        self._raised = ""
        # Of the list that is open: whether it is code, and how many rows it had.
        self._is_code, self._place = False, -1
        self._kind, self._count = "code", ""

    def row(self, row: bytes) -> bytes:
        """Give a row as the job said it."""
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
            return row if said is None else said.encode("utf-8", "replace")
        if self._kind != "code":
            return b""
        text = row.decode("utf-8", "replace") if said is None else said
        return prompted(text, self._count, is_first=self._place == 1).encode("utf-8", "replace")

    def _structure(self, row: bytes) -> bytes:
        """Take in a row that holds no text, but for what was raised: on one row, as Python would say it."""
        if (named := _NAMED.match(row)) and (said := _string(named["said"])) is not None:
            if named["key"] == b"ename":
                self._raised = said
                return b""
            return (f"{self._raised}: {said}" if self._raised else said).encode("utf-8", "replace")
        if kind := _KIND.match(row):
            self._kind, self._count = kind["kind"].decode(), ""
        elif count := _COUNT.match(row):
            self._count = count["count"].decode().replace("null", "")
        return row


def _string(written: bytes) -> str | None:
    """Read a string of JSON, or a list of them, as a row of text; None for what is none."""
    try:
        said = json.loads(written)
    except ValueError:
        return None
    if isinstance(said, list) and all(isinstance(part, str) for part in said):
        said = "".join(said)
    # A call of a traceback is one string of several rows.
    return said.strip("\n").replace("\n", "\\n") if isinstance(said, str) else None
