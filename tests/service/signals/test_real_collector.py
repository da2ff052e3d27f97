"""What is sent for a collector, taken and passed on by a real one: Rotel, in a process of its own.

It is installed into a folder of the test's own, by its lock; where no package index is reached, it is not.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import pypi
from tests.ports import free_port
from tests.service.signals.collector import Collected, collecting, values
from tests.service.signals.test_signals import CONTENT, LOG, QUICK, home
from tests.tables import each_row
from tests.ui.shell import COMMAND, surroundings
from tests.waiting import PATIENCE, until
from tests.warm import triage, warm

__all__ = ["home", "triage", "warm"]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The collector's program; the test is skipped where it cannot be installed."""
    folder = pypi.installed(Path(__file__).parent / "rotel.lock", tmp_path_factory.mktemp("rotel"))
    return folder / "rotel" / "rotel-agent"


@contextmanager
def _running(agent: Path, folder: Path, behind: Collected) -> Iterator[dict[str, str]]:
    """Run the collector, which passes on to another one; gives its addresses by OTLP's protocols."""
    http, grpc = (f"127.0.0.1:{free_port()}" for _ in range(2))
    options = {
        "otlp-http-endpoint": http,
        "otlp-grpc-endpoint": grpc,
        "exporter": "otlp",
        "otlp-exporter-endpoint": behind.url,
        "otlp-exporter-protocol": "http",
        "batch-timeout": "100ms",
        "pid-file": str(folder / "pid"),
        "log-file": str(folder / "log"),
    }
    command = [agent, "start", *(f"--{name}={value}" for name, value in options.items())]
    with (folder / "said").open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out)
    try:
        assert process.poll() is None
        yield {"http/protobuf": f"http://{http}", "grpc": f"http://{grpc}"}
    finally:
        process.terminate()
        process.wait(PATIENCE)


@each_row("protocol", ["http/protobuf", "grpc"])
def test_that_a_real_collector_takes_what_a_command_sends(
    protocol: str, agent: Path, home: Path, tmp_path: Path
) -> None:
    """By both protocols: the stages below their trace come out behind it as they went in."""
    (tmp_path / "train.log").write_text(LOG)
    with collecting() as collected, _running(agent, tmp_path, collected) as addresses:
        environment = surroundings(
            home,
            OTEL_EXPORTER_OTLP_ENDPOINT=addresses[protocol],
            OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
            **QUICK,
        )

        def is_through() -> bool:
            """Explain, and tell whether its trace arrived: the collector takes a moment to listen."""
            command = [*COMMAND, "explain", "train.log", "--json"]
            ended = subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True)
            assert json.loads(ended.stdout)["cause"]
            return bool(collected.named("triage"))

        until(is_through, "its trace")
        until(lambda: collected.named("compose"), "its stages")
    (root, *_) = collected.named("triage")
    assert values(collected.named("compose")[0].attributes)["whycrash.verdict"]
    for stage in ("read", "retrieve", "assess", "compose"):
        assert root.span_id in {span.parent_span_id for span in collected.named(stage)}
    assert not [body for body in collected.raw if CONTENT.encode() in body]
