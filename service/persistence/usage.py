"""How much a caller has handed in, for the quota."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select

from service.persistence.database import Database
from service.persistence.schema import BATCHES, JOBS, TRIAGES


class Usage:
    """Counts what callers have handed in; what was deleted since no longer counts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def jobs(self, caller: str, since: datetime) -> int:
        """Count the jobs that a caller has handed in since a moment, one by one and in batches."""
        single = select(func.count()).where(TRIAGES.c.caller == caller, TRIAGES.c.created >= since)
        batched = (
            select(func.count())
            .select_from(JOBS.join(BATCHES, JOBS.c.batch == BATCHES.c.id))
            .where(BATCHES.c.caller == caller, BATCHES.c.created >= since)
        )
        with self._database.read() as connection:
            return sum(connection.execute(query).scalar_one() for query in (single, batched))
