"""What goes wrong below the store: locks, damage, a full disk, a killed process, a server that is gone."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy.exc import DBAPIError, OperationalError

from service.persistence import opening
from service.persistence import store as store_module
from service.persistence.errors import DamagedStoreError, DeadlockError, suspicion, translate_error
from service.persistence.store import Store
from service.schemas.errors import ConflictError, DiskFullError, NotFoundError, StoreError
from service.schemas.records import KeyRecord
from service.settings import Settings
from tests.service.persistence.cluster import Cluster, programs
from tests.service.persistence.contenders import (
    SPAWN,
    at_once,
    fill,
    fill_up,
    hang_in_a_batch,
    hang_in_a_write,
)
from tests.service.persistence.makers import NOW, add, later, triage
from tests.tables import each_row
from tests.waiting import PATIENCE

DAY = 24 * 3600


def db(settings: Settings) -> Path:
    return settings.home / "whycrash.db"


def filled(settings: Settings) -> Path:
    """Make a database of some hundred pages, all of them in the file; gives the file."""
    with Store.open(settings) as store:
        for number in range(200):
            store.triages.add(triage(id=f"T{number:03}", telemetry="x" * 3000))
    return db(settings)


def damage(file: Path, begin: int = 40_960, size: int = 200_000) -> None:
    """Write over some pages."""
    with file.open("r+b") as handle:
        handle.seek(begin)
        handle.write(b"\xa5" * size)


def killed(work: Callable[..., None], settings: Settings) -> None:
    """Run a function in a process that is killed in the middle of it."""
    ready = SPAWN.Event()
    process = SPAWN.Process(target=work, args=(settings, ready), daemon=True)
    process.start()
    assert ready.wait(PATIENCE)
    process.kill()
    process.join()


def test_that_a_locked_file_says_so_after_a_while_and_works_again(file_settings: Settings) -> None:
    with (
        Store.open(file_settings, timeout=0.2) as store,
        closing(sqlite3.connect(db(file_settings), isolation_level=None)) as other,
    ):
        store.triages.add(triage())
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="is locked by another process") as caught:
            store.triages.add(triage(id="T2"))
        assert caught.value.wait
        assert (store.check(), store.triages.get("T1").id) == ("", "T1")
        other.execute("ROLLBACK")
        store.triages.add(triage(id="T2"))


def test_that_a_locked_table_says_so_after_a_while(server_settings: Settings, cluster: Cluster) -> None:
    name = server_settings.database.get_secret_value().split("/")[3].split("?")[0]
    with Store.open(server_settings, timeout=0.2) as store, cluster.connect(name) as other:
        with other.transaction():
            other.execute("LOCK TABLE triages")
            with pytest.raises(StoreError, match="is locked by another process"):
                store.triages.add(triage())
        store.triages.add(triage())


def test_that_a_thread_that_waits_too_long_for_the_others_is_told(file_settings: Settings) -> None:
    with (
        Store.open(file_settings, timeout=0.2) as store,
        store.database.write(),
        pytest.raises(StoreError, match="is busy"),
    ):
        store.triages.add(triage())


@pytest.mark.parametrize("begin", [0, 40_960], ids=["head", "middle"])
def test_that_a_damaged_file_is_refused_with_what_to_do(file_settings: Settings, begin: int) -> None:
    damage(filled(file_settings), begin)
    with pytest.raises(DamagedStoreError, match="is damaged") as caught:
        Store.open(file_settings)
    assert caught.value.damaged
    assert caught.value.status == 503


@pytest.mark.parametrize(
    "harm",
    [damage, lambda file: os.truncate(file, 100_000), lambda file: file.write_bytes(b"no database" * 999)],
)
def test_that_a_damaged_file_is_moved_aside_where_that_is_asked_for(
    file_settings: Settings, harm: Callable[[Path], None]
) -> None:
    file = filled(file_settings)
    harm(file)
    before = file.read_bytes()
    with Store.open(file_settings, replace_damaged=True) as store:
        assert store.replaced is not None
        assert store.replaced.name.startswith("whycrash.db.damaged-")
        assert store.replaced.read_bytes() == before
        assert (store.check(), store.triages.page()) == ("", ((), None))
        store.triages.add(triage())
    with Store.open(file_settings, replace_damaged=True) as store:
        assert (store.replaced, store.triages.get("T1").id) == (None, "T1")


def test_that_damage_met_while_running_is_looked_for_at_the_next_start(
    file_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the file were too large to be checked at every start.
    monkeypatch.setattr(opening, "CHECKED", 0)
    file = filled(file_settings)
    damage(file, 400_000)
    with (
        Store.open(file_settings) as store,
        pytest.raises(DamagedStoreError, match="Stop whycrash and start it again"),
    ):
        store.triages.page(limit=500)
    assert suspicion(file).exists()
    with Store.open(file_settings, replace_damaged=True) as store:
        assert store.replaced is not None
        assert not suspicion(file).exists()


def test_that_a_suspicion_without_ground_passes(file_settings: Settings) -> None:
    file = filled(file_settings)
    suspicion(file).touch()
    with Store.open(file_settings) as store:
        assert store.triages.get("T001").id == "T001"
    assert not suspicion(file).exists()


@pytest.mark.long
def test_that_a_file_that_may_grow_no_more_is_a_full_disk(file_settings: Settings) -> None:
    ((count, error, found),) = at_once(fill_up, [(file_settings, 2 << 20)])
    assert error == "DiskFullError"
    assert count > 10
    assert found == [f"T{count - 1:06}", f"T{count - 2:06}"]
    with Store.open(file_settings) as store:
        assert len(store.triages.page(limit=10_000)[0]) == count
        store.triages.add(triage(id="after"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this user may mount nothing")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_that_a_full_disk_says_so_and_loses_nothing_that_stood(small_disk: Path) -> None:
    settings = Settings(home=small_disk / "home")
    with Store.open(settings) as store:
        count, error, found = fill(store)
        assert error == "DiskFullError"
        assert found[0] == f"T{count - 1:06}"
        with pytest.raises(DiskFullError, match="free some space") as caught:
            add(store, 5000)
        assert caught.value.status == 507
        assert "no room" in store.check()
    with Store.open(settings) as store:
        assert len(store.triages.page(limit=10_000)[0]) == count
        with pytest.raises(NotFoundError):
            store.batches.get("B1")


def test_that_a_transaction_whose_process_is_killed_never_was(settings: Settings) -> None:
    with Store.open(settings) as store:
        store.triages.add(triage())
        killed(hang_in_a_write, settings)
        assert store.triages.get("T1").id == "T1"
        store.triages.add(triage(id="T2"))


@pytest.mark.long
@pytest.mark.parametrize(("after", "left"), [(DAY, 1), (DAY + 1, 0)])
def test_that_a_batch_whose_process_is_killed_while_it_comes_never_was(
    settings: Settings, after: int, left: int
) -> None:
    with Store.open(settings) as store:
        killed(hang_in_a_batch, settings)
        assert (store.batches.page(), store.batches.claim("me", 9, 60, NOW)) == (((), None), [])
        store.retention.tidy(later(after))
        with store.database.read() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM batches").scalar() == left


def test_that_a_server_that_is_gone_says_so_and_comes_back(make_settings: Callable[..., Settings]) -> None:
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    cluster = Cluster(found)
    cluster.start()
    try:
        with Store.open(make_settings(database=SecretStr(cluster.database()))) as store:
            store.triages.add(triage())
            cluster.stop()
            assert "cannot be reached" in store.check()
            with pytest.raises(StoreError, match="see that its server runs") as caught:
                store.triages.get("T1")
            assert caught.value.wait
            cluster.start()
            assert (store.check(), store.triages.get("T1").id) == ("", "T1")
    finally:
        cluster.remove()


def test_that_a_server_that_is_not_there_does_not_tell_the_password(
    make_settings: Callable[..., Settings], tmp_path: Path
) -> None:
    url = SecretStr(f"postgresql://ann:hunter22@/whycrash?host={tmp_path}")
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        Store.open(make_settings(database=url))
    assert "hunter22" not in str(caught.value)


def test_that_a_file_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StoreError, match="cannot be written"):
        Store.open(Settings(home=tmp_path / "file" / "home"))


def test_that_a_database_that_stores_nothing_is_not_ready(
    file_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading from it goes on; a limit on the size of files stands for the full disk."""
    monkeypatch.setattr(store_module, "STORES", 0.0)
    before, limits = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    with Store.open(file_settings) as store:
        store.triages.add(triage())
        assert store.check() == ""
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))
        try:
            assert "no room" in store.check()
            assert store.triages.get("T1").id == "T1"
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, before)
        assert store.check() == ""


