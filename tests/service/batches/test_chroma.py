"""Batches with a Chroma server that is shared: its end in mid-batch costs no job, and its return none
either.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest import pipeline
from ingest.embedder import HashEmbedder
from ingest.pipeline import IndexPlaces
from service.batches.batches import open_store
from service.batches.engine import BatchEngine
from tests.factories import silent
from tests.ingest.chroma_server import Chroma, chroma_server
from tests.service.batches.jobs import (
    accepted,
    crash,
    ends,
    jobs,
    pipe,
    reader_of,
    settings_at,
    states,
    write,
)
from tests.waiting import until

# Chroma's own dependencies warn where they are imported.
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Chroma]:
    with chroma_server(tmp_path) as running:
        yield running


def test_that_a_server_that_dies_and_comes_back_costs_no_job(
    server: Chroma, tmp_path: Path, warm: Path, small_corpus: None
) -> None:
    pipeline.refresh(tmp_path / "home", HashEmbedder(), silent, IndexPlaces(chroma_url=server.url))
    settings = settings_at(tmp_path / "home", warm, chroma_url=server.url)
    logs = write(tmp_path / "logs", [crash(number) for number in range(18)])
    gates = [pipe(tmp_path / f"gate-{number}.log") for number in (1, 2)]
    with open_store(settings) as store:
        batch = accepted(settings, store, [*logs[:6], gates[0], *logs[6:12], gates[1], *logs[12:]])
        engine = BatchEngine(settings, store, batch=batch)
        engine.start()
        for number, act in ((1, server.stop), (2, server.start)):
            _, handle = reader_of(tmp_path / f"gate-{number}.log")
            act()
            os.write(handle, crash(100 + number).encode())
            os.close(handle)
        until(lambda: store.batches.get(batch).state == "done", "the batch is over")
        engine.stop()
        assert states(store, batch) == {"done": 20}
        assert ends(settings, batch) == dict.fromkeys(range(1, 21), 1)
        answers = [job.diagnosis for job in jobs(store, batch)]
        assert all(answer is not None and answer.cases for answer in answers)
