"""IPython's tracebacks, of cells and of the files that they call: rows around an arrow instead of one.

They are printed by a notebook's kernel, and by whatever runs one: nbconvert, papermill, a shell. In the file
of a notebook a call is one string, whose rows stand here in one line with their ends escaped.

Grammar: IPython/core/ultratb.py; a cell's name: IPython/core/compilerop.py and interactiveshell.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from ingest.logs.lines import Line
from ingest.logs.stacks import stack
from ingest.logs.stacks.code_rows import bare_code
from ingest.logs.stacks.stack import Frame, Traceback

# A statement that is longer than this, over its rows, is told by its row at the arrow.
LONGEST_STATEMENT = 600
# Rows of a syntax error: the code, the mark below it, the error.
SYNTAX_ROWS = 6

# A name that is as wide as the console stands before the words without a blank.
_HEAD = re.compile(r"\s*(?P<type>[A-Za-z_][\w.]*?)\s*Traceback \(most recent call last\)\s*$")
# A row's end within a string of rows; what a statement itself holds of such signs has no such row behind it.
_ROW_END = re.compile(
    r"\\n(?=\\n|\s*$|(?:-*>|\s)\s*\d+(?:\s|\\n|$)|\s+\(\.\.\.\)|(?:File|Cell|Input|<ipython-input) ?"
    r"|/\S+\.\w+ in |[A-Za-z_][\w.]*: |\s{2,}\S)"
)
_NAME = re.compile(r"(?:Cell |Input )?In ?\[(?P<count>\d+)\]|<ipython-input-(?P<old>\d+)-\w*>")
_FUNCTION = r"(?P<function><[^>]{1,60}>|[^(\s]+)(?:\(.*)?"
# `Cell In[3], line 5, in fit(x)`, `Input In [3], in <cell line: 5>()`, `File /job/a.py:7, in step(x)`.
_CALL = re.compile(
    r"(?:File )?(?P<file>(?:Cell |Input )?In ?\[\d+\]|<[^>]{1,200}>|(?:[A-Za-z]:)?[^:]{1,400}?)"
    rf"(?::(?P<line>\d{{1,9}})|,? line:? (?P<number>\d{{1,9}}))?(?:, in {_FUNCTION})?$"
)
# `<ipython-input-3-5c1f> in fit(x)`, `/job/a.py in step(x)`: until IPython 7.
_OLD_CALL = re.compile(rf"(?P<file><[^>]{{1,200}}>|\S.{{0,400}}?\.\w{{1,5}}) in {_FUNCTION}$")
# What took a page for markup lost `<module>`.
_NO_NAME = re.compile(r"(?<= in )(?=\(.{0,80}\)$)")
_CODE = re.compile(r"(?P<arrow>-*>)? *(?P<line>\d{1,9})(?:$| (?P<code>.*))")
# How many calls a page of Colab shows only when it is asked to.
_FOLDED = re.compile(r"\d{1,3} frames$")
_SYNTAX = re.compile(
    r" {0,2}(?:File )?(?P<file>(?:Cell |Input )?In ?\[\d+\]|<ipython-input-[^>]{1,80}>|\S{1,400}\.py)"
    r"(?::|, line )(?P<line>\d{1,9})$"
)


def named(file: str) -> str:
    """Give the name of a frame's file; a cell is `In [3]` in all versions, other files as they are."""
    cell = _NAME.fullmatch(file)
    return f"In [{cell['count'] or cell['old']}]" if cell else stack.posix_path(file)


def read_cell(first: Line, lines: Iterator[Line], earlier: Iterator[Line]) -> list[Traceback] | None:
    """Read the traceback of IPython's that a line begins; None where it begins none."""
    rows = _rows(first)
    if (head := _HEAD.match(rows[0])) is None:
        return _syntax(first, rows, lines)
    told = next((line.body for line in earlier if line.body.strip(" -")), "")
    below = ((line, row) for line in stack.of(first, lines) for row in _rows(line))
    reading = _TracebackRows(head["type"])
    for line, row in chain(((first, row) for row in rows[1:]), below):
        if (message := reading.message(row)) is not None:
            return [
                Traceback(
                    first.number,
                    line.number,
                    first.source,
                    reading.frames(),
                    head["type"],
                    message,
                    line.text if line is not first else row,
                    linked=stack.links(told),
                )
            ]
        reading.see(row)
    return []


