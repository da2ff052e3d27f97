"""How a job ends: with an answer, as the same crash as another, or with a failure.

Functions over an open transaction.

A job has one owner while it runs, and only the owner may end it, so that no result is written twice. A job
that ended as the same crash as another uses that one's answer: where that one fails for good, the first job
that uses it is queued again and takes its place. After `MOST_FAILURES` jobs of one crash have failed so,
the rest fail as well.

What is to be changed is told of a job's own files. So a job with files of its own uses the answer of one with
the same files; the first of each is answered by itself, beside the one that stands for the crash as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    case,
    delete,
    exists,
    literal,
    or_,
    select,
    update,
)

from corpus.message import Message
from service.persistence import sanitizer
from service.persistence.rows import job_id, job_key, keys_by_batch
from service.persistence.schema import BATCHES, JOBS, REPRESENTATIVES
from service.persistence.upsert import insert_absent
from service.schemas.diagnosis import Diagnosis

MOST_FAILURES = 3
# Between the fingerprint of a crash and the digest of files; neither holds it.
_WITH = "+"
_COLUMNS = JOBS.c
_OPEN = _COLUMNS.state.in_(("queued", "running"))
# A job has an answer of its own, or may still get one.
_STANDS = or_(_OPEN, and_(_COLUMNS.state == "done", _COLUMNS.same_as.is_(None)))


class CrashAnswers(NamedTuple):
    """Which job stands for a crash as such, and which one's answer fits a job's own files as well.

    Without files, the same.
    """

    crash: int
    answer: int


@dataclass(frozen=True)
class JobResult:
    """A job's answer, or the job of the same crash that has it.

    `root_*` tell where this one's own log says it, `config` is the digest of its files.
    """

    job: str
    fingerprint: str = ""
    same_as: str | None = None
    root_line: int | None = None
    root_file: str | None = None
    root_text: str = ""
    diagnosis: Diagnosis | None = None
    config: str = ""


def represent(
    connection: Connection, batch: str, fingerprint: str, number: int, config: str = ""
) -> CrashAnswers:
    """Give the jobs that stand for a crash, else this one.

    Those that failed, or read differently when tried again, stand for it no more.
    """
    first = _represented(connection, batch, fingerprint, number)
    if not config:
        return CrashAnswers(first, first)
    own = _represented(connection, batch, key_of(fingerprint, config), number)
    return CrashAnswers(first, number if first == number else own)


def key_of(fingerprint: str, config: str) -> str:
    """Give the key of a crash of jobs with the same files, where they have some."""
    return f"{fingerprint}{_WITH}{config}" if config else fingerprint


def _represented(connection: Connection, batch: str, key: str, number: int) -> int:
    if insert_absent(
        connection, REPRESENTATIVES, {"batch": batch, "fingerprint": key, "number": number, "failures": 0}
    ):
        return number
    place = {"key_batch": batch, "key_fingerprint": key}
    connection.execute(_TAKING_OVER, {**place, "new_number": number})
    return int(connection.execute(_STANDING, place).scalar_one())


def pack(outcome: JobResult, now: datetime) -> dict[str, Any]:
    """Give what a job's row becomes; made before the transaction, which keeps other writers waiting."""
    same_as = job_key(outcome.same_as)[1] if outcome.same_as and is_followed(outcome) else None
    packed, gist = sanitizer.pack_both(outcome.diagnosis) if outcome.diagnosis else (None, None)
    return _key(outcome.job) | {
        "new_fingerprint": outcome.fingerprint,
        "new_same_as": same_as,
        "new_root_line": outcome.root_line,
        "new_root_file": outcome.root_file and sanitizer.clean_text(outcome.root_file),
        "new_root_text": sanitizer.clean_text(outcome.root_text),
        "new_diagnosis": packed,
        "new_config": outcome.config,
        "new_gist": gist,
        "new_finished": now,
    }


