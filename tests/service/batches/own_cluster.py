"""A Ray cluster of some nodes as a program: it prints its address, does what the lines that it reads say, and
ends when nothing more comes.

A process of its own: Ray keeps what it once read of the environment, which other tests of this process set
otherwise.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tests.machine import short_folder
from tests.ports import free_port
from tests.service.batches.jobs import ROOT, surroundings
from tests.waiting import until

NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
# Objects of 20 MiB that are more than a node's store holds.
FULL = 8
# What fills it, as long as this process lives.
_held: list[Any] = []
# A node that only has little of the processor is not dead: the one that dies closes its connections.
PATIENT = {"health_check_timeout_ms": 120_000}


class OwnCluster:
    """A cluster that runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.address = process.stdout.readline().strip()
        assert self.address, "Ray did not start"

    def tell(self, deed: str) -> None:
        """Have one of `_deeds` done; returns when it is."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{deed}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline().strip() == deed


@contextmanager
def own_cluster(nodes: int = 2, redis: str = "") -> Iterator[OwnCluster]:
    """Start a cluster of nodes with a processor each, and end it; `redis`, a program, holds its state."""
    command = [sys.executable, "-m", "tests.service.batches.own_cluster", str(nodes), redis]
    process = subprocess.Popen(
        command, cwd=ROOT, env=surroundings(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield OwnCluster(process)
    finally:
        process.communicate()


def main() -> None:
    """Do what the lines on standard input say."""
    count, program = int(sys.argv[1]), sys.argv[2]
    folder = short_folder("wr-")
    server = _redis(program, folder) if program else None
    # Imported here: the tests' own process is to know nothing of Ray.
    import ray
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster()
    try:
        cluster.add_node(**NODE, temp_dir=str(folder), _system_config=PATIENT)
        nodes = [cluster.add_node(**NODE) for _ in range(count - 1)]
        deeds = _deeds(cluster, nodes, folder)
        _say(cluster.address)
        for line in sys.stdin:
            deeds[line.strip()]()
            _say(line.strip())
    finally:
        # First what this process holds of the cluster: else its files come back behind their end.
        ray.shutdown()
        cluster.shutdown()
        if server:
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _deeds(cluster: Any, nodes: list[Any], folder: Path) -> Mapping[str, Callable[[], None]]:
    """Give what can happen to a cluster; what happens to a node does to the one that came last."""

    def signalled(number: signal.Signals) -> None:
        for process in _processes(nodes[-1]):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def restart_head() -> None:
        cluster.head_node.kill_gcs_server(check_alive=False)
        cluster.head_node.start_gcs_server()

    return {
        "lose": lambda: cluster.remove_node(nodes.pop(), allow_graceful=False),
        "leave": lambda: cluster.remove_node(nodes.pop(), allow_graceful=True),
        "join": lambda: nodes.append(cluster.add_node(**NODE)),
        "stop": lambda: signalled(signal.SIGSTOP),
        "go on": lambda: signalled(signal.SIGCONT),
        "restart the head": restart_head,
        "spill": lambda: _spill(cluster, folder),
    }


def _spill(cluster: Any, folder: Path) -> None:
    """Fill the head's object store as another job does, until Ray puts objects on the disk; they stay."""
    import numpy as np
    import ray

    ray.init(address=cluster.address, namespace="another", log_to_driver=False)
    _held.extend(ray.put(np.ones(20 << 20, dtype=np.uint8)) for _ in range(FULL))
    until(lambda: any(folder.glob("session_*/*spilled_objects*/*")), "Ray spills")


def _processes(node: Any) -> list[psutil.Process]:
    """Give a node's own processes and its workers."""
    own = [psutil.Process(info.process.pid) for kinds in node.all_processes.values() for info in kinds]
    return [*own, *(child for process in own for child in process.children(recursive=True))]


def _redis(program: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start a Redis in which the cluster keeps its state, and have Ray use it."""
    port = free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with (folder / "redis.log").open("wb") as log:
        server = subprocess.Popen([program, *options], stdout=log, stderr=log)
    until(lambda: _answers(port), "Redis answers")
    os.environ["RAY_REDIS_ADDRESS"] = f"127.0.0.1:{port}"
    return server


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
