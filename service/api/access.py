"""Who asks: a key, or this machine itself while there are no keys; and what is theirs.

The API's routes and the pages beside it go by the same rules; `service.app.admission` says what is let in.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic

from corpus.message import Message
from service.api import keys, oidc
from service.api.browsers import OriginPolicy
from service.api.oidc import TokenVerifier
from service.app.admission import SCOPES, Admission, Caller, Principal
from service.app.triage_service import TriageService
from service.persistence.keys import KeyRepository
from service.persistence.rows import missing_batch
from service.persistence.triages import missing
from service.schemas.errors import ForbiddenError, UnauthorizedError, UnreachableError
from service.schemas.records import BatchRecord, KeyRecord, Scope, TriageRecord

_LOG = logging.getLogger("whycrash.api")
# For so long a list of keys is used again, in seconds: what a revoked key may still be good for.
FRESH = 1.0
# Whoever has one address of IPv6 has all that begin with so many of its bits (RFC 6177).
_SITE_BITS = 64


class KeysLostError(UnauthorizedError):
    """There were keys, and the database knows of none now."""


class PageKeyError(UnauthorizedError):
    """There is no key, or it is not valid; a browser asks for one."""


@dataclass(frozen=True)
class PageVisitor:
    """A request to a page beside the API: who makes it.

    A page is many requests, and what it does is in some of them.
    """

    principal: Principal
    admission: Admission

    def admit(self, scope: Scope) -> Principal:
        """Let one thing be done that the scope allows, as a request of the API.

        Raises BusyError, ForbiddenError.
        """
        return self.admission.admit(self.principal, scope)


class Authorizer:
    """Finds out who asks; safe to use from one event loop."""

    def __init__(
        self,
        admission: Admission,
        boundary: OriginPolicy,
        store: KeyRepository,
        tokens: TokenVerifier | None = None,
    ) -> None:
        """Take the keys of a store, and tokens of an issuer where there is one."""
        self.admission = admission
        self._boundary = boundary
        self._store = store
        self._tokens = tokens
        self._keys: dict[str, KeyRecord] = {}
        # Whether there are or ever were keys; what was once so stays so while the server runs.
        self._is_keyed = self._has_told = False
        self._read_at = -FRESH
        self._noted: dict[str, float] = {}
        self._reading = asyncio.Lock()

    async def authorize_reader(self, peer: str, headers: Mapping[str, str]) -> Principal:
        """Give who asks for a page beside the API, by the same rules, uncounted: a page is many requests.

        Browsers ask for a key by themselves (HTTP Basic): it goes into the password, any name will do.
        """
        try:
            return await self.authenticate(peer, headers)
        except KeysLostError as error:
            raise PageKeyError(str(error)) from None
        except UnauthorizedError:
            raise PageKeyError(Message("errors.log-any-name-api")) from None

    async def authenticate(self, peer: str, headers: Mapping[str, str]) -> Principal:
        """Give who asks.

        Raises UnauthorizedError, BusyError where keys are guessed, ForbiddenError for a token without rights,
        UnreachableError where it cannot be checked.
        """
        await self._refresh()
        try:
            if self._is_keyed and not self._keys:
                raise KeysLostError(Message("errors.server-had-api-keys"))
            authorization = headers.get("authorization", "")
            found = (
                await self._by_token(authorization)
                or self._by_key(authorization)
                or self._by_place(peer, headers)
            )
        except (UnauthorizedError, ForbiddenError, UnreachableError):
            # Whoever is not let in is counted by their address, so that it costs them and nobody else: no
            # token can be told from a guess while the issuer is away.
            self.admission.count(f"address {network_of(peer)}")
            raise
        name, now = found.caller.name, monotonic()
        if name in self._keys and now - self._noted.get(name, -60.0) >= 60.0:
            self._noted[name] = now
            await asyncio.to_thread(self._store.used, name, datetime.now(UTC))
        return found

    async def _by_token(self, authorization: str) -> Principal | None:
        token = _token(authorization)
        return await self._tokens.principal(token) if self._tokens and oidc.is_token(token) else None

    def _by_key(self, authorization: str) -> Principal | None:
        if not authorization:
            return None
        parsed = keys.parse_key(_token(authorization))
        record = self._keys.get(parsed[0]) if parsed else None
        if not keys.key_matches(record, parsed[1] if parsed else "") or record is None:
            raise UnauthorizedError(Message("errors.key-not-valid-make"))
        caller = Caller("api", record.id, record.team)
        # What a team asks is counted together, however many keys it has.
        counted = f"team {record.team}" if record.team else f"key {record.id}"
        return Principal(caller, record.scopes, counted)

    def _by_place(self, peer: str, headers: Mapping[str, str]) -> Principal:
        # A key that was revoked counts too, and one that the database has lost: a server that ever had keys
        # asks for one.
        # Nor is anybody let in by place where an issuer says who is.
        if not self._is_keyed and self._tokens is None and self._boundary.is_local(peer, headers):
            return Principal(Caller("api", "local"), SCOPES, f"address {network_of(peer)}")
        raise UnauthorizedError(Message("errors.send-authorization-bearer-whycrash"))

    async def _refresh(self) -> None:
        if monotonic() - self._read_at < FRESH:
            return
        # Requests that come meanwhile wait: before the keys were read, their list is empty, and anyone
        # would be let in.
        async with self._reading:
            if monotonic() - self._read_at >= FRESH:
                self._keys, keyed = await asyncio.to_thread(self._read)
                self._is_keyed = self._is_keyed or keyed
                if self._is_keyed and not self._keys and not self._has_told:
                    self._has_told = True
                    _LOG.error(
                        "there were API keys, and the database has none now: nobody is let in until "
                        "`whycrash keys add` makes one"
                    )
                self._read_at = monotonic()

    def _read(self) -> tuple[dict[str, KeyRecord], bool]:
        # Before the keys: one that is made meanwhile is found with the mark, or neither is.
        keyed = self._store.were_ever()
        found = {record.id: record for record in self._store.all()}
        return found, keyed or bool(found)


def _token(authorization: str) -> str:
    """Give the key of an Authorization header: a bearer token, or the password of HTTP Basic (RFC 7617)."""
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() != "basic":
        return given.strip() if scheme.lower() == "bearer" else ""
    try:
        return b64decode(given, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def own_triage(triage_service: TriageService, principal: Principal, triage_id: str) -> TriageRecord:
    """Give a triage that a principal may see, ask on and judge.

    Raises NotFoundError, in the same words where it is another's.
    """
    record = triage_service.record(triage_id)
    if not principal.may_read(record.caller):
        raise missing(triage_id)
    return record


def own_batch(triage_service: TriageService, principal: Principal, batch_id: str) -> BatchRecord:
    """Give a batch that a principal may see.

    Raises NotFoundError, in the same words where it is another's.
    """
    record = triage_service.store.batches.get(batch_id)
    if not principal.may_read(record.caller):
        raise missing_batch(batch_id)
    return record


def network_of(peer: str) -> str:
    """Give what an address is counted by: itself, of IPv6 the network whose addresses its owner has."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), _SITE_BITS), strict=False))