def finish(
    connection: Connection, owner: str, outcomes: Sequence[JobResult], packed: Mapping[str, Mapping[str, Any]]
) -> set[str]:
    """End the jobs that `owner` still holds, with the rows that `pack` made of them; gives those that ended.

    A job whose answer was to be that of a job that failed meanwhile is queued again.
    """
    rows = _locked(
        connection,
        {outcome.job for outcome in outcomes} | {outcome.same_as for outcome in outcomes if outcome.same_as},
    )
    held = [
        outcome
        for outcome in outcomes
        if (row := rows.get(outcome.job)) and row.state == "running" and row.owner == owner
    ]
    # The jobs whose answer others may use; as _STANDS has it for the database.
    standing = {
        name
        for name, row in rows.items()
        if row.state in ("queued", "running") or (row.state == "done" and row.same_as is None)
    }
    broken = [outcome for outcome in held if is_followed(outcome) and str(outcome.same_as) not in standing]
    ended = [outcome for outcome in held if outcome not in broken]
    if ended:
        connection.execute(_ENDING, [packed[outcome.job] for outcome in ended])
        _pass_on(connection, ended)
    if broken:
        connection.execute(_REQUEUEING, [_key(outcome.job) for outcome in broken])
    return {outcome.job for outcome in ended}


def fail(
    connection: Connection, job: str, owner: str, error: str, retry_at: datetime | None, now: datetime
) -> bool:
    """Queue a job that `owner` holds for another try, or end it as failed; tells whether it was held."""
    batch, number = job_key(job)
    mine = and_(
        _COLUMNS.batch == batch,
        _COLUMNS.number == number,
        _COLUMNS.owner == owner,
        _COLUMNS.state == "running",
    )
    values: dict[str, Any] = {"owner": "", "leased_until": None, "error": sanitizer.pack_message(error)}
    values |= (
        {"state": "failed", "finished": ended_at(now)}
        if retry_at is None
        else {"state": "queued", "not_before": retry_at}
    )
    if not connection.execute(update(JOBS).where(mine).values(**values)).rowcount:
        return False
    if retry_at is None:
        _replace(connection, batch, number, values["error"], now)
    return True


def ended_at(moment: datetime | ColumnElement[datetime]) -> ColumnElement[datetime]:
    """Give the moment at which a job ended: not before its batch was handed in.

    A clock that ran ahead, and was set right, would have it so.
    """
    began = select(BATCHES.c.created).where(BATCHES.c.id == _COLUMNS.batch).scalar_subquery()
    given = literal(moment, _COLUMNS.finished.type) if isinstance(moment, datetime) else moment
    return case((began > given, began), else_=given)


def is_followed(outcome: JobResult) -> bool:
    """Tell whether a job's answer is another's."""
    return outcome.same_as is not None and outcome.same_as != outcome.job


def _locked(connection: Connection, jobs: Iterable[str]) -> dict[str, Any]:
    """Read jobs, and keep them from changing until the transaction ends.

    Those that end and those whose answers they use in one statement and one order: with two, two owners could
    wait for each other.
    """
    columns = (_COLUMNS.batch, _COLUMNS.number, _COLUMNS.state, _COLUMNS.owner, _COLUMNS.same_as)
    found: dict[str, Any] = {}
    for batch, numbers in keys_by_batch(jobs):
        query = (
            select(*columns)
            .where(_COLUMNS.batch == batch, _COLUMNS.number.in_(numbers))
            .order_by(_COLUMNS.number)
            .with_for_update()
        )
        found |= {job_id(batch, row.number): row for row in connection.execute(query)}
    return found


def _pass_on(connection: Connection, ended: Sequence[JobResult]) -> None:
    """Let jobs that use the answer of an ended job use the one it refers to: an answer is one step away."""
    moved = {
        outcome.job: job_key(outcome.same_as)[1]
        for outcome in ended
        if outcome.same_as and is_followed(outcome)
    }
    for batch, numbers in keys_by_batch(moved):
        query = (
            select(_COLUMNS.same_as).where(_COLUMNS.batch == batch, _COLUMNS.same_as.in_(numbers)).distinct()
        )
        for number in connection.execute(query).scalars().all():
            here = and_(_COLUMNS.batch == batch, _COLUMNS.same_as == number)
            connection.execute(update(JOBS).where(here).values(same_as=moved[job_id(batch, number)]))


