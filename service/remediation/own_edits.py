"""An edit of a file of the job's own, of its code or its launch script: what is told and what is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from corpus.schema import Text
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile

EditKind = Literal["replace", "insert-before", "insert-after", "import"]


@dataclass(frozen=True)
class OwnEdit:
    """One edit: its place, what stands there before and after it, why, and the file with it.

    `file` is None where only the traceback's row is at hand; `text` is then empty. `brings` is an import that
    goes with it. `is_sure` tells that the message names the very thing which is edited. `there` is the row of
    the file at hand that has the edit already, since the file was edited after the run: nothing is written.
    `told` says in its own words what rules the failure out by now.
    """

    kind: EditKind
    place: str
    before: str
    after: str
    why: Text
    file: JobFile | None = None
    text: str = ""
    brings: str = ""
    is_sure: bool = True
    there: int = 0
    told: Text | None = None


def job_files(report: CrashReport) -> list[JobFile]:
    """Give the job's own files as the report holds them, without secrets."""
    parts = (text.rpartition("\n") for text in report.launches)
    return [JobFile(name, body) for body, _, name in parts]
