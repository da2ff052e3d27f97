"""Single sign-on: tokens of an OpenID Connect issuer, checked by the keys that it publishes.

A token is sent as a key is; at the page, the proxy that signs people in sends it. Only the issuer of the
settings is asked for keys, whatever a token's header names; what cannot be checked lets nobody in.
https://openid.net/specs/openid-connect-discovery-1_0.html and RFC 8725, best practices for JWTs
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt
from pydantic import BaseModel, ValidationError

from corpus.message import Message
from service.api import keys
from service.api.browsers import is_loopback
from service.app.admission import SCOPES, Caller, Principal
from service.schemas.errors import ForbiddenError, SettingsError, UnauthorizedError, UnreachableError
from service.schemas.records import Scope
from service.settings import Settings

# By the kind of a key the one algorithm that it is taken with: a token cannot choose another, nor none.
ALGORITHMS: Mapping[str, str] = {"RSA": "RS256", "EC": "ES256"}
# Seconds: keys are asked for again after the first, at once for a key that is not known but not more often
# than the second, and count no more after the third, whatever the issuer does.
FRESH, AGAIN, STALE = 300.0, 30.0, 3600.0
LEEWAY_S = 30.0
# Seconds without a byte, and those that both documents may take.
TIMEOUT_S, ANSWER_S = 5.0, 10.0
# RFC 7518, 3.3.
LEAST_RSA_BITS = 2048
LONGEST_TOKEN = 16 << 10
MAX_DOCUMENT = 1 << 20
_REQUIRED = ("exp", "iat", "iss", "aud", "sub")
_GROUP = re.compile(r"(?P<group>[^=]+)=(?P<scopes>[a-z+]+)(?:@(?P<team>\S+))?")
_PLAIN = re.compile(r"[A-Za-z0-9._@|:+-]{1,100}")


@dataclass(frozen=True)
class GroupRights:
    """What the members of a group may do, and of which team they are; empty is of none."""

    group: str
    scopes: tuple[Scope, ...]
    team: str = ""


class _Discovery(BaseModel):
    issuer: str
    jwks_uri: str


class _KeySet(BaseModel):
    keys: list[dict[str, Any]]


def groups_of(text: str) -> tuple[GroupRights, ...]:
    """Read `GROUP=SCOPE+SCOPE@TEAM`, by commas; raises SettingsError."""
    found = []
    for item in filter(None, map(str.strip, text.split(","))):
        match = _GROUP.fullmatch(item)
        scopes = match["scopes"].split("+") if match else []
        team = (match["team"] or "") if match else ""
        if not match or not set(scopes) <= set(SCOPES) or not (not team or keys.is_team(team)):
            raise SettingsError(Message("errors.oidc-groups", item=repr(item)))
        kept = tuple(scope for scope in SCOPES if scope in scopes)
        found.append(GroupRights(match["group"].strip(), kept, team))
    return tuple(found)


class TokenVerifier:
    """Tells who a token is of; safe to use from one event loop."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = monotonic) -> None:
        """Take the settings; raises SettingsError where they leave open whom to believe."""
        self._issuer = settings.oidc_issuer
        self._audience = settings.oidc_audience
        self._claim = settings.oidc_claim
        self._groups = groups_of(settings.oidc_groups)
        if not self._audience or not self._groups:
            raise SettingsError(Message("errors.oidc-incomplete"))
        _check_address(self._issuer)
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._read_at = self._tried_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    async def principal(self, token: str) -> Principal:
        """Give who a token is of.

        Raises UnauthorizedError, ForbiddenError where none of their groups has rights, UnreachableError where
        the issuer's keys cannot be had.
        """
        key = await self._key(_key_id(token))
        try:
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[ALGORITHMS[key.key_type or ""]],
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_S,
                options={"require": list(_REQUIRED)},
            )
        except (jwt.PyJWTError, TypeError, ValueError) as error:
            raise UnauthorizedError(
                Message("errors.oidc-token-not-valid", reason=type(error).__name__)
            ) from error
        return self._with_rights(claims)

    def _with_rights(self, claims: Mapping[str, Any]) -> Principal:
        held = _groups_in(claims, self._claim)
        rights = [each for each in self._groups if each.group in held]
        if not rights:
            raise ForbiddenError(Message("errors.oidc-no-group"))
        scopes = tuple(scope for scope in SCOPES if any(scope in each.scopes for each in rights))
        team = next((each.team for each in rights if each.team), "")
        # Of this issuer alone, so that its subject tells a person from all others.
        name = f"sso:{_subject(str(claims['sub']))}"
        return Principal(Caller("api", name, team), scopes, f"team {team}" if team else name)

    async def _key(self, key_id: str) -> jwt.PyJWK:
        """Give a key by its id, and ask the issuer where it is old, or was changed.

        A key that is known and counts waits for no answer of the issuer.
        """
        now = self._clock()
        is_known = key_id in self._keys and now - self._read_at < STALE
        is_due = now - self._read_at >= FRESH or key_id not in self._keys
        if is_due and now - self._tried_at >= AGAIN and self._reading is None:
            self._tried_at = now
            self._reading = asyncio.create_task(self._read())
        if not is_known and self._reading is not None:
            await asyncio.shield(self._reading)
        if self._clock() - self._read_at >= STALE:
            raise UnreachableError(Message("errors.oidc-issuer-away"))
        if key_id not in self._keys:
            raise UnauthorizedError(Message("errors.oidc-token-not-valid", reason="unknown key"))
        return self._keys[key_id]

    async def _read(self) -> None:
        """Take what the issuer publishes, if it does so in time."""
        asked = self._clock()
        try:
            if (found := await asyncio.to_thread(self._published)) is not None:
                self._keys, self._read_at = found, asked
        finally:
            self._reading = None

    def _published(self) -> dict[str, jwt.PyJWK] | None:
        """Ask the issuer for its keys; None where it does not give them."""
        try:
            with httpx.Client(timeout=TIMEOUT_S, follow_redirects=False, trust_env=False) as client:
                place = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
                until = monotonic() + ANSWER_S
                told = _Discovery.model_validate_json(_document(client, place, until))
                if told.issuer != self._issuer:
                    return None
                _check_address(told.jwks_uri)
                listed = _KeySet.model_validate_json(_document(client, told.jwks_uri, until))
        except (httpx.HTTPError, httpx.InvalidURL, ValidationError, ValueError, SettingsError):
            return None
        return dict(filter(None, map(_usable, listed.keys)))


