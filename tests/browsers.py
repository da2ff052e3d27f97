"""Chromium for tests that look at pages."""

from __future__ import annotations

import time
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
    """Start Chromium. While a Ray cluster starts beside it, Chromium may end in a trap of its own: it
    is started again.

    Raises:
    Error: it did not start before the test's patience ended
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return playwright.chromium.launch(executable_path=str(CHROMIUM), args=OPTIONS)
        except Error:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE)