def _replace(connection: Connection, batch: str, failed: int, error: str, now: datetime) -> None:
    """Let the first job that uses the answer of a failed one take its place.

    Those with other files than that one's are queued again.
    """
    leaning = and_(_COLUMNS.batch == batch, _COLUMNS.same_as == failed, _COLUMNS.state == "done")
    first = (
        select(_COLUMNS.number, _COLUMNS.fingerprint, _COLUMNS.config)
        .where(leaning)
        .order_by(_COLUMNS.number)
        .limit(1)
    )
    follower = connection.execute(first).first()
    columns = REPRESENTATIVES.c
    stands = and_(columns.batch == batch, columns.number == failed)
    counted = (
        update(REPRESENTATIVES)
        .where(stands)
        .values(failures=columns.failures + 1)
        .returning(columns.failures)
    )
    failures = max(connection.execute(counted).scalars(), default=1)
    if follower is None:
        return
    if failures >= MOST_FAILURES:
        said = sanitizer.pack_message(
            Message(
                "errors.jobs-same-crash-unanswered", failures=failures, error=sanitizer.unpack_message(error)
            )
        )
        connection.execute(
            update(JOBS)
            .where(leaning)
            .values(state="failed", same_as=None, error=said, finished=ended_at(now))
        )
        connection.execute(delete(REPRESENTATIVES).where(stands))
        return
    keys = {follower.fingerprint, key_of(follower.fingerprint, follower.config)}
    connection.execute(
        update(REPRESENTATIVES).where(stands, columns.fingerprint.in_(keys)).values(number=follower.number)
    )
    connection.execute(delete(REPRESENTATIVES).where(stands))
    others = and_(leaning, _COLUMNS.config != "", _COLUMNS.config != follower.config)
    again = {
        "state": "queued",
        "same_as": None,
        "owner": "",
        "not_before": None,
        "finished": None,
        "attempts": 0,
    }
    connection.execute(
        update(JOBS).where(or_(and_(leaning, _COLUMNS.number == follower.number), others)).values(**again)
    )
    connection.execute(update(JOBS).where(leaning).values(same_as=follower.number))


def _key(job: str) -> dict[str, Any]:
    batch, number = job_key(job)
    return {"key_batch": batch, "key_number": number}


_WHERE = and_(_COLUMNS.batch == bindparam("key_batch"), _COLUMNS.number == bindparam("key_number"))
_TOLD = (
    "fingerprint",
    "config",
    "same_as",
    "root_line",
    "root_file",
    "root_text",
    "diagnosis",
    "gist",
    "finished",
)
_NEW: dict[str, ColumnElement[Any]] = {
    name: bindparam(f"new_{name}", type_=_COLUMNS[name].type) for name in _TOLD
}
_NEW["finished"] = ended_at(_NEW["finished"])
_ENDING = update(JOBS).where(_WHERE).values(state="done", owner="", leased_until=None, error="", **_NEW)
_REQUEUEING = (
    update(JOBS)
    .where(_WHERE)
    .values(state="queued", owner="", leased_until=None, attempts=_COLUMNS.attempts - 1)
)


def _stands() -> ColumnElement[bool]:
    """Tell of the job of a key whether it can stand for that."""
    columns = REPRESENTATIVES.c
    crash = _COLUMNS.fingerprint
    fits = or_(crash == columns.fingerprint, crash + _WITH + _COLUMNS.config == columns.fingerprint)
    return exists().where(
        _COLUMNS.batch == columns.batch, _COLUMNS.number == columns.number, _STANDS, or_(_OPEN, fits)
    )


_SAME_KEY = and_(
    REPRESENTATIVES.c.batch == bindparam("key_batch", type_=REPRESENTATIVES.c.batch.type),
    REPRESENTATIVES.c.fingerprint == bindparam("key_fingerprint", type_=REPRESENTATIVES.c.fingerprint.type),
)
# Built once: they are asked for each crash, and take longer to build than to answer.
_STANDING = select(REPRESENTATIVES.c.number).where(_SAME_KEY)
_TAKING_OVER = update(REPRESENTATIVES).where(_SAME_KEY, ~_stands()).values(number=bindparam("new_number"))
