"""A JSON file of the job's own that cannot be parsed: the one edit after which it can.

A parser names the place where it stopped (`line 6 column 3`, the `json` module's wording). A file at hand
whose text stops a parser at that very place is the one that was read, and an edit counts where the whole file
parses with it: a comma that nothing follows, one that lacks between two rows, and Python's words in place
of JSON's. Nothing is tried on a file that another text than the failing one has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from corpus.message import in_both
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.own_edits import OwnEdit

_STOPPED = re.compile(
    r"(?:JSONDecodeError|JSONError): .{1,120}?: line (?P<line>\d{1,6}) column (?P<column>\d{1,6})"
)
_FILE = re.compile(r"\.json$", re.IGNORECASE)
# A larger file is data, and not what a person wrote.
_LONGEST = 1_000_000
# So many messages are held against the files.
_MOST = 8
_PYTHON = {"True": "true", "False": "false", "None": "null"}
# A text in quotes, which stays as it is, or a word of Python's.
_WORDS = re.compile(r"\"(?:[^\"\\]|\\.)*\"|(?<![\w\"'])(?:True|False|None)(?![\w\"'])")
# What may stand within one number or word: a comma put there would make two of it.
_INSIDE = re.compile(r"[\w.+-]")


def json_repair(report: CrashReport, files: Sequence[JobFile]) -> OwnEdit | None:
    """Give the edit of the file that the failing line's place fits; None where no edit lets it parse."""
    bodies = [event.text for event in report.standing if event.kind == "error"]
    told = (found for found in map(_STOPPED.search, bodies) if found)
    stopped = dict.fromkeys((int(found["line"]), int(found["column"])) for found in islice(told, _MOST))
    broken = [
        (file, stops)
        for file in files
        if stopped and _FILE.search(file.name) and (stops := _stops_at(file.text)) is not None
    ]
    for line, column in stopped:
        # Python 3.13 names a comma that nothing follows itself.
        fitting = [
            file
            for file, stops in broken
            if stops == (line, column)
            or "".join(file.text.split("\n")[line - 1 : line])[column - 1 : column] == ","
        ]
        if len(fitting) == 1:
            return _edit(fitting[0], line, column)
    return None


def _stops_at(text: str) -> tuple[int, int] | None:
    """Give the line and column, from 1, at which a parser stops; None where it does not."""
    if len(text) > _LONGEST:
        return None
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.lineno, error.colno
    except (RecursionError, ValueError):  # nested too deep, or a number of more digits than Python reads
        return None
    return None


def _edit(file: JobFile, line: int, column: int) -> OwnEdit | None:
    for at, row in _tried(file.text.split("\n"), line - 1, column - 1):
        rows = file.text.split("\n")
        before, rows[at] = rows[at], row
        text = "\n".join(rows)
        if _stops_at(text) is None and text != file.text:
            place = f"{file.name.replace(chr(92), '/').rpartition('/')[2]}:{at + 1}"
            why = in_both("changes.not-json")
            return OwnEdit("replace", place, before.strip(), row.strip(), why, file, text)
    return None


def _tried(rows: Sequence[str], at: int, column: int) -> Iterator[tuple[int, str]]:
    """Yield rows as they might have been meant, each with its index, for a parser that stopped at a place."""
    above = next((place for place in range(at - 1, -1, -1) if rows[place].strip()), None)
    row, before = rows[at], rows[at][:column].rstrip()
    if row[column : column + 1] == ",":
        yield at, row[:column] + row[column + 1 :]
    if before.endswith(","):
        yield at, before[:-1] + row[column:]
    if before and not (_INSIDE.match(row, column - 1) and _INSIDE.match(row, column)):
        yield at, f"{before}, {row[column:]}"
    if not before and above is not None:
        yield above, rows[above].rstrip().removesuffix(",")
        yield above, f"{rows[above].rstrip()},"
    yield at, _WORDS.sub(lambda match: _PYTHON.get(match[0], match[0]), row)
