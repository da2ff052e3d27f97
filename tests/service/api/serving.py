"""A real web server in a thread, and what is said to it byte by byte."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from fastapi import FastAPI

from service.api import serving
from service.settings import Settings
from tests.waiting import PATIENCE


class Address(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The server's address as a URL."""
        return f"http://{self.host}:{self.port}"

    def connect(self) -> socket.socket:
        """Open a connection."""
        return socket.create_connection(self, timeout=PATIENCE)


@contextmanager
def served(app: FastAPI, settings: Settings) -> Iterator[Address]:
    """Serve an app on loopback until the block ends."""
    server = serving.server(app, settings)
    bound = socket.create_server(("127.0.0.1", 0), backlog=128)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        wait_for(lambda: server.started)
        yield Address("127.0.0.1", bound.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        bound.close()


def wait_for(is_so: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until something is so; fails where it does not come to be."""
    ends = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < ends, "it did not come to be"
        time.sleep(0.02)


def received(connection: socket.socket) -> bytes:
    """Take all that a server sends until it closes the connection."""
    told = b""
    while piece := connection.recv(65536):
        told += piece
    return told
