"""API keys, without their secrets, and beside the database the mark that there ever were any.

A database that was damaged, deleted or put back from an old copy knows of no key. Were that alone to count,
whoever can reach the address would be let in where a key was asked for a moment before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Row, insert, or_, select, update

from corpus.message import Message
from service.persistence import sanitizer
from service.persistence.database import Database
from service.persistence.schema import KEYS
from service.schemas.errors import DiskFullError, NotFoundError, StoreError
from service.schemas.records import KeyRecord

# The file under the home folder that says that this installation has, or had, API keys.
MARK = "keyed"
_SAYS = """\
This installation of whycrash has, or had, API keys: its server lets nobody in without one, also where the \
database knows of none.
`whycrash keys add NAME` makes one. Delete this file, with the server stopped, to let this machine in \
without a key again.
"""
# A busy key would otherwise cost a write for each request.
_EACH = timedelta(minutes=1)


class KeyRepository:
    """The API keys that were ever made; a revoked one stays, so that its past requests have a name."""

    def __init__(self, database: Database, home: Path) -> None:
        self._database = database
        self.mark = home / MARK
        self._noted: dict[str, datetime] = {}

    def were_ever(self) -> bool:
        """Tell whether there ever were keys, whatever the database says now.

        What cannot be looked up is taken for yes.
        """
        try:
            # Not `exists`, to which a folder that may not be read is one that is not there.
            self.mark.stat()
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return True

    def add(self, record: KeyRecord) -> None:
        """Keep a new key; raises StoreError where it cannot be kept that there are keys."""
        values = record.model_dump() | {
            "name": sanitizer.clean_text(record.name),
            "scopes": " ".join(record.scopes),
        }
        # First: if the process ends here, access stays restricted.
        self._note_keyed()
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
        """Give all keys, oldest first."""
        with _legible(), self._database.read() as connection:
            found = tuple(
                _record(row) for row in connection.execute(select(KEYS).order_by(KEYS.c.created, KEYS.c.id))
            )
        if found and not self.were_ever():
            # Made by a version that kept no mark, or by a server with another home over the same database.
            with suppress(StoreError):
                self._note_keyed()
        return found

    def revoke(self, key: str, now: datetime) -> None:
        """Make a key invalid from now on, or leave it so; raises NotFoundError."""
        self.get(key)
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

    def _note_keyed(self) -> None:
        try:
            self.mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (
                suppress(FileExistsError),
                os.fdopen(os.open(self.mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file,
            ):
                file.write(_SAYS)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(
                Message("errors.cannot-written-set-whycrash", parent=self.mark, reason=error.strerror)
            ) from error


def _record(row: Row[Any]) -> KeyRecord:
    return KeyRecord(**{**row._mapping, "scopes": tuple(row.scopes.split())})


@contextmanager
def _legible() -> Iterator[None]:
    """Raise StoreError where a row holds what no key is; the driver reads times by itself."""
    try:
        yield
    except (ValueError, AttributeError, TypeError) as error:
        raise StoreError(Message("errors.key-database-cannot-read")) from error
