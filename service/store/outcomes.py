"""How a job ends: with an answer, as the same crash as another, or with a failure. Functions over an open transaction.

A job has one owner while it runs, and only the owner's word counts, so that no result is written twice. A job that
ended as the same crash as another leans on that one's answer: where that one fails for good, the first that leans on
it is queued again and takes its place. After `MOST_FAILURES` jobs of one crash have failed so, the rest fail as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, exists, func, or_, select, update

from service.diagnosis import Diagnosis
from service.store import gate
from service.store.rows import STEP, job_id, job_key
from service.store.schema import JOBS, REPRESENTATIVES
from service.store.upsert import insert_absent

MOST_FAILURES = 3
_COLUMNS = JOBS.c
_OPEN = _COLUMNS.state.in_(("queued", "running"))
# A job has an answer of its own, or may still get one.
_STANDS = or_(_OPEN, and_(_COLUMNS.state == "done", _COLUMNS.same_as.is_(None)))


@dataclass(frozen=True)
class Outcome:
    """A job's answer, or the job of the same crash that has it; `root_*` tell where this one's own log says it."""

    job: str
    fingerprint: str = ""
    same_as: str | None = None
    root_line: int | None = None
    root_file: str | None = None
    root_text: str = ""
    diagnosis: Diagnosis | None = None


def represent(connection: Connection, batch: str, fingerprint: str, number: int) -> int:
    """Give the job that stands for a crash: the one that does already, unless it failed or read differently when tried again, else this one."""
    columns = REPRESENTATIVES.c
    mine = {"batch": batch, "fingerprint": fingerprint, "number": number, "failures": 0}
    if insert_absent(connection, REPRESENTATIVES, mine):
        return number
    same = and_(columns.batch == batch, columns.fingerprint == fingerprint)
    stands = exists().where(_COLUMNS.batch == batch, _COLUMNS.number == columns.number, standing(fingerprint))
    connection.execute(update(REPRESENTATIVES).where(same, ~stands).values(number=number))
    return int(connection.execute(select(columns.number).where(same)).scalar_one())


def standing(fingerprint: str) -> ColumnElement[bool]:
    """Tell of a job whether it can stand for a crash."""
    return and_(_STANDS, or_(_OPEN, _COLUMNS.fingerprint == fingerprint))


def finish(connection: Connection, owner: str, outcomes: Sequence[Outcome], now: datetime) -> set[str]:
    """End the jobs that `owner` still holds; gives those that ended.

    A job that leans on one that failed after the owner asked for it is queued again.
    """
    held = _held(connection, owner, outcomes)
    broken = _broken(connection, [outcome for outcome in outcomes if outcome.job in held])
    ended = [outcome for outcome in outcomes if outcome.job in held - broken]
    if ended:
        connection.execute(_ENDING, [_values(outcome, now) for outcome in ended])
        _pass_on(connection, ended)
    if broken:
        connection.execute(_REQUEUEING, [_key(job) for job in sorted(broken)])
    return {outcome.job for outcome in ended}


def fail(connection: Connection, job: str, owner: str, error: str, retry_at: datetime | None, now: datetime) -> bool:
    """Queue a job that `owner` holds for another try, or end it as failed; tells whether it was held."""
    batch, number = job_key(job)
    mine = and_(_COLUMNS.batch == batch, _COLUMNS.number == number, _COLUMNS.owner == owner, _COLUMNS.state == "running")
    values: dict[str, Any] = {"owner": "", "leased_until": None, "error": gate.clean(error)}
    values |= {"state": "failed", "finished": now} if retry_at is None else {"state": "queued", "not_before": retry_at}
    if not connection.execute(update(JOBS).where(mine).values(**values)).rowcount:
        return False
    if retry_at is None:
        _replace(connection, batch, number, values["error"], now)
    return True


def _held(connection: Connection, owner: str, outcomes: Sequence[Outcome]) -> set[str]:
    keys = sorted({job_key(outcome.job) for outcome in outcomes})
    held: set[str] = set()
    for at in range(0, len(keys), STEP):
        wanted = or_(*(and_(_COLUMNS.batch == batch, _COLUMNS.number.in_(numbers)) for batch, numbers in _by_batch(keys[at : at + STEP])))
        query = select(_COLUMNS.batch, _COLUMNS.number).where(wanted, _COLUMNS.owner == owner, _COLUMNS.state == "running")
        found = connection.execute(query.order_by(_COLUMNS.batch, _COLUMNS.number).with_for_update())
        held |= {job_id(batch, number) for batch, number in found}
    return held


def _broken(connection: Connection, outcomes: Sequence[Outcome]) -> set[str]:
    """Find the jobs that lean on one that failed, and keep the others' from failing until the transaction ends."""
    leaning = {outcome.job: outcome.same_as for outcome in outcomes if outcome.same_as and outcome.same_as != outcome.job}
    keys = sorted({job_key(job) for job in leaning.values()})
    good: set[str] = set()
    for batch, numbers in _by_batch(keys):
        for at in range(0, len(numbers), STEP):
            here = and_(_COLUMNS.batch == batch, _COLUMNS.number.in_(numbers[at : at + STEP]), _STANDS)
            query = select(_COLUMNS.number).where(here).order_by(_COLUMNS.number).with_for_update(key_share=True, read=True)
            good |= {job_id(batch, number) for number in connection.execute(query).scalars()}
    return {job for job, other in leaning.items() if other not in good}


