"""The `snapshot` command writes what `explain --telemetry` reads."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from service.telemetry import snapshot
from tests.waiting import PATIENCE

COMMAND = [sys.executable, "-m", "ui.cli.main"]


def called(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.mark.long
def test_that_a_snapshot_is_json_on_standard_output() -> None:
    done = called("snapshot")
    assert done.returncode == 0
    assert json.loads(done.stdout)["schema"] == "whycrash.snapshot/1"


@pytest.mark.long
def test_that_a_snapshot_counts_since_an_earlier_one(tmp_path: Path) -> None:
    assert called("snapshot", "--out", tmp_path / "a.json").returncode == 0
    assert called("snapshot", "--since", tmp_path / "a.json", "--out", tmp_path / "b.json").returncode == 0
    found = snapshot.load_snapshot(tmp_path / "b.json")
    assert found.baseline_at == snapshot.load_snapshot(tmp_path / "a.json").taken_at
    assert found.host.oom_kill_new.value == 0 or found.host.oom_kill_new.unavailable


@pytest.mark.long
def test_that_watching_goes_on_until_stopped_and_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    with subprocess.Popen(
        [*COMMAND, "snapshot", "--watch", "1", "--out", str(path)], stderr=subprocess.DEVNULL
    ) as child:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and not (path.exists() and snapshot.load_snapshot(path).baseline_at):
            time.sleep(0.2)
        child.kill()
    found = snapshot.load_snapshot(path)
    assert found.baseline_at
    assert all(len(row.points) > 1 for row in found.history)


@pytest.mark.long
def test_that_a_file_that_is_no_snapshot_is_misuse(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("Killed\n", encoding="utf-8")
    (tmp_path / "s.json").write_text('{"colour": 1}', encoding="utf-8")
    for words in (
        ("snapshot", "--since", tmp_path / "s.json"),
        ("explain", tmp_path / "log.txt", "--telemetry", tmp_path / "s.json"),
    ):
        done = called(*words)
        assert done.returncode == 2
        assert "Take one with `whycrash snapshot" in done.stderr


def test_that_a_server_that_is_not_allowed_is_misuse(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("Killed\n", encoding="utf-8")
    done = called("explain", tmp_path / "log.txt", "--telemetry", "prometheus://prom:9090?instance=a")
    assert done.returncode == 2
    assert "WHYCRASH_PROMETHEUS_HOSTS" in done.stderr
