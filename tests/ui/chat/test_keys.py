"""A server that has keys: the page asks for one as the API does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import gettempdir
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, expect

from service.api import keys
from service.persistence.store import Store
from service.settings import Settings
from tests.ui.chat.conftest import OpenPage, home
from tests.ui.chat.serving import Server

NAMES = ("anna", "ben")
UPLOAD = (
    b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.log"\r\nContent-Type: '
    b"text/plain\r\n\r\na line\r\n--x--\r\n"
)


# A server of its own; `tests/ui/test_authorisation.py` holds the page to its keys without a browser.
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def tokens(
    browser: Browser, warm: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, dict[str, str]]]:
    """Serve with two people's keys."""
    folder = home(warm, tmp_path_factory.mktemp("keyed"))
    made = {name: keys.make_key(name, ["triage"], datetime.now(UTC)) for name in NAMES}
    store = Store.open(Settings(home=folder))
    for record, _ in made.values():
        store.keys.add(record)
    store.close()
    started = Server(folder).start()
    yield started, {name: token for name, (_, token) in made.items()}
    started.stop()


def test_that_the_page_asks_for_a_key_and_shows_ones_own(
    pages: OpenPage, browser: Browser, tokens: tuple[Server, dict[str, str]]
) -> None:
    """Nothing without a key; with one, all of the page works, and its history is one's own.

    Another's address opens nothing.
    """
    server, known = tokens
    stranger = browser.new_context()
    answer = stranger.request.get(server.url)
    assert answer.status == 401
    assert stranger.request.post(f"{server.url}gradio_api/upload").status == 401
    stranger.close()
    anna = pages(server.url, http_credentials={"username": "anyone", "password": known["anna"]})
    anna.click('[data-example="gpu-memory"]')
    anna.wait_for_selector(".feedback")
    expect(anna.locator("#wc-past li")).to_have_count(1)
    ben = pages(server.url, http_credentials={"username": "anyone", "password": known["ben"]})
    expect(ben.locator("#wc-past")).to_have_text("Nothing here yet.")
    ben.goto(anna.url)
    expect(ben.locator("body")).to_contain_text("There is no triage")
    expect(ben.locator("body")).not_to_contain_text("Out of memory")


def test_that_a_server_that_is_killed_leaves_no_uploads(tokens: tuple[Server, dict[str, str]]) -> None:
    """What was uploaded has no name on the disk, and nobody needs to remove it."""
    server, known = tokens
    sent = Request(  # noqa: S310
        f"{server.url}gradio_api/upload",
        data=UPLOAD,
        headers={"Content-Type": "multipart/form-data; boundary=x"},
    )
    sent.add_header("Authorization", f"Bearer {known['anna']}")
    with urlopen(sent) as answer:  # noqa: S310 - loopback
        [place] = json.load(answer)
    assert server.process is not None
    held = []
    for path in Path(f"/proc/{server.process.pid}/fd").iterdir():
        # A file may be closed between the listing and the look.
        with suppress(FileNotFoundError):
            held.append(path.readlink())
    assert not Path(place).exists()
    assert any(path.parent == Path(gettempdir()) and path.name.endswith(" (deleted)") for path in held)
    server.kill()
    assert not [
        path for path in Path(gettempdir()).iterdir() if path.is_file() and path.read_bytes() == b"a line"
    ]
