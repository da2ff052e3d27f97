"""Ports of loopback for servers that a test starts and ends.

A port that the kernel gives away is given to anybody once its server is gone: a test that kills a server
and asks after it would talk to a server of another test. The ports here lie below those that the kernel
gives, and each process of a test run has a share of its own.
"""

from __future__ import annotations

import itertools
import os
import socket
from pathlib import Path

# How many ports one process of a test run has to itself.
_SHARE = 200
_FIRST = 12_000
_GIVEN_BY_THE_KERNEL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def _share() -> range:
    """Choose the ports of this process: its number decides, so that two runs side by side differ too."""
    end = int(_GIVEN_BY_THE_KERNEL.read_text(encoding="ascii").split()[0])
    shares = (end - _FIRST) // _SHARE
    first = _FIRST + os.getpid() % shares * _SHARE
    return range(first, first + _SHARE)


_PORTS = itertools.cycle(_share())


def free_port() -> int:
    """Give a port of loopback that nobody listens on, and that no other process of the tests is given."""
    for port in itertools.islice(_PORTS, _SHARE):
        with socket.socket() as probe:
            # As servers do: a connection that has just ended does not keep its port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"each of {_SHARE} ports of loopback is in use")
