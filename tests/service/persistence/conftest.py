"""A store over each of the two databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pydantic import SecretStr
from sqlalchemy import make_url

from service.persistence.schema import METADATA, VERSIONS
from service.persistence.store import Store
from service.settings import Settings
from tests.service.persistence.cluster import Cluster, started

MakeSettings = Callable[..., Settings]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL that all tests of a session share."""
    with started() as made:
        yield made


@pytest.fixture(scope="session")
def shared(cluster: Cluster) -> SecretStr:
    """The URL of a PostgreSQL database with our tables: emptying it takes a tenth of making another."""
    url = SecretStr(cluster.database())
    Store.open(Settings(database=url)).close()
    return url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def settings(request: pytest.FixtureRequest, make_settings: MakeSettings) -> Settings:
    """Settings of an empty database: a file, then one of a real PostgreSQL."""
    if request.param == "sqlite":
        return make_settings()
    url = request.getfixturevalue("shared")
    with request.getfixturevalue("cluster").connect(make_url(url.get_secret_value()).database) as connection:
        for table in reversed(METADATA.sorted_tables):
            connection.execute(f"DELETE FROM {table.name}")
        connection.execute(f"UPDATE alembic_version SET version_num = '{VERSIONS[-1]}'")
    return make_settings(database=url)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    """An empty store over each database."""
    with Store.open(settings) as opened:
        yield opened


@pytest.fixture
def file_settings(make_settings: MakeSettings) -> Settings:
    """Settings of an empty SQLite file."""
    return make_settings()


@pytest.fixture
def server_settings(cluster: Cluster, make_settings: MakeSettings) -> Settings:
    """Settings of an empty database of a real PostgreSQL."""
    return make_settings(database=SecretStr(cluster.database()))
