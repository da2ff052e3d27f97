"""Deletion of records that are older than the retention."""

from __future__ import annotations

from datetime import datetime, timedelta
from time import sleep
from typing import Any

from sqlalchemy import ColumnElement, Table, delete, func, or_, select, update

from service.persistence.batches import BatchRepository
from service.persistence.database import Database
from service.persistence.requests import RequestRepository
from service.persistence.schema import AUDIT, BATCHES, CRASH_NOTES, FEEDBACK, TRIAGES
from service.persistence.seen_events import SeenEvents
from service.persistence.usage import Usage

CHUNK = 500
# Seconds between two steps. Without them a waiting writer hardly gets a turn: the one that just released the
# lock asks for it first.
_BREATH = 0.01
# The longest that the jobs of one batch are written; one that arrives for longer lost its server.
_ARRIVING = timedelta(days=1)


class Retention:
    """Deletes old records, in steps, so that other writers are not kept waiting."""

    def __init__(
        self,
        database: Database,
        batches: BatchRepository,
        requests: RequestRepository,
        seen: SeenEvents,
        usage: Usage,
    ) -> None:
        self._database = database
        self._batches = batches
        self._requests = requests
        self._seen = seen
        self._usage = usage

    def forget(self, before: datetime, now: datetime) -> int:
        """Delete triages, batches that are over and the audit from before a time.

        Gives how many triages and batches went.
        """
        columns = TRIAGES.c
        count = self.delete_older(
            TRIAGES, (columns.created < before) & or_(columns.state != "running", columns.deadline < now)
        )
        count += self._forget_batches(before)
        # A note goes with the last triage of its crash.
        is_held = select(columns.id).where(columns.fingerprint == CRASH_NOTES.c.fingerprint).exists()
        self.delete_older(CRASH_NOTES, ~is_held)
        self.delete_older(AUDIT, AUDIT.c.at < before)
        self.tidy(now)
        return count

    def forget_caller(self, caller: str, now: datetime) -> tuple[int, int, int]:
        """Delete a caller's triages, and what they said of others' triages and of crashes; gives how many."""
        columns = TRIAGES.c
        is_over = or_(columns.state != "running", columns.deadline < now)
        triages = self.delete_older(TRIAGES, (columns.caller == caller) & is_over)
        feedback = self.delete_older(FEEDBACK, FEEDBACK.c.caller == caller)
        return triages, feedback, self.delete_older(CRASH_NOTES, CRASH_NOTES.c.caller == caller)

    def tidy(self, now: datetime) -> None:
        """Delete expired requests and events, and what a server that was stopped left behind."""
        self._requests.forget(now)
        self._seen.forget(now)
        self._usage.forget(now)
        arriving = (BATCHES.c.state == "arriving") & (BATCHES.c.created < now - _ARRIVING)
        with self._database.read() as connection:
            left = (
                connection.execute(select(BATCHES.c.id).where(or_(arriving, BATCHES.c.state == "leaving")))
                .scalars()
                .all()
            )
        for batch in left:
            self._batches.clear(batch)

    def _forget_batches(self, before: datetime) -> int:
        columns = BATCHES.c
        old = columns.state.in_(("done", "cancelled")) & (
            func.coalesce(columns.finished, columns.created) < before
        )
        with self._database.write() as connection:
            found = list(
                connection.execute(
                    update(BATCHES).where(old).values(state="leaving").returning(columns.id)
                ).scalars()
            )
        for batch in found:
            self._batches.clear(batch)
        return len(found)

    def delete_older(self, table: Table, old: ColumnElement[bool]) -> int:
        """Delete the rows of a table that meet a condition, in chunks; gives how many there were."""
        key: Any = table.c.id
        some = select(key).where(old).limit(CHUNK)
        count, gone = 0, 1
        while gone:
            with self._database.write() as connection:
                gone = connection.execute(delete(table).where(key.in_(some))).rowcount
            count += gone
            sleep(_BREATH)
        return count
