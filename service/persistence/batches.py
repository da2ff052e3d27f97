"""Batches and their jobs: accepted whole, worked on under leases, read in order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Integer, bindparam, delete, exists, insert, select, update

from service.persistence import leases, outcomes, rows
from service.persistence.database import Database
from service.persistence.outcome_summaries import JobSummaryRow
from service.persistence.outcomes import JobResult
from service.persistence.schema import BATCHES, JOBS, REPRESENTATIVES
from service.schemas.diagnosis import Diagnosis
from service.schemas.errors import ConflictError
from service.schemas.records import BatchRecord, JobRecord, JobSpec, JobState

_CHUNK = 1000
_ANSWERS = 200
_COLUMNS = JOBS.c
_OPEN = ("queued", "running")
_ENDED: tuple[JobState, ...] = ("done", "failed", "cancelled")
_LINED = 2000
_LINES = (
    select(*(_COLUMNS[name] for name in JobSummaryRow._fields))
    .where(
        _COLUMNS.batch == bindparam("one", type_=_COLUMNS.batch.type),
        _COLUMNS.number > bindparam("after", type_=Integer),
        _COLUMNS.state.in_(_ENDED),
    )
    .order_by(_COLUMNS.number)
    .limit(_LINED)
)


class BatchRepository:
    """The batches that are kept.

    Ids are ULIDs; a job's id is its batch's and its number, which begins at 1.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, record: BatchRecord, specs: Iterable[JobSpec]) -> list[str]:
        """Keep a new batch with its jobs, queued; gives their ids.

        Either all of it stands, also after a power cut, or nothing.
        """
        return self._arrive(
            record, (rows.spec_values(record.id, number, spec) for number, spec in enumerate(specs, 1))
        )

    def restore(self, record: BatchRecord, jobs: Iterable[JobRecord]) -> list[str]:
        """Keep a batch as a journal tells it, its jobs in any state.

        What was being worked on is for its journal to queue again.
        """
        return self._arrive(record, map(rows.job_values, jobs))

    def get(self, batch: str) -> BatchRecord:
        """Give a batch; raises NotFoundError."""
        with self._database.read() as connection:
            return _batch(connection, batch)

    def page(
        self, after: str | None = None, limit: int = 20, caller: str | None = None
    ) -> tuple[tuple[BatchRecord, ...], str | None]:
        """Give batches, newest first, and what to pass as `after` for more."""
        query = (
            select(BATCHES)
            .where(BATCHES.c.state.not_in(rows.HIDDEN))
            .order_by(BATCHES.c.id.desc())
            .limit(limit + 1)
        )
        query = query if after is None else query.where(BATCHES.c.id < after)
        query = query if caller is None else query.where(BATCHES.c.caller == caller)
        with self._database.read() as connection:
            found = connection.execute(query).all()
            items = tuple(rows.batch_record(connection, row) for row in found[:limit])
        return items, items[-1].id if len(found) > limit and items else None

    def callers(self, prefix: str) -> tuple[str, ...]:
        """Give the callers who have batches and whose names begin so."""
        query = (
            select(BATCHES.c.caller).where(BATCHES.c.caller.startswith(prefix, autoescape=True)).distinct()
        )
        with self._database.read() as connection:
            return tuple(connection.execute(query).scalars())

    def running(self) -> tuple[str, ...]:
        """Give the ids of the batches that are not over, oldest first."""
        query = select(BATCHES.c.id).where(BATCHES.c.state == "running").order_by(BATCHES.c.id)
        with self._database.read() as connection:
            return tuple(connection.execute(query).scalars())

    def counts(self, batch: str) -> dict[JobState, int]:
        """Count a batch's jobs by their state; raises NotFoundError."""
        return self.get(batch).counts

    def cancel(self, batch: str, now: datetime | None = None) -> BatchRecord:
        """End a batch: what is queued or worked on is cancelled, what is done stays.

        Leaves one that is over as it is.
        """
        moment = now or datetime.now(UTC)
        return self._database.change(lambda connection: _cancel(connection, batch, moment))

    def settle(self, batch: str, now: datetime) -> bool:
        """Mark a batch as done once no job is queued or running; tells whether this did it."""
        still_open = exists().where(_COLUMNS.batch == batch, _COLUMNS.state.in_(_OPEN))
        with self._database.read() as connection:
            if connection.execute(select(still_open)).scalar():
                return False
        ending = update(BATCHES).where(BATCHES.c.id == batch, BATCHES.c.state == "running", ~still_open)
        with self._database.write() as connection:
            ended = bool(connection.execute(ending.values(state="done", finished=now)).rowcount)
            if ended:
                _note_counts(connection, batch)
            return ended

    def delete(self, batch: str) -> None:
        """Delete a batch with its jobs; raises NotFoundError. Results that arrive later are dropped."""
        with self._database.write() as connection:
            _batch(connection, batch)
            connection.execute(update(BATCHES).where(BATCHES.c.id == batch).values(state="leaving"))
        self.clear(batch)

    def clear(self, batch: str) -> None:
        """Delete the rows of a batch that is arriving or leaving, in steps that let others write."""
        for table in (REPRESENTATIVES, JOBS):
            self._clear(table, batch)
        with self._database.write() as connection:
            connection.execute(delete(BATCHES).where(BATCHES.c.id == batch, BATCHES.c.state.in_(rows.HIDDEN)))

    def jobs(
        self, batch: str, state: JobState | None = None, after: int | None = None, limit: int = 100
    ) -> tuple[tuple[JobRecord, ...], int | None]:
        """Give a batch's jobs by number, and what to pass as `after` for more; raises NotFoundError."""
        with self._database.read() as connection:
            _visible(connection, batch)
            found = _jobs_after(connection, batch, (state,) if state else (), after or 0, limit + 1)
        items = tuple(found[:limit])
        return items, items[-1].number if len(found) > limit and items else None

    def results(self, batch: str, states: Sequence[JobState] = _ENDED) -> Iterator[JobRecord]:
        """Yield the jobs that are over, in order; raises NotFoundError at the first.

        Each step is a transaction of its own: a reader may take hours over a large batch, and holds nothing
        meanwhile.
        """
        after = 0
        while True:
            with self._database.read() as connection:
                _visible(connection, batch)
                found = _jobs_after(connection, batch, states, after, _ANSWERS)
            yield from found
            if len(found) < _ANSWERS:
                return
            after = found[-1].number

    def lines(self, batch: str) -> Iterator[JobSummaryRow]:
        """Yield the jobs that are over as a summary counts them, in order.

        Raises NotFoundError at the first.
        """
        after = 0
        while True:
            with self._database.read() as connection:
                _visible(connection, batch)
                found = connection.execute(_LINES, {"one": batch, "after": after}).all()
            yield from map(rows.job_line, found)
            if len(found) < _LINED:
                return
            after = found[-1].number

    def job(self, job: str) -> JobRecord:
        """Give a job; raises NotFoundError."""
        batch, number = rows.job_key(job)
        with self._database.read() as connection:
            _visible(connection, batch)
            row = connection.execute(
                select(JOBS).where(_COLUMNS.batch == batch, _COLUMNS.number == number)
            ).first()
        if row is None:
            raise rows.missing_job(job)
        return rows.job_record(row)

    def claim(
        self, owner: str, count: int, lease: float, now: datetime, batch: str | None = None
    ) -> list[JobRecord]:
        """Take up to `count` jobs for `lease` seconds: queued ones that are due, or whose lease ran out.

        Each goes to the batch that holds the fewest, the oldest among equals, so that a small batch does not
        wait for a large one.
        """
        until = now + timedelta(seconds=lease)
        if count <= 0:
            return []
        # Most calls find nothing; these need no write transaction.
        with self._database.read() as connection:
            ready = any(load.ready for load in leases.loads(connection, 1, now, batch))
        if not ready:
            return []
        taken = self._database.change(
            lambda connection: leases.claim(connection, owner, count, until, now, batch)
        )
        return [rows.job_record(row) for row in taken]

    def renew(self, owner: str, jobs: Iterable[str], lease: float, now: datetime) -> frozenset[str]:
        """Prolong the leases of jobs.

        Gives those that `owner` still holds: the others were cancelled or taken over.
        """
        wanted = list(jobs)
        if not wanted:
            return frozenset()
        kept = self._database.change(lambda connection: leases.renew(connection, owner, wanted, lease, now))
        return frozenset(rows.job_id(batch, number) for batch, number in kept)

    def give_back(self, owner: str, jobs: Iterable[str] | None = None) -> int:
        """Queue again what `owner` holds, or those of `jobs`, as if not tried; gives how many."""
        wanted = None if jobs is None else list(jobs)
        return self._database.change(lambda connection: leases.give_back(connection, owner, wanted))

    def represent(self, batch: str, fingerprint: str, job: str) -> str:
        """Give the job that stands for a crash in its batch.

        That is another, or this if it is first or the first failed. Raises NotFoundError where the batch was
        deleted.
        """
        return self.representatives(batch, fingerprint, "", job)[0]

    def representatives(self, batch: str, fingerprint: str, config: str, job: str) -> tuple[str, str]:
        """Give the job that stands for a crash, as `represent`, and the one whose answer fits `config` too.

        Raises NotFoundError where the batch was deleted.
        """
        number = rows.job_key(job)[1]
        try:
            found = self._database.change(
                lambda connection: outcomes.represent(connection, batch, fingerprint, number, config)
            )
        except ConflictError as error:
            # The row would refer to a job that is gone.
            raise rows.missing_batch(batch) from error
        return rows.job_id(batch, found.crash), rows.job_id(batch, found.answer)

    def finish(
        self,
        job: str,
        owner: str,
        *,
        now: datetime,
        fingerprint: str = "",
        same_as: str | None = None,
        root_line: int | None = None,
        root_file: str | None = None,
        root_text: str = "",
        diagnosis: Diagnosis | None = None,
        config: str = "",
    ) -> bool:
        """Store a job's result.

        False where `owner` holds it no more, or where `same_as` failed meanwhile and the job is queued again.
        """
        outcome = JobResult(job, fingerprint, same_as, root_line, root_file, root_text, diagnosis, config)
        return bool(self.finish_many(owner, [outcome], now))

    def finish_many(self, owner: str, results: Sequence[JobResult], now: datetime) -> frozenset[str]:
        """Keep several results in one transaction; gives the jobs whose result was kept."""
        if not results:
            return frozenset()
        packed = {result.job: outcomes.pack(result, now) for result in results}
        return frozenset(
            self._database.change(lambda connection: outcomes.finish(connection, owner, results, packed))
        )

    def fail(self, job: str, owner: str, error: str, retry_at: datetime | None, now: datetime) -> bool:
        """Queue a job for another try at `retry_at`, or record its failure where that is None.

        False where `owner` holds it no more.
        """
        return self._database.change(
            lambda connection: outcomes.fail(connection, job, owner, error, retry_at, now)
        )

    def _arrive(self, record: BatchRecord, values: Iterator[dict[str, Any]]) -> list[str]:
        # Jobs come as fast as an upload is unpacked: a transaction over all of them would keep every other
        # writer out. The batch is not there for anyone until the last one, which alone makes all of it stand.
        with self._database.write() as connection:
            connection.execute(insert(BATCHES).values(**rows.batch_values(record) | {"state": "arriving"}))
        try:
            numbers = [
                number
                for chunk in iter(lambda: list(islice(values, _CHUNK)), [])
                for number in self._insert(chunk)
            ]
            with self._database.write(durable=True) as connection:
                connection.execute(
                    update(BATCHES).where(BATCHES.c.id == record.id).values(state=record.state)
                )
                if record.state != "running":
                    _note_counts(connection, record.id)
        except BaseException:
            self.clear(record.id)
            raise
        return [rows.job_id(record.id, number) for number in numbers]

    def _insert(self, chunk: list[dict[str, Any]]) -> list[int]:
        with self._database.write() as connection:
            connection.execute(insert(JOBS), chunk)
            for row in chunk:
                if row["fingerprint"] and row["same_as"] is None and row["state"] == "done":
                    outcomes.represent(
                        connection, row["batch"], row["fingerprint"], row["number"], row["config"]
                    )
        return [row["number"] for row in chunk]

    def _clear(self, table: Any, batch: str) -> None:
        columns = table.c
        some = select(columns.number).where(columns.batch == batch).limit(_CHUNK)
        gone = 1
        while gone:
            with self._database.write() as connection:
                gone = connection.execute(
                    delete(table).where(columns.batch == batch, columns.number.in_(some))
                ).rowcount


