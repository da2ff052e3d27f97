"""A server that has keys stays closed, whatever becomes of its database."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr

from service.api import access as access_module
from service.api import keys
from service.api.access import Authorizer
from service.api.app import create_app
from service.api.browsers import OriginPolicy
from service.app.admission import Admission
from service.app.triage_service import TriageService
from service.batches.batches import BatchService, open_store
from service.persistence.database import NAME
from service.persistence.key_seal import MARK, SECRET
from service.persistence.store import Store
from service.schemas.errors import StoreError, UnauthorizedError
from service.schemas.records import JobPlace, JobSpec, KeyRecord, Scope
from service.settings import Settings
from service.workers.pool import ProcessPool
from tests.service.api.conftest import bearer, opened, settings_at
from tests.service.api.serving import wait_for

Spoil = Callable[[Path], None]


def _overwritten(file: Path) -> None:
    _without_log(file)
    with file.open("r+b") as stream:
        stream.write(b"\x00no database\xff" * 400)


def _truncated(file: Path) -> None:
    _without_log(file)
    os.truncate(file, file.stat().st_size // 2)


def _emptied(file: Path) -> None:
    _without_log(file)
    os.truncate(file, 0)


def _deleted(file: Path) -> None:
    for path in file.parent.glob(f"{file.name}*"):
        path.unlink()


def _replaced(file: Path) -> None:
    """Put the database of a new installation in its place, as a copy of before the first key."""
    other = file.parent / "other"
    Store.open(settings_at(other)).close()
    _without_log(other / NAME)
    _deleted(file)
    shutil.move(other / NAME, file)


def _rows_deleted(file: Path) -> None:
    _execute(file, "DELETE FROM keys")


def _table_dropped(file: Path) -> None:
    _execute(file, "DROP TABLE keys")


def _schema_wiped(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        names = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
        ]
    _execute(file, "PRAGMA foreign_keys = OFF", *(f'DROP TABLE "{name}"' for name in names))


def _unreadable_rows(file: Path) -> None:
    _execute(file, "UPDATE keys SET scopes = 'root everything', created = 'yesterday'")


def _execute(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file, timeout=20)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def _without_log(file: Path) -> None:
    with closing(sqlite3.connect(file, timeout=20)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for end in ("-wal", "-shm"):
        file.with_name(file.name + end).unlink(missing_ok=True)


SPOILED: Mapping[str, Spoil] = {
    "overwritten": _overwritten,
    "truncated": _truncated,
    "emptied": _emptied,
    "deleted": _deleted,
    "replaced by a fresh one": _replaced,
    "rows deleted": _rows_deleted,
    "table dropped": _table_dropped,
    "schema wiped": _schema_wiped,
    "rows unreadable": _unreadable_rows,
}


def _let_in(settings: Settings, store: Store, access: Authorizer | None = None) -> str:
    """Ask as a program on this machine does, without a key.

    Gives as whom it is let in, empty where it is not.
    """
    found = access or Authorizer(
        Admission(settings, ProcessPool(settings)), OriginPolicy(settings), store.keys
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access_module, "FRESH", 0.0)  # the keys are read again
        try:
            return asyncio.run(found.authenticate("127.0.0.1", {"host": "127.0.0.1"})).caller.name
        except (UnauthorizedError, StoreError):
            return ""


@pytest.fixture
def home(warm: Path, tmp_path: Path) -> Path:
    """A home whose installation has a key."""
    made = shutil.copytree(warm, tmp_path / "home")
    with Store.open(settings_at(made)) as store:
        store.keys.add(keys.make_key("ci", ["admin"], datetime.now(UTC))[0])
    return made


@pytest.mark.long
def test_that_a_spoiled_database_opens_a_server_to_nobody_in_its_midst(tmp_path: Path) -> None:
    """Whatever happens to the file while it is served, and whatever is put in its place: without a key, no
    answer.
    """
    wrong = []
    for number, (name, spoil) in enumerate(SPOILED.items()):
        settings = settings_at(tmp_path / str(number))
        with Store.open(settings, timeout=0.2) as store:
            store.keys.add(keys.make_key("ci", ["admin"], datetime.now(UTC))[0])
            access = Authorizer(
                Admission(settings, ProcessPool(settings)), OriginPolicy(settings), store.keys
            )
            before = _let_in(settings, store, access)
            spoil(settings.home / NAME)
            spoiled = _let_in(settings, store, access)
            # What the engine does where it meets the damage: a new database in the place of the old one.
            with suppress(StoreError):
                store.renew(settings)
            # The second one is of a server that begins with the new database.
            after = [_let_in(settings, store, access), _let_in(settings, store)]
        if any((before, spoiled, *after)):
            wrong.append((name, before, spoiled, after))
    assert wrong == []


@pytest.mark.long
def test_that_a_spoiled_database_opens_a_server_that_starts_to_nobody(tmp_path: Path) -> None:
    """The next start makes a new database where it has to, and lets nobody in until a key is made on the
    machine; where there never was a key, this machine stays let in.
    """
    wrong = []
    for has_keys in (True, False):
        for number, (name, spoil) in enumerate(SPOILED.items()):
            settings = settings_at(tmp_path / f"{has_keys}-{number}")
            with Store.open(settings) as store:
                if has_keys:
                    store.keys.add(keys.make_key("ci", ["admin"], datetime.now(UTC))[0])
            spoil(settings.home / NAME)
            with suppress(StoreError), open_store(settings) as store:
                found = _let_in(settings, store)
                # A table that is missing is no answer, and none is let in on it.
                expected = "" if has_keys or name == "table dropped" else "local"
                if found != expected:
                    wrong.append((name, has_keys, found))
    assert wrong == []


def test_that_the_way_back_is_a_new_key(home: Path) -> None:
    """A sentence says so; the key that is made then is taken."""
    _deleted(home / NAME)
    settings = settings_at(home)
    with TriageService(settings) as triage_service, opened(create_app(settings, triage_service)) as client:
        told = client.get("/v1/triages")
        assert (told.status_code, "whycrash keys add" in told.json()["detail"]) == (401, True)
        record, token = keys.make_key("again", ["triage"], datetime.now(UTC))
        triage_service.store.keys.add(record)
        wait_for(lambda: client.get("/v1/triages", headers=bearer(token)).status_code == 200)
        assert client.get("/v1/triages").status_code == 401


def test_that_it_is_kept_beside_the_database_that_there_are_keys(home: Path) -> None:
    """For its owner alone; also where the keys were made before it was kept, or by another server over the
    same database.
    """
    mark = home / MARK
    assert stat.S_IMODE(mark.stat().st_mode) == 0o600
    mark.unlink()
    with Store.open(settings_at(home)) as store:
        assert not store.keys.were_ever()
        assert store.keys.all()
        assert store.keys.were_ever()


def test_that_a_key_is_not_made_where_it_cannot_be_kept_that_there_are_keys(tmp_path: Path) -> None:
    """Else it would be in the database alone."""
    with Store.open(settings_at(tmp_path)) as store:
        store.keys.seal.mark = tmp_path / NAME / MARK  # below a file
        with pytest.raises(StoreError, match="cannot be written"):
            store.keys.add(keys.make_key("ci", ["admin"], datetime.now(UTC))[0])
        assert store.keys.all() == ()


def test_that_a_mark_that_cannot_be_looked_up_is_taken_for_one(tmp_path: Path) -> None:
    """A folder that does not let us look tells nothing.

    Here a link that leads round in a circle stands for it, which stops root as well.
    """
    with Store.open(settings_at(tmp_path)) as store:
        (tmp_path / MARK).symlink_to(tmp_path / MARK)
        assert store.keys.were_ever()


def test_that_batches_that_are_put_together_again_are_still_their_owners(home: Path) -> None:
    """By the key's id that the journal holds."""
    settings = settings_at(home)
    with open_store(settings) as store:
        made = BatchService(settings, store).accept(
            "night",
            "lines",
            [JobSpec(name="one", place=JobPlace(paths=("/logs/one",)))],
            caller="abcdef012345",
        )
    _deleted(home / NAME)
    with open_store(settings) as store:
        assert store.batches.get(made.id).caller == "abcdef012345"


