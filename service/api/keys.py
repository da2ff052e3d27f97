"""API keys: `whycrash_<id>_<secret>`. The secret is 256 random bits; only its SHA-256 is kept.

A fast hash suffices because the secret is random and long: there is nothing to guess that a slow one would
protect.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

from corpus.message import Message
from service.app.admission import SCOPES
from service.schemas.errors import InvalidRequestError
from service.schemas.records import KeyRecord, Scope

NAME_LENGTH = 100

_TEAM = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_TOKEN = re.compile(r"whycrash_(?P<id>[0-9a-f]{12})_(?P<secret>[A-Za-z0-9_-]{43})")
# Compared with where there is no such key, so that a wrong id takes as long as a wrong secret.
_NOBODY = sha256(b"").hexdigest()


def make_key(name: str, scopes: Sequence[str], now: datetime, team: str = "") -> tuple[KeyRecord, str]:
    """Make a key; gives its record and the token, which is shown once. Raises InvalidRequestError."""
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        raise InvalidRequestError(
            Message("errors.key-scopes-got", scopes=", ".join(SCOPES), unknown=", ".join(unknown) or "none")
        )
    if not name or len(name) > NAME_LENGTH or not name.isprintable():
        raise InvalidRequestError(Message("errors.key-name-1-printable", name_length=NAME_LENGTH))
    checked_team(team)
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    kept: tuple[Scope, ...] = tuple(scope for scope in SCOPES if scope in scopes)
    return KeyRecord(
        id=key_id, name=name, hash=hash_secret(secret), scopes=kept, created=now, team=team
    ), f"whycrash_{key_id}_{secret}"


def is_team(name: str) -> bool:
    """Tell whether a team may be called so."""
    return _TEAM.fullmatch(name) is not None


def checked_team(name: str) -> str:
    """Give a team's name, or none; raises InvalidRequestError where no team may be called so."""
    if name and not is_team(name):
        raise InvalidRequestError(Message("errors.key-team", team=repr(name[:NAME_LENGTH])))
    return name


def hash_secret(secret: str) -> str:
    """Give what is kept of a secret."""
    return sha256(secret.encode()).hexdigest()


def parse_key(token: str) -> tuple[str, str] | None:
    """Give a token's id and secret; None where it has another form."""
    match = _TOKEN.fullmatch(token)
    return (match["id"], match["secret"]) if match else None


def key_matches(record: KeyRecord | None, secret: str) -> bool:
    """Tell whether the secret is the key's and the key is in force; takes the same time for any wrong one."""
    right = hmac.compare_digest(record.hash if record else _NOBODY, hash_secret(secret))
    return right and record is not None and record.revoked is None
