"""The edit of a launch script whose command ends a row too early, so that its options are run as a command.

Bash and dash then name row and option: `run.sh: line 10: --lr: command not found`. The row above lacks its
backslash, has a blank behind it, or is a comment or an empty row, which ends the command as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from corpus.message import in_both
from corpus.schema import Text
from ingest.logs.report import CrashReport
from service.remediation.code_edits.edits import job_files
from service.remediation.code_edits.failing_code import JobFile

_OPTION_RUN = re.compile(
    r"(?P<script>[\w./-]{1,200}): (?:line )?(?P<line>\d{1,6}): (?P<option>--?[A-Za-z][\w.-]*)(?:=\S*)?: "
    r"(?:command )?not found"
)
_COMMENT = re.compile(r"\s*#")


@dataclass(frozen=True)
class ScriptEdit:
    """One row of a script that changes: the file with it, its place, what it was and what it becomes."""

    file: JobFile
    text: str
    place: str
    before: str
    after: str
    why: Text


def script_edit(report: CrashReport, files: Sequence[JobFile] | None = None) -> ScriptEdit | None:
    """Give the edit by which the options belong to their command again; None where no such row is at hand."""
    told = (_OPTION_RUN.search(event.body) for event in report.standing if event.kind == "error")
    said = next((match for match in told if match), None)
    if said is None:
        return None
    name = said["script"].rpartition("/")[2]
    given = job_files(report) if files is None else files
    fitting = [file for file in given if file.name.replace("\\", "/").rpartition("/")[2] == name]
    return _joined(fitting[0], int(said["line"]), said["option"]) if len(fitting) == 1 else None


def _joined(file: JobFile, line: int, option: str) -> ScriptEdit | None:
    """Join the row of an option to the command above it."""
    rows = file.text.split("\n")
    if not 1 < line <= len(rows) or not rows[line - 1].lstrip().startswith(option):
        return None
    above = rows[line - 2]
    plain = above.rstrip()
    if not plain or _COMMENT.match(above):
        start = line - 2
        while start > 0 and (not rows[start - 1].strip() or _COMMENT.match(rows[start - 1])):
            start -= 1
        if not start or not rows[start - 1].endswith("\\"):
            return None
        taken, put, reason = rows[start : line - 1], list[str](), "changes.row-within-command"
    elif plain.endswith("\\"):
        start, taken, put, reason = line - 2, [above], [plain], "changes.blank-behind-backslash"
    else:
        start, taken, put, reason = line - 2, [above], [f"{plain} \\"], "changes.backslash-missing"
    text = "\n".join([*rows[:start], *put, *rows[line - 1 :]])
    before, after = (" ".join(row.strip() for row in each if row.strip()) for each in (taken, put))
    why = in_both(reason, option=option)
    place = f"{file.name.replace(chr(92), '/').rpartition('/')[2]}:{start + 1}"
    return ScriptEdit(file, text, place, before, after, why) if text != file.text else None
