"""The database below the store: its address, its engine, and transactions."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DisconnectionError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry

from corpus.message import Message
from service.persistence.errors import LOCK_WAIT, DeadlockError, translate_error
from service.schemas.errors import SettingsError, StoreError
from service.settings import Settings

NAME = "whycrash.db"
# Seconds that a writer waits for those before it.
WRITE_TIMEOUT = 10.0
Result = TypeVar("Result")

_RINGS = 3
_POOL = 8
_OVERFLOW = 40
PAGES_KIB = 4000

_PRAGMAS = (
    # Readers and the one writer do not wait for each other.
    "journal_mode = WAL",
    # Safe against a crash of the program at any time; what a power cut may undo is work that is done again.
    "synchronous = NORMAL",
    "foreign_keys = ON",
    # What is deleted is overwritten where that costs no further write.
    "secure_delete = FAST",
    # KiB that each connection keeps; the system keeps the file as well.
    f"cache_size = -{PAGES_KIB}",
    # After a burst of writing the log beside the file shrinks again.
    "journal_size_limit = 67108864",
)


class Database:
    """An engine with its two kinds of transaction. Safe to use from many threads."""

    def __init__(self, url: URL, timeout: float = WRITE_TIMEOUT) -> None:
        self.url = url
        self.file = Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None
        self.engine = _engine(url, self.file, timeout)
        self._write_timeout = timeout
        self._writer = self.engine.execution_options(writes=True)
        # SQLite has one writer at a time and lets the others poll; within a process they take turns instead.
        self._turn = threading.Lock() if self.file else None

    @property
    def place(self) -> str:
        """Name the database in messages, without its password."""
        return str(self.file) if self.file else self.url.render_as_string(hide_password=True)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that only reads, and sees one state of things."""
        with self._translated(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self, durable: bool = False) -> Iterator[Connection]:
        """Open a transaction that writes; all of it stands at its end, or none.

        `durable` makes it survive a power cut too: SQLite waits for the disk then, which PostgreSQL always
        does.
        """
        with (
            self._translated(),
            self._in_turn(),
            self._writer.connect() as connection,
            _full_synchronous(connection) if durable and self.file else nullcontext(),
            connection.begin(),
        ):
            yield connection

    def change(self, work: Callable[[Connection], Result]) -> Result:
        """Do work in a transaction that writes.

        Repeats it where the server ended it to break a deadlock.
        """
        for _ in range(_RINGS):
            with suppress(DeadlockError), self.write() as connection:
                return work(connection)
        with self.write() as connection:
            return work(connection)

    def rebind(self, other: Database) -> None:
        """Use the connections of another database of the same address from now on."""
        old = self.engine
        self.engine, self._writer = other.engine, other._writer
        old.dispose()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _translated(self) -> Any:
        return translate_error(self.place, self.file)

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        if self._turn is None:
            yield
            return
        if not self._turn.acquire(timeout=self._write_timeout):
            raise StoreError(Message("errors.database-busy-try-again", place=self.place), LOCK_WAIT)
        try:
            yield
        finally:
            self._turn.release()


def address(settings: Settings) -> URL:
    """Give the database's URL; raises SettingsError where it cannot be used."""
    given = settings.database.get_secret_value()
    if not given:
        return URL.create("sqlite", database=str(settings.home / NAME))
    try:
        url = make_url(given)
        kind = url.get_backend_name()
        # The error's text holds the URL, and so its password.
    except (ArgumentError, NoSuchModuleError):
        raise SettingsError(Message("errors.whycrash-database-no-url")) from None
    if kind not in ("sqlite", "postgresql"):
        raise SettingsError(Message("errors.whycrash-database-names-whycrash", kind=kind))
    if kind == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if url.database in (None, "", ":memory:") or url.query:
        raise SettingsError(Message("errors.whycrash-database-takes-file"))
    return url.set(drivername="sqlite")


def _engine(url: URL, file: Path | None, timeout: float) -> Engine:
    # Parameters are texts of people's jobs; they have no place in an error's message.
    common: dict[str, Any] = {
        "pool_size": _POOL,
        "max_overflow": _OVERFLOW,
        "pool_timeout": timeout,
        # The connection that was used last: in turn, all of them would hold the same pages.
        "pool_use_lifo": True,
        "hide_parameters": True,
    }
    if file is None:
        server = f"-c lock_timeout={int(timeout * 1000)} -c idle_in_transaction_session_timeout=120000"
        options = {
            "connect_timeout": 5,
            "options": server,
            "application_name": "whycrash",
            "client_encoding": "utf8",
        }
        return create_engine(url, pool_pre_ping=True, connect_args=options, **common)
    engine = create_engine(url, connect_args={"timeout": timeout}, **common)
    event.listen(engine, "connect", _prepare)
    _follow(engine, file)
    event.listen(engine, "begin", _begin)
    return engine


def _follow(engine: Engine, file: Path) -> None:
    """Close connections to a file that is no longer the database.

    Another server may have moved a damaged one aside, or a person put a copy in its place: what is written to
    the old one would be lost silently.
    """

    def opened(_connection: object, record: ConnectionPoolEntry) -> None:
        record.info["file"] = _identity(file)

    def taken(_connection: object, record: ConnectionPoolEntry, _proxy: object) -> None:
        # Where there is none, another is about to appear; SQLite would create an empty one.
        if (now := _identity(file)) is not None and now != record.info["file"]:
            raise DisconnectionError

    event.listen(engine, "connect", opened)
    event.listen(engine, "checkout", taken)


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    # Python's own handling of transactions begins them late and commits around some statements.
    connection.isolation_level = None
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    # A transaction that turns from reading to writing midway fails at once where another writes; this one
    # waits.
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def _full_synchronous(connection: Connection) -> Iterator[None]:
    # Not possible within a transaction, so it goes past SQLAlchemy, which would begin one.
    raw = connection.connection.cursor()
    raw.execute("PRAGMA synchronous = FULL")
    try:
        yield
    finally:
        raw.execute("PRAGMA synchronous = NORMAL")
        raw.close()
