"""A Ray cluster of two nodes as a program: it prints its address, kills a node when it reads a line, and ends
when nothing more comes.

A process of its own: Ray keeps what it once read of the environment, which other tests of this process set
otherwise.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.machine import short_folder
from tests.service.batches.jobs import ROOT, surroundings

NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
# A node that only has little of the processor is not dead: the one that dies closes its connections.
PATIENT = {"health_check_timeout_ms": 120_000}


class OwnCluster:
    """A cluster that runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.address = process.stdout.readline().strip()
        assert self.address, "Ray did not start"

    def lose_node(self) -> None:
        """Kill the node that is not the head; returns when its processes are gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("lose\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline().strip() == "lost"


@contextmanager
def own_cluster() -> Iterator[OwnCluster]:
    """Start a cluster of two nodes with a processor each, and end it."""
    command = [sys.executable, "-m", "tests.service.batches.own_cluster"]
    process = subprocess.Popen(
        command, cwd=ROOT, env=surroundings(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield OwnCluster(process)
    finally:
        process.communicate()


def main() -> None:
    """Do what the lines on standard input say."""
    # Imported here: the tests' own process is to know nothing of Ray.
    from ray.cluster_utils import Cluster

    folder = short_folder("wr-")
    cluster: Any = Cluster()
    try:
        cluster.add_node(**NODE, temp_dir=str(folder), _system_config=PATIENT)
        node = cluster.add_node(**NODE)
        sys.stdout.write(f"{cluster.address}\n")
        sys.stdout.flush()
        for _ in sys.stdin:
            cluster.remove_node(node, allow_graceful=False)
            sys.stdout.write("lost\n")
            sys.stdout.flush()
    finally:
        cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
