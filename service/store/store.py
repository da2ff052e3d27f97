"""The store: what is kept of triages, batches, keys, requests and the audit."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from service.errors import RequestError
from service.settings import Settings
from service.store.audit import Audit
from service.store.batches import Batches
from service.store.clock import Clock
from service.store.database import PATIENCE, Database, address
from service.store.keys import Keys
from service.store.opening import open_database, version
from service.store.requests import Requests
from service.store.retention import Retention
from service.store.schema import VERSIONS
from service.store.seen import Seen
from service.store.triages import Triages


class Store:
    """All that is kept, over one database. Safe to use from many threads; its methods block.

    Methods raise StoreError where the database cannot be reached, is locked or damaged, and DiskFullError.
    """

    def __init__(self, database: Database, home: Path, replaced: Path | None = None) -> None:
        self._database = database
        # Where a damaged database was moved to when this one was made in its place; its batches are in their journals.
        self.replaced = replaced
        self.triages = Triages(database)
        self.batches = Batches(database)
        self.keys = Keys(database, home)
        self.requests = Requests(database)
        self.seen = Seen(database)
        self.audit = Audit(database)
        self.clock = Clock(database)
        self.retention = Retention(database, self.batches, self.requests, self.seen)

    @classmethod
    def open(cls, settings: Settings, *, replace_damaged: bool = False, patience: float = PATIENCE) -> Store:
        """Open the database, made or brought up to date where need be; `patience` is how many seconds a writer waits for others.

        Raises StoreError, of which DamagedStoreError is one unless `replace_damaged` moves the damaged file aside;
        SettingsError where the URL cannot be used.
        """
        database, replaced = open_database(address(settings), replace_damaged, patience)
        return cls(database, settings.home, replaced)

    def renew(self, settings: Settings) -> None:
        """Go on with a new database where this one's file is damaged; all that holds this store goes on with it.

        The damaged file is moved aside. Raises as `open` does.
        """
        made, self.replaced = open_database(address(settings), replace_damaged=True)
        self._database.become(made)

    @property
    def place(self) -> str:
        """Name the database, without its password."""
        return self._database.place

    def check(self) -> str:
        """Say what is wrong with the database; empty is nothing."""
        try:
            with self._database.read() as connection:
                found = version(connection)
        except RequestError as error:
            return str(error)
        return "" if found == VERSIONS[-1] else f"The database {self.place} has the schema {found or 'of nothing'}, not {VERSIONS[-1]}."

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