def is_call(body: str) -> bool:
    """Tell whether a line is a call with the rows of its file, as in the file of a notebook."""
    head, *below = _ROW_END.split(body)
    return any(map(_CODE.match, map(str.lstrip, below))) and bool(_OLD_CALL.match(head) or _CALL.match(head))


def _rows(line: Line) -> list[str]:
    return _ROW_END.split(line.body) if "\\n" in line.body else [line.body]


@dataclass
class _Call:
    """One call: where it is, and the rows of its file that are shown, by number."""

    file: str
    line: int
    function: str
    rows: dict[int, str] = field(default_factory=dict)
    arrow: int = 0

    def frame(self) -> Frame:
        """Give the call with its statement, which may go over several rows."""
        first, code = self._statement()
        return Frame(self.file, first or self.line, self.function, code)

    def _statement(self) -> tuple[int, str]:
        """Join the rows of the statement at the arrow, which until Python 3.7 stood at its last row."""
        first = last = self.arrow
        balance = _balance(self.rows.get(self.arrow, ""))
        while balance < 0 and first - 1 in self.rows:
            first -= 1
            balance += _balance(self.rows[first])
        while balance > 0 and last + 1 in self.rows:
            last += 1
            balance += _balance(self.rows[last])
        whole = " ".join(self.rows.get(row, "").strip() for row in range(first, last + 1))
        if balance or len(whole) > LONGEST_STATEMENT:
            return self.arrow, self.rows.get(self.arrow, "").strip()
        return first, whole


def _balance(row: str) -> int:
    """Count the brackets that a row leaves open; fewer than none where it closes more."""
    bare = bare_code(row)
    return sum(bare.count(sign) for sign in "([{") - sum(bare.count(sign) for sign in ")]}")


class _TracebackRows:
    """The calls of one traceback while its rows go by."""

    def __init__(self, name: str) -> None:
        self._ends = re.compile(rf"(?:[\w.]+\.)?{re.escape(name)}(?:: (?P<message>.*)|:?\s*$)")
        self._calls: list[_Call] = []

    def message(self, row: str) -> str | None:
        """Give what the row says that ends the traceback; None for any other."""
        end = self._ends.match(row)
        return (end["message"] or "") if end else None

    def see(self, row: str) -> None:
        """Take in a row: a call's head, or code of its file."""
        code = None if _FOLDED.match(row) else _CODE.match(row.lstrip())
        if code is not None and self._calls:
            call, number = self._calls[-1], int(code["line"])
            call.rows[number] = code["code"] or ""
            call.arrow = number if code["arrow"] else call.arrow
            return
        row = _NO_NAME.sub("<module>", row)
        if head := _OLD_CALL.match(row) or _CALL.match(row):
            found = head.groupdict()
            # An old form names no line, and neither form does one that it shows with an arrow.
            if found.get("line") or found.get("number") or found["function"]:
                line = int(found.get("line") or found.get("number") or 0)
                self._calls.append(_Call(named(head["file"]), line, _function(head["function"])))

    def frames(self) -> tuple[Frame, ...]:
        """Give the calls, outermost first."""
        return tuple(call.frame() for call in self._calls)


def _function(told: str | None) -> str:
    """Give a function's own name, as Python's tracebacks do; a cell's top level is a module's."""
    if told is None or told.startswith("<cell line"):
        return "<module>"
    return told.rpartition(".")[2]


def _syntax(first: Line, rows: Sequence[str], lines: Iterator[Line]) -> list[Traceback] | None:
    """Read the syntax error of a cell, which has no head: nothing was called yet."""
    place = _SYNTAX.match(rows[0])
    if place is None:
        return None
    below = ((line, row) for line in islice(stack.of(first, lines), SYNTAX_ROWS) for row in _rows(line))
    code = ""
    # The call of a cell has rows with numbers below it, and a head above.
    for line, row in islice(chain(((first, row) for row in rows[1:]), below), SYNTAX_ROWS):
        error = stack.EXCEPTION.match(row)
        if _CODE.match(row.lstrip()):
            return []
        if error is None:
            code = code or row.strip()
            continue
        frame = Frame(named(place["file"]), int(place["line"]), "<module>", code)
        text = line.text if line is not first else row
        return [
            Traceback(
                first.number, line.number, first.source, (frame,), error["type"], error["message"] or "", text
            )
        ]
    return []
