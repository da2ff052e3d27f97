"""The store: what is kept of triages, batches, keys, requests and the audit."""

from __future__ import annotations

import shutil
from pathlib import Path
from time import monotonic
from types import TracebackType

from sqlalchemy import text

from corpus.message import Message
from service.persistence.audit import AuditLog
from service.persistence.batches import BatchRepository
from service.persistence.clock import Clock
from service.persistence.crashes import CrashRepository
from service.persistence.database import WRITE_TIMEOUT, Database, address
from service.persistence.errors import LOCK_WAIT
from service.persistence.keys import KeyRepository
from service.persistence.opening import open_database, version
from service.persistence.requests import RequestRepository
from service.persistence.retention import Retention
from service.persistence.schema import VERSIONS
from service.persistence.seen_events import SeenEvents
from service.persistence.triages import TriageRepository
from service.persistence.usage import Usage
from service.schemas.errors import DiskFullError, RequestError, StoreError
from service.settings import Settings

# Seconds for which a database that stored something is taken to store more: who watches a server asks often.
STORES = 5.0
# Bytes without which a disk has no room: a small row may still fit into what the database holds already.
LEAST_ROOM = 64 << 10


class Store:
    """All that is kept, over one database. Safe to use from many threads; its methods block.

    Methods raise StoreError where the database cannot be reached, is locked or damaged, and DiskFullError.
    """

    def __init__(
        self, database: Database, home: Path, replaced: Path | None = None, *, shared: bool = False
    ) -> None:
        self.database = database
        # Where a damaged database was moved to when this one was made in its place; its batches are in their
        # journals.
        self.replaced = replaced
        self._home = home
        self._stored_at = -STORES
        self.triages = TriageRepository(database)
        self.crashes = CrashRepository(database)
        self.batches = BatchRepository(database)
        self.keys = KeyRepository(database, home, shared=shared)
        self.requests = RequestRepository(database)
        self.seen = SeenEvents(database)
        self.audit = AuditLog(database)
        self.clock = Clock(database)
        self.usage = Usage(database)
        self.retention = Retention(database, self.batches, self.requests, self.seen, self.usage)

    @classmethod
    def open(
        cls, settings: Settings, *, replace_damaged: bool = False, timeout: float = WRITE_TIMEOUT
    ) -> Store:
        """Open the database, made or brought up to date where need be.

        `timeout` is how many seconds a writer waits for others.

        Raises StoreError, of which DamagedStoreError is one unless `replace_damaged` moves the damaged file
        aside; SettingsError where the URL cannot be used.
        """
        database, replaced = open_database(address(settings), replace_damaged, timeout)
        return cls(database, settings.home, replaced, shared=bool(settings.database.get_secret_value()))

    def renew(self, settings: Settings) -> None:
        """Go on with a new database where this one's file is damaged.

        Holders of this store keep using it. The damaged file is moved aside. Raises as `open` does.
        """
        made, self.replaced = open_database(address(settings), replace_damaged=True)
        self.database.rebind(made)

    @property
    def place(self) -> str:
        """Name the database, without its password."""
        return self.database.place

    def check(self) -> str:
        """Say what is wrong with the database, or what keeps it from storing anything; empty is nothing."""
        try:
            with self.database.read() as connection:
                found = version(connection)
            if self._home.is_dir() and shutil.disk_usage(self._home).free < LEAST_ROOM:
                raise DiskFullError(Message("errors.no-room-database-free", place=self.place, said="ENOSPC"))
            if found == VERSIONS[-1] and monotonic() - self._stored_at > STORES:
                self._rewrite_version()
        except RequestError as error:
            return str(error)
        return (
            ""
            if found == VERSIONS[-1]
            else f"The database {self.place} has the schema {found or 'of nothing'}, not {VERSIONS[-1]}."
        )

    def _rewrite_version(self) -> None:
        """Write a row as it is: a full disk, a quota or a read-only file system refuses that too."""
        try:
            with self.database.write() as connection:
                connection.execute(text("UPDATE alembic_version SET version_num = version_num"))
        except StoreError as error:
            # It waited for others who store something.
            if error.wait != LOCK_WAIT:
                raise
        self._stored_at = monotonic()

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
