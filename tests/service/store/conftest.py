"""A store over each of the two databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pydantic import SecretStr

from service.settings import Settings
from service.store.store import Store
from tests.service.store.cluster import Cluster, programs

MakeSettings = Callable[..., Settings]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL that all tests of a session share."""
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    made = Cluster(found)
    made.start()
    yield made
    made.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, make_settings: MakeSettings) -> Settings:
    """Settings of an empty database: a file, then one of a real PostgreSQL."""
    if request.param == "sqlite":
        return make_settings()
    return make_settings(database=SecretStr(request.getfixturevalue("cluster").database()))


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
