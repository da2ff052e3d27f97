"""Packages of npm that a test runs beside the program, installed by their lock into a folder of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

# Where nothing answers, npm would try again for minutes.
_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0", "--fetch-timeout=20000")


def installed(packages: Path, folder: Path) -> Path:
    """Copy a folder with a lock, and install what it locks; the test is skipped where that cannot be."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node.js is not installed")
    made = shutil.copytree(packages, folder / packages.name)
    ended = subprocess.run(
        ["npm", "ci", *_OPTIONS], cwd=made, capture_output=True, check=False, text=True, timeout=PATIENCE
    )
    if ended.returncode:
        pytest.skip(f"{packages.name} could not be installed: {ended.stderr[-300:]}")
    return made
