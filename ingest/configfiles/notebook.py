"""The code of a notebook's cells as one Python text, row for row, and edits of it written back into the JSON.

A heading stands above each cell, as `jupyter nbconvert --to script` writes it. What is IPython's own (`!pip`,
`%env`, a cell for bash) stands behind a remark, so that the rest is read as Python, and keeps its row.

Format: https://nbformat.readthedocs.io/en/latest/format_description.html; magics: inputtransformer2.py of
IPython.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial

from corpus.message import Message
from ingest.configfiles import json_document
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.settings import Setting
from ingest.configfiles.shell import commands
from ingest.configfiles.tree import TreeNode

ENDING = ".ipynb"
# A file of more parts is not looked through for their places.
MOST_PARTS = 500_000
# A longer cell is data.
LONGEST_CELL = 100_000
_HEADING = re.compile(r"# In\[(?P<count>\d+| )\]: cell (?P<cell>\d+)$")
_PLACE = re.compile(r"(?:In \[(?P<count>\d{1,6})\]|cell (?P<cell>\d{1,6})):(?P<row>\d{1,6})")
# Rows of IPython's own: a magic, a command of the shell, a question for help; also on the right of a name.
_MAGIC = re.compile(r"\s*(?:(?:[\w, ]{1,80}= ?)?(?:%{1,2}\w|!)|\?{1,2}\w|[\w.]{1,80}\?{1,2}\s*$)")
# Magics of a whole cell below which Python goes on.
_TIMED = re.compile(r"%%(?:time|timeit|capture|prun|px|debug)\b")
_SHELL_CELL = re.compile(r"%%(?:bash|sh|script|shell|system|!)")
_REMARK = re.compile(r"(?P<indent>\s*)(?:pass  )?# ipython: (?P<row>.*)$")
_SHELL_ROW = re.compile(r"(?:[\w, ]{1,80}= ?)?(?:!{1,2}|%(?=pip|conda|uv)|%s(?:x|ystem) )\s*(?P<command>.*)$")
_VARIABLE = re.compile(r"%(?:set_)?env\s+(?P<name>[A-Za-z_]\w*)(?:=|\s+)(?P<value>.*)$")


def code_of(text: str) -> str | None:
    """Give the code of a notebook's cells; None where a text is no notebook."""
    held = _loaded(text)
    if held is None:
        return None
    rows: list[str] = []
    for number, cell in enumerate(_cells(held), 1):
        if (source := _source(cell)) is not None:
            count = cell.get("execution_count") or cell.get("prompt_number") or " "
            rows += [f"# In[{count}]: cell {number}", *_as_python(source.split("\n"))]
    return "\n".join([*rows, ""])


def of_magics(code: str) -> list[Setting]:
    """Read the settings of the rows that are IPython's own: packages, commands, variables."""
    found: list[Setting] = []
    is_shell, begun = False, ""
    for number, row in enumerate(code.split("\n"), 1):
        is_shell = is_shell and not _HEADING.match(row)
        if (remark := _REMARK.match(row)) is None:
            continue
        own = begun + remark["row"].strip()
        begun = f"{own[:-1].rstrip()} " if own.endswith("\\") else ""
        if begun:
            continue
        if variable := _VARIABLE.match(own):
            found.append(Setting(variable["name"], variable["value"].strip().strip("'\""), number, "env"))
        elif command := _SHELL_ROW.match(own):
            found += commands.of_script(command["command"], number)
        elif is_shell:
            found += commands.of_script(own, number)
        is_shell = is_shell or _SHELL_CELL.match(own) is not None
    return found


def place_in(name: str, text: str, line: int) -> str:
    """Name a row of one of the job's files as a person finds it: `train.py:5`, or a cell's."""
    if name.endswith(ENDING):
        return place_of(text, line)
    return f"{name.replace(chr(92), '/').rpartition('/')[2]}:{line}"


def place_of(code: str, line: int) -> str:
    """Name a row of the code as a person finds it: `In [3]:5`, or `cell 7:5` where it was never run."""
    rows = code.split("\n")
    for above in range(min(line, len(rows)) - 1, -1, -1):
        if heading := _HEADING.match(rows[above]):
            is_counted = heading["count"] != " "
            cell = f"In [{heading['count']}]" if is_counted else f"cell {heading['cell']}"
            return f"{cell}:{line - 1 - above}"
    return str(line)


def line_at(code: str, place: str) -> int:
    """Give the row of the code that a place names, as `place_of` does; 0 where it has none."""
    named = _PLACE.fullmatch(place)
    if named is None:
        return 0
    row = int(named["row"])
    fitting = (
        cell
        for cell in cells_of(code)
        if (cell.count == named["count"] if named["count"] else str(cell.number) == named["cell"])
        and 0 < row <= len(cell.rows)
    )
    return next((cell.heading + row for cell in fitting), 0)


@dataclass(frozen=True)
class Cell:
    """A cell of the code: its count, empty where it was not run, and its place in the file, from 1.

    `heading` is the row of the code above its own `rows`.
    """

    count: str
    number: int
    heading: int
    rows: tuple[str, ...]


