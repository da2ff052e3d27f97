"""Database errors, translated once into errors that say what the reader can do."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import exc
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from corpus.message import Message
from service.schemas.errors import ConflictError, DiskFullError, RequestError, StoreError

# Seconds after which another try makes sense: a lock passes soon, a server takes longer to come back.
LOCK_WAIT = 2.0
SERVER_WAIT = 5.0
# SQLite tells a write that finds no room as a plain input/output error where its log, not its file, is what
# grows.
_LEAST_ROOM = 1 << 20

_LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_REFUSED = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM})
_THERE = frozenset({sqlite3.SQLITE_CONSTRAINT})
# Conditions of https://www.postgresql.org/docs/current/errcodes-appendix.html by the first letters of their
# codes.
_STATES: tuple[tuple[str, str], ...] = (
    ("53100", "full"),
    ("XX001", "damaged"),
    ("XX002", "damaged"),
    ("40", "ring"),
    ("55P03", "locked"),
    ("57014", "locked"),
    ("08", "gone"),
    ("57P", "gone"),
    ("53", "gone"),
    ("28", "refused"),
    ("3D", "refused"),
    ("42501", "refused"),
    ("25006", "refused"),
    ("23", "there"),
)


class DamagedStoreError(StoreError):
    """The database is damaged: stop whycrash and start it again; the damaged file is moved aside and kept."""

    damaged = True


class DeadlockError(StoreError):
    """Several changes waited for each other in a ring, and the server ended this one.

    It can be made again at once.
    """


class NewerStoreError(StoreError):
    """The database was written by a newer whycrash; this one does not know its form."""


@contextmanager
def translate_error(place: str, file: Path | None = None) -> Iterator[None]:
    """Translate errors of the database; `place` names the database in messages, `file` is SQLite's."""
    try:
        yield
    except exc.TimeoutError as error:
        raise StoreError(Message("errors.many-ask-database-once"), LOCK_WAIT) from error
    except (SQLAlchemyError, sqlite3.Error) as error:
        original = error.orig if isinstance(error, DBAPIError) else error
        said = str(original or error).strip().split("\n")[0]
        kind = _sqlite_kind(original, file) if isinstance(original, sqlite3.Error) else _server_kind(error)
        made, message, wait = _KINDS[kind]
        ours = made(Message(message, place=place, said=said), *wait)
        if isinstance(ours, DamagedStoreError) and file is not None:
            # Where even this cannot be written, the next start still looks at a file of moderate size.
            with suppress(OSError):
                suspicion(file).touch(mode=0o600)
        raise ours from error


def suspicion(file: Path) -> Path:
    """Name the mark that a damage was met in the file, so that the next start looks at all of it."""
    return file.with_name(f"{file.name}.suspect")


def _sqlite_kind(error: sqlite3.Error, file: Path | None) -> str:
    # The low byte is the error; the rest, if any, is its detail.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return "full"
    # A failed write is a full disk or a limit on the file's size; a failed read is neither.
    if code == sqlite3.SQLITE_IOERR and (
        getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_WRITE
        or (file is not None and file.parent.exists() and shutil.disk_usage(file.parent).free < _LEAST_ROOM)
    ):
        return "full"
    kinds = {"locked": _LOCKED, "damaged": _DAMAGED, "refused": _REFUSED, "there": _THERE}
    return next((kind for kind, codes in kinds.items() if code in codes), "other")


def _server_kind(error: Exception) -> str:
    original = error.orig if isinstance(error, DBAPIError) else None
    state = getattr(original, "sqlstate", None) or ""
    kind = next((kind for prefix, kind in _STATES if state.startswith(prefix)), "") if state else ""
    gone = isinstance(error, DBAPIError) and (error.connection_invalidated or not state)
    return kind or ("gone" if gone else "other")


# For each kind of error: the class of ours, its message, and the seconds after which another try makes sense.
_KINDS: dict[str, tuple[Callable[..., RequestError], str, tuple[float, ...]]] = {
    "locked": (StoreError, "errors.database-locked-another-process", (LOCK_WAIT,)),
    "ring": (DeadlockError, "errors.database-changed-many-once", (LOCK_WAIT,)),
    "gone": (StoreError, "errors.database-cannot-reached-see", (SERVER_WAIT,)),
    "full": (DiskFullError, "errors.no-room-database-free", ()),
    "damaged": (DamagedStoreError, "errors.database-damaged-stop-whycrash", ()),
    "refused": (StoreError, "errors.database-not-let-us", ()),
    "there": (ConflictError, "errors.database-belongs-deleted", ()),
    "other": (StoreError, "errors.database-failed", ()),
}
