"""Opening: made for its owner alone, migrated with its rows, refused where it is newer."""

from __future__ import annotations

import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from traceback import format_exception

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from pydantic import SecretStr
from sqlalchemy import Index, inspect, text

from service.persistence import opening
from service.persistence.database import Database, address
from service.persistence.errors import NewerStoreError
from service.persistence.schema import METADATA, VERSIONS
from service.persistence.store import Store
from service.schemas.errors import SettingsError, StoreError
from service.settings import Settings
from tests.service.factories import diagnosis
from tests.service.persistence.makers import NOW, add, triage

OLD_TRIAGE = """
INSERT INTO triages
  (id, state, origin, caller, source, created, deadline,
   language, headline, cause, error, configs, telemetry)
VALUES
  ('{id}', 'done', 'api', 'ann', '{source}', '2026-11-20 12:00:00.000000', '2026-11-20 12:01:00.000000',
   '', {headline}, NULL, '', '[]', '')
"""
OLD_BATCH = """
INSERT INTO batches (id, name, caller, source, state, created, options, left_out)
VALUES ('B1', 'old', 'ann', 'folder', 'running', '2026-11-20 12:00:00.000000', '{}', '{}')
"""
OLD_JOB = """
INSERT INTO jobs
  (batch, number, state, name, place, node_names, attempts, owner, fingerprint, root_text, error)
VALUES ('B1', 1, 'queued', 'job', '{"paths": ["/a.log"]}', '[]', 0, '', '', '', '')
"""
OLD_ANSWER = """
INSERT INTO jobs
  (batch, number, state, name, place, node_names, attempts, owner, fingerprint, root_text, error, diagnosis)
VALUES ('B1', :number, 'done', 'job', '{"paths": ["/a.log"]}', '[]', 1, '', 'f', '', '', :packed)
"""
OLD_FEEDBACK = """
INSERT INTO feedback (triage, caller, created, "right", fix, comment)
VALUES ('T1', 'ann', '2026-11-20 12:00:00.000000', 1, 'more memory', '')
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def older(request: pytest.FixtureRequest, make_settings: Callable[..., Settings]) -> Settings:
    """Settings of a database as the first version made it, with rows in it."""
    settings = make_settings()
    if request.param == "postgresql":
        settings = make_settings(database=SecretStr(request.getfixturevalue("cluster").database()))
    settings.home.mkdir()
    database = Database(address(settings))
    with database.write() as connection:
        opening.upgrade(connection, "0001")
        for number in range(2300):
            headline = "NULL" if number % 2 else f"'Rank {number} STOPPED'"
            connection.exec_driver_sql(
                OLD_TRIAGE.format(id=f"T{number:04}", source=f"Log-{number}.txt", headline=headline)
            )
        connection.exec_driver_sql(OLD_BATCH)
        connection.exec_driver_sql(OLD_JOB)
        for number in range(2, 602):
            values = {
                "number": number,
                "packed": zlib.compress(diagnosis(headline=f"It is {number}").to_json().encode()),
            }
            connection.execute(text(OLD_ANSWER), values)
    database.close()
    return settings


def test_that_an_older_schema_is_migrated_with_all_its_rows(older: Settings) -> None:
    with Store.open(older) as store:
        assert store.check() == ""
        assert len(store.triages.page(limit=5000)[0]) == 2300
        assert [item.id for item in store.triages.page("log-1234 rank stopped")[0]] == ["T1234"]
        assert [item.id for item in store.triages.page("LOG-1235.")[0]] == ["T1235"]
        assert store.batches.claim("me", 9, 60, NOW)[0].place.paths == ("/a.log",)
        assert [line.gist and line.gist.headline for line in store.batches.lines("B1")] == [
            f"It is {number}" for number in range(2, 602)
        ]
        (job,) = store.batches.jobs("B1", after=600)[0]
        assert (job.config, job.diagnosis) == ("", diagnosis(headline="It is 601"))


@pytest.mark.parametrize("name", ["file_settings", "server_settings"])
def test_that_feedback_that_stands_is_found_by_its_crash(name: str, request: pytest.FixtureRequest) -> None:
    """What a version before kept of it names its triage alone."""
    settings: Settings = request.getfixturevalue(name)
    settings.home.mkdir(exist_ok=True)
    database = Database(address(settings))
    with database.write() as connection:
        opening.upgrade(connection, "0009")
        connection.exec_driver_sql(OLD_TRIAGE.format(id="T1", source="a.log", headline="''"))
        connection.exec_driver_sql("UPDATE triages SET fingerprint = 'ab12'")
        connection.exec_driver_sql(OLD_FEEDBACK)
    database.close()
    with Store.open(settings) as store:
        found = store.crashes.earlier("T2", "ab12")
        assert found is not None
        assert (found.times, found.fix) == (1, "more memory")


def test_that_a_migration_that_fails_leaves_the_older_schema(older: Settings) -> None:
    database = Database(address(older))
    with database.write() as connection:
        # In the way of one that the migration makes.
        connection.exec_driver_sql("CREATE INDEX triages_by_caller ON triages (caller)")
    with pytest.raises(StoreError, match="failed"):
        Store.open(older)
    with database.read() as connection:
        assert opening.version(connection) == "0001"
        assert "words" not in {column["name"] for column in inspect(connection).get_columns("triages")}
    with database.write() as connection:
        connection.exec_driver_sql("DROP INDEX triages_by_caller")
    database.close()
    with Store.open(older) as store:
        assert len(store.triages.page(limit=5000)[0]) == 2300


def test_that_the_migrations_make_the_tables_that_the_code_uses(store: Store) -> None:
    with store.database.read() as connection:
        named = connection.dialect.name

        def is_for_it(item: object, _name: str, kind: str, *_others: object) -> bool:
            only = item._ddl_if if isinstance(item, Index) and kind == "index" else None
            return only is None or only.dialect == named

        context = MigrationContext.configure(connection, opts={"include_object": is_for_it})
        assert compare_metadata(context, METADATA) == []


def test_that_the_code_knows_all_versions_in_their_order() -> None:
    script = ScriptDirectory(opening.MIGRATIONS, version_locations=[f"{opening.MIGRATIONS}/versions"])
    assert tuple(revision.revision for revision in script.walk_revisions())[::-1] == VERSIONS


def test_that_a_newer_schema_is_refused_and_left_alone(settings: Settings) -> None:
    with Store.open(settings) as store:
        store.triages.add(triage())
        with store.database.write() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0999'")
        with pytest.raises(NewerStoreError, match="schema 0999, of a newer whycrash"):
            Store.open(settings, replace_damaged=True)
        assert store.check().endswith(f"has the schema 0999, not {VERSIONS[-1]}.")
        assert store.triages.get("T1").id == "T1"


def test_that_what_was_kept_is_there_after_a_restart(settings: Settings) -> None:
    with Store.open(settings) as store:
        store.triages.add(triage())
        add(store, 3)
    with Store.open(settings) as store:
        assert store.triages.get("T1", NOW) == triage()
        assert store.batches.get("B1").total == 3


def test_that_the_file_is_for_its_owner_alone(file_settings: Settings) -> None:
    with Store.open(file_settings) as store:
        store.triages.add(triage())
        modes = {
            path.name: stat.S_IMODE(path.stat().st_mode)
            for path in [file_settings.home, *file_settings.home.iterdir()]
        }
    assert modes == {
        "home": 0o700,
        "whycrash.db": 0o600,
        "whycrash.db-wal": 0o600,
        "whycrash.db-shm": 0o600,
        "whycrash.db.lock": 0o600,
    }


def test_that_a_file_that_others_could_read_is_closed_to_them(file_settings: Settings) -> None:
    Store.open(file_settings).close()
    file = file_settings.home / "whycrash.db"
    file.chmod(0o644)
    Store.open(file_settings).close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_that_sqlite_can_be_given_another_place(
    make_settings: Callable[..., Settings], tmp_path: Path
) -> None:
    file = tmp_path / "deep" / "er" / "kept.db"
    with Store.open(make_settings(database=SecretStr(f"sqlite:///{file}"))) as store:
        assert store.place == str(file)
    assert file.exists()


@pytest.mark.parametrize(
    "url",
    ["postgresql://ann:pw@db/why", "postgres+psycopg2://ann:pw@db/why", "postgresql+psycopg://ann:pw@db/why"],
)
def test_that_a_servers_url_may_name_another_driver(make_settings: Callable[..., Settings], url: str) -> None:
    if url.startswith("postgres+"):
        with pytest.raises(SettingsError):
            address(make_settings(database=SecretStr(url)))
    else:
        assert (
            address(make_settings(database=SecretStr(url))).render_as_string()
            == "postgresql+psycopg://ann:***@db/why"
        )


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("no url with pa55word", "is no URL"),
        ("quantum://ann:pa55word@db/why", "quantum"),
        ("mysql+pymysql://ann:pa55word@db/why", "SQLite or PostgreSQL"),
        ("sqlite://", "takes a file"),
        ("sqlite:///:memory:", "takes a file"),
        ("sqlite:///a.db?mode=memory", "takes a file"),
    ],
)
def test_that_a_url_that_cannot_be_used_is_refused_without_its_password(
    make_settings: Callable[..., Settings], url: str, words: str
) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        Store.open(make_settings(database=SecretStr(url)))
    assert "pa55word" not in "".join(format_exception(caught.value, limit=0))
