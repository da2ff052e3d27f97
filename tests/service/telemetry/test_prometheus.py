"""Prometheus is asked for the range before a crash: the real server where it is installed, and only allowed
hosts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from service.telemetry import prometheus
from service.telemetry.conditions import SnapshotContext, evaluate
from service.telemetry.errors import TelemetryError, UnknownHostError
from tests.ports import free_port
from tests.service.telemetry.makers import served, waited
from tests.tables import each_row
from tests.waiting import PATIENCE

ALLOWED = ("127.0.0.1", "prom.example:9090")

# Speaks as a DCGM exporter and an engine do; once a file is there, a card counts two uncorrectable errors and
# Xid 94.
EXPORTER = """
import http.server, os, sys
def page():
    late = os.path.exists(sys.argv[2])
    for card in (0, 1):
        labels = f'gpu="{card}",UUID="GPU-{card}",modelName="NVIDIA H100",Hostname="n1"'
        bad = late and card == 1
        for name, value in (('DCGM_FI_DEV_XID_ERRORS', 94 * bad), ('DCGM_FI_DEV_ECC_DBE_VOL_TOTAL', 2 * bad),
                            ('DCGM_FI_DEV_FB_USED', 70000), ('DCGM_FI_DEV_FB_FREE', 11000),
                            ('DCGM_FI_DEV_GPU_UTIL', 100)):
            yield f'{name}{{{labels}}} {value}'
    yield 'vllm:kv_cache_usage_perc{engine="0"} 0.97'
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/plain; version=0.0.4')
        self.end_headers()
        self.wfile.write(('\\n'.join(page()) + '\\n').encode())
    def log_message(self, *told): pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Page).serve_forever()
"""


@contextmanager
def running(*words: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process of our own until the block ends."""
    with (
        Path(os.devnull).open("wb") as nowhere,
        subprocess.Popen(words, stdout=nowhere, stderr=nowhere) as child,
    ):
        try:
            yield child
        finally:
            child.kill()


@contextmanager
def real_server(folder: Path) -> Iterator[int]:
    """Run an exporter and a Prometheus that scrapes it each second; give the server's port."""
    exporter, port = free_port(), free_port()
    config = folder / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n"
        f"  - {{job_name: dcgm, static_configs: [{{targets: ['127.0.0.1:{exporter}']}}]}}\n",
        encoding="utf-8",
    )
    words = (
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    )
    with running(sys.executable, "-c", EXPORTER, str(exporter), str(folder / "broken")):
        waited(exporter)
        with running(str(shutil.which("prometheus")), *words):
            waited(port)
            yield port


