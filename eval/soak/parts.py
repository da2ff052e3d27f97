"""The parts that a server of several machines needs, started here for a soak: each is a context manager.

PostgreSQL, Chroma and Ray are the real programs, each in a folder of its own.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

_QUIET = subprocess.DEVNULL
_DEBIANS = Path("/usr/lib/postgresql")
# What a soak's database need not survive is a power cut.
_FAST = "-c fsync=off -c full_page_writes=off -c max_connections=60 -c listen_addresses="
_STARTS_WITHIN = 120.0


def free_port() -> int:
    """Give a port of loopback that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def descendants(pid: int) -> list[int]:
    """Give all processes below one."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, path.read_text(encoding="ascii").split())
    return [*found, *(below for child in found for below in descendants(child))]


class SoakPart(ABC):
    """A part that runs beside the server, in a folder that is deleted with it."""

    def __init__(self) -> None:
        # A short path: sockets lie below.
        self.folder = Path(tempfile.mkdtemp(prefix="ws-", dir="/tmp"))

    @abstractmethod
    def start(self) -> None:
        """Start it, also after it was killed."""

    @abstractmethod
    def kill(self) -> None:
        """End it at once."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(subprocess.CalledProcessError, OSError):
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class PostgresPart(SoakPart):
    """A PostgreSQL on a socket; it refuses to run as root, so it runs as the user of its package."""

    def __init__(self, programs: Path) -> None:
        super().__init__()
        self._programs = programs
        self._user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        if os.geteuid() == 0:
            shutil.chown(self.folder, self._user)
        self._data = self.folder / "data"

    @staticmethod
    def programs() -> Path | None:
        """Find the newest installed server's programs."""
        if found := shutil.which("initdb"):
            return Path(found).parent
        return max(_DEBIANS.glob("*/bin"), key=lambda path: int(path.parent.name), default=None)

    @property
    def url(self) -> str:
        """SQLAlchemy's address of its database."""
        return f"postgresql+psycopg://postgres@/postgres?host={self.folder}"

    def start(self) -> None:
        """Start it; it recovers by itself from how it ended."""
        if not self._data.exists():
            made = ["-D", str(self._data), "-U", "postgres", "-A", "trust", "--encoding=UTF8", "--locale=C"]
            self._run("initdb", [*made, "--no-sync"])
        options = f"{_FAST} -c unix_socket_directories={self.folder}"
        self._run(
            "pg_ctl", ["-D", str(self._data), "-w", "-o", options, "-l", str(self.folder / "log"), "start"]
        )

    def kill(self) -> None:
        """Stop it at once, as a power cut would."""
        self._run("pg_ctl", ["-D", str(self._data), "-w", "-m", "immediate", "stop"])

    def _run(self, program: str, arguments: Sequence[str]) -> None:
        user = self._user if os.geteuid() == 0 else None
        subprocess.run(  # noqa: S603 - PostgreSQL's own
            [str(self._programs / program), *arguments],
            check=True,
            user=user,
            cwd=self.folder,
            stdin=_QUIET,
            stdout=_QUIET,
            stderr=_QUIET,
        )


class ProgramPart(SoakPart):
    """A program that runs in the foreground, with all processes below it."""

    command: tuple[str, ...] = ()
    # What its environment has beside this process's.
    more: Mapping[str, str] = MappingProxyType({})

    def __init__(self) -> None:
        super().__init__()
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def is_up(self) -> bool:
        """Tell whether it takes part by now."""

    def start(self) -> None:
        """Start it, and wait until it takes part."""
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - chosen here
                self.command,
                cwd=self.folder,
                env={**os.environ, **self.more},
                stdin=_QUIET,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        ends = time.monotonic() + _STARTS_WITHIN
        while not self.is_up():
            if time.monotonic() > ends or self._process.poll() is not None:
                said = (self.folder / "log").read_text(encoding="utf-8", errors="replace")[-2000:]
                raise RuntimeError(f"{self.command[0]} does not start: {said}")
            time.sleep(0.2)

    def kill(self) -> None:
        """Kill it with -9, and what it started."""
        if self._process is not None:
            # First stopped, so that nothing is started anew meanwhile.
            for pid in (self._process.pid, *descendants(self._process.pid)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


class ChromaPart(ProgramPart):
    """A Chroma server."""

    def __init__(self) -> None:
        super().__init__()
        self.port = free_port()
        program = Path(sys.executable).with_name("chroma")
        self.command = (str(program), "run", "--path", str(self.folder / "data"), "--port", str(self.port))

    def is_up(self) -> bool:
        """Tell whether its port answers."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"


class RayPart(ProgramPart):
    """A program of Ray's."""

    def is_up(self) -> bool:
        """Tell whether it says so: a node that the head does not let in ends after a while."""
        return b"Ray runtime started" in (self.folder / "log").read_bytes()


class RayHeadPart(RayPart):
    """The head of a Ray cluster, which works on nothing itself."""

    def __init__(self) -> None:
        super().__init__()
        self.port = free_port()
        # What newer heads ask of nodes and programs, unless told otherwise.
        self.more = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self.command = (
            *_ray("--head", f"--port={self.port}", "--num-cpus=0", f"--temp-dir={self.folder}"),
            "--include-dashboard=false",
            f"--ray-client-server-port={free_port()}",
        )

    @property
    def address(self) -> str:
        """Where programs and nodes find it."""
        return f"127.0.0.1:{self.port}"


class RayNodePart(RayPart):
    """A node of a Ray cluster, with one processor."""

    def __init__(self, head: RayHeadPart) -> None:
        super().__init__()
        self.more = head.more
        self.command = _ray(f"--address={head.address}", "--num-cpus=1")


def _ray(*words: str) -> tuple[str, ...]:
    program = str(Path(sys.executable).with_name("ray"))
    fixed = ("--block", "--object-store-memory=80000000", "--disable-usage-stats")
    # Several nodes of one machine must not choose from the same ports.
    ports = ("--min-worker-port=0", "--max-worker-port=0")
    return (program, "start", *words, *fixed, *ports, "--node-ip-address=127.0.0.1")


class SmallDisk(SoakPart):
    """A disk of its own, in memory, that can be filled; needs the right to mount."""

    def __init__(self, megabytes: int) -> None:
        super().__init__()
        self._megabytes = megabytes
        self._filler = self.folder / "filler"

    def start(self) -> None:
        """Mount it; raises CalledProcessError where this user may not."""
        words = ["mount", "-t", "tmpfs", "-o", f"size={self._megabytes}m", "tmpfs", str(self.folder)]
        subprocess.run(  # noqa: S603 - a folder of ours
            words, check=True, stdin=_QUIET, stdout=_QUIET, stderr=_QUIET
        )

    def kill(self) -> None:
        """Take it away."""
        words = ["umount", "--lazy", str(self.folder)]
        subprocess.run(words, check=True, stdin=_QUIET, stderr=_QUIET)  # noqa: S603 - a folder of ours

    def fill(self) -> None:
        """Leave no room on it."""
        with self._filler.open("ab", buffering=0) as stream:
            for size in (1 << 20, 1 << 12, 1):
                with suppress(OSError):
                    while True:
                        stream.write(b"x" * size)

    def clear(self) -> None:
        """Make room again."""
        self._filler.unlink(missing_ok=True)
