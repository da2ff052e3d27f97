"""Idempotency keys: a POST that is sent again with the same key is answered as it was the first time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

from corpus.message import Message
from service.app.admission import Caller
from service.persistence.requests import RequestRepository
from service.schemas.errors import InvalidRequestError

HEADER = "idempotency-key"
REPLAYED = "idempotency-replayed"
_KEY = re.compile(r"[\x21-\x7e]{1,200}")


class StoredAnswer(NamedTuple):
    """An answer as it is kept."""

    status: int
    body: str


class IdempotentRequest:
    """One request under its key; without a key it keeps nothing."""

    def __init__(self, store: RequestRepository, key: str, caller: Caller) -> None:
        if key and not _KEY.fullmatch(key):
            raise InvalidRequestError(Message("errors.idempotency-key-1-200"))
        self._store = store
        self._key = key
        self._caller = caller.name

    def begin(self, *parts: str) -> StoredAnswer | None:
        """Begin the request that consists of `parts`; gives the answer where it was answered before.

        Raises ConflictError.
        """
        if not self._key:
            return None
        digest = sha256("\0".join(parts).encode()).hexdigest()
        found = self._store.begin(self._key, self._caller, digest, datetime.now(UTC))
        return StoredAnswer(found.status, found.body.decode()) if found else None

    def finish(self, status: int, body: str) -> None:
        """Keep the answer."""
        if self._key:
            self._store.finish(self._key, self._caller, status, body)

    def abandon(self) -> None:
        """Forget the key: the request came to nothing, and may be sent again."""
        if self._key:
            self._store.abandon(self._key, self._caller)

    @contextmanager
    def kept_on_success(self) -> Iterator[None]:
        """Do the work of the request; where it comes to nothing, its key is free again."""
        try:
            yield
        except BaseException:  # Whatever ended it, a client that leaves or a server that stops among them.
            self.abandon()
            raise

    def run(self, parts: tuple[str, ...], work: Callable[[], StoredAnswer]) -> tuple[StoredAnswer, bool]:
        """Do the work unless it was done; gives the answer and whether it is an old one."""
        if (old := self.begin(*parts)) is not None:
            return old, True
        with self.kept_on_success():
            made = work()
        self.finish(*made)
        return made, False
