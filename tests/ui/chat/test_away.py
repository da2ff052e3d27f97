"""What a page does that cannot hand its log in: too large a file, a server that is away.

Nothing of the user's is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.ui.chat.conftest import OpenPage, home
from tests.ui.chat.serving import Server

LOG = "step 1\nRuntimeError: the one that was pasted\n"


# A server of its own, which is killed and started again.
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def small(browser: Browser, warm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve the page with a low limit."""
    started = Server(home(warm, tmp_path_factory.mktemp("away")), {"MAX_UPLOAD_MB": "1"}).start()
    yield started
    started.stop()


@pytest.mark.parametrize(
    ("locale", "said"),
    [("zh-CN", "big.log 超过服务器的上限 1 MB。"), ("en-US", "big.log is larger than 1 MB")],
)
def test_that_too_large_a_file_is_refused_in_the_pages_words(
    pages: OpenPage, small: Server, tmp_path: Path, locale: str, said: str
) -> None:
    """Before a byte of it is sent."""
    big = tmp_path / "big.log"
    big.write_bytes(b"step\n" * 300_000)
    page = pages(small.url, locale=locale)
    page.set_input_files("#wc-file", big)
    page.click('#wc-form [type="submit"]')
    expect(page.locator("#wc-complaint")).to_contain_text(said)
    expect(page.locator("#wc-files")).to_contain_text("big.log")


def test_that_a_pasted_log_outlives_a_server_that_is_away(pages: OpenPage, small: Server) -> None:
    """The page says that nothing was taken in, and has the text again when the server is back."""
    page = pages(small.url)
    page.fill("#wc-text", LOG)
    small.kill()
    page.click('#wc-form [type="submit"]')
    expect(page.locator("#wc-lost")).to_contain_text("The server cannot be reached.")
    small.start()
    expect(page.locator("#wc-complaint")).to_contain_text("The server is back.")
    expect(page.locator("#wc-text")).to_have_value(LOG)
    page.click('#wc-form [type="submit"]')
    expect(page.locator(".feedback")).to_be_visible()
    page.reload()
    expect(page.locator("#wc-text")).to_have_value("")
