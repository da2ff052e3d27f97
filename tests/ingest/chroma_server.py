"""A real Chroma server of a test's own."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ingest import chroma
from tests.ports import free_port
from tests.waiting import until


class Chroma:
    """A server whose folder outlives it."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = Path(sys.executable).with_name("chroma")
        self._process = subprocess.Popen(
            [command, "run", "--path", self._folder, "--host", "127.0.0.1", "--port", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.parent,
        )
        until(self._listens, "the Chroma server listens")

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def chroma_server(folder: Path) -> Iterator[Chroma]:
    """Give a server that runs; it is stopped behind it."""
    made = Chroma(folder / "chroma")
    made.start()
    try:
        yield made
    finally:
        chroma.server_at(made.url).close()
        made.stop()
