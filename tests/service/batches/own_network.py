"""A Ray cluster whose nodes are in network name spaces of their own, as machines with a cable each.

The name spaces are joined by a bridge in one more; nothing of the machine's own network is touched, and no
address of it is used. Files and processes are seen by all, as with a shared disk.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.machine import short_folder
from tests.service.batches.jobs import ROOT, surroundings
from tests.waiting import PATIENCE, until

# Of the addresses that RFC 5737 keeps for examples.
_NET = "198.51.100"
_PORT = 6379
# The head asks its nodes each second, and takes one for dead after so many seconds without an answer.
HEALTH = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 3,
}
SMALL = ("--object-store-memory=80000000", "--disable-usage-stats", "--block")
# Who has it not gets no answer, on whatever machine.
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "t" * 40}


def is_possible() -> bool:
    """Tell whether this machine lets its user make network name spaces."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"wc{os.getpid()}try"
    made = subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True).returncode == 0
    if made:
        _ip("netns", "del", name)
    return made


class OwnNetwork:
    """Machines by their names, each with an interface `eth0` on the same bridge."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mark = f"wc{os.getpid()}"
        self._hub = f"{self._mark}-hub"
        self._names: list[str] = []
        self._started: list[subprocess.Popen[bytes]] = []
        _ip("netns", "add", self._hub)
        _ip("-n", self._hub, "link", "add", "br0", "type", "bridge")
        _ip("-n", self._hub, "link", "set", "br0", "up")

    def add(self, machine: str) -> str:
        """Add a machine, and give its address."""
        space, port = self.space(machine), f"v{len(self._names)}"
        address = f"{_NET}.{10 + len(self._names)}"
        _ip("netns", "add", space)
        self._names.append(machine)
        _ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", self._hub)
        _ip("-n", self._hub, "link", "set", port, "master", "br0", "up")
        _ip("-n", space, "addr", "add", f"{address}/24", "dev", "eth0")
        for interface in ("lo", "eth0"):
            _ip("-n", space, "link", "set", interface, "up")
        return address

    def space(self, machine: str) -> str:
        """Name a machine's name space."""
        return f"{self._mark}-{machine}"

    def within(self, machine: str) -> Sequence[str]:
        """Give the words before a command that is to run on a machine."""
        return ("ip", "netns", "exec", self.space(machine))

    def machine_of(self, process: int) -> str:
        """Name the machine that a process runs on."""
        return _ip("netns", "identify", str(process)).strip().removeprefix(f"{self._mark}-")

    def unplug(self, machine: str) -> None:
        """Pull a machine's cable: what is sent from then on gets lost, and no connection is closed."""
        _ip("-n", self.space(machine), "link", "set", "eth0", "down")

    def carried(self, machine: str) -> int:
        """Give how many bytes went through a machine's interface, in and out."""
        (link,) = json.loads(_ip("-n", self.space(machine), "-s", "-j", "link", "show", "eth0"))
        return sum(int(link["stats64"][way]["bytes"]) for way in ("rx", "tx"))

    def start_ray(self, machine: str, address: str, head: str, cores: int) -> None:
        """Start a node of a cluster, or its head where the head's address is its own."""
        place = [f"--node-ip-address={address}", f"--num-cpus={cores}"]
        if address == head:
            place += ["--head", f"--port={_PORT}", "--include-dashboard=false", f"--temp-dir={self.folder}"]
            place += [f"--system-config={json.dumps(HEALTH)}"]
        else:
            place += [f"--address={head}:{_PORT}"]
        command = [
            *self.within(machine),
            sys.executable,
            "-m",
            "ray.scripts.scripts",
            "start",
            *place,
            *SMALL,
        ]
        said = self.folder / f"{machine}.said"
        with said.open("wb") as out:
            process = subprocess.Popen(
                command, cwd=ROOT, env=surroundings() | TOKEN, stdout=out, stderr=out, start_new_session=True
            )
        self._started.append(process)

        def is_up() -> bool:
            told = said.read_text(errors="replace")
            assert process.poll() is None, told[-3000:]
            return "Ray runtime started" in told

        until(is_up, f"Ray runs on {machine}")

    def close(self) -> None:
        """End all that runs on the machines, and take the network down."""
        spaces = [*map(self.space, self._names), self._hub]
        until(lambda: sum(map(_kill, spaces)) == 0, "what ran on the machines is gone")
        for process in self._started:
            process.wait(PATIENCE)
        for space in spaces:
            _ip("netns", "del", space)


@contextmanager
def networked_cluster(workers: Sequence[str]) -> Iterator[tuple[OwnNetwork, str]]:
    """Start a head and the driver's node without processors, and workers with one each.

    Gives the network and the cluster's address; batches run on `driver`.
    """
    folder = short_folder("wn-")
    network = OwnNetwork(folder)
    try:
        addresses = {machine: network.add(machine) for machine in ("head", "driver", *workers)}
        for machine, address in addresses.items():
            # One after the other: at once they would take each other's sockets in the folder that they share.
            network.start_ray(machine, address, addresses["head"], int(machine in workers))
        yield network, f"{addresses['head']}:{_PORT}"
    finally:
        network.close()
        shutil.rmtree(folder, ignore_errors=True)


def _kill(space: str) -> int:
    """End what runs on a machine; gives how many processes there still were."""
    found = [int(word) for word in _ip("netns", "pids", space).split()]
    for number in found:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    return len(found)


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
