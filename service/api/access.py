"""Who asks: a key, or this machine itself while there are no keys; what they may do, and how often."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic

from service.api import keys
from service.api.browsers import Boundary
from service.api.buckets import Buckets
from service.desk import Caller
from service.errors import BusyError, ForbiddenError, UnauthorizedError
from service.records import KeyRecord, Scope
from service.settings import Settings
from service.store.keys import Keys

# For so long a list of keys is used again, in seconds: what a revoked key may still be good for.
FRESH = 1.0


class PageKeyError(UnauthorizedError):
    """There is no key, or it is not valid; a browser asks for one."""


@dataclass(frozen=True)
class Visitor:
    """Who asks, and what they may do."""

    caller: Caller
    scopes: tuple[Scope, ...]

    @property
    def sees_all(self) -> bool:
        """Tell whether they may see what others asked."""
        return "admin" in self.scopes

    def may_see(self, caller: str) -> bool:
        """Tell whether they may see what `caller` asked."""
        return self.sees_all or caller == self.caller.name


class Access:
    """Lets requests in; safe to use from one event loop."""

    def __init__(self, settings: Settings, boundary: Boundary, store: Keys) -> None:
        self._boundary = boundary
        self._store = store
        self._buckets = Buckets(settings.rate_limit)
        self._keys: dict[str, KeyRecord] = {}
        self._read_at = -FRESH
        self._noted: dict[str, float] = {}
        self._reading = asyncio.Lock()

    async def reader(self, peer: str, headers: Mapping[str, str]) -> Visitor:
        """Give who asks for a page beside the API, by the same rules, uncounted: a page is many requests.

        Browsers ask for a key by themselves (HTTP Basic): it goes into the password, any name will do.
        """
        await self._refresh()
        try:
            return self._by_key(headers.get("authorization", "")) or self._by_place(peer, headers)
        except UnauthorizedError:
            self._count(f"address {peer}")
            raise PageKeyError("Log in with any name, and an API key as the password. Make one on the server with `whycrash keys add`.") from None

    async def visitor(self, peer: str, headers: Mapping[str, str]) -> Visitor:
        """Give who asks; raises UnauthorizedError, or BusyError where they ask too often."""
        await self._refresh()
        try:
            found = self._by_key(headers.get("authorization", "")) or self._by_place(peer, headers)
        except UnauthorizedError:
            # Guesses are counted by their address, so that they cost the guesser and nobody else.
            self._count(f"address {peer}")
            raise
        self._count(f"key {found.caller.name}" if found.caller.name in self._keys else f"address {peer}")
        await self._note(found.caller.name)
        return found

    def _by_key(self, authorization: str) -> Visitor | None:
        if not authorization:
            return None
        parsed = keys.parse(_token(authorization))
        record = self._keys.get(parsed[0]) if parsed else None
        if not keys.matches(record, parsed[1] if parsed else "") or record is None:
            raise UnauthorizedError("The key is not valid. Make one on the server with `whycrash keys add`.")
        return Visitor(Caller("api", record.id), record.scopes)

    def _by_place(self, peer: str, headers: Mapping[str, str]) -> Visitor:
        # A key that was revoked counts too: who had keys once does not mean the door to be open now.
        if not self._keys and self._boundary.is_local(peer, headers):
            return Visitor(Caller("api", "local"), keys.SCOPES)
        raise UnauthorizedError("Send `Authorization: Bearer whycrash_...`. Make a key on the server with `whycrash keys add`.")

    def _count(self, name: str) -> None:
        if wait := self._buckets.take(name):
            raise BusyError("This key or address asked too often in the last minute.", wait)

    async def _refresh(self) -> None:
        if monotonic() - self._read_at < FRESH:
            return
        # Whoever comes meanwhile waits: an empty list of keys that is only not read yet would open the door.
        async with self._reading:
            if monotonic() - self._read_at >= FRESH:
                self._keys = {record.id: record for record in await asyncio.to_thread(self._store.all)}
                self._read_at = monotonic()

    async def _note(self, name: str) -> None:
        now = monotonic()
        if name in self._keys and now - self._noted.get(name, -60.0) >= 60.0:
            self._noted[name] = now
            await asyncio.to_thread(self._store.used, name, datetime.now(UTC))


def _token(authorization: str) -> str:
    """Give the key of an Authorization header: a bearer token, or the password of HTTP Basic (RFC 7617)."""
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() != "basic":
        return given.strip() if scheme.lower() == "bearer" else ""
    try:
        return b64decode(given, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def demand(visitor: Visitor, scope: Scope) -> None:
    """Raise ForbiddenError where a visitor may not do what the scope allows."""
    if not keys.allows(visitor.scopes, scope):
        raise ForbiddenError(f"This key's scopes are {', '.join(visitor.scopes)}; this takes {scope}.")
