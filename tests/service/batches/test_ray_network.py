"""Batches on a Ray cluster of several machines with a network between them, which breaks."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.batches.batches import open_store
from service.settings import Settings
from tests.service.batches.jobs import (
    accepted,
    crash,
    ends,
    engine_process,
    jobs,
    pipe,
    reader_of,
    settings_at,
    states,
    write,
)
from tests.service.batches.own_network import TOKEN, OwnNetwork, is_possible, networked_cluster
from tests.waiting import until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not is_possible(), reason="needs root, and iproute2 with network name spaces"),
]
WORKERS = ("one", "two")
COUNT = 12
# Bytes of a log, of which a tenth is more than Ray itself sends while a batch of this size runs.
LOG = 6 << 20


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[OwnNetwork, str]]:
    """Start a cluster; a node that is unplugged stays so, and one is enough for each test."""
    with pytest.MonkeyPatch.context() as patch, networked_cluster(WORKERS) as made:
        for name, value in TOKEN.items():
            patch.setenv(name, value)
        yield made


def _settings(folder: Path, warm: Path, address: str) -> Settings:
    return settings_at(
        folder / "home", warm, ray_from=1, ray_address=address, workers=2, request_deadline=1200
    )


def test_that_logs_pass_neither_through_the_head_nor_through_the_driver(
    cluster: tuple[OwnNetwork, str], tmp_path: Path, warm: Path
) -> None:
    """Whoever works on a job reads its log: what crosses the network is what is said of it."""
    network, address = cluster
    settings = _settings(tmp_path, warm, address)
    line = "step 1 loss 0.5 of a run that says much\n"
    texts = [line * (LOG // len(line)) + crash(number) for number in range(COUNT)]
    with open_store(settings) as store:
        batch = accepted(settings, store, write(tmp_path / "logs", texts))
        before = {machine: network.carried(machine) for machine in ("head", "driver")}
        with engine_process(settings, batch, within=network.within("driver")):
            until(lambda: store.batches.get(batch).state == "done", "the batch is over")
        assert states(store, batch) == {"done": COUNT}
        for machine, was in before.items():
            assert network.carried(machine) - was < COUNT * LOG // 10, machine


def test_that_a_node_whose_cable_is_pulled_costs_no_job(
    cluster: tuple[OwnNetwork, str], tmp_path: Path, warm: Path
) -> None:
    """No connection is closed, so that only its silence tells; its job is done by the other node."""
    network, address = cluster
    settings = _settings(tmp_path, warm, address)
    stuck = tmp_path / "stuck.log"
    with open_store(settings) as store:
        specs = [pipe(stuck), *write(tmp_path / "logs", [crash(number) for number in range(COUNT)])]
        batch = accepted(settings, store, specs)
        with engine_process(settings, batch, within=network.within("driver")):
            worker, handle = reader_of(stuck)
            machine = network.machine_of(worker)
            assert machine in WORKERS
            network.unplug(machine)
            # Its end reaches nobody; were it left, it would take the log that is for the other one.
            os.kill(worker, signal.SIGKILL)
            os.close(handle)
            until(lambda: not Path(f"/proc/{worker}").exists(), "the worker is gone")
            second, handle = reader_of(stuck)
            assert network.machine_of(second) in {*WORKERS} - {machine}
            os.write(handle, crash(99).encode())
            os.close(handle)
            until(lambda: store.batches.get(batch).state == "done", "the batch is over")
        assert states(store, batch) == {"done": COUNT + 1}
        assert ends(settings, batch) == dict.fromkeys(range(1, COUNT + 2), 1)
        # It was the node's fault, and not the job's.
        assert jobs(store, batch)[0].state == "done"
