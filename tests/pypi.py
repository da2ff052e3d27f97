"""Packages of PyPI that a test runs beside the program, installed by their lock into a folder of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def installed(lock: Path, folder: Path) -> Path:
    """Install what a lock names into a folder; the test is skipped where that cannot be."""
    words = ["pip", "install", "--require-hashes", "--no-deps", "--target", folder, "--requirement", lock]
    command = [sys.executable, "-m", "uv", "--quiet", *words, "--python", sys.executable]
    ended = subprocess.run(command, capture_output=True, check=False, text=True)
    if ended.returncode:
        pytest.skip(f"{lock.name} could not be installed: {ended.stderr[-300:]}")
    return folder
