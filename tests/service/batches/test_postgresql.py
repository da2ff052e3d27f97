"""Batches over a real PostgreSQL: several engines share one, and its end in mid-batch loses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from service.batches.batches import open_store
from service.settings import Settings
from tests.service.batches.jobs import accepted, crash, ends, engine_process, jobs, settings_at, states, write
from tests.service.persistence.cluster import Cluster, started
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.long

COUNT = 80


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with started() as made:
        yield made


@pytest.fixture
def settings(cluster: Cluster, tmp_path: Path, warm: Path) -> Settings:
    return settings_at(tmp_path / "home", warm, database=SecretStr(cluster.database()))


def test_that_two_engines_share_a_server_that_is_stopped_and_started_in_mid_batch(
    cluster: Cluster, settings: Settings, tmp_path: Path
) -> None:
    with open_store(settings) as store:
        batch = accepted(
            settings, store, write(tmp_path / "logs", [crash(number // 2) for number in range(COUNT)])
        )
        with engine_process(settings, batch) as one, engine_process(settings, batch) as other:
            until(lambda: states(store, batch).get("done", 0) > COUNT // 8, "the first are done")
            cluster.stop()
            cluster.start()
            assert (one.wait(PATIENCE), other.wait(PATIENCE)) == (0, 0)
        found = jobs(store, batch)
        assert {job.state for job in found} == {"done"}
        answered = {job.id for job in found if job.same_as is None}
        assert {job.same_as for job in found} - {None} <= answered
        assert len(answered) == COUNT // 2
        assert max(ends(settings, batch).values()) == 1
