"""A real Ray head with its job server, as a process of its own, that asks for a token."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from tests.ports import free_port
from tests.waiting import PATIENCE

TOKEN = "t" * 40


@contextmanager
def running_head(home: Path, **surroundings: str) -> Iterator[str]:
    """Start a head with its job server; anew where it ends, as it does when another one takes its ports."""
    for _ in range(3):
        url, process = _begun(home, surroundings)
        if _is_up(url, process):
            break
    try:
        yield url
    finally:
        # Nothing of it is to be kept, and an orderly end takes half a minute.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)


def _is_up(url: str, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the job server answers; tells False where its process has ended."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            asked("GET", url)
        except httpx.HTTPError:
            time.sleep(0.5)
        else:
            return True
    return False


def _begun(home: Path, surroundings: Mapping[str, str]) -> tuple[str, subprocess.Popen[bytes]]:
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "ray.scripts.scripts",
        "start",
        "--head",
        "--block",
        "--port=0",
        f"--dashboard-port={port}",
        "--dashboard-host=127.0.0.1",
        "--node-ip-address=127.0.0.1",
        f"--ray-client-server-port={free_port()}",
        f"--dashboard-agent-listen-port={free_port()}",
        f"--metrics-export-port={free_port()}",
        # Else workers are given ports among those of the tests, and Ray refuses to share the dashboard's.
        "--min-worker-port=0",
        "--max-worker-port=0",
        "--num-cpus=4",
        "--object-store-memory=80000000",
        f"--temp-dir={home}",
        "--disable-usage-stats",
    ]
    environment = {
        **os.environ,
        **surroundings,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": TOKEN,
        "RAY_ENABLE_AUTOSCALER_V2": "0",
    }
    with (home / "out").open("w") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)
    return f"http://127.0.0.1:{port}", process


def jobs_waited_for(url: str, until: Callable[[list[dict[str, object]]], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if until(asked("GET", url)):  # type: ignore[arg-type]
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    pytest.fail("Ray did not get there in time")


def asked(method: str, url: str, **json_body: object) -> object:
    response = httpx.request(
        method,
        f"{url}/api/jobs/",
        headers={"Authorization": f"Bearer {TOKEN}"},
        json=json_body or None,
        timeout=PATIENCE,
        trust_env=False,
    )
    response.raise_for_status()
    return response.json()


def submitted(url: str, entry: dict[str, object]) -> str:
    answer = asked("POST", url, **entry)
    assert isinstance(answer, dict)
    return str(answer["submission_id"])