def cells_of(code: str) -> list[Cell]:
    """Give the cells of the code. What stands above the first heading is of the first cell."""
    rows = code.removesuffix("\n").split("\n")
    heads = [(place, found) for place, row in enumerate(rows) if (found := _HEADING.match(row))]
    ends = [place for place, _ in heads[1:]] + [len(rows)] * bool(heads)
    cells = [
        Cell(found["count"].strip(), int(found["cell"]), place + 1, tuple(rows[place + 1 : end]))
        for (place, found), end in zip(heads, ends, strict=True)
    ]
    if cells and (above := rows[: heads[0][0]]):
        cells[0] = replace(cells[0], rows=(*above, *cells[0].rows))
    return cells


def rewritten(text: str, before: str, after: str) -> str:
    """Write an edit of the code into the notebook: rows that differ, all else to the byte as it was.

    Raises NotPatchableError where the edit changes what is IPython's own, or other than rows of cells.
    """
    if text.count(",") > MOST_PARTS:
        raise NotPatchableError(Message("patch.file-no-json-read"))
    nodes = [node for cell in _nodes(json_document.read(text)) if (node := _source_node(cell)) is not None]
    old, new = cells_of(before), cells_of(after)
    held = _loaded(text)
    sources = [source for cell in _cells(held or {}) if (source := _source(cell)) is not None]
    if not len(nodes) == len(old) == len(new) == len(sources):
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    made = text
    for node, source, one, other in reversed([*zip(nodes, sources, old, new, strict=True)]):
        if one.rows != other.rows:
            written = _spelled(text, node, "\n".join(_merged(source.split("\n"), one.rows, other.rows)))
            made = made[: node.start] + written + made[node.end :]
    if [cell.rows for cell in cells_of(code_of(made) or "")] != [cell.rows for cell in new]:
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    return made


def _merged(source: Sequence[str], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Give a cell's own rows with those that an edit of its code changes."""
    for kind, first, last, begin, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal" and any(map(_REMARK.match, (*old[first:last], *new[begin:end]))):
            raise NotPatchableError(Message("patch.python-code-change-hand"))
        yield from source[first:last] if kind == "equal" else new[begin:end]


def _spelled(text: str, node: TreeNode, source: str) -> str:
    """Write a cell's source as the file has it: one string, or a list of rows laid out as it was."""
    # Writers of JSON either leave other letters than ASCII as they are or escape them all.
    dumped = partial(json.dumps, ensure_ascii=text.isascii())
    if node.kind == "scalar":
        return dumped(source)
    items = node.items
    if not items:
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    kept = {item.value: text[item.start : item.end] for item in items}
    opens, closes = text[node.start : items[0].start], text[items[-1].end : node.end]
    between = text[items[0].end : items[1].start] if len(items) > 1 else f",{opens[1:] or ' '}"
    *above, last = source.split("\n")
    rows = [*(f"{row}\n" for row in above), *([last] if last else [])]
    return opens + between.join(kept.get(row) or dumped(row) for row in rows) + closes


def _nodes(root: TreeNode) -> Iterator[TreeNode]:
    for entry in root.entries:
        if entry.key == "cells":
            yield from entry.node.items
        elif entry.key == "worksheets":
            yield from (cell for sheet in entry.node.items for cell in _nodes(sheet))


def _source_node(cell: TreeNode) -> TreeNode | None:
    found = {entry.key: entry.node for entry in cell.entries}
    is_code = "cell_type" in found and found["cell_type"].value == "code"
    return found.get("source", found.get("input")) if is_code else None


def _loaded(text: str) -> Mapping[str, object] | None:
    if not text.lstrip().startswith("{") or sum(map(text.count, "[{,")) > MOST_PARTS:
        return None
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_notebook = isinstance(held, dict) and ("cells" in held or "worksheets" in held)
    return held if is_notebook else None


def _cells(held: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    sheets = held.get("worksheets")
    for sheet in (held, *(sheets if isinstance(sheets, list) else ())):
        cells = sheet.get("cells") if isinstance(sheet, Mapping) else None
        yield from (cell for cell in (cells if isinstance(cells, list) else ()) if isinstance(cell, Mapping))


def _source(cell: Mapping[str, object]) -> str | None:
    if cell.get("cell_type") != "code":
        return None
    source = cell.get("source", cell.get("input", ""))
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _as_python(rows: list[str]) -> list[str]:
    """Give a cell's rows with what is IPython's own behind remarks; all of it where the rest is no Python."""
    if rows[0].startswith("%%") and not _TIMED.match(rows[0]):
        return [f"# ipython: {row}" for row in rows]
    if _parses(rows):
        return rows
    made: list[str] = []
    goes_on, indent = False, ""
    for row in rows:
        if goes_on or _MAGIC.match(row):
            # A block of magics alone would be none; a row that goes on with one may stand anywhere.
            indent = indent if goes_on else row[: len(row) - len(row.lstrip())]
            made.append(f"{indent}pass  # ipython: {row.strip()}" if indent else f"# ipython: {row}")
            goes_on = row.rstrip().endswith("\\")
        else:
            made.append(row)
    return made if _parses(made) else [f"# ipython: {row}" for row in rows]


def _parses(rows: Sequence[str]) -> bool:
    if sum(map(len, rows)) > LONGEST_CELL:
        return False
    try:
        ast.parse("\n".join(rows))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
