"""The lab makes a failure for real and records it with its truth."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from eval import incidents
from eval.lab.run import experiments
from tests.factories import whole_corpus
from tests.waiting import PATIENCE

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="the lab's sandbox needs root and unshare"
)


def test_experiments_are_sound() -> None:
    """Ids are unique and neutral, causes are known, scripts are there."""
    known = whole_corpus().causes
    scripts = Path(incidents.__file__).parent / "lab" / "experiments"
    ids = [item.id for item in experiments()]
    assert len(ids) == len(set(ids)) >= 25
    for item in experiments():
        assert set(item.causes) <= set(known)
        assert (scripts / item.script).exists()
        assert not any(cause in item.id for cause in known)


@pytest.mark.long
@needs_root
def test_a_failure_is_made_and_recorded(tmp_path: Path) -> None:
    """A job that is given an unknown flag fails, and its incident names the line that says so."""
    command = [sys.executable, "-m", "eval.lab", "--only", "lab-bornite", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if "skipped" in done.stdout + done.stderr:
        pytest.skip((done.stdout + done.stderr).strip())
    assert (tmp_path / "lab-bornite" / "log.txt").exists(), done.stdout + done.stderr
    text = (tmp_path / "lab-bornite" / "log.txt").read_text(encoding="utf-8")
    assert "error:" in text
