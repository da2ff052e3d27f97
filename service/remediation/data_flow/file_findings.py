"""What the job's own files show of a failing value: what the first reading of them that tells any says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from corpus.schema import Action, Text
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.data_flow.absent_values import absent_value
from service.remediation.data_flow.rank_branches import rank_branch_words
from service.remediation.data_flow.samples import sample_words
from service.remediation.data_flow.unpacked_values import unpacked_words
from service.remediation.data_flow.written_paths import written_words

Reading = Callable[[CrashReport, Sequence[JobFile]], Text | None]

# Each reading, and what is to be done of the causes that it speaks of.
_READINGS: tuple[tuple[Reading, frozenset[Action]], ...] = (
    (absent_value, frozenset({"fix-code"})),
    (unpacked_words, frozenset({"fix-code", "fix-data"})),
    (sample_words, frozenset({"fix-code", "fix-data"})),
    (rank_branch_words, frozenset({"fix-code"})),
    (written_words, frozenset({"fix-code", "fix-data", "change-config", "change-environment"})),
)


def file_finding(report: CrashReport, files: Sequence[JobFile], action: Action = "fix-code") -> Text | None:
    """Say which rows of the job's files make the value that failed; None where none of them show it.

    `action` is what is to be done of the cause.
    """
    readings = (reading for reading, actions in _READINGS if action in actions)
    return next((said for reading in readings if (said := reading(report, files)) is not None), None)
