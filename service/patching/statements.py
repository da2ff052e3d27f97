"""Replace a statement of Python code by another one, where it stands for sure and what comes of it parses."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from textwrap import dedent, indent

from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError

# A traceback tells the row of a statement; a file that was edited since has it this near.
NEAR = 40


def replaced(text: str, line: int, before: str, after: str) -> str:
    """Give code in which `before`, the statement at or near a line, or a piece of it, is `after`.

    Raises NotPatchableError where it stands nowhere, in several places as near, or where the result is no
    code that can be read.
    """
    rows = text.split("\n")
    first, last, new = _place(rows, line, before, after)
    made = "\n".join([*rows[:first], *new, *rows[last:]])
    try:
        ast.parse(made)
    except (SyntaxError, ValueError) as error:
        raise NotPatchableError(Message("patch.python-code-change-hand")) from error
    return made


def _place(rows: Sequence[str], line: int, before: str, after: str) -> tuple[int, int, list[str]]:
    """Give the first row of a statement, the row behind it, and the rows that take its place."""
    wanted = [row.strip() for row in before.strip().split("\n")]
    whole = [
        at
        for at in range(len(rows) - len(wanted) + 1)
        if [row.strip() for row in rows[at : at + len(wanted)]] == wanted
    ]
    if at := _nearest(whole, line):
        first = at - 1
        margin = rows[first][: len(rows[first]) - len(rows[first].lstrip())]
        new = indent(dedent(after.strip("\n")), margin).split("\n")
        return first, first + len(wanted), [new[0], *new[1:]]
    if "\n" in before.strip() or "\n" in after.strip():
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    pieces = [at for at, row in enumerate(rows) if row.count(before.strip()) == 1]
    at = _nearest(pieces, line)
    if not at:
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    return at - 1, at, [rows[at - 1].replace(before.strip(), after.strip())]


def _nearest(places: Sequence[int], line: int) -> int:
    """Give the number of the row that is nearest to a line; 0 where none is near, or two are as near."""
    ranked = sorted((abs(at + 1 - line), at + 1) for at in places if abs(at + 1 - line) <= NEAR)
    if not ranked or (len(ranked) > 1 and ranked[0][0] == ranked[1][0]):
        return 0
    return ranked[0][1]


def parsed(code: str) -> ast.AST | None:
    """Read a statement as a traceback quotes it: the head of a block, or a branch of one, is one too."""
    plain = dedent(code).strip()
    for form in _forms(plain):
        try:
            return ast.parse(form)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _forms(code: str) -> Iterator[str]:
    yield code
    if code.endswith(":"):
        yield f"{code}\n    pass"
        yield f"if True:\n    pass\n{code}\n    pass"
        yield f"try:\n    pass\n{code}\n    pass"
    # A piece of a call of several rows.
    yield f"call({code.rstrip(',')})"
