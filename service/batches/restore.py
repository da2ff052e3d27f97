"""Restore a batch from its journal into a database that has lost it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from service.batches.journal import BatchAccepted, BatchBegan, BatchClosed, JobEnded, JobListed, Journal
from service.persistence.rows import job_id
from service.persistence.store import Store
from service.schemas.records import BatchRecord, JobRecord, JobSpec, JobState


def restore(store: Store, journal: Journal) -> bool:
    """Put a batch with its jobs and their results into a store.

    False where the journal tells of none that was accepted.
    """
    record, ends = _survey(journal)
    if record is None:
        return False
    # What an interrupted restoration left.
    store.batches.clear(record.id)
    store.batches.restore(record, _jobs(journal, record, ends))
    return True


def _survey(journal: Journal) -> tuple[BatchRecord | None, dict[int, int]]:
    """Give the batch as it stands, and where the last entry of each job is.

    Answers are read one by one later.
    """
    record: BatchRecord | None = None
    accepted = False
    ends: dict[int, int] = {}
    for place, entry in journal.placed():
        match entry:
            case BatchBegan():
                record = entry.record
            case BatchAccepted() if record:
                accepted = True
                record = record.model_copy(update={"left_out": entry.left_out})
            case JobEnded():
                ends[entry.number] = place
            case BatchClosed() if record:
                # A batch that was done settles by itself once more.
                record = record.model_copy(update={"state": "cancelled"} if entry.why == "cancelled" else {})
    return (record if accepted else None), ends


def _jobs(journal: Journal, record: BatchRecord, ends: dict[int, int]) -> Iterator[JobRecord]:
    specs = (entry.spec for _, entry in journal.placed() if isinstance(entry, JobListed))
    for number, spec in enumerate(specs, 1):
        end = journal.at(ends[number]) if number in ends else None
        # The end of a job with another one's answer counts while that one has it.
        other = journal.at(ends[end.same_as]) if isinstance(end, JobEnded) and end.same_as in ends else None
        if isinstance(end, JobEnded) and (
            end.same_as is None or (isinstance(other, JobEnded) and other.diagnosis is not None)
        ):
            same_as = job_id(record.id, end.same_as) if end.same_as is not None else None
            told = {
                name: getattr(end, name)
                for name in JobEnded.model_fields
                if name not in ("kind", "number", "same_as")
            }
            ended = JobRecord(**_job_fields(record, number, spec), **told, same_as=same_as)
            yield ended
        else:
            state: JobState = "cancelled" if record.state == "cancelled" else "queued"
            yield JobRecord(**_job_fields(record, number, spec), state=state)


def _job_fields(record: BatchRecord, number: int, spec: JobSpec) -> dict[str, Any]:
    return {"id": job_id(record.id, number), "batch": record.id, "number": number, **dict(spec)}
