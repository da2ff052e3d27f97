"""The results of a batch as files: JSON lines, one answer a line, and CSV for a spreadsheet.

Both come as they are read.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from corpus.message import in_language
from corpus.schema import Language
from service.batches.answers import job_result
from service.composition.diagnosis_view import in_words
from service.schemas.diagnosis import Diagnosis
from service.schemas.errors import NotFoundError
from service.schemas.records import JobRecord

# Gives a job by its id; raises NotFoundError.
Lookup = Callable[[str], JobRecord]

COLUMNS = (
    "job",
    "id",
    "state",
    "verdict",
    "cause",
    "confidence",
    "action",
    "headline",
    "file",
    "line",
    "root",
    "change",
    "fingerprint",
    "same_as",
    "nodes",
    "gpu_hours",
    "ended",
    "error",
)
# Answers that are kept at hand for the jobs that have the same.
KEPT = 512
# A spreadsheet takes a cell that begins so for a formula; it can call programs and send what stands beside
# it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def answered(
    jobs: Iterable[JobRecord], lookup: Lookup, language: Language = "en"
) -> Iterator[tuple[JobRecord, Diagnosis]]:
    """Yield each job that is over with its answer, its own or that of the job with the same crash.

    `language` is that of what is told of a job without one.
    """

    @lru_cache(KEPT)
    def representative(job: str) -> JobRecord | None:
        try:
            return lookup(job)
        except NotFoundError:
            return None

    for job in jobs:
        if job.state not in ("queued", "running"):
            yield job, job_result(job, representative(job.same_as) if job.same_as else None, language)


def json_lines(jobs: Iterable[JobRecord], lookup: Lookup, language: Language = "en") -> Iterator[str]:
    """Yield a line for each job: the answer's contract, with `job` saying which one it is."""
    for _, diagnosis in answered(jobs, lookup, language):
        yield diagnosis.to_json() + "\n"


def csv_lines(jobs: Iterable[JobRecord], lookup: Lookup, language: Language = "en") -> Iterator[str]:
    """Yield the header, then a line for each job; no cell is a formula."""
    held = io.StringIO()
    writer = csv.writer(held, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for job, diagnosis in answered(jobs, lookup, language):
        yield _take_text(held)
        writer.writerow([escape_formula(str(cell)) for cell in _cells(job, diagnosis, language)])
    yield _take_text(held)


def escape_formula(cell: str) -> str:
    """Give a cell that a spreadsheet shows as text; numbers stay numbers."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _cells(job: JobRecord, diagnosis: Diagnosis, language: Language) -> tuple[object, ...]:
    root = diagnosis.root
    change = in_words(diagnosis.first_cure) if diagnosis.first_cure else ""
    return (
        job.name,
        job.id,
        job.state,
        diagnosis.verdict,
        diagnosis.cause or "",
        diagnosis.confidence,
        diagnosis.action,
        diagnosis.headline,
        (root.file if root else None) or "",
        root.line if root else "",
        root.text if root else "",
        change,
        job.fingerprint,
        job.same_as or "",
        "" if job.nodes is None else job.nodes,
        "" if job.gpu_hours is None else job.gpu_hours,
        job.ended.isoformat() if job.ended else "",
        in_language(job.error, language),
    )


def _take_text(held: io.StringIO) -> str:
    text = held.getvalue()
    held.seek(0)
    held.truncate()
    return text
