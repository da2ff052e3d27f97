"""`whycrash serve` as people run it: processes of their own, several over one PostgreSQL, one of them
killed.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.service.persistence.cluster import started
from tests.ui.shell import surroundings
from tests.waiting import PATIENCE
from tests.warm import INCIDENTS, ROOT

OFFLOAD = INCIDENTS / "w-easyr1-offload-host-ram"
JOBS = 60
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@dataclass(frozen=True)
class Server:
    """A server that runs: its process and its address."""

    process: subprocess.Popen[bytes]
    url: str

    def kill(self) -> None:
        """Kill it as a machine that is lost."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=PATIENCE)


Start = Callable[..., Server]


@contextmanager
def starting(folder: Path) -> Iterator[Start]:
    """Start servers, and stop those that are left."""
    started: list[Server] = []

    def start(home: Path, **environment: str) -> Server:
        said = folder / f"server-{len(started)}"
        with said.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "ui.cli.main", "serve", "--port", "0"],
                cwd=ROOT,
                stdout=stream,
                stderr=stream,
                env=surroundings(home, WHYCRASH_WORKERS="1", **environment),
            )
        until = time.monotonic() + PATIENCE
        while not (found := _ADDRESS.search(said.read_text(encoding="utf-8"))):
            assert process.poll() is None, said.read_text(encoding="utf-8")
            assert time.monotonic() < until, said.read_text(encoding="utf-8")
            time.sleep(0.1)
        started.append(Server(process, found[0]))
        return started[-1]

    try:
        yield start
    finally:
        for server in started:
            if server.process.poll() is None:
                server.process.terminate()
                server.process.wait(timeout=PATIENCE)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start servers for one test."""
    with starting(tmp_path) as made:
        yield made


@pytest.fixture
def postgres() -> Iterator[str]:
    """The URL of a real, empty PostgreSQL."""
    with started() as cluster:
        yield cluster.database()


def archive() -> bytes:
    """Pack jobs that died of different things."""
    stream = io.BytesIO()
    logs = sorted(INCIDENTS.glob("*/log.txt"), key=lambda path: path.stat().st_size)[:JOBS]
    with zipfile.ZipFile(stream, "w") as packed:
        for number, log in enumerate(logs):
            packed.writestr(f"job-{number:03d}.log", log.read_bytes())
    return stream.getvalue()


def done(url: str, batch: str, timeout: float = PATIENCE) -> dict[str, object]:
    """Wait until a batch is over; gives it."""
    until = time.monotonic() + timeout
    while True:
        found: dict[str, object] = httpx.get(f"{url}/v1/batches/{batch}", timeout=PATIENCE).json()
        if found["state"] == "done":
            return found
        assert time.monotonic() < until, found
        time.sleep(0.2)


@pytest.mark.long
def test_that_one_process_serves_the_page_and_the_api_and_ends_when_told(
    warm: Path, tmp_path: Path, start: Start
) -> None:
    home = shutil.copytree(warm, tmp_path / "home")
    server = start(home)
    page = httpx.get(server.url, timeout=PATIENCE)
    assert page.status_code == 200
    assert "text/html" in page.headers["content-type"]
    answer = httpx.post(
        f"{server.url}/v1/triage", files={"log": (OFFLOAD / "log.txt").read_bytes()}, timeout=PATIENCE
    )
    assert answer.json()["cause"] == "cpu-offload-pressure"
    server.process.terminate()
    assert server.process.wait(timeout=PATIENCE) in (0, -signal.SIGTERM)


@pytest.mark.long
def test_that_the_api_is_served_without_the_pages_packages(warm: Path, tmp_path: Path, start: Start) -> None:
    home = shutil.copytree(warm, tmp_path / "home")
    server = start(home, PYTHONPATH=_without("gradio", tmp_path))
    answer = httpx.post(
        f"{server.url}/v1/triage", files={"log": (OFFLOAD / "log.txt").read_bytes()}, timeout=PATIENCE
    )
    assert answer.json()["cause"] == "cpu-offload-pressure"
    assert httpx.get(server.url, timeout=PATIENCE).status_code == 404
    assert "There is no chat page. This needs gradio" in (tmp_path / "server-0").read_text(encoding="utf-8")


def test_that_a_missing_package_ends_the_command_in_a_sentence(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "ui.cli.main", "serve", "--port", "0"],
        cwd=ROOT,
        env=surroundings(tmp_path, PYTHONPATH=_without("fastapi", tmp_path)),
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("whycrash: This needs fastapi, which is not installed: `pip install ")
    assert len(ended.stderr.splitlines()) == 1


def _without(package: str, folder: Path) -> str:
    """Give a search path on which a package is not found, as where it is not installed."""
    hidden = folder / f"without-{package}"
    hidden.mkdir()
    said = f"raise ModuleNotFoundError(\"No module named '{package}'\", name={package!r})"
    (hidden / f"{package}.py").write_text(f"{said}\n", encoding="utf-8")
    return f"{hidden}:{ROOT}"


@pytest.mark.long
def test_that_an_answer_is_there_after_a_restart(warm: Path, tmp_path: Path, start: Start) -> None:
    home = shutil.copytree(warm, tmp_path / "home")
    server = start(home)
    answer = httpx.post(
        f"{server.url}/v1/triage", files={"log": (OFFLOAD / "log.txt").read_bytes()}, timeout=PATIENCE
    )
    server.process.terminate()
    server.process.wait(timeout=PATIENCE)
    again = start(home)
    kept = httpx.get(f"{again.url}/v1/triages/{answer.json()['id']}", timeout=PATIENCE).json()
    assert kept["diagnosis"]["cause"] == "cpu-offload-pressure"


@pytest.mark.long
def test_that_a_port_that_is_taken_is_told_in_a_sentence(warm: Path, tmp_path: Path) -> None:
    home = shutil.copytree(warm, tmp_path / "home")
    with socket.create_server(("127.0.0.1", 0)) as other:
        ended = subprocess.run(
            [sys.executable, "-m", "ui.cli.main", "serve", "--port", str(other.getsockname()[1])],
            cwd=ROOT,
            env=surroundings(home),
            capture_output=True,
            check=False,
            timeout=PATIENCE,
        )
    assert ended.returncode == 2
    assert b"cannot be bound" in ended.stderr
    assert b"Traceback" not in ended.stderr


@pytest.mark.long
def test_that_another_address_is_refused_without_a_key(warm: Path, tmp_path: Path) -> None:
    home = shutil.copytree(warm, tmp_path / "home")
    ended = subprocess.run(
        [sys.executable, "-m", "ui.cli.main", "serve", "--host", "0.0.0.0", "--port", "0"],  # noqa: S104
        cwd=ROOT,
        env=surroundings(home),
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    assert ended.returncode == 2
    assert b"whycrash keys add" in b" ".join(ended.stderr.split())


@pytest.mark.long
def test_that_servers_share_a_database_and_one_that_is_killed_leaves_its_batch_to_the_other(
    warm: Path, tmp_path: Path, start: Start, postgres: str
) -> None:
    """Two machines, as far as one machine can show: homes of their own, one PostgreSQL."""
    homes = [shutil.copytree(warm, tmp_path / name) for name in ("one", "two")]
    one, two = (start(home, WHYCRASH_DATABASE=postgres) for home in homes)
    answer = httpx.post(
        f"{one.url}/v1/triage", json={"text": "RuntimeError: CUDA error: out of memory"}, timeout=PATIENCE
    ).json()
    assert (
        httpx.get(f"{two.url}/v1/triages/{answer['id']}", timeout=PATIENCE).json()["diagnosis"]["id"]
        == answer["id"]
    )

    # Handed in at the one that lives on: its copies lie where the other one, on this machine, can read them
    # too.
    accepted = httpx.post(
        f"{two.url}/v1/batches",
        files={"log": ("night.zip", archive())},
        data={"name": "night"},
        timeout=PATIENCE,
    )
    assert accepted.status_code == 202
    batch = accepted.json()["id"]
    one.kill()
    found = done(two.url, batch)
    rows = httpx.get(f"{two.url}/v1/batches/{batch}/results", timeout=PATIENCE).text.splitlines()
    assert found["counts"] == {"done": JOBS}
    assert len(rows) == JOBS
