"""A browser, a server, and pages of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browsers import launch_browser, require_browser
from tests.ui.chat.serving import Server
from tests.waiting import PATIENCE

# Until an answer stands on a machine that does other work too, in milliseconds.
SLOW = int(PATIENCE * 1000)

OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start one browser for all tests of a module: as long as it runs, nothing else of this process can use
    an event loop.
    """
    require_browser()
    expect.set_options(timeout=SLOW)
    with sync_playwright() as playwright:
        started = launch_browser(playwright)
        yield started
        started.close()


def home(warm: Path, folder: Path) -> Path:
    """Make a home that has patterns and index already."""
    return shutil.copytree(warm, folder / "home")


@pytest.fixture(scope="session")
def server(warm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve the page without a model."""
    require_browser()
    started = Server(home(warm, tmp_path_factory.mktemp("chat"))).start()
    yield started
    started.stop()


@pytest.fixture
def pages(browser: Browser) -> Iterator[OpenPage]:
    """Open pages, each in a browser profile of its own.

    A script's error, or a request to another host, fails the test.
    """
    contexts: list[Any] = []
    strange: list[str] = []

    def open_page(url: str, **options: Any) -> Page:
        context = browser.new_context(
            **({"locale": "en-US", "viewport": {"width": 1440, "height": 900}} | options)
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(SLOW)
        page.on("pageerror", lambda error: strange.append(str(error)))
        page.on("request", lambda request: _note(request.url, strange))
        page.goto(url)
        page.wait_for_selector(".wc.ready")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert strange == []


def _note(url: str, strange: list[str]) -> None:
    if not url.startswith(("http://127.0.0.1:", "data:", "blob:")):
        strange.append(url)


@pytest.fixture
def page(pages: OpenPage, server: Server) -> Page:
    """Open the page in English on a desktop."""
    return pages(server.url)
