"""What one sees and takes along without scrolling: the fix on a phone, what covers nothing, a ticket."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from corpus.message import is_chinese
from tests.ui.chat.conftest import OpenPage
from tests.ui.chat.serving import Server
from tests.ui.chat.test_looks import PHONE

TOP = "selector => document.querySelector(selector).getBoundingClientRect().top"
BOTTOM = "selector => document.querySelector(selector).getBoundingClientRect().bottom"


def answered(page: Page, example: str = "gpu-memory") -> Page:
    """Show the whole answer to an example."""
    page.click(f'[data-example="{example}"]')
    page.wait_for_selector(".feedback")
    return page


def test_that_a_phone_shows_the_fix_on_its_first_screen(pages: OpenPage, server: Server) -> None:
    """Conclusion and first change stand above the fold; the question's row is the last one, a tap away."""
    page = answered(pages(server.url, **PHONE))
    page.evaluate("scrollTo(0, 0)")
    assert page.evaluate(BOTTOM, "#wc-changes .setting") < 844
    assert page.evaluate(TOP, "#wc-follow") > 844
    page.click(".to-ask")
    expect(page.locator("#wc-question")).to_be_focused()


def test_that_a_phone_shows_a_patch_without_what_stays(pages: OpenPage, server: Server) -> None:
    """The rows that go and come alone; where the title names the file, its rows stand nowhere."""
    page = answered(pages(server.url, **PHONE))
    assert page.locator(".diff .add:visible").count() == 1
    assert page.locator(".diff .del:visible").count() == 1
    assert page.locator(".diff .same:visible").count() == 0
    assert page.locator(".diff .file").count() == 0
    page.set_viewport_size({"width": 1440, "height": 900})
    assert page.locator(".diff .same:visible").count() > 1


def test_that_a_good_end_is_told_once_and_its_log_opens_there(page: Page) -> None:
    """Nothing to change has no card of its own, nothing marked no jumps; the log opens at its end."""
    rows = "".join(f"step {number}/400 loss 0.{number}\n" for number in range(1, 401))
    page.fill("#wc-text", f"{rows}Training completed\n")
    page.click('#wc-form [type="submit"]')
    page.wait_for_selector(".feedback")
    expect(page.locator(".v-no-failure #wc-headline")).to_be_visible()
    assert page.locator("#wc-changes").count() == 0
    assert page.locator(".jumps").count() == 0
    expect(page.locator("#wc-why .cite")).to_have_text("L401")
    box = page.locator(".log")
    assert box.evaluate("box => box.scrollTop + box.clientHeight >= box.scrollHeight - 2")


def test_that_the_questions_row_covers_nothing(page: Page) -> None:
    """It is opaque, and the last panel ends above it when the page is at its end."""
    answered(page)
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert page.evaluate(BOTTOM, ".feedback") <= page.evaluate(TOP, "#wc-follow")
    colour = page.evaluate("getComputedStyle(document.querySelector('#wc-follow')).backgroundColor")
    assert colour == page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_that_an_answer_is_copied_for_a_ticket(pages: OpenPage, server: Server) -> None:
    """Headline, proof, change and patch as Markdown, and the way back to the page."""
    page = answered(pages(server.url, permissions=["clipboard-read", "clipboard-write"]))
    page.click('[data-do="copy-markdown"]')
    expect(page.locator("#wc-toast")).to_be_visible()
    told = page.evaluate("navigator.clipboard.readText()")
    assert told.startswith("## Out of memory")
    assert "```diff\n--- a/run.sh" in told
    assert f"{server.url}?triage=" in told


def test_that_the_corrected_command_is_saved(page: Page) -> None:
    """As a script that can be started."""
    answered(page)
    with page.expect_download() as saving:
        page.click('[data-do="save-command"]')
    assert saving.value.suggested_filename == "run.sh"


def test_that_a_crash_that_was_here_before_leads_to_the_last_one(page: Page) -> None:
    """The same log again tells so on the first screen, and opens the earlier answer."""
    answered(page)
    first = page.url
    page.click('.bar [data-do="new"].when-answer')
    answered(page)
    assert page.url != first
    page.click(".seen a")
    page.wait_for_url(first)


def test_that_one_click_tells_an_answer_in_the_other_language(page: Page) -> None:
    """Out of what was kept: headline, changes and explanation; and back again."""
    answered(page)
    english = page.inner_text("#wc-headline")
    page.click('[data-do="language"]')
    expect(page.locator("#wc-headline")).not_to_have_text(english)
    for part in ("#wc-headline", "#wc-changes", "#wc-why"):
        assert is_chinese(page.inner_text(part)), part
    sentences = page.locator("#wc-why p, #wc-changes p:not(.what)").all_inner_texts()
    assert [text for text in sentences if text.strip() and not is_chinese(text)] == []
    page.click('[data-do="language"]')
    expect(page.locator("#wc-headline")).to_have_text(english)


def test_that_what_a_person_said_stands_in_the_next_answer_of_its_crash(page: Page) -> None:
    """The cause that was given instead counts, and the first screen tells it as a person's word."""
    answered(page, "host-memory")
    page.click('[data-do="wrong"]')
    page.select_option("#wc-real-cause", "nccl-network")
    page.click("#wc-wrong [type=submit]")
    expect(page.locator("#wc-thanks")).not_to_be_empty()
    page.click('.bar [data-do="new"].when-answer')
    answered(page, "host-memory")
    expect(page.locator(".head .firm")).to_contain_text("for the same crash")
    expect(page.locator(".head .seen .agreed")).to_be_visible()
