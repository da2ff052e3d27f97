"""A limit that a batch script's directives ask for, and that the job has reached: the row with a larger one.

Slurm's options are settings of the catalogue; those of other schedulers stand among others in one text
(`walltime=24:00:00,mem=64gb`), whose shape `corpus/batch_limits.yaml` knows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from corpus.batch_limits import BatchLimit, known_batch_limits
from corpus.expressions import compiled
from corpus.message import in_both
from corpus.paths import base_name
from ingest.logs.conditions import applies
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.own_edits import OwnEdit

# Who reached a limit needs more than it, and how much more is not known.
_MORE = 2.0
# Room beside what the pace of the run tells.
_ROOM = 1.1
# A bar of tqdm: tqdm/std.py, format_meter.
_BAR = re.compile(r"\| (?P<done>\d{1,12})/(?P<total>\d{1,12}) \[(?P<spent>[\d:]{4,12})<")


def raised_limit(report: CrashReport, files: Sequence[JobFile]) -> OwnEdit | None:
    """Give the edit of the first script that asks for what the scheduler killed the job at; None else."""
    view = report.view_with(())
    rows = [row for row in known_batch_limits() if applies(row.when, (), view)]
    for file in files if rows else ():
        lines = file.text.split("\n")
        put = {at: new for at, line in enumerate(lines) if (new := _raised(line, rows, report)) != line}
        if put:
            at = min(put)
            text = "\n".join(put.get(each, line) for each, line in enumerate(lines))
            place = f"{base_name(file.name)}:{at + 1}"
            why = in_both(f"changes.batch-{rows[0].of}")
            return OwnEdit("replace", place, lines[at].strip(), put[at].strip(), why, file, text)
    return None


def _raised(line: str, rows: Sequence[BatchLimit], report: CrashReport) -> str:
    for row in rows:
        if (match := compiled(row.expression).search(line)) is not None:
            name = "number" if row.of == "memory" else "clock"
            start, end = match.span(name)
            more = str(math.ceil(int(match[name]) * _MORE)) if row.of == "memory" else ""
            line = line[:start] + (more or _longer(match[name], row, report)) + line[end:]
    return line


def _longer(clock: str, row: BatchLimit, report: CrashReport) -> str:
    """Give a time limit that the whole run fits into, by how far its longest bar came, in whole hours."""
    unit = 60 if row.last == "minutes" else 1
    bars = [match for text in report.texts.values() for match in _BAR.finditer(text)]
    longest = max(bars, key=lambda bar: _counted(bar["spent"]), default=None)
    share = _MORE
    if longest is not None and 0 < int(longest["done"]) < int(longest["total"]):
        share = _ROOM * int(longest["total"]) / int(longest["done"])
    hours = math.ceil(share * _counted(clock) * unit / 3600)
    parts = clock.count(":")
    return ":".join([f"{hours:02d}", *["00"] * parts]) if parts else str(hours * 3600 // unit)


def _counted(clock: str) -> int:
    """Count a clock such as `2:30` or `1:00:00` in units of its last part."""
    return sum(int(part) * 60**power for power, part in enumerate(reversed(clock.split(":"))))
