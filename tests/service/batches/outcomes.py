"""Makers of what became of a batch's jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from service.persistence import sanitizer
from service.persistence.outcome_summaries import JobSummaryRow, unpack_summary
from service.persistence.rows import job_key
from service.schemas.diagnosis import CascadeEntry, Diagnosis, Evidence, ReadLimits
from service.schemas.errors import NotFoundError
from service.schemas.records import BatchRecord, JobPlace, JobRecord

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
TITLES = {
    "host-oom-kill": "Host memory exhausted",
    "nccl-network": "Network fault",
    "insufficient-evidence": "Not known",
}


def batch(**fields: Any) -> BatchRecord:
    """Make a batch that is over."""
    made: dict[str, Any] = {
        "id": "B",
        "name": "nightly",
        "caller": "local",
        "source": "folder",
        "state": "done",
        "created": NOON,
    }
    return BatchRecord(**{**made, **fields})


def answer(cause: str | None = "host-oom-kill", **fields: Any) -> Diagnosis:
    """Make an answer that names a cause by line 7."""
    made: dict[str, Any] = {
        "id": "x",
        "source": "x",
        "verdict": "diagnosed",
        "category": "host-memory",
        "confidence": 0.9,
        "standing": "established",
        "action": "change-config",
        "headline": f"It is {cause}",
        "explanation": "See [L7].",
        "limits": ReadLimits(bytes=10, lines=9),
        "evidence": (Evidence(line=7, text="Killed", role="root", why="it says so"),),
        "cascade": (
            CascadeEntry(line=7, time="2026-11-20 10:30:00", source="", event="Killed", role="root", count=1),
        ),
    }
    return Diagnosis(cause=cause, **{**made, **fields})


def healthy() -> Diagnosis:
    """Make an answer that nothing failed."""
    return answer(
        None,
        verdict="no-failure",
        category=None,
        standing="established",
        action="none",
        headline="Nothing failed",
        evidence=(),
        cascade=(),
    )


def job(number: int, diagnosis: Diagnosis | None = None, **fields: Any) -> JobRecord:
    """Make a job that is over: with an answer of its own, or as the fields say."""
    made: dict[str, Any] = {
        "id": f"B-{number}",
        "batch": "B",
        "number": number,
        "name": f"job {number}",
        "place": JobPlace(paths=("/x",)),
        "state": "done",
        "attempts": 1,
        "fingerprint": f"f{number}",
        "finished": NOON,
        "diagnosis": diagnosis,
    }
    return JobRecord(**{**made, **fields})


def line(record: JobRecord) -> JobSummaryRow:
    """Give a job as a summary counts it."""
    gist = unpack_summary(sanitizer.pack_both(record.diagnosis)[1]) if record.diagnosis else None
    same_as = job_key(record.same_as)[1] if record.same_as else None
    return JobSummaryRow(
        **{name: getattr(record, name, None) for name in JobSummaryRow._fields}
        | {"gist": gist, "same_as": same_as}
    )


def lookup(*jobs: JobRecord) -> Callable[[str], JobRecord]:
    """Look jobs up as the store does."""
    known: Mapping[str, JobRecord] = {one.id: one for one in jobs}

    def of(name: str) -> JobRecord:
        if name not in known:
            raise NotFoundError(f"There is no job {name}.")
        return known[name]

    return of
