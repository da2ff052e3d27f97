"""A real PostgreSQL of the tests' own, on a socket in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.machine import short_folder

_PLACES = "/usr/lib/postgresql"
# The tests need not survive a power cut, and wait less without.
_FAST = "-c fsync=off -c full_page_writes=off -c max_connections=120 -c listen_addresses="


def programs() -> Path | None:
    """Find the newest installed server's programs."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    installed = sorted(Path(_PLACES).glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return installed[-1].parent if installed else None


@contextmanager
def started() -> Iterator[Cluster]:
    """Give a server that runs, and remove it; where none is installed, the test is skipped."""
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    made = Cluster(found)
    made.start()
    yield made
    made.remove()


class Cluster:
    """A server; it refuses to run as root, so it runs as the user of its package."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self.user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        # Not pytest's folder: it lets nobody else in, and is too long a path for a socket.
        self.folder = short_folder("whycrash-pg-")
        if os.geteuid() == 0:
            shutil.chown(self.folder, self.user)
        self.data = self.folder / "data"
        self._count = 0

    def start(self) -> None:
        """Make the cluster if need be, and start it."""
        if not self.data.exists():
            self._run(
                "initdb",
                [
                    "-D",
                    str(self.data),
                    "-U",
                    "postgres",
                    "-A",
                    "trust",
                    "--encoding=UTF8",
                    "--locale=C",
                    "--no-sync",
                ],
            )
        options = f"{_FAST} -c unix_socket_directories={self.folder}"
        self._run(
            "pg_ctl", ["-D", str(self.data), "-w", "-o", options, "-l", str(self.folder / "log"), "start"]
        )

    def stop(self) -> None:
        """Stop it at once, as a power cut would."""
        self._run("pg_ctl", ["-D", str(self.data), "-w", "-m", "immediate", "stop"])

    def remove(self) -> None:
        """Stop it and delete all of it."""
        self.stop()
        shutil.rmtree(self.folder)

    def database(self) -> str:
        """Make a new database; gives its URL."""
        self._count += 1
        name = f"test{self._count}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://postgres@/{name}?host={self.folder}"

    def connect(self, name: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        """Connect to a database as its owner."""
        return psycopg.connect(host=str(self.folder), user="postgres", dbname=name, autocommit=True)

    def _run(self, program: str, arguments: Sequence[str]) -> None:
        user = self.user if os.geteuid() == 0 else None
        quiet = subprocess.DEVNULL
        subprocess.run(
            [str(self._programs / program), *arguments],
            check=True,
            user=user,
            cwd=self.folder,
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
        )
