"""With a model: its words as they come, the conversation, and a server that stops in the middle."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.service.llm.scripted import Scripted, Turn, serving
from tests.ui.chat.conftest import OpenPage, home
from tests.ui.chat.serving import ROOT, Server

# Servers and processes of their own: `make test-all` runs them.
pytestmark = pytest.mark.long

LOG = (ROOT / "ui" / "chat" / "examples" / "gpu-memory" / "log.txt").read_text(encoding="utf-8")
ROOT_LINE = next(number for number, row in enumerate(LOG.split("\n"), 1) if "OutOfMemoryError" in row)
MARK = f"L{ROOT_LINE}"
SLOWLY = "please answer slowly"
FIRST_WORDS = "The update asks for more memory than this card has left."
LAST_WORDS = "A smaller micro batch asks for less of it."
# It reads and looks before it writes.
AT_WORK = re.compile("^The model (?:reads and looks|is writing)…$")
CLAIMS = {
    "cause": "gpu-oom-training",
    "quotes": [{"line": MARK, "text": "torch.OutOfMemoryError: CUDA out of memory."}],
    "cases": [],
    "changes": [],
    "headline": "The training step asks for more GPU memory than is free",
    "explanation": f"{FIRST_WORDS} [{MARK}]\n\n{LAST_WORDS} [{MARK}]",
}
REPLY = {"answer": f"The log says how much was free. [{MARK}]", "cases": [], "changes": []}


def answer(body: dict[str, Any]) -> Turn:
    """Answer as a model would: slowly where the log asks for it."""
    said = "\n".join(str(message["content"]) for message in body["messages"])
    if "how much was free" in said:
        return Turn(json.dumps(REPLY))
    return Turn(json.dumps(CLAIMS), pause=0.08 if SLOWLY in said else 0.02)


@pytest.fixture(scope="module")
def model() -> Iterator[Scripted]:
    """Serve the scripted model."""
    with serving(answer) as scripted:
        yield scripted


def serve(warm: Path, folder: Path, model: Scripted, **settings: str) -> Server:
    """Serve the page with the model."""
    asked = {"MODEL": "openai:scripted", "MODEL_BASE_URL": model.url}
    return Server(home(warm, folder), {**asked, **settings}).start()


@pytest.fixture(scope="module")
def talking(
    browser: Browser, warm: Path, model: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Serve the page; no deadline comes before an answer, however busy the machine is."""
    limits = {"MODEL_DEADLINE": "600", "REQUEST_DEADLINE": "600"}
    started = serve(warm, tmp_path_factory.mktemp("talking"), model, **limits)
    yield started
    started.stop()


@pytest.fixture
def hasty(browser: Browser, warm: Path, model: Scripted, tmp_path: Path) -> Iterator[Server]:
    """Serve the page with a deadline that a test can wait for."""
    started = serve(warm, tmp_path, model, MODEL_DEADLINE="60", REQUEST_DEADLINE="14")
    yield started
    started.stop()


def ask(page: Page, log: str = LOG) -> None:
    """Paste a log and ask."""
    page.fill("#wc-text", log)
    page.click('#wc-form [type="submit"]')


# The page itself is asked: on a busy machine the last words may be there before anybody outside has looked.
_WATCH = """([first, last]) => {
  window.seenWithoutLast = false;
  new MutationObserver(() => {
    const said = document.querySelector("#wc-why .said")?.textContent ?? "";
    window.seenWithoutLast ||= said.includes(first) && !said.includes(last);
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


def test_that_the_rules_answer_stands_while_the_model_writes(pages: OpenPage, talking: Server) -> None:
    """The headline comes first; the model's paragraphs come one by one, in a part that says it is busy."""
    page = pages(talking.url)
    expect(page.locator("#wc-where")).to_contain_text("openai:scripted gets a short excerpt")
    page.evaluate(_WATCH, [FIRST_WORDS, LAST_WORDS])
    ask(page, f"{LOG}\n{SLOWLY}\n")
    expect(page.locator("#wc-headline")).to_be_visible()
    expect(page.locator(".stages li.now")).to_have_text(AT_WORK)
    expect(page.locator(".stages")).to_contain_text("Explained by openai:scripted")
    assert page.evaluate("window.seenWithoutLast")
    expect(page.locator("#wc-why .said")).to_contain_text(LAST_WORDS)


