"""What deploy/ holds: read by the programs that it is for, as far as they can be had without a cluster."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.api.metrics import Metrics
from tests.warm import ROOT

DEPLOY = ROOT / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "whycrash.json").read_text(encoding="utf-8"))
COMPOSE = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text(encoding="utf-8"))


def _ended(*words: str | Path) -> str:
    ended = subprocess.run([*map(str, words)], capture_output=True, check=False, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def test_that_the_dashboard_asks_for_what_a_server_gives() -> None:
    """Each metric and label of a panel stands in a server's exposition."""
    metrics = Metrics(lambda: {"pool": {"waiting": 1}, "batches": {"running": 1}, "jobs": {"queued": 1}})
    metrics.count_request("POST", "/v1/triage", 200, 3.0)
    given = metrics.exposition().decode()
    asked = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    assert len(asked) >= 10
    for expression in asked:
        for name, labels in re.findall(r"(whycrash_\w+)(?:\{([^}]*)\})?", expression):
            assert re.search(rf"^{name}\b|^# TYPE {name} ", given, re.MULTILINE), name
            for label in re.findall(r"(\w+)=~?\"", labels):
                known = re.search(rf"^{name}{{.*\b{label}=", given, re.MULTILINE)
                assert label == "instance" or known or f"# TYPE {name} " in given, (name, label)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_that_prometheus_reads_the_dashboards_questions_and_its_own_settings(tmp_path: Path) -> None:
    """By promtool: each panel's expression as a recording rule, and the compose file's configuration."""
    rules = [
        {"record": f"panel:{number}", "expr": re.sub(r"\$__\w+", "5m", target["expr"])}
        for number, target in enumerate(t for panel in DASHBOARD["panels"] for t in panel["targets"])
    ]
    for file in ("docker/prometheus.yaml", "prometheus/whycrash.rules.yaml"):
        shutil.copy(DEPLOY / file, tmp_path)
    (tmp_path / "panels.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    _ended("promtool", "check", "rules", tmp_path / "panels.yaml")
    settings = tmp_path / "prometheus.yaml"
    settings.write_text(
        settings.read_text().replace("/etc/prometheus/metrics.key", str(tmp_path / "panels.yaml"))
    )
    _ended("promtool", "check", "config", settings)


def test_that_what_compose_mounts_is_there() -> None:
    """Every file of ours that a container is given exists, but for the key that the first lines make."""
    mounted = [row.split(":")[0] for part in COMPOSE["services"].values() for row in part.get("volumes", ())]
    ours = [path for path in mounted if path.startswith(".")]
    assert len(ours) == 6
    assert [path for path in ours if not (DEPLOY / "docker" / path).exists()] == ["./metrics.key"]
    service = COMPOSE["services"]["whycrash"]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    # Nothing is reached from other machines before TLS stands in front of it.
    ports = [port for part in COMPOSE["services"].values() for port in part.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_that_what_is_sent_for_the_collector_reaches_what_keeps_it() -> None:
    """Of each pipeline all parts are set up, and none besides; the addresses are those of compose's parts."""
    settings = yaml.safe_load((DEPLOY / "docker" / "collector.yaml").read_text(encoding="utf-8"))
    pipelines = settings["service"]["pipelines"]
    assert set(pipelines) == {"traces", "metrics", "logs"}
    for kind in ("receivers", "processors", "exporters"):
        assert {name for pipeline in pipelines.values() for name in pipeline[kind]} == set(settings[kind]), (
            kind
        )
    assert all(pipeline["processors"][0] == "memory_limiter" for pipeline in pipelines.values())
    services = COMPOSE["services"]
    sent = services["whycrash"]["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"]
    host, _, port = sent.removeprefix("http://").partition(":")
    assert host in services
    # The server sends by HTTP unless it is told otherwise.
    assert settings["receivers"]["otlp"]["protocols"]["http"]["endpoint"] == f"0.0.0.0:{port}"
    assert settings["exporters"]["otlp"]["endpoint"].partition(":")[0] in services
    scraped = yaml.safe_load((DEPLOY / "docker" / "prometheus.yaml").read_text(encoding="utf-8"))
    targets = [
        each for job in scraped["scrape_configs"] for row in job["static_configs"] for each in row["targets"]
    ]
    assert {target.partition(":")[0] for target in targets} <= set(services)
    assert f"{host}:{settings['exporters']['prometheus']['endpoint'].partition(':')[2]}" in targets
    sources = (DEPLOY / "docker" / "grafana" / "provisioning" / "datasources").glob("*.yaml")
    for path in sources:
        (source,) = yaml.safe_load(path.read_text(encoding="utf-8"))["datasources"]
        assert re.fullmatch(r"http://(\w+):\d+", source["url"])[1] in services  # type: ignore[index]


@pytest.mark.skipif(shutil.which("otelcol") is None, reason="OpenTelemetry's collector is not installed")
def test_that_the_collector_reads_its_settings() -> None:
    _ended("otelcol", "validate", "--config", DEPLOY / "docker" / "collector.yaml")


def test_that_the_settings_that_files_name_exist() -> None:
    """Each WHYCRASH_ variable below deploy/ is one of docs/settings.md."""
    known = set(re.findall(r"`(WHYCRASH_\w+)`", (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")))
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            named = set(re.findall(r"\bWHYCRASH_[A-Z_]+[A-Z]\b", path.read_text(encoding="utf-8")))
            assert named <= known, path


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_that_systemd_takes_the_unit_and_finds_it_confined(tmp_path: Path) -> None:
    """By systemd's own reading, with the program at a place that exists; and its own measure of exposure."""
    unit = tmp_path / "whycrash.service"
    text = (DEPLOY / "systemd" / "whycrash.service").read_text(encoding="utf-8")
    unit.write_text(text.replace("/opt/whycrash/bin/whycrash", str(shutil.which("true"))), encoding="utf-8")
    assert "whycrash.service" not in _ended("systemd-analyze", "verify", unit)
    _ended("systemd-analyze", "security", "--offline=true", "--threshold=25", unit)


def test_that_a_ray_job_says_the_locks_version_of_ray() -> None:
    job: dict[str, Any] = yaml.safe_load((DEPLOY / "ray" / "rayjob.yaml").read_text(encoding="utf-8"))
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert f"\nray=={job['spec']['rayClusterSpec']['rayVersion']} " in lock
