"""What the job's own files show of a failing value: what the first reading of them that tells any says."""

from __future__ import annotations

from collections.abc import Sequence

from corpus.schema import Text
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.data_flow.absent_values import absent_value
from service.remediation.data_flow.rank_branches import rank_branch_words
from service.remediation.data_flow.samples import sample_words
from service.remediation.data_flow.unpacked_values import unpacked_words

_READINGS = (absent_value, unpacked_words, sample_words, rank_branch_words)


def file_finding(report: CrashReport, files: Sequence[JobFile]) -> Text | None:
    """Say which rows of the job's files make the value that failed; None where none of them show it."""
    return next((said for reading in _READINGS if (said := reading(report, files)) is not None), None)
