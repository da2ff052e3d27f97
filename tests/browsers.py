"""Chromium for tests that look at pages."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Playwright

from tests.waiting import PATIENCE

CHROMIUM = Path("/usr/bin/chromium")
OPTIONS = ["--no-sandbox", "--disable-dev-shm-usage"]
# Seconds between two starts.
PAUSE = 1.0


def require_browser() -> None:
    """Skip the test where Chromium is not installed."""
    if not CHROMIUM.exists():
        pytest.skip(f"there is no browser at {CHROMIUM}")


def launch_browser(playwright: Playwright) -> Browser:
    """Start Chromium; beside a Ray cluster that starts it may end in a trap of its own, and is started again.

    Raises:
    Error: it did not start before the test's patience ended; its notes tell of the machine at that time
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return playwright.chromium.launch(executable_path=str(CHROMIUM), args=OPTIONS)
        except Error as error:
            if time.monotonic() > deadline:
                for note in _surroundings():
                    error.add_note(note)
                raise
            time.sleep(PAUSE)


def _surroundings() -> Iterator[str]:
    """Tell what may keep Chromium from starting: how it ends by itself, limits, memory, disks."""
    alone = [str(CHROMIUM), "--headless", *OPTIONS, "--dump-dom", "about:blank"]
    for words in (
        alone,
        ["cat", "/proc/self/limits"],
        ["grep", "-E", "Sig|Seccomp|NoNewPrivs", "/proc/self/status"],
        ["head", "-5", "/proc/meminfo"],
        ["df", "-h", tempfile.gettempdir(), "/dev/shm"],
    ):
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, errors="replace", timeout=60, check=False
            )
        except subprocess.TimeoutExpired:
            yield f"{words[0]} does not end"
        else:
            yield f"{' '.join(words)} -> {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-1500:]}"
