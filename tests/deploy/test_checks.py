"""deploy/ held against the tools of its own field, which are installed beside and never into the program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.warm import ROOT

pytestmark = pytest.mark.long

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "whycrash"
HERE = Path(__file__).parent
# The oldest release that the chart takes, and a recent one.
RELEASES = ("1.27.0", "1.33.0")
SECRET = {"name": "given", "key": "key"}
SEVERAL = {"secrets": {"WHYCRASH_DATABASE": SECRET}, "home": {"accessMode": "ReadWriteMany"}}
PLAIN = {"Deployment", "NetworkPolicy", "PersistentVolumeClaim", "PodDisruptionBudget", "Service"}
EVERYTHING = SEVERAL | {
    "settings": {"WHYCRASH_WORKERS": "2"},
    "server": {"autoscaling": {"enabled": True}},
    "workers": {"autoscaling": {"enabled": True}},
    "podMonitor": {"enabled": True, "key": SECRET},
    "networkPolicy": {"egress": [{"ports": [{"port": 5432}], "to": [{"podSelector": {}}]}]},
}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tools' commands; the test is skipped where no package index is reached."""
    folder = tmp_path_factory.mktemp("tools") / "venv"
    uv = [sys.executable, "-m", "uv", "--quiet"]
    subprocess.run([*uv, "venv", "--python", sys.executable, folder], check=True)
    install = [
        "pip",
        "install",
        "--require-hashes",
        "--python",
        folder,
        "--requirement",
        HERE / "checks.lock",
    ]
    ended = subprocess.run([*uv, *install], capture_output=True, check=False, text=True)
    if ended.returncode:
        pytest.skip(f"the tools could not be installed: {ended.stderr[-300:]}")
    return folder / "bin"


def _run(*words: str | Path, given: str = "") -> str:
    ended = subprocess.run([*map(str, words)], input=given, capture_output=True, check=False, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_that_hadolint_takes_the_dockerfile(tools: Path) -> None:
    assert not _run(tools / "hadolint", DEPLOY / "docker" / "Dockerfile")


def test_that_yamllint_takes_the_files(tools: Path) -> None:
    """All but the chart's templates, which are YAML only once they are filled."""
    files = [path for path in DEPLOY.rglob("*.yaml") if "templates" not in path.parts]
    assert len(files) >= 8
    assert not _run(tools / "yamllint", "--strict", "--config-file", HERE / "yamllint.yaml", *files)


def test_that_helm_fills_the_chart_as_kubernetes_takes_it(tools: Path) -> None:
    """By Helm's own engine and the published schemas of Kubernetes, with nothing set and with everything."""
    cases = [{}, SEVERAL | {"server": {"replicas": 3}, "workers": {"replicas": 2}}, EVERYTHING]
    given = json.dumps({"chart": str(CHART), "cases": cases, "releases": RELEASES})
    found = json.loads(_run(tools / "python", HERE / "fill_chart.py", given=given))
    assert found["lint"] == []
    assert found["wrong"] == []
    plain, _, everything = (set(kinds) for kinds in found["kinds"])
    assert plain == {*PLAIN, "ServiceAccount"}
    assert everything - plain == {"HorizontalPodAutoscaler", "PodMonitor"}
    for pod in found["pods"]:
        assert not pod["automountServiceAccountToken"]
        assert pod["securityContext"]["runAsUser"] == 10001
        for container in [*pod["initContainers"], *pod["containers"]]:
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]


def test_that_kubernetes_takes_the_watch_of_a_name_space(tools: Path) -> None:
    """By the published schemas; it may read three kinds of things, and change none."""
    file = DEPLOY / "kubernetes" / "watch.yaml"
    given = json.dumps({"chart": str(CHART), "cases": [], "releases": RELEASES, "files": [str(file)]})
    assert json.loads(_run(tools / "python", HERE / "fill_chart.py", given=given))["wrong"] == []
    objects = {made["kind"]: made for made in yaml.safe_load_all(file.read_text(encoding="utf-8"))}
    rules = objects["Role"]["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list"}
    assert {kind for rule in rules for kind in rule["resources"]} == {"pods", "pods/log", "events"}
    assert "ClusterRole" not in objects


def test_that_the_chart_refuses_servers_that_share_nothing(tools: Path) -> None:
    """Several need a database and a home of them all; a setting that nobody reads is a misspelt one."""
    cases = [
        {"server": {"replicas": 2}},
        {"secrets": {"WHYCRASH_DATABASE": SECRET}, "workers": {"replicas": 1}},
        {"settings": {"WORKERS": "2"}},
        {"podMonitor": {"enabled": True}},
    ]
    given = json.dumps({"chart": str(CHART), "cases": cases, "releases": []})
    refused = json.loads(_run(tools / "python", HERE / "fill_chart.py", given=given))["refused"]
    says = ("one database", "one home", "WORKERS", "asks for a key")
    assert len(refused) == len(says)
    for said, told in zip(says, refused, strict=True):
        assert said in told
