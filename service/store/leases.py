"""Who works on which job: claims with a lease, fair between batches. Functions over an open transaction."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, func, or_, select, update

from service.store.rows import STEP, keys_by_batch
from service.store.schema import BATCHES, JOBS

_COLUMNS = JOBS.c
_HELD = _COLUMNS.state == "running"


def claim(connection: Connection, owner: str, count: int, until: datetime, now: datetime, batch: str | None) -> list[dict[str, Any]]:
    """Take up to `count` jobs for `owner`; gives their rows as they are then, by batch and number."""
    taken: list[Row[Any]] = []
    for key, number in _shares(connection, count, now, batch):
        taken += _take(connection, key, number, now)
    changes = {"state": "running", "owner": owner, "leased_until": until}
    for key, numbers in _numbers(taken):
        statement = update(JOBS).where(_COLUMNS.batch == key, _COLUMNS.number.in_(numbers))
        connection.execute(statement.values(**changes, attempts=_COLUMNS.attempts + 1, not_before=None))
    return [{**row._mapping, **changes, "attempts": row.attempts + 1, "not_before": None} for row in taken]


def renew(connection: Connection, owner: str, jobs: Iterable[str], lease: float, now: datetime) -> list[tuple[str, int]]:
    """Prolong the leases of the jobs that `owner` still holds; gives those."""
    kept: list[tuple[str, int]] = []
    for batch, numbers in keys_by_batch(jobs):
        held = and_(_COLUMNS.batch == batch, _COLUMNS.number.in_(numbers), _COLUMNS.owner == owner, _HELD)
        renewed = update(JOBS).where(held).values(leased_until=now + timedelta(seconds=lease)).returning(_COLUMNS.number)
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


def shares(ready: Mapping[str, int], held: Mapping[str, int], count: int) -> dict[str, int]:
    """Divide `count` jobs over batches, given how many of each are ready and held: the next always goes to the one that holds least.

    `ready` is in the batches' order of age, which decides between equals.
    """
    given = dict.fromkeys(ready, 0)
    waiting = [(held.get(batch, 0), age, batch) for age, batch in enumerate(ready) if ready[batch]]
    heapq.heapify(waiting)
    while waiting and sum(given.values()) < count:
        load, age, batch = heapq.heappop(waiting)
        given[batch] += 1
        if given[batch] < ready[batch]:
            heapq.heappush(waiting, (load + 1, age, batch))
    return {batch: number for batch, number in given.items() if number}


def _shares(connection: Connection, count: int, now: datetime, batch: str | None) -> list[tuple[str, int]]:
    query = select(BATCHES.c.id).where(BATCHES.c.state == "running").order_by(BATCHES.c.id)
    running = list(connection.execute(query if batch is None else query.where(BATCHES.c.id == batch)).scalars())
    waiting = {key: ready(connection, key, count, now) for key in running}
    alive = select(_COLUMNS.batch, func.count().label("held")).where(_HELD, _COLUMNS.leased_until > now).group_by(_COLUMNS.batch)
    held = {row.batch: row.held for row in connection.execute(alive)} if len(running) > 1 else {}
    return list(shares(waiting, held, count).items())


def ready(connection: Connection, batch: str, count: int, now: datetime) -> int:
    """Count what can be claimed of a batch, as far as it matters."""
    several = [query.with_only_columns(_COLUMNS.number).limit(count).subquery() for query in _claimable(batch, now)]
    return sum(connection.execute(select(func.count()).select_from(one)).scalar_one() for one in several)


def _take(connection: Connection, batch: str, count: int, now: datetime) -> list[Row[Any]]:
    taken: list[Row[Any]] = []
    for query in _claimable(batch, now):
        if count > len(taken):
            # A job that another claims at this moment is passed over. SQLite has no such words, and one writer at a time.
            taken += connection.execute(query.limit(count - len(taken)).with_for_update(skip_locked=True)).all()
    return sorted(taken, key=lambda row: row.number)


def _claimable(batch: str, now: datetime) -> tuple[Select[Any], Select[Any]]:
    """Select what is queued and due, and what its holder let go by; two queries, since an index answers each."""
    of_batch = select(JOBS).where(_COLUMNS.batch == batch).order_by(_COLUMNS.number)
    due = or_(_COLUMNS.not_before.is_(None), _COLUMNS.not_before <= now)
    return of_batch.where(_HELD, _COLUMNS.leased_until <= now), of_batch.where(_COLUMNS.state == "queued", due)


def _numbers(taken: Sequence[Row[Any]]) -> list[tuple[str, list[int]]]:
    groups: dict[str, list[int]] = {}
    for row in taken:
        groups.setdefault(row.batch, []).append(row.number)
    return [(batch, numbers[at : at + STEP]) for batch, numbers in groups.items() for at in range(0, len(numbers), STEP)]