def _visible(connection: Connection, batch: str) -> Any:
    row = connection.execute(rows.visible(batch)).first()
    if row is None:
        raise rows.missing_batch(batch)
    return row


def _batch(connection: Connection, batch: str) -> BatchRecord:
    return rows.batch_record(connection, _visible(connection, batch))


def _cancel(connection: Connection, batch: str, now: datetime) -> BatchRecord:
    record = _batch(connection, batch)
    if record.state != "running":
        return record
    # The batch first: a claim that waits for it then finds it over.
    connection.execute(update(BATCHES).where(BATCHES.c.id == batch).values(state="cancelled", finished=now))
    ended = {"state": "cancelled", "owner": "", "leased_until": None, "finished": outcomes.ended_at(now)}
    connection.execute(update(JOBS).where(_COLUMNS.batch == batch, _COLUMNS.state.in_(_OPEN)).values(**ended))
    _note_counts(connection, batch)
    return _batch(connection, batch)


def _note_counts(connection: Connection, batch: str) -> None:
    """Keep with a batch how many of its jobs are in which state."""
    counts = json.dumps(rows.count(connection, batch))
    connection.execute(update(BATCHES).where(BATCHES.c.id == batch).values(counts=counts))


def _jobs_after(
    connection: Connection, batch: str, states: Sequence[JobState], after: int, limit: int
) -> list[JobRecord]:
    query = (
        select(JOBS)
        .where(_COLUMNS.batch == batch, _COLUMNS.number > after)
        .order_by(_COLUMNS.number)
        .limit(limit)
    )
    found = connection.execute(query.where(_COLUMNS.state.in_(states)) if states else query)
    return rows.job_records(found.all())