def _made(store: Store, name: str, scope: Scope = "triage") -> tuple[KeyRecord, str]:
    record, token = keys.make_key(name, [scope], datetime.now(UTC))
    store.keys.add(record)
    return record, token


def _taken(settings: Settings, token: str) -> bool:
    """Ask with a key, as a server that starts now answers."""
    with Store.open(settings) as store:
        found = Authorizer(Admission(settings, ProcessPool(settings)), OriginPolicy(settings), store.keys)
        try:
            asyncio.run(found.authenticate("127.0.0.1", {**bearer(token), "host": "127.0.0.1"}))
        except UnauthorizedError:
            return False
    return True


def test_that_a_database_with_keys_of_somebody_else_lets_them_in_nowhere(tmp_path: Path) -> None:
    """Whoever puts it there knows these keys; the way back is a new one of this machine."""
    settings, foreign = settings_at(tmp_path / "home"), settings_at(tmp_path / "foreign")
    with Store.open(settings) as store:
        _made(store, "own")
    with Store.open(foreign) as store:
        _, token = _made(store, "theirs", "admin")
    assert _taken(foreign, token)
    for name in (NAME, MARK):
        _deleted(settings.home / NAME)
        _without_log(foreign.home / NAME)
        shutil.copy(foreign.home / NAME, settings.home / NAME)
        if name == MARK:  # and their list with it, signed by them
            shutil.copy(foreign.home / MARK, settings.home / MARK)
        assert not _taken(settings, token), name
        with Store.open(settings) as store:
            assert store.keys.all() == ()
            assert _let_in(settings, store) == ""
            _, new = _made(store, "new")
        assert _taken(settings, new), name
        assert not _taken(settings, token), name


