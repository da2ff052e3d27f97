"""`whycrash keys`: make, list and revoke API keys."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.table import Table
from rich.text import Text

from service.api import keys
from service.batches.batches import open_store
from service.persistence.store import Store
from service.schemas.records import AuditRecord
from ui.cli.codes import EXPLAINED
from ui.cli.console import load_settings, out

_LOST = (
    "There is no key any more, and there was one: a server lets nobody in until `whycrash keys add NAME` "
    "makes another."
)


def add(name: str, scopes: Sequence[str], team: str = "") -> int:
    """Make a key and print it: alone on standard output, so that a script can take it."""
    now = datetime.now(UTC)
    record, token = keys.make_key(name, scopes or ("triage",), now, team)
    with open_store(load_settings()) as store:
        store.keys.add(record)
        _note(store, "add key", record.id, now, f"team {team}" if team else "")
    sys.stderr.write(
        f"Key {record.id} ({name}) with the scopes {', '.join(record.scopes)}. It is shown this once; "
        "only its hash is kept.\n"
    )
    sys.stdout.write(f"{token}\n")
    return EXPLAINED


def show() -> int:
    """List the keys: never their secrets, only what tells them apart."""
    with open_store(load_settings()) as store:
        found, were_ever = store.keys.all(), store.keys.were_ever()
    if not found:
        out().print(
            _LOST
            if were_ever
            else "There is no key. Without one, only this machine may ask, on a loopback address."
        )
        return EXPLAINED
    table = Table(box=None, header_style="dim")
    for title in ("id", "name", "team", "scopes", "made", "last used", ""):
        table.add_column(title)
    for key in found:
        state = "revoked" if key.revoked else ""
        row = key.id, key.name, key.team, ", ".join(key.scopes), _day(key.created), _day(key.last_used), state
        table.add_row(*map(Text, row))
    out().print(table)
    return EXPLAINED


def revoke(key_id: str) -> int:
    """End a key; a server that runs takes it no more within a second. Raises NotFoundError."""
    now = datetime.now(UTC)
    with open_store(load_settings()) as store:
        store.keys.revoke(key_id, now)
        _note(store, "revoke key", key_id, now)
    out().print(f"Key {key_id} is revoked.")
    return EXPLAINED


def _day(when: datetime | None) -> str:
    return f"{when:%Y-%m-%d %H:%M}" if when else "never"


def _note(store: Store, action: str, key_id: str, now: datetime, detail: str = "") -> None:
    store.audit.add(AuditRecord(at=now, actor="cli:local", action=action, target=key_id, detail=detail))