def _by_batch(keys: Sequence[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    groups: dict[str, list[int]] = {}
    for batch, number in keys:
        groups.setdefault(batch, []).append(number)
    return list(groups.items())


def _pass_on(connection: Connection, ended: Sequence[Outcome]) -> None:
    """Point those that lean on a job that now leans itself to what it leans on, so that an answer is one step away."""
    moved = {job_key(outcome.job): job_key(outcome.same_as)[1] for outcome in ended if outcome.same_as and outcome.same_as != outcome.job}
    for batch, numbers in _by_batch(sorted(moved)):
        for at in range(0, len(numbers), STEP):
            query = select(_COLUMNS.same_as).where(_COLUMNS.batch == batch, _COLUMNS.same_as.in_(numbers[at : at + STEP])).distinct()
            for number in connection.execute(query).scalars().all():
                here = and_(_COLUMNS.batch == batch, _COLUMNS.same_as == number)
                connection.execute(update(JOBS).where(here).values(same_as=moved[batch, number]))


def _replace(connection: Connection, batch: str, failed: int, error: str, now: datetime) -> None:
    """Let the first job that leans on a failed one take its place."""
    leaning = and_(_COLUMNS.batch == batch, _COLUMNS.same_as == failed, _COLUMNS.state == "done")
    follower = connection.execute(select(func.min(_COLUMNS.number)).where(leaning)).scalar()
    columns = REPRESENTATIVES.c
    stands = and_(columns.batch == batch, columns.number == failed)
    counted = update(REPRESENTATIVES).where(stands).values(failures=columns.failures + 1).returning(columns.failures)
    failures = max(connection.execute(counted).scalars(), default=1)
    if follower is None:
        return
    if failures >= MOST_FAILURES:
        said = f"{failures} jobs of the same crash could not be answered; the last: {error}"
        connection.execute(update(JOBS).where(leaning).values(state="failed", same_as=None, error=said, finished=now))
        connection.execute(delete(REPRESENTATIVES).where(stands))
        return
    connection.execute(update(REPRESENTATIVES).where(stands).values(number=follower))
    again = {"state": "queued", "same_as": None, "owner": "", "not_before": None, "finished": None, "attempts": 0}
    connection.execute(update(JOBS).where(_COLUMNS.batch == batch, _COLUMNS.number == follower).values(**again))
    connection.execute(update(JOBS).where(leaning).values(same_as=follower))


def _key(job: str) -> dict[str, Any]:
    batch, number = job_key(job)
    return {"key_batch": batch, "key_number": number}


def _values(outcome: Outcome, now: datetime) -> dict[str, Any]:
    same_as = job_key(outcome.same_as)[1] if outcome.same_as and outcome.same_as != outcome.job else None
    return _key(outcome.job) | {
        "new_fingerprint": outcome.fingerprint,
        "new_same_as": same_as,
        "new_root_line": outcome.root_line,
        "new_root_file": outcome.root_file and gate.clean(outcome.root_file),
        "new_root_text": gate.clean(outcome.root_text),
        "new_diagnosis": gate.pack(outcome.diagnosis) if outcome.diagnosis else None,
        "new_finished": now,
    }


_WHERE = and_(_COLUMNS.batch == bindparam("key_batch"), _COLUMNS.number == bindparam("key_number"))
_NEW = {name: bindparam(f"new_{name}", type_=_COLUMNS[name].type) for name in ("fingerprint", "same_as", "root_line", "root_file", "root_text", "diagnosis", "finished")}
_ENDING = update(JOBS).where(_WHERE).values(state="done", owner="", leased_until=None, error="", **_NEW)
_REQUEUEING = update(JOBS).where(_WHERE).values(state="queued", owner="", leased_until=None, attempts=_COLUMNS.attempts - 1)
