"""What a job's script asks of Slurm below its first command, where Slurm reads no more options."""

from __future__ import annotations

from collections.abc import Sequence

from corpus.message import words
from corpus.schema import Language
from ingest.configfiles.shell.directives import unread
from ingest.logs.report import CrashReport
from service.remediation.own_edits import job_files
from service.schemas.diagnosis import ProposedChange


def asked_in_vain(
    changes: Sequence[ProposedChange], report: CrashReport, language: Language
) -> list[ProposedChange]:
    """Give a changed option of the script's head the value that the script asks for where nobody reads it.

    A value of shell variables is no value in a directive, and stays what it was.
    """
    asked = {
        f"--{option.name}": (option.value.text, file.text.count("\n", 0, option.line[0]) + 1, file.name)
        for file in reversed(job_files(report))
        if "#SBATCH" in file.text
        for option in reversed(unread(file.text))
        if option.value is not None and "$" not in option.value.text
    }
    told = []
    for change in changes:
        if change.key in asked and change.from_ is None and not change.removes:
            value, row, name = asked[change.key]
            why = words("changes.unread-directive", language, file=name, line=row, option=change.key)
            change = change.model_copy(
                update={"to": value, "why": why, "costs": "", "proof": None, "bounds": None}
            )
        told.append(change)
    return told
