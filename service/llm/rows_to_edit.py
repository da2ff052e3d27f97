"""Rows of the job's files that a change would edit: where an option or a variable of the failure is set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from corpus.keys import canonical, last_level
from corpus.paths import base_name
from ingest.configfiles import reader
from ingest.configfiles.formats import CODE
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame
from service.remediation.code_edits.failing_code import JobFile, file_of
from service.schemas.diagnosis import ProposedChange

# Rows in all, of one name, and names of a statement that are looked for.
MOST, OF_A_NAME, MOST_NAMES = 8, 2, 6
SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch", ".sub", ".pbs")
# Names of code, of several letters, none of which is called.
_NAME = re.compile(r"(?<!\w)[A-Za-z_]\w{2,60}(?![\w(])")
_PROGRAM = re.compile(r"[\w-]+\.py\b")
_FIXED = frozenset(
    {"self", "None", "True", "False", "return", "raise", "not", "for", "and", "else", "import"}
)


class RowToEdit(NamedTuple):
    """A row of a file, counted from 0."""

    file: JobFile
    place: int


def rows_to_edit(
    report: CrashReport, files: Sequence[JobFile], offered: Sequence[ProposedChange]
) -> list[RowToEdit]:
    """Give the rows that set what the offered changes name, then what the failing statement does.

    Then those of scripts that start the program.
    """
    frames = report.root.frames if report.root is not None else ()
    own = [frame for frame in reversed(frames) if is_own(frame) and frame.code]
    scripts = [file for file in files if file.name.endswith(SCRIPTS)]
    found = (*_of_changes(files, offered), *_of_statement(own, files), *_of_launch(report, scripts))
    return list(dict.fromkeys(found))[:MOST]


def _of_changes(files: Sequence[JobFile], offered: Sequence[ProposedChange]) -> Iterator[RowToEdit]:
    wanted = {canonical(change.key) for change in offered} | {last_level(change.key) for change in offered}
    for file in files:
        if file.name.endswith((*CODE, *SCRIPTS)) and wanted:
            for item in reader.read(file.text, file.name):
                if item.place is not None and {canonical(item.key), last_level(item.key)} & wanted:
                    yield RowToEdit(file, item.place.line - 1)


def _of_statement(own: Sequence[Frame], files: Sequence[JobFile]) -> Iterator[RowToEdit]:
    """Yield where the names of the innermost own statement are set: above it, or as an option of a parser."""
    frame = next((each for each in own if file_of(each, files) is not None), None)
    failing = file_of(frame, files) if frame is not None else None
    if frame is None or failing is None:
        return
    names = [name for name in dict.fromkeys(_NAME.findall(frame.code)) if name not in _FIXED][:MOST_NAMES]
    for name in names:
        sets = re.compile(rf"(?m)^[ \t]*(?:[A-Za-z_]\w*\.)*{name}(?:[ \t]*:[^=\n]{{1,60}})?[ \t]*=(?!=)")
        option = re.compile(rf"add_argument\([^\n]{{0,40}}['\"]--?{name.replace('_', '[-_]')}['\"]")
        above = [row for row in _rows(failing, sets) if row.place < frame.line - 1]
        options = [row for file in files if file.name.endswith(CODE) for row in _rows(file, option)]
        yield from (above[-1:] + options)[:OF_A_NAME]


def _of_launch(report: CrashReport, scripts: Sequence[JobFile]) -> Iterator[RowToEdit]:
    """Yield the row of each script that starts the program which ran."""
    started = _PROGRAM.search(report.command[1])
    frames = report.root.frames if report.root is not None else ()
    first = next((base_name(frame.file) for frame in frames if is_own(frame)), "")
    names = {name for name in (started[0] if started else "", first) if name.endswith(".py")}
    for file in scripts:
        for place, row in enumerate(file.text.split("\n")):
            if not row.lstrip().startswith("#") and any(name in row for name in names):
                yield RowToEdit(file, place)
                break


def _rows(file: JobFile, form: re.Pattern[str]) -> Iterator[RowToEdit]:
    for match in form.finditer(file.text):
        yield RowToEdit(file, file.text.count("\n", 0, match.start()))
