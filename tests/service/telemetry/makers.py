"""Makers of snapshots, logs of a moment, and servers that say what a test wants."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from service.telemetry.snapshot import Kernel, KernelEvent, Series, Snapshot, known
from tests.factories import event
from tests.ports import free_port
from tests.service.factories import report
from tests.waiting import PATIENCE

CRASH = datetime(2026, 3, 2, 10, 0, 0, tzinfo=UTC)


def snapshot(**fields: Any) -> Snapshot:
    """Make a snapshot taken a minute after the crash, with a baseline from hours before."""
    made: dict[str, Any] = {
        "taken_at": CRASH + timedelta(minutes=1),
        "baseline_at": CRASH - timedelta(hours=5),
    }
    return Snapshot(**{**made, **fields})


def xid(code: int, before_s: float = 300.0) -> KernelEvent:
    """Make a line of the driver so many seconds before the crash."""
    text = f"NVRM: Xid (PCI:0000:3b:00): {code}, pid=77, name=python"
    return KernelEvent(
        kind="xid", at=CRASH.timestamp() - before_s, code=code, device="0000:3b:00", pid=77, text=text
    )


def kernel(*events: KernelEvent) -> Kernel:
    """Make a kernel's log that was read from the day before on."""
    return Kernel(since=CRASH.timestamp() - 86400, events=known(events))


def course(name: str, *values: float, step_s: float = 60.0, **labels: str) -> Series:
    """Make a course that ends at the crash."""
    first = CRASH.timestamp() - step_s * (len(values) - 1)
    return Series(
        name=name,
        labels=labels,
        points=tuple((first + step_s * place, value) for place, value in enumerate(values)),
    )


def root(pattern: str, **fields: Any) -> Event:
    """Make a root that only follows from something: a killed task, a dead actor."""
    made: dict[str, Any] = {
        "pattern": pattern,
        "pattern_role": "collateral",
        "strength": "hints",
        "cause": None,
        "role": "root",
    }
    return event(3, **{**made, "time": "2026-03-02 10:00:00Z", **fields})


def died(pattern: str = "ray.actor-died", **fields: Any) -> CrashReport:
    """Make the report of a job of which only the end is known."""
    return report(root(pattern, **fields))


def waited(port: int, seconds: float = PATIENCE) -> None:
    """Wait until somebody listens on a port."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with socket.socket() as found:
            if found.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"nobody listens on {port}")


SERVER = """
import sys, http.server
pages = {path: open(file, 'rb').read() for path, file in zip(sys.argv[2::2], sys.argv[3::2])}
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = pages.get(self.path.split('?')[0])
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b'')
    do_POST = do_GET
    def log_message(self, *told): pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Page).serve_forever()
"""


@contextmanager
def served(pages: dict[str, str]) -> Iterator[int]:
    """Serve files at paths from a process of its own; give its port."""
    port = free_port()
    words = [word for pair in pages.items() for word in pair]
    child = subprocess.Popen([sys.executable, "-c", SERVER, str(port), *words])
    try:
        waited(port)
        yield port
    finally:
        child.kill()
        child.wait()
