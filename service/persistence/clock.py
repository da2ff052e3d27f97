"""The machine's clock, as far as what it says may delete anything.

A clock that leaps forward makes all that is kept look old. So it is written down now and then what it said;
where it is days ahead of that, nothing is deleted until it has gone on evenly for a week. After a long stop
that is a week's delay.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, func, insert, select

from service.persistence.database import Database
from service.persistence.schema import AUDIT, BATCHES, TRIAGES

ACTOR, ACTION = "retention", "clock"
# How far the clock may be from what it said last.
LEAP = timedelta(days=3)
# How long nothing is deleted after a leap.
REST = timedelta(days=7)
# How often it is written down.
EVERY = timedelta(hours=12)


class ClockState(NamedTuple):
    """What the clock said last, and until when nothing is deleted; None where nothing keeps from it."""

    at: datetime
    rest: datetime | None


class Clock:
    """Looks after the clock in rows of the audit, so that all servers of a database agree."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_resting(self, now: datetime) -> datetime | None:
        """Tell until when nothing is to be deleted; None where the clock can be believed."""
        with self._database.read() as connection:
            return _judged(_last(connection), now)

    def observe(self, now: datetime) -> datetime | None:
        """Tell what `rests` does, and write down what the clock says."""
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
    # Not yet written down: what was kept last tells as much.
    newest = (
        connection.execute(select(func.max(column))).scalar()
        for column in (TRIAGES.c.created, BATCHES.c.created, AUDIT.c.at)
    )
    kept = [at for at in newest if at]
    return ClockState(max(kept), None) if kept else None
