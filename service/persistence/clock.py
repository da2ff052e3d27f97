"""Whether the machine's clock can be trusted to delete old records.

A clock that jumps ahead makes all records look old. Its time is therefore recorded regularly. Where it is
days ahead of the last record, nothing is deleted until it has advanced evenly for a week; after the server
was off for long, this delays deletion by a week.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, func, insert, select

from service.persistence.database import Database
from service.persistence.schema import AUDIT, BATCHES, TRIAGES

ACTOR, ACTION = "retention", "clock"
# How far the clock may be ahead of the last record.
LEAP = timedelta(days=3)
# How long nothing is deleted after a jump.
REST = timedelta(days=7)
# How often its time is recorded.
EVERY = timedelta(hours=12)


class ClockState(NamedTuple):
    """The last recorded time, and until when nothing is deleted; None where deletion is allowed."""

    at: datetime
    rest: datetime | None


class Clock:
    """Records the clock in rows of the audit, so that all servers of a database agree."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_resting(self, now: datetime) -> datetime | None:
        """Tell until when nothing is to be deleted; None where the clock is trusted."""
        with self._database.read() as connection:
            return _judged(_last(connection), now)

    def observe(self, now: datetime) -> datetime | None:
        """Do as `is_resting`, and record the time."""
        with self._database.read() as connection:
            last = _last(connection)
        rest = _judged(last, now)
        if last is None or rest != last.rest or abs(now - last.at) >= EVERY:
            row = {
                "at": now,
                "actor": ACTOR,
                "action": ACTION,
                "target": rest.isoformat() if rest else "",
                "detail": "",
            }
            with self._database.write() as connection:
                connection.execute(insert(AUDIT).values(**row))
        return rest


def _judged(last: ClockState | None, now: datetime) -> datetime | None:
    if last is None or now < last.at - LEAP:
        # Nothing was ever kept, or the clock was set back: then it deletes less, not more.
        return None
    if now > last.at + LEAP:
        return now + REST
    return last.rest if last.rest and now < last.rest else None


def _last(connection: Connection) -> ClockState | None:
    mine = select(AUDIT.c.at, AUDIT.c.target).where(AUDIT.c.actor == ACTOR, AUDIT.c.action == ACTION)
    row = connection.execute(mine.order_by(AUDIT.c.id.desc()).limit(1)).first()
    if row is not None:
        return ClockState(row.at, datetime.fromisoformat(row.target) if row.target else None)
    # Not yet due: the last record suffices.
    newest = (
        connection.execute(select(func.max(column))).scalar()
        for column in (TRIAGES.c.created, BATCHES.c.created, AUDIT.c.at)
    )
    kept = [at for at in newest if at]
    return ClockState(max(kept), None) if kept else None
