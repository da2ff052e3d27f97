"""How much callers have handed in, for their quota: a tally, which outlives what was handed in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, delete, func, select, update

from service.persistence.database import Database
from service.persistence.schema import USAGE
from service.persistence.upsert import insert_absent

DAY = timedelta(days=1)
# How finely time is counted; a job counts for a day and at most so much longer.
SPAN = timedelta(minutes=10)
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)


class Usage:
    """Counts what callers hand in, across all servers of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def take(self, caller: str, more: int, quota: int, now: datetime) -> int | None:
        """Count so many jobs more, where that is within the quota of a day; all in one transaction.

        Gives None where they were counted, else how many were handed in already.
        """

        def counted(connection: Connection) -> int | None:
            # Held until the end: who asks at the same time waits, and then sees these.
            self._add(connection, caller, _NO_TIME, 0)
            recent = (USAGE.c.caller == caller) & (USAGE.c.begun > now - DAY - SPAN)
            query = select(func.coalesce(func.sum(USAGE.c.jobs), 0)).where(recent)
            used = int(connection.execute(query).scalar_one())
            if used + more > quota:
                return used
            self._add(connection, caller, _span(now), more)
            return None

        return self._database.change(counted)

    def give_back(self, caller: str, count: int, taken: datetime) -> None:
        """Count no more what was taken at a moment, and was not let in after all."""
        with self._database.write() as connection:
            self._add(connection, caller, _span(taken), -count)

    def forget(self, now: datetime) -> None:
        """Delete what no quota counts any more; what is waited on stays, since somebody may wait."""
        old = (USAGE.c.begun < now - DAY - SPAN) & (USAGE.c.begun > _NO_TIME)
        with self._database.write() as connection:
            connection.execute(delete(USAGE).where(old))

    @staticmethod
    def _add(connection: Connection, caller: str, begun: datetime, more: int) -> None:
        insert_absent(connection, USAGE, {"caller": caller, "begun": begun, "jobs": 0})
        row = (USAGE.c.caller == caller) & (USAGE.c.begun == begun)
        connection.execute(update(USAGE).where(row).values(jobs=USAGE.c.jobs + more))


def _span(moment: datetime) -> datetime:
    seconds = int(SPAN.total_seconds())
    return datetime.fromtimestamp(int(moment.timestamp()) // seconds * seconds, UTC)
