"""Open a database: make it, bring an older one up to date, refuse a newer one, move a damaged one aside."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, inspect, text

from corpus.message import Message
from service.persistence.database import WRITE_TIMEOUT, Database
from service.persistence.errors import DamagedStoreError, NewerStoreError, suspicion
from service.persistence.schema import VERSIONS
from service.schemas.errors import StoreError

MIGRATIONS = str(Path(__file__).parent / "migrations")
# SQLite's own check reads every page, a second for each gigabyte or so; a larger file is judged by what is
# read of it.
CHECKED = 512 << 20
# Any number that is ours alone: who holds it on a PostgreSQL server migrates there.
_MIGRATING = 5_642_008_642


def open_database(
    url: URL, replace_damaged: bool = False, timeout: float = WRITE_TIMEOUT
) -> tuple[Database, Path | None]:
    """Open the database at its newest schema; gives where a damaged file went too, if one was replaced.

    Raises DamagedStoreError, NewerStoreError, or another StoreError that says what stands in the way.
    """
    file = Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None
    with _alone(file) if file else nullcontext():
        try:
            return _opened(url, file, timeout), None
        except DamagedStoreError:
            if file is None or not replace_damaged:
                raise
        aside = _moved_aside(file)
        return _opened(url, file, timeout), aside


def version(connection: Connection) -> str:
    """Tell the version of the schema; empty where there is none yet."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or "")


def _opened(url: URL, file: Path | None, timeout: float) -> Database:
    if file is not None:
        _make(file)
    database = Database(url, timeout)
    try:
        if file is not None:
            _check(database, file)
        _migrate(database)
    except BaseException:
        database.close()
        raise
    return database


def _make(file: Path) -> None:
    """Make the file for its owner alone; what SQLite puts beside it takes its mode."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        file.chmod(0o600)
    except OSError as error:
        raise StoreError(
            Message("errors.database-cannot-made-see", file=file, reason=error.strerror)
        ) from error


def _check(database: Database, file: Path) -> None:
    suspect = suspicion(file).exists()
    if file.stat().st_size > CHECKED and not suspect:
        return
    with database.read() as connection:
        found = connection.execute(
            text("PRAGMA integrity_check(1)" if suspect else "PRAGMA quick_check(1)")
        ).scalar()
    if found == "ok":
        suspicion(file).unlink(missing_ok=True)
    else:
        raise DamagedStoreError(
            Message("errors.database-damaged-start-whycrash", file=file, found=str(found).splitlines()[-1])
        )


def _migrate(database: Database) -> None:
    with database.read() as connection:
        found = version(connection)
    if found == VERSIONS[-1]:
        return
    with database.write(durable=True) as connection:
        if database.file is None:
            connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _MIGRATING})
        # Another process may have migrated while this one waited for its turn.
        _upgrade(connection, version(connection), database.place)


def _upgrade(connection: Connection, found: str, place: str) -> None:
    if found == VERSIONS[-1]:
        return
    if found and found not in VERSIONS:
        raise NewerStoreError(
            Message("errors.database-schema-newer-whycrash", place=place, found=found, versions=VERSIONS[-1])
        )
    upgrade(connection, VERSIONS[-1])


def upgrade(connection: Connection, to: str) -> None:
    """Bring the schema to a version, within the connection's transaction."""
    # Imported here: most starts find the schema as it should be, and need none of it.
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(MIGRATIONS, version_locations=[f"{MIGRATIONS}/versions"])

    def steps(revision: Any, _context: Any) -> Any:
        return script._upgrade_revs(to, revision)

    with EnvironmentContext(Config(), script, fn=steps) as environment:
        environment.configure(connection=connection)
        environment.run_migrations()


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Let one process at a time look at the file and mend it; the lock goes with the process."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(file.with_name(f"{file.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise StoreError(
            Message("errors.folder-database-cannot-written", parent=file.parent, reason=error.strerror)
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _moved_aside(file: Path) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    aside = file.with_name(f"{file.name}.damaged-{stamp}")
    # The log beside it first: a new file that met an old log would be damaged as well.
    for end in ("-wal", "-shm", ""):
        part = file.with_name(file.name + end)
        if part.exists():
            part.rename(aside.with_name(aside.name + end))
    suspicion(file).unlink(missing_ok=True)
    return aside
