"""Triages of 4 kB pastes a second over HTTP, latency, and behaviour under overload.

The server is a process of its own; this process is the client, with CONNECTIONS connections.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

import httpx
from rich.console import RenderableType
from rich.table import Table

from ingest import index
from service.settings import Settings, load_settings

INCIDENTS = Path(__file__).parents[1] / "incidents"
CONNECTIONS = 20
SECONDS = 20.0
# Goals: answers a second, and 99th percentiles of the latency of answers and of refusals, ms.
GOAL_RATE = 40.0
GOAL_P99_MS = 1000.0
GOAL_REFUSED_P99_MS = 150.0
PASTE_BYTES = 4096
OVERLOAD = 100
# Seconds that a refused client waits; the server asks for more.
PAUSE = 0.2
REQUESTS = 200


class TimedRequest(NamedTuple):
    """One request: its HTTP status and its milliseconds."""

    status: int
    ms: float


def run() -> RenderableType:
    """Measure a server at its usual load, under overload, and at its usual load again."""
    with tempfile.TemporaryDirectory(prefix="whycrash-bench-") as folder, serving(Path(folder)) as (url, pid):
        bodies = pastes()
        _ask(url, bodies, CONNECTIONS, 3.0)
        usual = _ask(url, bodies, CONNECTIONS, SECONDS)
        overhead = _overhead(url, pid)
        beyond = _ask(url, bodies, OVERLOAD, SECONDS / 2)
        after = _ask(url, bodies, CONNECTIONS, SECONDS / 2)
    return _table(
        {f"{CONNECTIONS} connections": usual, f"{OVERLOAD} connections": beyond, "and after that": after},
        overhead,
    )


def pastes() -> list[bytes]:
    """Give the last 4 kB of each incident's log as the body of a request."""
    found = []
    for path in sorted(INCIDENTS.glob("*/log.txt")):
        text = path.read_text(encoding="utf-8", errors="replace")[-PASTE_BYTES:]
        found.append(json.dumps({"text": text, "name": path.parent.name, "model": False}).encode())
    return found


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, int]]:
    """Start a server with the existing index, an empty database and no rate limit.

    Gives its URL and process id. Raises RuntimeError where it is not ready in five minutes.
    """
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings = load_settings()
    home = folder / "home"
    home.mkdir()
    _link_home(settings, home)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WHYCRASH_")}
    environment |= {
        "WHYCRASH_HOME": str(home),
        "WHYCRASH_RATE_LIMIT": "0",
        "WHYCRASH_PORT": str(port),
        "WHYCRASH_EMBEDDING_MODEL": settings.embedding_model,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "eval.bench.server"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url, process)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(timeout=30)


def _link_home(settings: Settings, home: Path) -> None:
    """Link index, model and compiled patterns of the configured home; the database is new."""
    if index.current(settings.home) is None:
        return
    for path in settings.home.iterdir():
        if not path.name.startswith("whycrash.db") and path.name != "batches":
            (home / path.name).symlink_to(path)


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < ends:
        with suppress(httpx.HTTPError):
            if httpx.get(f"{url}/readyz").status_code == 200:
                return
        time.sleep(0.2)
    raise RuntimeError("the server did not come up")


def _ask(url: str, bodies: Sequence[bytes], connections: int, seconds: float) -> list[TimedRequest]:
    """Send requests over `connections` at once for `seconds`; a refused client waits PAUSE seconds."""
    found: list[TimedRequest] = []
    ends = time.monotonic() + seconds
    work = [
        threading.Thread(
            target=_send_requests, args=(url, bodies[number::connections] or bodies, ends, found.append)
        )
        for number in range(connections)
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    return found


def _client(url: str) -> httpx.Client:
    # Without certificates: loading them for a hundred clients takes longer than the measurement.
    headers = {"content-type": "application/json"}
    return httpx.Client(base_url=url, timeout=60, headers=headers, verify=False)  # noqa: S501 - plain HTTP


def _send_requests(
    url: str, bodies: Sequence[bytes], ends: float, keep: Callable[[TimedRequest], None]
) -> None:
    with _client(url) as client:
        for body in itertools.cycle(bodies):
            if time.monotonic() >= ends:
                return
            began = time.perf_counter()
            status = client.post("/v1/triage", content=body).status_code
            timed = TimedRequest(status, 1000 * (time.perf_counter() - began))
            keep(asked := timed)
            time.sleep(PAUSE if asked.status == 429 else 0.0)


def _overhead(url: str, pid: int) -> dict[str, float]:
    """Give milliseconds of a request outside the worker: the client's, and the server's processor time."""
    body = pastes()[0]
    extra: list[float] = []
    with _client(url) as client:
        before = _busy(pid)
        for _ in range(REQUESTS):
            began = time.perf_counter()
            answer = client.post("/v1/triage", content=body)
            extra.append(1000 * (time.perf_counter() - began) - sum(answer.json()["timings_ms"].values()))
        spent = 1000 * (_busy(pid) - before) / REQUESTS
        before = _busy(pid)
        for _ in range(REQUESTS):
            client.get("/healthz")
        idle = 1000 * (_busy(pid) - before) / REQUESTS
    return {
        "outside of reading, searching and composing, whole way": median(extra),
        "processor time of the server's own process": spent,
        "of it for a request that does nothing": idle,
    }


def _busy(pid: int) -> float:
    """Give the processor seconds of a process, without its children."""
    times = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


def _table(runs: dict[str, list[TimedRequest]], overhead: dict[str, float]) -> Table:
    table = Table(title="Single triages of 4 kB over HTTP")
    for title in (
        "load",
        "answered a second",
        "goal",
        "p50 ms",
        "p99 ms",
        "goal",
        "refused (429)",
        "p99 of a refusal ms",
        "goal",
        "other",
    ):
        table.add_column(title, justify="right")
    for name, asked in runs.items():
        good = sorted(item.ms for item in asked if item.status == 200)
        refused = sorted(item.ms for item in asked if item.status == 429)
        others = Counter(item.status for item in asked if item.status not in (200, 429))
        seconds = {f"{CONNECTIONS} connections": SECONDS}.get(name, SECONDS / 2)
        table.add_row(
            name,
            f"{len(good) / seconds:.1f}",
            f"{GOAL_RATE:g}",
            _at(good, 0.5),
            _at(good, 0.99),
            f"{GOAL_P99_MS:g}",
            str(len(refused)),
            _at(refused, 0.99),
            f"{GOAL_REFUSED_P99_MS:g}",
            str(dict(others) or ""),
        )
    table.caption = "; ".join(f"{name}: {value:.2f} ms" for name, value in overhead.items())
    return table


def _at(values: Sequence[float], share: float) -> str:
    return f"{values[min(len(values) - 1, int(share * len(values)))]:.0f}" if values else "-"
