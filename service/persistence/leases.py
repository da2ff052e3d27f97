"""Who works on which job: claims with a lease, fair between batches. Functions over an open transaction."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Integer,
    Row,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    update,
)

from service.persistence.rows import STEP, keys_by_batch
from service.persistence.schema import BATCHES, JOBS

_COLUMNS = JOBS.c
_HELD = _COLUMNS.state == "running"
_NOW = bindparam("now", type_=_COLUMNS.leased_until.type)
_COUNT = bindparam("count", type_=Integer)
_QUEUED = and_(_COLUMNS.state == "queued", or_(_COLUMNS.not_before.is_(None), _COLUMNS.not_before <= _NOW))
_LEFT = and_(_HELD, _COLUMNS.leased_until <= _NOW)


class BatchLoad(NamedTuple):
    """Counts of a batch's jobs: queued and due, with a lease that ran out, and held."""

    batch: str
    queued: int
    left: int
    held: int

    @property
    def ready(self) -> int:
        """How many can be claimed."""
        return self.queued + self.left


def claim(
    connection: Connection, owner: str, count: int, until: datetime, now: datetime, batch: str | None
) -> list[dict[str, Any]]:
    """Take up to `count` jobs for `owner`; gives their rows as they are then, by batch and number."""
    waiting = loads(connection, count, now, batch)
    given = shares(waiting, count)
    taken = [
        row
        for load in waiting
        if (number := given.get(load.batch))
        for row in _claim_rows(connection, load, number, now)
    ]
    changes = {"state": "running", "owner": owner, "leased_until": until}
    for key, numbers in _numbers(taken):
        statement = update(JOBS).where(_COLUMNS.batch == key, _COLUMNS.number.in_(numbers))
        connection.execute(statement.values(**changes, attempts=_COLUMNS.attempts + 1, not_before=None))
    return [{**row._mapping, **changes, "attempts": row.attempts + 1, "not_before": None} for row in taken]


def renew(
    connection: Connection, owner: str, jobs: Iterable[str], lease: float, now: datetime
) -> list[tuple[str, int]]:
    """Prolong the leases of the jobs that `owner` still holds; gives those."""
    kept: list[tuple[str, int]] = []
    for batch, numbers in keys_by_batch(jobs):
        held = and_(_COLUMNS.batch == batch, _COLUMNS.number.in_(numbers), _COLUMNS.owner == owner, _HELD)
        renewed = (
            update(JOBS)
            .where(held)
            .values(leased_until=now + timedelta(seconds=lease))
            .returning(_COLUMNS.number)
        )
        kept += [(batch, number) for number in connection.execute(renewed).scalars()]
    return kept


def give_back(connection: Connection, owner: str, jobs: Iterable[str] | None) -> int:
    """Queue again what `owner` holds, without the attempt that was not made."""
    back = {"state": "queued", "owner": "", "leased_until": None, "attempts": _COLUMNS.attempts - 1}
    mine = and_(_HELD, _COLUMNS.owner == owner)
    if jobs is None:
        return connection.execute(update(JOBS).where(mine).values(**back)).rowcount
    statements = [
        update(JOBS).where(mine, _COLUMNS.batch == batch, _COLUMNS.number.in_(numbers)).values(**back)
        for batch, numbers in keys_by_batch(jobs)
    ]
    return sum(connection.execute(statement).rowcount for statement in statements)


def loads(connection: Connection, count: int, now: datetime, batch: str | None = None) -> list[BatchLoad]:
    """Tell what waits in each running batch, or in one, oldest first; counts what is queued up to `count`."""
    given = {"now": now, "count": count, "one": batch}
    worked_on = {row.batch: row for row in connection.execute(_WORKED_ON, given)}
    found = []
    for key, queued in connection.execute(_WAITING, given):
        row = worked_on.get(key)
        left = int(row.left_over) if row else 0
        found.append(BatchLoad(key, queued, left, int(row.total) - left if row else 0))
    return found


def shares(loads: Sequence[BatchLoad], count: int) -> Mapping[str, int]:
    """Divide `count` jobs over batches: the next goes to the one that holds least, the first among equals."""
    given = dict.fromkeys((load.batch for load in loads), 0)
    waiting = [(load.held, age, load) for age, load in enumerate(loads) if load.ready]
    heapq.heapify(waiting)
    for _ in range(count):
        if not waiting:
            break
        held, age, load = heapq.heappop(waiting)
        given[load.batch] += 1
        if given[load.batch] < load.ready:
            heapq.heappush(waiting, (held + 1, age, load))
    return {batch: number for batch, number in given.items() if number}


def _claim_rows(connection: Connection, load: BatchLoad, count: int, now: datetime) -> list[Row[Any]]:
    taken: list[Row[Any]] = []
    for query, waiting in ((_LEFT_ONES, load.left), (_QUEUED_ONES, load.queued)):
        if waiting and count > len(taken):
            taken += connection.execute(
                query, {"batch": load.batch, "now": now, "count": count - len(taken)}
            ).all()
    return sorted(taken, key=lambda row: row.number)


def _numbers(taken: Sequence[Row[Any]]) -> list[tuple[str, list[int]]]:
    groups: dict[str, list[int]] = {}
    for row in taken:
        groups.setdefault(row.batch, []).append(row.number)
    return [
        (batch, numbers[at : at + STEP])
        for batch, numbers in groups.items()
        for at in range(0, len(numbers), STEP)
    ]


def _waiting() -> Select[Any]:
    """Count the queued jobs of each running batch, but no further than `count`, whatever its size."""
    key = BATCHES.c.id
    some = (
        select(literal(1))
        .select_from(JOBS)
        .where(_COLUMNS.batch == key, _QUEUED)
        .limit(_COUNT)
        .correlate(BATCHES)
        .subquery()
    )
    queued = select(func.count()).select_from(some).correlate(BATCHES).scalar_subquery()
    one = bindparam("one", type_=key.type)
    return (
        select(key, queued).where(BATCHES.c.state == "running", or_(one.is_(None), key == one)).order_by(key)
    )


def _claimable_rows(which: Any) -> Select[Any]:
    # A job that another claims at this moment is passed over. SQLite has no such words, and one writer at a
    # time.
    of_batch = select(JOBS).where(_COLUMNS.batch == bindparam("batch", type_=_COLUMNS.batch.type), which)
    return of_batch.order_by(_COLUMNS.number).limit(_COUNT).with_for_update(skip_locked=True)


# Built once: a claim comes every few jobs, and such queries take longer to build than to answer.
_WAITING = _waiting()
_LEFT_ONES = _claimable_rows(_LEFT)
_QUEUED_ONES = _claimable_rows(_QUEUED)
_WORKED_ON = (
    select(
        _COLUMNS.batch,
        func.count().label("total"),
        func.sum(case((_COLUMNS.leased_until <= _NOW, 1), else_=0)).label("left_over"),
    )
    # Named, as SQLite would go through the jobs of all batches for those of the few that run.
    .where(_HELD, _COLUMNS.batch.in_(select(BATCHES.c.id).where(BATCHES.c.state == "running")))
    .group_by(_COLUMNS.batch)
)