def test_that_the_log_is_there_before_the_model_is_done(pages: OpenPage, talking: Server) -> None:
    """Who reads does not wait for the model to see the lines around the root."""
    page = pages(talking.url)
    ask(page, f"{LOG}\n{SLOWLY}, again\n")
    expect(page.locator("#wc-evidence .log .l")).to_have_count(
        len(f"{LOG}\n{SLOWLY}, again\n".rstrip("\n").split("\n"))
    )
    expect(page.locator(".stages li.now")).to_have_text(AT_WORK)


def test_that_what_was_sent_is_told(pages: OpenPage, talking: Server) -> None:
    """The privacy panel counts what the model read and wrote."""
    page = pages(talking.url)
    ask(page)
    page.wait_for_selector(".feedback")
    page.click("#wc-privacy summary >> nth=0")
    expect(page.locator("#wc-privacy")).to_contain_text("Sent to openai:scripted: 1,234 tokens; it wrote 56")


def test_that_a_model_can_be_left_out(pages: OpenPage, talking: Server, model: Scripted) -> None:
    """Without its tick, no model is asked."""
    page = pages(talking.url)
    before = len(model.calls)
    page.uncheck("#wc-model")
    ask(page)
    page.wait_for_selector(".feedback")
    expect(page.locator(".stages")).to_contain_text("without a model")
    assert len(model.calls) == before


def test_that_a_page_that_turned_away_stays_where_it_is(pages: OpenPage, talking: Server) -> None:
    """An answer that is still written does not come over another that was opened meanwhile."""
    page = pages(talking.url)
    ask(page)
    page.wait_for_selector(".feedback")
    address = page.url
    page.click('.bar [data-do="new"].when-answer')
    ask(page, f"{LOG}\n{SLOWLY}, and leave\n")
    expect(page.locator(".stages li.now")).to_have_text(AT_WORK)
    page.click("#wc-past a >> nth=0")
    expect(page.locator(".stages li.now")).to_have_count(0)
    page.wait_for_timeout(1500)
    assert page.url == address
    expect(page.locator("#wc-why .said")).to_contain_text(LAST_WORDS)


def test_that_questions_go_on_in_the_same_talk(pages: OpenPage, talking: Server) -> None:
    """Question and answer stand below each other, and are there again when the address is opened."""
    page = pages(talking.url)
    ask(page)
    page.wait_for_selector(".feedback")
    page.fill("#wc-question", "how much was free?")
    page.press("#wc-question", "Enter")
    expect(page.locator(".talk .theirs")).to_contain_text("how much was free?")
    expect(page.locator(".talk .ours")).to_contain_text("The log says how much was free.")
    other = pages(page.url)
    expect(other.locator(".talk .ours")).to_contain_text("The log says how much was free.")


def test_that_a_server_that_stops_in_mid_answer_loses_nothing(pages: OpenPage, hasty: Server) -> None:
    """The page says that the server is gone, comes back with it by itself, and shows the first answer, also
    in the history.
    """
    page = pages(hasty.url)
    ask(page, f"{LOG}\n{SLOWLY}, once more\n")
    expect(page.locator(".stages li.now")).to_have_text(AT_WORK)
    expect(page.locator("#wc-evidence .log .l").nth(8)).to_be_attached()
    hasty.kill()
    expect(page.locator("#wc-lost")).to_contain_text("The server stopped while it was answering.")
    expect(page.locator("#wc-headline")).to_be_visible()
    hasty.start()
    expect(page.locator("#wc-lost")).to_be_hidden()
    expect(page.locator("#wc-headline")).to_contain_text("Out of memory in the training step")
    expect(page.locator("#wc-past li").first).to_contain_text("Out of memory in the training step")
    # Its deadline tells that nobody works on it any more.
    expect(page.locator(".note")).to_have_count(0)
    expect(page.locator("#wc-follow")).to_be_visible()
