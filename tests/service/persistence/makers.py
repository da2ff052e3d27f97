"""Makers of records, and times that do not move."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from service.persistence.store import Store
from service.schemas.records import BatchRecord, JobPlace, JobRecord, JobSpec, TriageRecord

NOW = datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)


def later(seconds: float) -> datetime:
    """Give a time so many seconds from now."""
    return NOW + timedelta(seconds=seconds)


def triage(**fields: Any) -> TriageRecord:
    """Make a triage that began just now; fields override."""
    made: dict[str, Any] = {
        "id": "T1",
        "state": "running",
        "origin": "api",
        "caller": "key-1",
        "source": "train.log",
        "created": NOW,
        "deadline": later(60),
    }
    return TriageRecord(**{**made, **fields})


def batch(**fields: Any) -> BatchRecord:
    """Make a batch that begins; fields override."""
    made: dict[str, Any] = {
        "id": "B1",
        "name": "night",
        "caller": "key-1",
        "source": "folder",
        "state": "running",
        "created": NOW,
    }
    return BatchRecord(**{**made, **fields})


def specs(count: int) -> Iterator[JobSpec]:
    """Make so many jobs."""
    return (
        JobSpec(name=f"job {number}", place=JobPlace(paths=(f"/logs/{number}.log",)))
        for number in range(1, count + 1)
    )


def add(store: Store, count: int, batch_id: str = "B1") -> list[str]:
    """Put a batch of so many jobs into the store; gives their ids."""
    return store.batches.add(batch(id=batch_id), specs(count))


def claim(
    store: Store, count: int = 1, owner: str = "me", at: datetime = NOW, lease: float = 60
) -> list[JobRecord]:
    """Claim jobs."""
    return store.batches.claim(owner, count, lease, at)


def numbers(jobs: list[JobRecord]) -> list[int]:
    """Give the jobs' numbers."""
    return [job.number for job in jobs]