def test_that_no_row_of_the_database_makes_a_key_or_more_of_one(tmp_path: Path) -> None:
    """A row put in, one with more scopes or another hash, a revoked one in force again."""
    settings = settings_at(tmp_path)
    with Store.open(settings) as store:
        record, token = _made(store, "own")
        gone, revoked = _made(store, "gone", "admin")
        store.keys.revoke(gone.id, datetime.now(UTC))
    foreign, theirs = keys.make_key("theirs", ["admin"], datetime.now(UTC))
    assert (_taken(settings, token), _taken(settings, revoked)) == (True, False)
    row = f"'{foreign.id}', name, '{foreign.hash}', 'admin', created, NULL, NULL, ''"
    changes = {
        "put in": (f"INSERT INTO keys SELECT {row} FROM keys LIMIT 1", theirs),
        "in force again": (f"UPDATE keys SET revoked = NULL WHERE id = '{gone.id}'", revoked),
        "another hash": (f"UPDATE keys SET hash = '{foreign.hash}' WHERE id = '{record.id}'", token),
        "more scopes": (f"UPDATE keys SET scopes = 'triage admin' WHERE id = '{record.id}'", token),
    }
    let_in = []
    for how, (statement, asked) in changes.items():
        _execute(settings.home / NAME, statement)
        let_in += [how] if _taken(settings, asked) else []
    assert let_in == []


def test_that_an_old_copy_of_the_database_brings_no_revoked_key_back(tmp_path: Path) -> None:
    """The others of the copy are taken still."""
    settings = settings_at(tmp_path / "home")
    with Store.open(settings) as store:
        _, kept = _made(store, "kept")
        record, token = _made(store, "revoked")
    _without_log(settings.home / NAME)
    shutil.copy(settings.home / NAME, tmp_path / "copy")
    with Store.open(settings) as store:
        store.keys.revoke(record.id, datetime.now(UTC))
    _deleted(settings.home / NAME)
    shutil.copy(tmp_path / "copy", settings.home / NAME)
    assert (_taken(settings, kept), _taken(settings, token)) == (True, False)


def test_that_a_list_that_was_changed_lets_nobody_in(tmp_path: Path) -> None:
    """Emptied, cut, of an earlier version's form, or without its secret: nobody, nor this machine."""
    settings = settings_at(tmp_path)
    with Store.open(settings) as store:
        record, token = _made(store, "own")
    mark, secret = tmp_path / MARK, tmp_path / SECRET
    assert [stat.S_IMODE(path.stat().st_mode) for path in (mark, secret)] == [0o600, 0o600]
    right, signed_by = mark.read_text(), secret.read_bytes()
    says = right.rpartition("\n\n")[0]
    lists = {
        "emptied": "",
        "cut": right[:-10],
        "without a list": says + "\n",
        "an empty list": f"{says}\n\n{{}}",
        "another signature": f'{says}\n\n{{"{record.id}": "{"0" * 64}"}}',
        "no text": f'{says}\n\n{{"{record.id}": 1}}',
    }
    wrong = []
    for how, text in lists.items():
        mark.write_text(text)
        with Store.open(settings) as store:
            wrong += [how] if _taken(settings, token) or _let_in(settings, store) else []
    mark.write_text(right)
    secret.write_bytes(b"x" * 32)
    wrong += ["another secret"] if _taken(settings, token) else []
    secret.unlink()
    wrong += ["no secret"] if _taken(settings, token) else []
    secret.write_bytes(signed_by)
    assert wrong == []
    assert _taken(settings, token)


def test_that_keys_of_an_earlier_version_and_of_a_shared_database_are_taken(tmp_path: Path) -> None:
    """The first kept no list; the second is that of several servers, whose own rights protect it."""
    settings = settings_at(tmp_path / "home")
    with Store.open(settings) as store:
        record, token = _made(store, "own")
    (settings.home / SECRET).unlink()
    (settings.home / MARK).write_text("This installation of whycrash has, or had, API keys.\n")
    assert _taken(settings, token)
    assert record.id in (settings.home / MARK).read_text()
    shared = SecretStr(f"sqlite:///{tmp_path / 'shared.db'}")
    one, other = (settings_at(tmp_path / name, database=shared) for name in ("one", "other"))
    with Store.open(one) as store:
        _, token = _made(store, "of one")
    assert _taken(other, token)
    assert (other.home / MARK).exists()