def _usable(row: Mapping[str, Any]) -> tuple[str, jwt.PyJWK] | None:
    """Give a key by its id; None where it is not for signing, or by an algorithm that is not taken."""
    algorithm = ALGORITHMS.get(str(row.get("kty")))
    is_ours = row.get("use") in (None, "sig") and row.get("alg") in (None, algorithm)
    if algorithm is None or not is_ours or not isinstance(row.get("kid"), str):
        return None
    try:
        key = jwt.PyJWK(dict(row), algorithm)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    is_short = algorithm == "RS256" and key.key.key_size < LEAST_RSA_BITS
    return None if is_short else (row["kid"], key)


def _key_id(token: str) -> str:
    """Read which key a token says it is signed with; nothing else of its head is believed."""
    try:
        head = jwt.get_unverified_header(token) if len(token) <= LONGEST_TOKEN else {}
    except jwt.PyJWTError as error:
        raise UnauthorizedError(Message("errors.oidc-token-not-valid", reason="no token")) from error
    if not isinstance(head.get("kid"), str) or head.get("alg") not in ALGORITHMS.values():
        raise UnauthorizedError(Message("errors.oidc-token-not-valid", reason="algorithm or key"))
    return str(head["kid"])


def is_token(text: str) -> bool:
    """Tell a token of three parts from a key."""
    return text.count(".") == 2 and text.startswith("eyJ")


def _groups_in(claims: Mapping[str, Any], path: str) -> Sequence[str]:
    """Give the groups under a claim; some issuers keep them deeper, as `realm_access.roles`."""
    found: Any = claims.get(path)
    if found is None:
        found = claims
        for part in path.split("."):
            found = found.get(part) if isinstance(found, dict) else None
    if isinstance(found, str):
        return (found,)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else ()


def _subject(subject: str) -> str:
    """Give a subject as callers are named; one with other signs by its hash."""
    return (
        subject
        if _PLAIN.fullmatch(subject)
        else hashlib.sha256(subject.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    )


def _check_address(url: str) -> None:
    """Raise SettingsError where keys would come in the clear from another machine, or from no address."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise SettingsError(Message("errors.oidc-issuer-no-address", url=url)) from error
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    if not is_safe or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise SettingsError(Message("errors.oidc-issuer-no-address", url=url))


def _document(client: httpx.Client, url: str, until: float) -> bytes:
    with client.stream("GET", url) as response:
        response.raise_for_status()
        whole = bytearray()
        for piece in response.iter_bytes():
            whole += piece
            if len(whole) > MAX_DOCUMENT:
                raise ValueError("too long")
            if monotonic() > until:
                raise ValueError("too slow")
    return bytes(whole)
