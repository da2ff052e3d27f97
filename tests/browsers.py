"""Chromium for tests that look at pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Playwright

CHROMIUM = Path("/usr/bin/chromium")
OPTIONS = ["--no-sandbox", "--disable-dev-shm-usage"]
ATTEMPTS = 3


def require_browser() -> None:
    """Skip the test where Chromium is not installed."""
    if not CHROMIUM.exists():
        pytest.skip(f"there is no browser at {CHROMIUM}")


def launch_browser(playwright: Playwright) -> Browser:
    """Start Chromium. About one start in some hundred ends in a trap of Chromium's own before it answers.

    It is started again then.

    Raises:
        Error: it did not start in three attempts
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return _start(playwright)
        except Error:
            continue
    return _start(playwright)


def _start(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(executable_path=str(CHROMIUM), args=OPTIONS)