def until_seen(port: int, query: str, seconds: float = PATIENCE) -> None:
    """Wait until a query has a result."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = httpx.get(f"http://127.0.0.1:{port}/api/v1/query", params={"query": query})
        if answer.is_success and answer.json()["data"]["result"]:
            return
        time.sleep(0.3)
    raise TimeoutError(query)


@pytest.mark.skipif(not shutil.which("prometheus"), reason="the Prometheus server is not installed")
@pytest.mark.long
def test_that_a_real_server_gives_the_range_before_the_crash(tmp_path: Path) -> None:
    """Growth, the fresh Xid, memory and the course come out of a scraped exporter.

    What it lacks is not available.
    """
    with real_server(tmp_path) as port:
        until_seen(port, "count_over_time(DCGM_FI_DEV_XID_ERRORS[1m]) > 2")
        (tmp_path / "broken").touch()
        until_seen(port, "DCGM_FI_DEV_XID_ERRORS == 94")
        server = prometheus.parse_address(f"prometheus://127.0.0.1:{port}?instance=127.*&minutes=1", ALLOWED)
        found = prometheus.query_snapshot(server, time.time())
        other = prometheus.query_snapshot(
            prometheus.parse_address(f"prometheus://127.0.0.1:{port}?instance=nobody", ALLOWED), time.time()
        )
    good, bad = found.gpus
    assert (good.xids.value, bad.xids.value) == ((), (94,))
    assert (good.ecc_uncorrected_new.value, bad.ecc_uncorrected_new.value) == (0, 2)
    assert (bad.memory_total_gib.value, bad.utilisation.value, found.serving.cache_usage.value) == (
        79.102,
        100.0,
        0.97,
    )
    assert bad.nvlink_errors.unavailable == "Prometheus has no DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"
    assert evaluate("xid:94", SnapshotContext(found)).holds
    assert {row.name for row in found.history} >= {"gpus.memory_used_gib", "gpus.utilisation"}
    assert "no series" in (other.kernel.events.unavailable or "")


@each_row(
    ("address", "message"),
    [
        ("prometheus://elsewhere:9090?instance=a", "not among the hosts"),
        ("prometheus://prom.example:9091?instance=a", "not among the hosts"),
        ("prometheus://127.0.0.1@elsewhere?instance=a", "not among the hosts"),
        ("prometheus://?instance=a", "not among the hosts"),
    ],
)
def test_that_a_host_that_is_not_allowed_is_not_asked(address: str, message: str) -> None:
    with pytest.raises(UnknownHostError, match=message):
        prometheus.parse_address(address, ALLOWED)


@each_row(
    ("address", "message"),
    [
        ("ftp://127.0.0.1?instance=a", "begins with none of"),
        ("prometheus://127.0.0.1:99999?instance=a", "is no address"),
        ("prometheus://u:p@127.0.0.1?instance=a", "user name"),
        ("prometheus://127.0.0.1", "whose metrics"),
        ("prometheus://127.0.0.1?a-b=1", "whose metrics"),
        ("prometheus://127.0.0.1?instance=", "whose metrics"),
        ("prometheus://127.0.0.1?instance=a&at=yesterday", "is no time"),
        ("prometheus://127.0.0.1?instance=a&minutes=0", "no number"),
        ("prometheus://127.0.0.1?instance=a&minutes=99999999999", "no number"),
    ],
)
def test_that_a_wrong_address_says_what_is_wrong(address: str, message: str) -> None:
    with pytest.raises(TelemetryError, match=message):
        prometheus.parse_address(address, ALLOWED)


def test_that_an_address_is_taken_apart() -> None:
    found = prometheus.parse_address(
        "prometheus+https://prom.example:9090/base/?pod=train-.*&at=2026-03-02T10:00:00Z&minutes=90", ALLOWED
    )
    assert (found.base, found.selector, found.minutes) == (
        "https://prom.example:9090/base",
        {"pod": "train-.*"},
        90,
    )
    assert found.at == datetime(2026, 3, 2, 10, tzinfo=UTC)


def test_that_a_selector_is_quoted() -> None:
    assert (
        prometheus.query_of(["a", "b"], {"pod": 'x"} or up{y="'})
        == r'{__name__=~"a|b",pod=~"x\"} or up{y=\""}'
    )


@each_row("crash", [None, -62e9, 253402300799.0])
def test_that_a_log_without_a_day_asks_for_one(crash: float | None) -> None:
    with pytest.raises(TelemetryError, match=r"add .at=TIME"):
        prometheus.query_snapshot(
            prometheus.parse_address("prometheus://127.0.0.1?instance=a", ALLOWED), crash
        )


@each_row(
    "body",
    [
        "",
        "[]",
        '{"status": "error", "error": "no"}',
        '{"status": "success"}',
        '{"status": "success", "data": {"result": [{}]}}',
    ],
)
def test_that_a_server_that_answers_nonsense_leaves_everything_not_available(
    body: str, tmp_path: Path
) -> None:
    page = tmp_path / "page"
    page.write_text(body, encoding="utf-8")
    with served({"/api/v1/query_range": str(page)}) as port:
        found = prometheus.query_snapshot(
            prometheus.parse_address(f"prometheus://127.0.0.1:{port}?instance=a", ALLOWED), 1e9
        )
    assert "could not be asked" in found.sources[0]
    assert not found.host.memory_total_gib.known


def test_that_a_server_that_is_down_takes_no_answer_away() -> None:
    found = prometheus.query_snapshot(
        prometheus.parse_address(f"prometheus://127.0.0.1:{free_port()}?instance=a", ALLOWED), 1e9
    )
    assert "could not be asked" in (found.kernel.events.unavailable or "")
