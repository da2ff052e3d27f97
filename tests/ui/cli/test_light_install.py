"""The command line without any extra: what is not among the dependencies of whycrash itself is not found."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.ui.shell import EXPLAINED, MISUSE, Ended, surroundings
from tests.waiting import PATIENCE
from tests.warm import INCIDENTS, ROOT

LOG = INCIDENTS / "w-easyr1-offload-host-ram" / "log.txt"
CAUSE = "cpu-offload-pressure"
# Hides packages from all that looks for them, as where they are not installed.
HIDING = """
import importlib.machinery as machinery
found = machinery.PathFinder.find_spec
def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in {names!r} else found(name, path, target)
machinery.PathFinder.find_spec = staticmethod(find_spec)
"""


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder from which a Python takes it that no extra is installed."""
    folder = tmp_path_factory.mktemp("light")
    kept = _needed()
    names = {
        module
        for module, packages in packages_distributions().items()
        if kept.isdisjoint(map(canonicalize_name, packages)) and "whycrash" not in packages
    }
    assert {"torch", "chromadb", "gradio", "ray", "langchain", "fastapi"} <= names
    (folder / "sitecustomize.py").write_text(HIDING.format(names=names), encoding="utf-8")
    return folder


def _needed() -> set[str]:
    """Give the packages that whycrash needs without extras, and those that they need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pending = [Requirement(row) for row in project["dependencies"]]
    seen: set[tuple[str, frozenset[str]]] = set()
    while pending:
        wanted = pending.pop()
        extras = frozenset(wanted.extras) or frozenset({""})
        if (key := (canonicalize_name(wanted.name), extras)) in seen:
            continue
        seen.add(key)
        pending += [
            row
            for row in map(Requirement, distribution(wanted.name).requires or ())
            if row.marker is None or any(row.marker.evaluate({"extra": extra}) for extra in extras)
        ]
    return {name for name, _ in seen}


def _whycrash(light: Path, home: Path, *words: str | Path) -> Ended:
    ended = subprocess.run(
        [sys.executable, "-m", "ui.cli.main", *map(str, words)],
        cwd=home,
        env=surroundings(home, PYTHONPATH=f"{light}:{ROOT}"),
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.long
def test_that_an_empty_home_gives_answers_without_any_extra(light: Path, tmp_path: Path) -> None:
    """The index is built, a log is explained, a batch is worked on, and notes are found."""
    explained = _whycrash(light, tmp_path, "explain", LOG, "--json")
    assert explained.code == EXPLAINED, explained.err
    assert json.loads(explained.out)["cause"] == CAUSE
    worked = _whycrash(light, tmp_path, "batch", LOG, "--out", "r.jsonl", "--workers", "1")
    assert worked.code == EXPLAINED, worked.err
    assert json.loads((tmp_path / "r.jsonl").read_text(encoding="utf-8"))["cause"] == CAUSE
    searched = _whycrash(light, tmp_path, "search", "NCCL watchdog timeout")
    assert searched.code == EXPLAINED, searched.err
    assert "nccl" in searched.out.lower()
    assert not [*tmp_path.rglob("chroma")]


@pytest.mark.long
def test_that_what_needs_an_extra_says_so(light: Path, tmp_path: Path) -> None:
    for words, package in ((["serve", "--port", "0"], "fastapi"), (["slack"], "slack-sdk")):
        ended = _whycrash(light, tmp_path, *words)
        assert (ended.code, len(ended.err.splitlines())) == (MISUSE, 1), ended.err
        assert f"This needs {package}, which is not installed: `pip install" in ended.err
