"""The alerts for Prometheus: they are about what a server gives, and told when they should be."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from service.api.metrics import Metrics
from tests.warm import ROOT

RULES = ROOT / "deploy" / "prometheus" / "whycrash.rules.yaml"
SERIES = Path(__file__).with_name("alerts.yaml")
PROMTOOL = shutil.which("promtool")


def test_that_the_rules_ask_for_what_a_server_gives() -> None:
    """Each metric and each label's name of the rules and of their tests stands in a server's exposition."""
    metrics = Metrics(lambda: {"pool": {"waiting": 1}, "batches": {"running": 1}, "jobs": {"queued": 1}})
    metrics.count_request("POST", "/v1/triage", 200, 3.0)
    given = metrics.exposition().decode()
    for text in (RULES.read_text(encoding="utf-8"), SERIES.read_text(encoding="utf-8")):
        asked = re.findall(r"(whycrash_\w+)(?:\{([^}]*)\})?", text)
        assert len(asked) > 10
        for name, labels in asked:
            assert re.search(rf"^{name}\b", given, re.MULTILINE), name
            for label in re.findall(r"(\w+)=~?\"", labels):
                assert label in ("instance", "job") or re.search(
                    rf"^{name}{{.*\b{label}=", given, re.MULTILINE
                )
    assert 'le="15.0"' in given


@pytest.mark.long
@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_that_alerts_are_told_when_they_should_be(tmp_path: Path) -> None:
    """By Prometheus' own evaluation of series that a server could have given."""
    tests = tmp_path / "alerts.yaml"
    tests.write_text(SERIES.read_text(encoding="utf-8").replace("RULES", str(RULES)), encoding="utf-8")
    for words in (["check", "rules", str(RULES)], ["test", "rules", str(tests)]):
        ended = subprocess.run([str(PROMTOOL), *words], capture_output=True, check=False, text=True)
        assert ended.returncode == 0, ended.stdout + ended.stderr
