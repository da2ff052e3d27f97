"""Outcomes of jobs, gathered and then recorded together: in the store, then in the batch's journal."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from service.batches.journal import JobEnded, journal_of
from service.persistence.outcomes import JobResult
from service.persistence.rows import job_key
from service.persistence.store import Store
from service.schemas.errors import RequestError
from service.schemas.records import JobRecord

# Seconds, and results, after which they are recorded.
EVERY = 0.4
AT_MOST = 64
_LOG = logging.getLogger("whycrash.batch")


@dataclass(frozen=True, slots=True)
class FailedTry:
    """A try that failed: when the next one is due, or that it was the last."""

    job: str
    error: str
    retry_at: datetime | None


@dataclass
class ResultWriter:
    """Results and failures that are not recorded yet.

    `told` is called with each job that has ended for good.
    """

    store: Store
    home: Path
    owner: str
    told: Callable[[JobRecord], None]
    results: list[tuple[JobRecord, JobResult]] = field(default_factory=list)
    failures: list[tuple[JobRecord, FailedTry]] = field(default_factory=list)
    _since: float = 0.0
    _settled: set[str] = field(default_factory=set)
    _doubtful: set[str] = field(default_factory=set)

    def add_answer(self, job: JobRecord, outcome: JobResult) -> None:
        """Take in a result."""
        self._begin()
        self.results.append((job, outcome))

    def add_failure(self, job: JobRecord, error: str, retry_at: datetime | None) -> None:
        """Take in a failure."""
        self._begin()
        self.failures.append((job, FailedTry(job.id, error, retry_at)))

    @property
    def is_due(self) -> bool:
        """Tell whether it is time to record."""
        count = len(self.results) + len(self.failures)
        return count >= AT_MOST or (count > 0 and monotonic() - self._since >= EVERY)

    def record(self) -> None:
        """Record all. Raises StoreError or DiskFullError; what was not recorded then stays."""
        now = datetime.now(UTC)
        if self.results:
            done = self.store.batches.finish_many(self.owner, [outcome for _, outcome in self.results], now)
            results, self.results = self.results, []
            for _, outcome in results:
                self._settle(outcome.job, outcome.job in done, outcome.same_as)
            self._note([_answered(job, outcome, now) for job, outcome in results if outcome.job in done])
        while self.failures:
            job, failure = self.failures[0]
            held = self.store.batches.fail(job.id, self.owner, failure.error, failure.retry_at, now)
            self.failures.pop(0)
            self._settle(job.id, False, None)
            if held and failure.retry_at is None:
                self._note(
                    [job.model_copy(update={"state": "failed", "error": failure.error, "finished": now})]
                )

    def has_settled(self) -> tuple[set[str], set[str]]:
        """Give the jobs that have ended since the last call, and those whose answer others may not use."""
        found = self._settled, self._doubtful
        self._settled, self._doubtful = set(), set()
        return found

    def _settle(self, job: str, good: bool, same_as: str | None) -> None:
        self._settled.add(job)
        if not good:
            # The job whose answer this one uses may have failed.
            self._doubtful |= {job, same_as or job}

    def drop(self, jobs: set[str]) -> None:
        """Drop what was to be recorded of jobs that are no longer wanted."""
        self.results = [(job, outcome) for job, outcome in self.results if job.id not in jobs]
        self.failures = [(job, failure) for job, failure in self.failures if job.id not in jobs]

    def _begin(self) -> None:
        if not self.results and not self.failures:
            self._since = monotonic()

    def _note(self, jobs: list[JobRecord]) -> None:
        batches: dict[str, list[JobRecord]] = defaultdict(list)
        for job in jobs:
            batches[job.batch].append(job)
        for batch, ended in batches.items():
            note(self.home, batch, ended)
        for job in jobs:
            self.told(job)


def note(home: Path, batch: str, jobs: list[JobRecord]) -> None:
    """Write the end of jobs into their batch's journal.

    A failed write is ignored: only if the database is lost as well are these jobs done again.
    """
    journal = journal_of(home, batch)
    try:
        if journal.exists():
            journal.append([ending(job) for job in jobs])
    except (RequestError, OSError) as error:
        _LOG.warning("the journal of batch %s cannot be written: %s", batch, error)


def ending(job: JobRecord) -> JobEnded:
    """Give the journal's entry for a job that has ended."""
    return JobEnded(
        number=job.number,
        state=job.state,
        attempts=job.attempts,
        fingerprint=job.fingerprint,
        config=job.config,
        same_as=job_key(job.same_as)[1] if job.same_as else None,
        root_line=job.root_line,
        root_file=job.root_file,
        root_text=job.root_text,
        diagnosis=job.diagnosis,
        error=job.error,
        finished=job.finished or datetime.now(UTC),
    )


def _answered(job: JobRecord, outcome: JobResult, now: datetime) -> JobRecord:
    return job.model_copy(
        update={
            "state": "done",
            "fingerprint": outcome.fingerprint,
            "config": outcome.config,
            "same_as": outcome.same_as,
            "root_line": outcome.root_line,
            "root_file": outcome.root_file,
            "root_text": outcome.root_text,
            "diagnosis": outcome.diagnosis,
            "error": "",
            "finished": now,
        }
    )
