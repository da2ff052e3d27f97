"""API keys, without their secrets; which of them count says the signed list beside the database."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Row, insert, or_, select, update

from corpus.message import Message
from service.persistence import sanitizer
from service.persistence.database import Database
from service.persistence.key_seal import KeySeal
from service.persistence.schema import KEYS
from service.schemas.errors import DiskFullError, NotFoundError, StoreError
from service.schemas.records import KeyRecord

_LOG = logging.getLogger("whycrash.keys")
# A busy key would otherwise cost a write for each request.
_EACH = timedelta(minutes=1)


class KeyRepository:
    """The API keys that were ever made; a revoked one stays, so that its past requests have a name."""

    def __init__(self, database: Database, home: Path, *, shared: bool = False) -> None:
        """Open the keys; in a database that several servers share, no list of one of them can be whole."""
        self._database = database
        self._shared = shared
        self.seal = KeySeal(home)
        self._noted: dict[str, datetime] = {}
        self._told: set[str] = set()

    def were_ever(self) -> bool:
        """Tell whether there ever were keys, whatever the database says now."""
        return self.seal.exists()

    def add(self, record: KeyRecord) -> None:
        """Keep a new key; raises StoreError where it cannot be kept that there are keys."""
        values = record.model_dump() | {
            "name": sanitizer.clean_text(record.name),
            "scopes": " ".join(record.scopes),
        }
        # First: if the process ends here, access stays restricted.
        self._sign(record)
        with self._database.write(durable=True) as connection:
            connection.execute(insert(KEYS).values(**values))

    def get(self, key: str) -> KeyRecord:
        """Give a key; raises NotFoundError."""
        with _legible(), self._database.read() as connection:
            row = connection.execute(select(KEYS).where(KEYS.c.id == key)).first()
        if row is None:
            raise NotFoundError(Message("errors.no-key"))
        return _record(row)

    def all(self) -> tuple[KeyRecord, ...]:
        """Give all keys that this installation has made, oldest first.

        What else a database of its own holds was put there by somebody else, or was revoked since.
        """
        with _legible(), self._database.read() as connection:
            found = tuple(
                _record(row) for row in connection.execute(select(KEYS).order_by(KEYS.c.created, KEYS.c.id))
            )
        if self._shared:
            if found:
                # Made by a server with another home over the same database.
                with suppress(StoreError):
                    self.seal.note()
            return found
        # An installation that never had a key has no list, and gets none by being asked.
        kept = self.seal.signed(found) if found else ()
        if refused := {record.id for record in found} - {record.id for record in kept} - self._told:
            self._told |= refused
            _LOG.error(
                "keys in the database that were not made here, or changed since, are not taken: %s",
                ", ".join(sorted(refused)),
            )
        return kept

    def revoke(self, key: str, now: datetime) -> None:
        """Make a key invalid from now on, or leave it so; raises NotFoundError."""
        record = self.get(key)
        # First, as above: a copy of the database from before brings the key back to nobody.
        self._sign(record.model_copy(update={"revoked": record.revoked or now}))
        with self._database.write(durable=True) as connection:
            connection.execute(
                update(KEYS).where(KEYS.c.id == key, KEYS.c.revoked.is_(None)).values(revoked=now)
            )

    def used(self, key: str, now: datetime) -> None:
        """Note that a key was used.

        Writes at most once a minute, and passes over a database that takes nothing just now.
        """
        noted = self._noted.get(key)
        if noted is not None and now - noted < _EACH:
            return
        self._noted[key] = now
        due = or_(KEYS.c.last_used.is_(None), KEYS.c.last_used <= now - _EACH)
        # A full disk is no reason to refuse a request that only reads.
        with suppress(StoreError, DiskFullError), self._database.write() as connection:
            connection.execute(update(KEYS).where(KEYS.c.id == key, due).values(last_used=now))

    def _sign(self, record: KeyRecord) -> None:
        if self._shared:
            self.seal.note()
            return
        self.all()  # where there is no list yet, those that are there are taken into it first
        self.seal.sign([record])


def _record(row: Row[Any]) -> KeyRecord:
    return KeyRecord(**{**row._mapping, "scopes": tuple(row.scopes.split())})


@contextmanager
def _legible() -> Iterator[None]:
    """Raise StoreError where a row holds what no key is; the driver reads times by itself."""
    try:
        yield
    except (ValueError, AttributeError, TypeError) as error:
        raise StoreError(Message("errors.key-database-cannot-read")) from error
