"""The one edit of the job's own files that is offered: of its code, else of its launch script."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.logs.report import CrashReport
from service.remediation.code_edits.edits import code_edit
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.own_edits import OwnEdit
from service.remediation.script_edits import script_edit


def offered_edit(
    report: CrashReport, files: Sequence[JobFile] | None = None, variables: Sequence[str] = ()
) -> OwnEdit | None:
    """Give the edit that follows from the failure; None where none does.

    Without `files`, those of the report are taken. `variables` are those of the environment on which the
    failure turns.
    """
    return code_edit(report, files) or script_edit(report, files, variables)
