"""A Jupyter notebook as the output of a job: what its cells printed and raised, on the lines of its file.

The file is JSON (nbformat 4), written with one string of a cell's text a line. The strings of outputs become
the text that they hold, so that a message stands as the job said it; all else stays, and no line comes or
goes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

# A longer line is a picture's data.
LONGEST = 1 << 20
# The keys with which a notebook's file begins.
_BEGINS = re.compile(rb'\s*\{\s*"(?:cells|metadata|nbformat)(?:"|_)')
_CELL = re.compile(rb'"cell_type"\s*:|"cells"\s*:\s*\[')
# A list of strings that a cell printed, or that tell of its exception; and where a list ends.
_OUTPUT = re.compile(rb'\s*"(?:text|text/plain|traceback)"\s*:\s*\[\s*$')
_END = re.compile(rb"\s*\],?\s*$")
# What was raised, in two keys; the list of the traceback may be empty.
_NAMED = re.compile(rb'\s*"(?P<key>ename|evalue)"\s*:\s*(?P<said>".*"),?\s*$')


def is_notebook(head: bytes) -> bool:
    """Tell whether a file begins as a notebook's does."""
    return _BEGINS.match(head) is not None and _CELL.search(head) is not None


def as_output(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Give the bytes of a notebook's file with the text of its outputs in the place of its strings."""
    held, is_output, raised = b"", False, ""
    for chunk in chunks:
        *rows, held = (held + chunk).split(b"\n")
        made = []
        for row in rows:
            is_output = (is_output and not _END.match(row)) or _OUTPUT.match(row) is not None
            named = _NAMED.match(row)
            if named and (said := _string(named["said"])) is not None:
                # On one row, as Python would say it.
                is_name = named["key"] == b"ename"
                raised = said if is_name else raised
                made.append(b"" if is_name else f"{raised}: {said}".encode("utf-8", "replace"))
            else:
                made.append(_text(row) if is_output else row)
        if made:
            yield b"\n".join(made) + b"\n"
        if len(held) > LONGEST:
            yield held
            held = b""
    if held:
        yield held


def _text(row: bytes) -> bytes:
    said = _string(row.strip().removesuffix(b","))
    return row if said is None else said.encode("utf-8", "replace")


def _string(written: bytes) -> str | None:
    """Read one string of JSON as a row of text; None for what is none."""
    try:
        said = json.loads(written)
    except ValueError:
        return None
    # A call of a traceback is one string of several rows.
    return said.removesuffix("\n").replace("\n", "\\n") if isinstance(said, str) else None
