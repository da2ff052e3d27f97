"""What a collector is told of a server, of a command and of a batch, and what it never is."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from service.api.metrics import Metrics
from service.signals import tracing
from service.signals.starting import signals
from tests.service.batches.jobs import crash
from tests.service.llm.scripted import Turn, serving
from tests.service.signals.collector import Collected, collecting, values
from tests.ui.shell import COMMAND, surroundings
from tests.waiting import PATIENCE, until
from tests.warm import triage, warm

__all__ = ["triage", "warm"]

# A word that stands nowhere but in the job's log and in what the model says.
CONTENT = "zebrafinch"
LOG = f"step 1 of {CONTENT}\nRuntimeError: CUDA error: out of memory near {CONTENT}\n"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
QUICK = {
    "OTEL_BSP_SCHEDULE_DELAY": "100",
    "OTEL_BLRP_SCHEDULE_DELAY": "100",
    "OTEL_METRIC_EXPORT_INTERVAL": "200",
}


@pytest.fixture
def home(warm: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(warm, tmp_path / "home"))


def _told(home: Path, collected: Collected, **more: str) -> dict[str, str]:
    return surroundings(home, OTEL_EXPORTER_OTLP_ENDPOINT=collected.url, **QUICK, **more)


@contextmanager
def _server(home: Path, environment: dict[str, str]) -> Iterator[tuple[httpx.Client, Path]]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    log = home / "server.log"
    with log.open("wb") as told:
        command = [*COMMAND, "serve", "--port", str(port)]
        process = subprocess.Popen(
            command, env=environment, cwd=home, stdout=told, stderr=told, start_new_session=True
        )

    def answers(client: httpx.Client) -> bool:
        try:
            return client.get("/readyz").is_success
        except httpx.HTTPError:
            return False

    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
            until(lambda: answers(client), "the server answers")
            yield client, log
        process.terminate()
        process.wait(timeout=PATIENCE)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.long
def test_that_a_request_is_one_trace_from_the_server_through_a_worker_to_the_model(home: Path) -> None:
    """Its stages, the model's calls and tools by the conventions, the log's lines; and no word of content."""
    turns = [Turn(calls=(("search_log", {"words": CONTENT}),)), Turn(text=f"no {CONTENT} form")]
    script = iter(turns)
    with collecting() as collected, serving(lambda _call: next(script, turns[-1])) as model:
        environment = _told(
            home,
            collected,
            WHYCRASH_MODEL="openai:scripted",
            WHYCRASH_MODEL_BASE_URL=model.url,
            WHYCRASH_MODEL_DEADLINE=str(PATIENCE),
            WHYCRASH_WORKERS="1",
            WHYCRASH_LOG_JSON="1",
        )
        with _server(home, environment) as (client, log):
            answered = client.post("/v1/triage", json={"text": LOG}, headers={"traceparent": PARENT})
            assert answered.is_success
            scraped = client.get("/metrics", headers={"accept": "application/openmetrics-text"})
            until(
                lambda: any(span.trace_id.hex() in PARENT for span in collected.named("triage")), "its trace"
            )
        lines = [json.loads(row) for row in log.read_text().splitlines() if row.startswith("{")]
    trace = PARENT.split("-")[1]
    mine = {span.name: (role, span) for role, span in collected.spans if span.trace_id.hex() == trace}
    above = {name: span.parent_span_id for name, (_, span) in mine.items()}
    assert above["POST /v1/triage"].hex() == PARENT.split("-")[2]
    assert above["triage"] == mine["POST /v1/triage"][1].span_id
    for stage in ("read", "retrieve", "assess", "compose", "chat scripted", "execute_tool search_log"):
        assert above[stage] == mine["triage"][1].span_id
        assert mine[stage][0] == "worker"
    chat = values(mine["chat scripted"][1].attributes)
    assert chat["gen_ai.operation.name"] == "chat"
    assert chat["gen_ai.provider.name"] == "openai"
    assert chat["gen_ai.usage.input_tokens"] == 1234
    assert chat["gen_ai.usage.output_tokens"] == 56
    server = values(mine["POST /v1/triage"][1].attributes)
    assert server["http.response.status_code"] == 200
    names = {metric.name for metric in collected.metrics}
    assert names >= {"http.server.request.duration", "gen_ai.client.token.usage", "whycrash.pool"}
    measured = [metric for metric in collected.metrics if metric.name == "http.server.request.duration"]
    shown = {
        exemplar.trace_id.hex()
        for metric in measured
        for point in metric.histogram.data_points
        for exemplar in point.exemplars
    }
    assert trace in shown
    assert trace in {record.trace_id.hex() for record in collected.logs}
    assert trace in {line.get("trace_id") for line in lines}
    assert f'trace_id="{trace}"' in scraped.text
    assert not [body for body in collected.raw if CONTENT.encode() in body]


@pytest.mark.long
def test_that_all_jobs_of_a_batch_are_one_trace_whichever_process_works_on_them(
    home: Path, tmp_path: Path
) -> None:
    for number in range(6):
        (tmp_path / f"{number}.log").write_text(crash(number))
    logs = sorted(tmp_path.glob("*.log"))
    with collecting() as collected:
        words = [*COMMAND, "batch", *map(str, logs), "--out", "out.jsonl", "--workers", "2"]
        subprocess.run(words, env=_told(home, collected), cwd=tmp_path, check=True, capture_output=True)
    (batch,) = collected.named("batch")
    steps = [*collected.named("job.read"), *collected.named("job.answer")]
    assert len(steps) == 12
    assert {span.trace_id for span in steps} == {batch.trace_id}
    assert {span.parent_span_id for span in steps} == {batch.span_id}
    assert values(batch.attributes)["whycrash.batch.jobs"] == 6
    assert {role for role, span in collected.spans if span.name == "job.read"} == {"batch-worker"}


def test_that_a_command_tells_its_stages(home: Path, tmp_path: Path) -> None:
    """And ends as it does without a collector, also where that is not there."""
    (tmp_path / "train.log").write_text(LOG)
    words = [*COMMAND, "explain", "train.log", "--json"]
    with collecting() as collected:
        ended = subprocess.run(
            words, env=_told(home, collected), cwd=tmp_path, check=True, capture_output=True
        )
    (root,) = collected.named("triage")
    for stage in ("read", "retrieve", "assess", "compose"):
        (span,) = collected.named(stage)
        assert span.parent_span_id == root.span_id
    gone = _told(home, collected, OTEL_EXPORTER_OTLP_TIMEOUT="1")
    alone = subprocess.run(words, env=gone, cwd=tmp_path, check=True, capture_output=True)
    assert json.loads(alone.stdout)["cause"] == json.loads(ended.stdout)["cause"]


def test_that_nothing_is_loaded_or_made_where_no_collector_is_named() -> None:
    code = "import sys, service.signals.starting as s\nwith s.signals('x'): pass\n"
    code += "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    made = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    for more in ({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}):
        told = subprocess.run(
            [sys.executable, "-c", code], env=made | more, check=True, capture_output=True, text=True
        )
        assert told.stdout.strip() == "[]"
    with tracing.span("nobody") as span:
        span.add({"a": 1})
    assert tracing.current() == ""
    assert tracing.of_batch("b") == ""


def test_that_an_error_is_told_by_its_type_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collected:
        monkeypatch.setenv(tracing.ENDPOINT, collected.url)
        with signals("test"):
            Metrics(lambda: {"pool": {"waiting": 2.0}})
            with pytest.raises(ValueError, match=CONTENT), tracing.span("outer"), tracing.span("inner"):
                raise ValueError(CONTENT)
    inner, outer = collected.named("inner")[0], collected.named("outer")[0]
    assert inner.parent_span_id == outer.span_id
    assert values(inner.attributes) == {"error.type": "ValueError"}
    assert not inner.events
    assert not [body for body in collected.raw if CONTENT.encode() in body]
    assert "whycrash.pool" in {metric.name for metric in collected.metrics}
