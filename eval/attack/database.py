"""Attacks on a server with keys by its database: deleted, replaced, spoiled, while it runs and before."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path

from eval.attack.target import Attack, Target

_NAME = "whycrash.db"
# A key that somebody else has made up.
_ID, _SECRET = "ab" * 6, "x" * 43
_THEIRS = f"'{_ID}', name, '{sha256(_SECRET.encode()).hexdigest()}', 'admin', created"
_COLUMNS = "id, name, hash, scopes, created"
_PUT_IN = f"INSERT INTO keys ({_COLUMNS}) SELECT {_THEIRS} FROM keys LIMIT 1"  # noqa: S608 - our own words


def _deleted(home: Path) -> None:
    for path in home.glob(f"{_NAME}*"):
        path.unlink()


def _replaced(home: Path, content: bytes) -> None:
    _deleted(home)
    (home / _NAME).write_bytes(content)


def _execute(home: Path, statement: str) -> None:
    with closing(sqlite3.connect(home / _NAME, timeout=20)) as connection:
        connection.execute(statement)
        connection.commit()


_SPOILED: dict[str, Callable[[Path], None]] = {
    "its keys deleted": partial(_execute, statement="DELETE FROM keys"),
    "another's key in it": partial(_execute, statement=_PUT_IN),
    "deleted": _deleted,
    "emptied": partial(_replaced, content=b""),
    "overwritten": partial(_replaced, content=b"\0no database\xff" * 4000),
}


def _open_doors(target: Target, when: str) -> list[str]:
    theirs = {"authorization": f"Bearer whycrash_{_ID}_{_SECRET}"}
    with target.client() as client:
        paths = ("/v1/triages", "/v1/status", "/", "/metrics")
        return [
            f"{when}: {path} {answer.status_code}"
            for path in paths
            for headers in ({}, theirs)
            if (answer := client.get(path, headers=headers)).status_code not in (401, 429, 503)
        ]


def _spoiled(target: Target) -> str:
    """Spoil the database in each way; nobody is let in, in the midst of it and after a new start."""
    fell = []
    kept = target.folder / "kept"
    target.stop()
    shutil.copytree(target.home, kept)
    for how, spoil in _SPOILED.items():
        shutil.rmtree(target.home)
        shutil.copytree(kept, target.home)
        target.start()
        spoil(target.home)
        fell += _open_doors(target, f"{how}, running")
        target.stop()
        target.start(until="/healthz")
        fell += _open_doors(target, f"{how}, started again")
        target.stop()
    made = target.command("keys", "add", "new", "--scope", "admin").stdout.strip()
    target.tokens["admin"] = made
    target.start()
    with target.client("admin") as client:
        back = client.get("/v1/status").status_code
    return ", ".join(fell + ([f"a new key is answered {back}"] if back != 200 else []))


ATTACKS = (Attack("Database deleted, emptied, overwritten, without keys, with another's", _spoiled),)
