"""Batches and jobs as rows of their tables, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection, Row, func, select

from corpus.message import Message
from service.persistence import sanitizer
from service.persistence.outcome_summaries import JobSummaryRow, unpack_summary
from service.persistence.schema import BATCHES, JOBS
from service.schemas.diagnosis import Outcome
from service.schemas.errors import NotFoundError
from service.schemas.records import BatchOptions, BatchRecord, JobPlace, JobRecord, JobSpec, JobState

# The states of a batch whose jobs are being written or deleted; for all others it is not there.
HIDDEN = ("arriving", "leaving")
# Below what either database takes as parameters of one statement.
STEP = 500


def job_id(batch: str, number: int) -> str:
    """Give a job's id, which tells its batch and its place there."""
    return f"{batch}-{number}"


def job_key(job: str) -> tuple[str, int]:
    """Take a job's id apart; raises NotFoundError where it is none."""
    batch, _, number = job.rpartition("-")
    if not batch or not number.isascii() or not number.isdigit() or len(number) > 9:
        raise missing_job(job)
    return batch, int(number)


def missing_job(job: str) -> NotFoundError:
    """Make the error for a job that is not there."""
    return NotFoundError(Message("errors.no-job-batch-deleted", job=sanitizer.clean_text(job)[:80]))


def missing_batch(batch: str) -> NotFoundError:
    """Make the error for a batch that is not there."""
    return NotFoundError(Message("errors.no-batch-deleted", batch=sanitizer.clean_text(batch)[:64]))


def keys_by_batch(jobs: Iterable[str]) -> list[tuple[str, list[int]]]:
    """Group jobs by their batch, in steps that one statement takes.

    In the same order for everyone, so that no two transactions deadlock.
    """
    groups: dict[str, set[int]] = {}
    for job in jobs:
        batch, number = job_key(job)
        groups.setdefault(batch, set()).add(number)
    ordered = [(batch, sorted(groups[batch])) for batch in sorted(groups)]
    return [
        (batch, numbers[at : at + STEP]) for batch, numbers in ordered for at in range(0, len(numbers), STEP)
    ]


def batch_values(record: BatchRecord) -> dict[str, Any]:
    """Give a batch's row."""
    clean_values = {
        sanitizer.clean_text(key): sanitizer.clean_text(value) if isinstance(value, str) else value
        for key, value in record.left_out.items()
    }
    return {
        "id": record.id,
        "name": sanitizer.clean_text(record.name),
        "caller": sanitizer.clean_text(record.caller),
        "source": record.source,
        "state": record.state,
        "created": record.created,
        "finished": record.finished,
        "options": record.options.model_dump_json(),
        "left_out": json.dumps(clean_values, ensure_ascii=False),
        "counts": None,
    }


def batch_record(connection: Connection, row: Row[Any]) -> BatchRecord:
    """Read a batch's row, and count its jobs where it is not over."""
    values = {name: value for name, value in row._mapping.items() if name in BatchRecord.model_fields}
    counts = json.loads(row.counts) if row.counts else count(connection, row.id)
    options = BatchOptions.model_validate_json(row.options)
    return BatchRecord(
        **{**values, "options": options, "left_out": json.loads(row.left_out), "counts": counts}
    )


def count(connection: Connection, batch: str) -> dict[JobState, int]:
    """Count a batch's jobs by their state; an index alone answers it."""
    query = select(JOBS.c.state, func.count()).where(JOBS.c.batch == batch).group_by(JOBS.c.state)
    return {cast("JobState", state): number for state, number in connection.execute(query)}


def visible(batch: str) -> Any:
    """Select a batch's row, unless it is arriving or leaving."""
    return select(BATCHES).where(BATCHES.c.id == batch, BATCHES.c.state.not_in(HIDDEN))


def spec_values(batch: str, number: int, spec: JobSpec) -> dict[str, Any]:
    """Give the row of a new job.

    Its paths are kept as they are, since it would not be found under cleaned ones; JSON spells out what of a
    name is no UTF-8.
    """
    return {
        "batch": batch,
        "number": number,
        "state": "queued",
        "name": sanitizer.clean_text(spec.name),
        "place": json.dumps(spec.place.model_dump(exclude_defaults=True)),
        "nodes": spec.nodes,
        "gpus": spec.gpus,
        "gpu_hours": spec.gpu_hours,
        "started": spec.started,
        "ended": spec.ended,
        "node_names": sanitizer.texts(spec.node_names),
        "outcome": spec.outcome.model_dump_json(exclude_none=True) if spec.outcome else None,
        "attempts": 0,
        "not_before": None,
        "owner": "",
        "leased_until": None,
        "fingerprint": "",
        "same_as": None,
        "root_line": None,
        "root_file": None,
        "root_text": "",
        "error": "",
        "finished": None,
        "diagnosis": None,
        "config": "",
        "gist": None,
    }


def job_values(record: JobRecord) -> dict[str, Any]:
    """Give the row of a job with all that is known of it, as it comes from a batch's journal."""
    packed, gist = sanitizer.pack_both(record.diagnosis) if record.diagnosis else (None, None)
    return spec_values(record.batch, record.number, record) | {
        "state": record.state,
        "attempts": record.attempts,
        "not_before": record.not_before,
        "owner": record.owner,
        "leased_until": record.leased_until,
        "fingerprint": record.fingerprint,
        "same_as": job_key(record.same_as)[1] if record.same_as else None,
        "root_line": record.root_line,
        "root_file": record.root_file and sanitizer.clean_text(record.root_file),
        "root_text": sanitizer.clean_text(record.root_text),
        "error": sanitizer.pack_message(record.error),
        "finished": record.finished,
        "diagnosis": packed,
        "config": record.config,
        "gist": gist,
    }


def job_record(row: Row[Any] | Mapping[str, Any]) -> JobRecord:
    """Read a job's row."""
    values = dict(row._mapping if isinstance(row, Row) else row)
    batch = values["batch"]
    del values["gist"]
    return JobRecord(
        **{
            **values,
            "id": job_id(batch, values["number"]),
            "error": sanitizer.unpack_message(values["error"]),
            "place": JobPlace.model_validate(json.loads(values["place"])),
            "node_names": sanitizer.names(values["node_names"]),
            "outcome": None if values["outcome"] is None else Outcome.model_validate_json(values["outcome"]),
            "same_as": None if values["same_as"] is None else job_id(batch, values["same_as"]),
            "diagnosis": None if values["diagnosis"] is None else sanitizer.unpack(values["diagnosis"]),
        }
    )


def job_line(row: Row[Any]) -> JobSummaryRow:
    """Read what a summary counts of a job."""
    return JobSummaryRow._make(
        (*row[:-2], sanitizer.names(row.node_names), unpack_summary(row.gist) if row.gist else None)
    )._replace(error=sanitizer.unpack_message(row.error))


def job_records(found: Sequence[Row[Any]]) -> list[JobRecord]:
    """Read rows of jobs."""
    return [job_record(row) for row in found]
