"""Requests that carry an idempotency key: what was answered the first time is answered again."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import and_, delete, or_, select, update

from corpus.message import Message
from service.persistence.database import Database
from service.persistence.schema import REQUESTS
from service.persistence.upsert import insert_or_update
from service.schemas.errors import ConflictError

KEPT = timedelta(hours=24)
_COLUMNS = REQUESTS.c


class StoredResponse(NamedTuple):
    """What was answered the first time."""

    status: int
    body: bytes


class RequestRepository:
    """Requests by their idempotency key and caller, for a day."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(
        self, key: str, caller: str, digest: str, now: datetime, timeout: float = 600.0
    ) -> StoredResponse | None:
        """Give what this request was answered before; None where it is new, and now begins.

        Raises ConflictError where the key was used for another request, or the first one still runs; one that
        began more than `timeout` seconds ago and has no answer lost its server, and may be made again.
        """
        name = _key(key, caller)
        lost = and_(
            _COLUMNS.status.is_(None),
            _COLUMNS.digest == digest,
            _COLUMNS.created <= now - timedelta(seconds=timeout),
        )
        values = {"key": name, "digest": digest, "created": now, "status": None, "body": None}
        with self._database.write() as connection:
            if insert_or_update(
                connection, REQUESTS, values, ["key"], or_(_COLUMNS.created <= now - KEPT, lost)
            ):
                return None
            row = connection.execute(select(REQUESTS).where(_COLUMNS.key == name)).one()
        if row.digest != digest:
            raise ConflictError(Message("errors.idempotency-key-used-another"))
        if row.status is None:
            raise ConflictError(Message("errors.first-request-idempotency-key"), wait=2.0)
        return StoredResponse(row.status, row.body)

    def finish(self, key: str, caller: str, status: int, body: bytes | str) -> None:
        """Keep what was answered."""
        values = {"status": status, "body": body.encode() if isinstance(body, str) else body}
        with self._database.write() as connection:
            connection.execute(update(REQUESTS).where(_COLUMNS.key == _key(key, caller)).values(**values))

    def abandon(self, key: str, caller: str) -> None:
        """Forget a request that came to nothing, so that it may be made again at once."""
        with self._database.write() as connection:
            connection.execute(
                delete(REQUESTS).where(_COLUMNS.key == _key(key, caller), _COLUMNS.status.is_(None))
            )

    def forget(self, now: datetime) -> None:
        """Delete what is older than a day."""
        with self._database.write() as connection:
            connection.execute(delete(REQUESTS).where(_COLUMNS.created <= now - KEPT))


def _key(key: str, caller: str) -> str:
    # Callers choose their keys, of any length and letters; a hash fits every index.
    return hashlib.sha256(f"{len(caller)}:{caller}{key}".encode(errors="surrogatepass")).hexdigest()
