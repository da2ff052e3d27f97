"""API keys, without their secrets."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, insert, or_, select, update

from service.errors import DiskFullError, NotFoundError, StoreError
from service.records import KeyRecord
from service.store import gate
from service.store.database import Database
from service.store.schema import KEYS

# A busy key would otherwise cost a write for each request.
_EACH = timedelta(minutes=1)


class Keys:
    """The API keys that were ever made; a revoked one stays, so that its past requests have a name."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._noted: dict[str, datetime] = {}

    def add(self, record: KeyRecord) -> None:
        """Keep a new key."""
        values = record.model_dump() | {"name": gate.clean(record.name), "scopes": " ".join(record.scopes)}
        with self._database.write(durable=True) as connection:
            connection.execute(insert(KEYS).values(**values))

    def get(self, key: str) -> KeyRecord:
        """Give a key; raises NotFoundError."""
        with self._database.read() as connection:
            row = connection.execute(select(KEYS).where(KEYS.c.id == key)).first()
        if row is None:
            raise NotFoundError("There is no such key.")
        return _record(row)

    def all(self) -> tuple[KeyRecord, ...]:
        """Give all keys, oldest first."""
        with self._database.read() as connection:
            return tuple(_record(row) for row in connection.execute(select(KEYS).order_by(KEYS.c.created, KEYS.c.id)))

    def revoke(self, key: str, now: datetime) -> None:
        """Make a key invalid from now on, or leave it so; raises NotFoundError."""
        self.get(key)
        with self._database.write(durable=True) as connection:
            connection.execute(update(KEYS).where(KEYS.c.id == key, KEYS.c.revoked.is_(None)).values(revoked=now))

    def used(self, key: str, now: datetime) -> None:
        """Note that a key was used; writes at most once a minute, and passes over a database that takes nothing just now."""
        noted = self._noted.get(key)
        if noted is not None and now - noted < _EACH:
            return
        self._noted[key] = now
        due = or_(KEYS.c.last_used.is_(None), KEYS.c.last_used <= now - _EACH)
        # A full disk is no reason to refuse who only reads.
        with suppress(StoreError, DiskFullError), self._database.write() as connection:
            connection.execute(update(KEYS).where(KEYS.c.id == key, due).values(last_used=now))


def _record(row: Row[Any]) -> KeyRecord:
    return KeyRecord(**{**row._mapping, "scopes": tuple(row.scopes.split())})