def server_error(kind: type[psycopg.Error], gone: bool = False) -> DBAPIError:
    return OperationalError("SELECT 1", {}, kind("it says so\nat length"), connection_invalidated=gone)


@each_row(
    ("error", "kind", "words"),
    [
        (server_error(psycopg.errors.DiskFull), DiskFullError, "no room"),
        (server_error(psycopg.errors.DeadlockDetected), DeadlockError, "too many at once"),
        (server_error(psycopg.errors.LockNotAvailable), StoreError, "locked"),
        (server_error(psycopg.errors.AdminShutdown), StoreError, "cannot be reached"),
        (server_error(psycopg.errors.TooManyConnections), StoreError, "cannot be reached"),
        (server_error(psycopg.OperationalError), StoreError, "cannot be reached"),
        (server_error(psycopg.InterfaceError, gone=True), StoreError, "cannot be reached"),
        (server_error(psycopg.errors.InvalidPassword), StoreError, "does not let us in"),
        (server_error(psycopg.errors.InvalidCatalogName), StoreError, "does not let us in"),
        (server_error(psycopg.errors.InsufficientPrivilege), StoreError, "does not let us in"),
        (server_error(psycopg.errors.DataCorrupted), DamagedStoreError, "is damaged"),
        (server_error(psycopg.errors.UniqueViolation), ConflictError, "already"),
        (server_error(psycopg.errors.UndefinedTable), StoreError, "failed"),
    ],
    ids=lambda value: type(getattr(value, "orig", value)).__name__ if isinstance(value, DBAPIError) else "",
)
def test_that_a_servers_errors_say_what_can_be_done(
    error: DBAPIError, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught, translate_error("postgresql://host/db"):
        raise error
    assert type(caught.value) is kind
    assert "at length" not in str(caught.value)
    assert caught.value.__cause__ is error


def test_that_no_text_of_a_job_stands_in_an_errors_message(store: Store) -> None:
    store.triages.add(triage(source="the-secret-project.log"))
    with pytest.raises(ConflictError) as caught:
        store.triages.add(triage(source="the-secret-project.log"))
    assert "secret-project" not in f"{caught.value} {caught.value.__cause__}"


def test_that_a_running_store_goes_on_with_a_new_database_where_its_own_is_damaged(
    file_settings: Settings,
) -> None:
    """What holds the store, or a part of it, need not know."""
    file = filled(file_settings)
    with Store.open(file_settings) as store:
        triages = store.triages
        damage(file)
        store.renew(file_settings)
        assert store.check() == ""
        assert triages.page()[0] == ()
        triages.add(triage())
        assert len(triages.page()[0]) == 1
        assert store.replaced is not None


def test_that_servers_over_one_file_go_on_together_where_one_of_them_puts_a_new_one_in_its_place(
    file_settings: Settings,
) -> None:
    file = filled(file_settings)
    with Store.open(file_settings) as first:
        first.triages.get("T199")
        with closing(sqlite3.connect(file)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        damage(file)
        with Store.open(file_settings, replace_damaged=True) as second:
            assert second.replaced
            first.triages.add(triage(id="T900"))
            assert second.triages.get("T900").id == first.triages.get("T900").id


def test_that_a_store_whose_file_is_away_for_a_moment_makes_no_empty_one(
    file_settings: Settings, tmp_path: Path
) -> None:
    file = filled(file_settings)
    with Store.open(file_settings) as store:
        store.triages.get("T199")
        away = file.rename(tmp_path / "away")
        assert store.triages.get("T199").id == "T199"
        assert not file.exists()
        away.rename(file)
        store.triages.add(triage(id="T900"))
    with Store.open(file_settings) as store:
        assert store.triages.get("T900").id == "T900"


def test_that_a_key_is_good_also_while_nothing_can_be_written(file_settings: Settings) -> None:
    with (
        Store.open(file_settings, timeout=0.1) as store,
        closing(sqlite3.connect(db(file_settings), isolation_level=None)) as other,
    ):
        store.keys.add(KeyRecord(id="k", name="k", hash="h", scopes=("triage",), created=NOW))
        other.execute("BEGIN IMMEDIATE")
        store.keys.used("k", NOW)
        other.execute("ROLLBACK")
        assert store.keys.get("k").last_used is None
