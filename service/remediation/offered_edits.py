"""The one edit of the job's own files that is offered: of its code, else its launch script or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingest.logs.report import CrashReport
from service.remediation.batch_limits import raised_limit
from service.remediation.code_edits.edits import code_edit
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.code_edits.mended_since import mended_since
from service.remediation.code_edits.missing_returns import missing_return
from service.remediation.code_edits.present_cures import present_edit
from service.remediation.code_edits.short_lists import short_list
from service.remediation.code_edits.unparsed import unparsed_edit
from service.remediation.data_flow.own_attributes import set_at_once
from service.remediation.data_flow.rank_branches import rank_branch_edit
from service.remediation.data_flow.slips import flow_edit
from service.remediation.data_flow.uncomposed import uncomposed_edit
from service.remediation.data_flow.unpacked_values import unpacked_edit
from service.remediation.json_repairs import json_repair
from service.remediation.own_edits import OwnEdit, job_files
from service.remediation.script_edits import script_edit


def offered_edit(
    report: CrashReport, files: Sequence[JobFile] | None = None, variables: Sequence[str] = ()
) -> OwnEdit | None:
    """Give the edit that follows from the failure; None where none does.

    Without `files`, those of the report are taken. `variables` are those of the environment on which the
    failure turns. Of an edit that the file has already nothing is to be written.
    """
    given = job_files(report) if files is None else files
    if (mended := mended_since(report, given)) is not None:
        return mended
    made = flow_edit(report, files) or unpacked_edit(report, given) or code_edit(report, files)
    if made is None:
        made = unparsed_edit(report, given) or missing_return(report, given) or set_at_once(report, given)
        made = made or short_list(report, given) or rank_branch_edit(report, given)
        made = made or uncomposed_edit(report, given) or script_edit(report, files, variables)
        return made or json_repair(report, given) or raised_limit(report, given)
    there = present_edit(made, report, given)
    if there is None:
        return made
    place = f"{there.name}:{there.line}"
    held = next(file for file in given if f"/{file.name}".replace("\\", "/").endswith(f"/{there.name}"))
    row = held.text.split("\n")[there.line - 1].strip()
    return replace(made, file=None, text="", brings="", place=place, there=there.line, after=row)
