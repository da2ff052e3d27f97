"""The server under load: started, killed, started again on the same home; and what it takes, sampled."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from service.api.client import Client
from service.schemas.errors import ServiceError

# A first start builds the index, minutes on a machine that is busy.
STARTS_WITHIN = 600.0
LOOK_S = 1.0


class Sample(NamedTuple):
    """What processes held: seconds since the start, MiB of the server and of all, open files.

    Memory is what is no file's.
    """

    at: float
    life: int
    server_mb: float
    all_mb: float
    files: int


@dataclass
class SoakTarget:
    """A server on loopback; a context manager."""

    home: Path
    # What the server says; not in the home, whose disk may be full.
    log: Path
    workers: int
    # SQLAlchemy's URL of an empty database; empty is SQLite in the home.
    database: str = ""
    # Where the vectors are kept; empty is this machine alone.
    chroma: str = ""
    # The module that serves, and variables of its environment beside those here.
    program: str = "eval.bench.server"
    more: Mapping[str, str] = field(default_factory=dict)
    lives: int = 0
    # What happened, after how many seconds; and how often what was killed.
    notes: list[tuple[float, str]] = field(default_factory=list)
    killed: Counter[str] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    _process: subprocess.Popen[bytes] | None = None
    _is_up: bool = False
    _over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Choose a port that is free now; it is taken again after each kill."""
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port: int = probe.getsockname()[1]
        self._sampler = threading.Thread(target=self._sample, daemon=True)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        self._sampler.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._sampler.join()
        self._end()

    def _end(self) -> None:
        if self._process and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        made = {name: value for name, value in os.environ.items() if not name.startswith("WHYCRASH_")}
        made |= {
            "WHYCRASH_HOME": str(self.home),
            "WHYCRASH_PORT": str(self.port),
            "WHYCRASH_WORKERS": str(self.workers),
            "WHYCRASH_RATE_LIMIT": "0",
        }
        if self.database:
            made["WHYCRASH_DATABASE"] = self.database
        if self.chroma:
            made["WHYCRASH_CHROMA_URL"] = self.chroma
        if embedder := os.environ.get("WHYCRASH_EMBEDDING_MODEL"):
            made["WHYCRASH_EMBEDDING_MODEL"] = embedder
        made |= self.more
        self.home.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - a module of ours
                [sys.executable, "-m", self.program], env=made, stdout=log, stderr=log, start_new_session=True
            )
        # What it takes while it starts says nothing of how it grows.
        self._is_up = False
        ends = time.monotonic() + STARTS_WITHIN
        while not self._answers():
            if time.monotonic() > ends or self._process.poll() is not None:
                self._end()
                log_end = self.log.read_text(encoding="utf-8", errors="replace")[-2000:]
                raise RuntimeError(f"the server does not start: {log_end}")
            time.sleep(0.2)
        self.lives += 1
        self._is_up = True

    def kill_worker(self, dice: random.Random) -> None:
        """Kill one of its processes with -9."""
        found = _children(self._pid)
        if found:
            with suppress(ProcessLookupError):
                os.kill(dice.choice(found), signal.SIGKILL)
            self._count_kill("a worker")

    def kill_server(self) -> None:
        """Kill it with all of its processes, and start it again."""
        os.killpg(self._pid, signal.SIGKILL)
        if self._process:
            self._process.wait()
        self._count_kill("the server")
        self.start()

    @property
    def _pid(self) -> int:
        return self._process.pid if self._process else 0

    def note(self, what: str) -> None:
        """Note that something happened just now, and tell whoever watches."""
        at = time.monotonic() - self.began
        self.notes.append((at, what))
        sys.stderr.write(f"{at:.0f} s: {what}\n")

    def _count_kill(self, what: str) -> None:
        self.killed[what] += 1
        self.note(what)

    def is_ready(self) -> bool:
        """Ask whether it takes work, by its own word."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=10.0) as told:  # noqa: S310 - loopback
                return bool(told.status == HTTPStatus.OK)
        except OSError:
            return False

    def _answers(self) -> bool:
        try:
            with Client(self.url, timeout=5.0) as client:
                client.search("oom", 1)
        except ServiceError:
            return False
        return True

    def _sample(self) -> None:
        while not self._over.wait(LOOK_S):
            server = self._pid
            if not self._is_up:
                continue
            with suppress(OSError, ValueError, IndexError):
                files = len(os.listdir(f"/proc/{server}/fd"))  # noqa: PTH208 - a Path of each would be made
                own = _held(server)
                every = own + sum(map(_held, _children(server)))
                self.samples.append(Sample(time.monotonic() - self.began, self.lives, own, every, files))


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, path.read_text(encoding="ascii").split())
    return found


def _held(pid: int) -> float:
    """Give the MiB of a process that are no file's: those come and go with what else the machine does."""
    with suppress(OSError):
        resident, of_files = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1:3]
        return (int(resident) - int(of_files)) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    return 0.0
