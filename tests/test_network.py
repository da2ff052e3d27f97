"""Tests cannot reach the world."""

from __future__ import annotations

import socket

import pytest


def test_a_connection_beyond_loopback_fails() -> None:
    """An address outside this machine is refused before a packet leaves."""
    with socket.socket() as client, pytest.raises((RuntimeError, UserWarning), match=r"192\.0\.2\.1"):
        client.connect(("192.0.2.1", 80))


def test_a_connection_to_loopback_works() -> None:
    """Servers that a test starts itself can be reached."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        assert client.getpeername() == server.getsockname()
