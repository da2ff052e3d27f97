"""Events that outside services may deliver more than once, such as Slack's."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete

from service.persistence.database import Database
from service.persistence.schema import SEEN
from service.persistence.upsert import insert_or_update

KEPT = timedelta(hours=24)


class SeenEvents:
    """Events that came, for a day."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_first(self, kind: str, event: str, now: datetime) -> bool:
        """Tell whether an event is new: True once within a day, over all processes and restarts."""
        values = {"kind": kind, "event": event, "at": now}
        with self._database.write() as connection:
            return insert_or_update(connection, SEEN, values, ["kind", "event"], SEEN.c.at <= now - KEPT)

    def forget(self, now: datetime) -> None:
        """Delete what is older than a day."""
        with self._database.write() as connection:
            connection.execute(delete(SEEN).where(SEEN.c.at <= now - KEPT))
