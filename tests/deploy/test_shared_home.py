"""Servers of one database and one home, as the chart and the compose file have several of them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from service.api.client import Client
from tests.service.batches.jobs import crash
from tests.service.persistence.cluster import Cluster, programs
from tests.ui.shell import COMMAND, surroundings
from tests.waiting import until
from tests.warm import triage, warm

__all__ = ["triage", "warm"]
pytestmark = pytest.mark.long
COUNT = 60


@contextmanager
def _server(home: Path, database: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    made = surroundings(home, WHYCRASH_DATABASE=database, WHYCRASH_PORT=str(port), WHYCRASH_WORKERS="1")
    with (home / f"{port}.log").open("wb") as told:
        process = subprocess.Popen(
            [*COMMAND, "serve"], env=made, cwd=home, stdout=told, stderr=told, start_new_session=True
        )
    url = f"http://127.0.0.1:{port}"
    try:
        yield process, url
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").is_success
    except httpx.HTTPError:
        return False


@pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed")
def test_that_a_batch_of_a_killed_server_is_ended_by_another(warm: Path, tmp_path: Path) -> None:
    """The second one finds the uploaded logs where the first has put them, and each job ends once."""
    home, logs = tmp_path / "home", tmp_path / "logs"
    shutil.copytree(warm, home)
    logs.mkdir()
    for number in range(COUNT):
        (logs / f"job{number}.log").write_text(crash(number), encoding="utf-8")
    cluster = Cluster(programs() or Path())
    cluster.start()
    try:
        database = cluster.database()
        with _server(home, database) as (first, one):
            until(lambda: _answers(one), "the first server answers")
            with _server(home, database) as (_, two):
                until(lambda: _answers(two), "the second server answers")
                with Client(one) as client:
                    batch = client.batch(sorted(logs.iterdir())).id
                os.killpg(first.pid, signal.SIGKILL)
                with Client(two) as client:
                    ended = client.wait(batch, timeout=300)
                    names = Counter(result.job.name for result in client.results(batch) if result.job)
        assert ended.state == "done"
        assert ended.counts.get("failed", 0) == 0
        assert len(names) == COUNT
        assert set(names.values()) == {1}
    finally:
        cluster.remove()
