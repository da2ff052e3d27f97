"""The page for everybody: both languages and themes, a phone, a keyboard, a screen reader.

And how quick it is.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it has no types
from playwright.sync_api import Page, expect

from tests.ui.chat.conftest import OpenPage
from tests.ui.chat.serving import Server
from tests.ui.chat.test_asking import LOG, explain

DESKTOP = {"viewport": {"width": 1440, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
_LONG = pytest.mark.long
WAYS = [
    pytest.param({**DESKTOP, "locale": "en-US", "color_scheme": "light"}, id="desktop en light"),
    pytest.param({**DESKTOP, "locale": "zh-CN", "color_scheme": "dark"}, id="desktop zh dark", marks=_LONG),
    pytest.param({**PHONE, "locale": "zh-CN", "color_scheme": "light"}, id="phone zh light"),
    pytest.param({**PHONE, "locale": "en-US", "color_scheme": "dark"}, id="phone en dark", marks=_LONG),
]


def faults(page: Page) -> list[str]:
    """Name what axe finds of serious or critical impact."""
    found = Axe().run(page).response["violations"]
    return [
        f"{item['id']}: {item['nodes'][0]['html'][:200]}"
        for item in found
        if item["impact"] in ("serious", "critical")
    ]


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_that_no_serious_fault_of_access_is_found(
    pages: OpenPage, server: Server, way: dict[str, Any]
) -> None:
    """Neither on the empty page, nor on an answer with all its parts open and a conversation below."""
    page = pages(server.url, **way)
    assert faults(page) == []
    page.click('[data-example="nccl-timeout"]')
    page.wait_for_selector(".feedback")
    for summary in page.locator("#wc-answer summary").all():
        if summary.is_visible():
            summary.click()
    page.click('[data-do="wrong"]')
    page.fill("#wc-question", "why?")
    page.press("#wc-question", "Enter")
    page.wait_for_selector(".talk .ours:not([aria-busy])")
    assert faults(page) == []


@pytest.mark.parametrize(
    "example",
    [
        "gpu-memory",
        *(pytest.param(name, marks=_LONG) for name in ("nccl-timeout", "host-memory", "recovered")),
    ],
)
def test_that_nothing_scrolls_sideways_on_a_phone(pages: OpenPage, server: Server, example: str) -> None:
    """At 390 pixels the page is as wide as the screen, before and after the answer, with all parts open."""
    page = pages(server.url, **PHONE)
    assert _overhang(page) <= 0
    page.click(f'[data-example="{example}"]')
    page.wait_for_selector(".feedback")
    for summary in page.locator("#wc-answer summary").all():
        if summary.is_visible():
            summary.click()
    assert _overhang(page) <= 0


def test_that_a_patchs_rows_begin_beside_their_signs_on_a_phone(pages: OpenPage, server: Server) -> None:
    """A setting longer than the screen breaks within its row, and does not leave the sign alone above it."""
    page = pages(server.url, **PHONE)
    page.click('[data-example="gpu-memory"]')
    page.wait_for_selector(".diff .add")
    apart = page.evaluate("""() => [...document.querySelectorAll('.diff .add, .diff .del')].map(row => {
        const text = row.firstChild;
        const top = at => {
          const range = document.createRange();
          range.setStart(text, at);
          range.setEnd(text, at + 1);
          return range.getBoundingClientRect().top;
        };
        return top(text.data.search(/[\\w]/)) - top(0);
      })""")
    assert len(apart) == 2
    assert max(map(abs, apart)) < 2


def _overhang(page: Page) -> int:
    return int(
        page.evaluate("""() => Math.max(document.documentElement.scrollWidth, document.body.scrollWidth,
        ...[...document.querySelectorAll('#wc-page > *, #wc-answer .card, .bar')].map(
          part => part.getBoundingClientRect().right)) - innerWidth""")
    )


def test_that_the_browsers_language_comes_first(pages: OpenPage, server: Server) -> None:
    """A Chinese browser gets a Chinese page and answer."""
    page = pages(server.url, locale="zh-CN")
    expect(page.locator("#wc-form h1")).to_have_text("作业为什么失败？")
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    explain(page)
    expect(page.locator("#wc-changes h2")).to_have_text("修改什么")
    assert any("一" <= char <= "鿿" for char in page.locator("#wc-headline").inner_text())


def test_that_the_language_is_switched_and_kept(page: Page) -> None:
    """The switch changes the whole page, also around an answer that stands, and holds after a reload."""
    explain(page)
    page.click('[data-do="language"]')
    expect(page.locator("#wc-changes h2")).to_have_text("修改什么")
    page.reload()
    expect(page.locator("#wc-changes h2")).to_have_text("修改什么")
    page.click('[data-do="language"]')
    expect(page.locator("#wc-changes h2")).to_have_text("What to change")


def test_that_the_theme_follows_the_system_until_it_is_chosen(pages: OpenPage, server: Server) -> None:
    """Dark where the system is dark; the switch wins, also after a reload."""
    page = pages(server.url, color_scheme="dark")
    assert page.evaluate("document.body.classList.contains('dark')")
    page.click('[data-do="theme"]')
    assert not page.evaluate("document.body.classList.contains('dark')")
    page.reload()
    page.wait_for_selector(".wc.ready")
    page.wait_for_timeout(300)
    assert not page.evaluate("document.body.classList.contains('dark')")


def test_that_the_page_is_used_by_keyboard_alone(pages: OpenPage, server: Server) -> None:
    """From the first Tab to an answer, its log and a question, without a mouse."""
    # Where the screen is wide, the input has the focus from the start.
    page = pages(server.url, viewport={"width": 1000, "height": 800})
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the log input"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "wc-text"
    page.keyboard.insert_text(LOG)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".feedback")
    reached = _tabbed(page, 60)
    assert {"share", "jump", "log", "right", "wrong", "wc-question"} <= reached


def _tabbed(page: Page, times: int) -> set[str]:
    found = set()
    for _ in range(times):
        page.keyboard.press("Tab")
        found.add(
            page.evaluate(
                "(document.activeElement.dataset.do || document.activeElement.id || "
                "document.activeElement.className)"
            )
        )
    return found


def test_that_a_headline_is_spoken(page: Page) -> None:
    """A screen reader hears the conclusion when it stands."""
    explain(page)
    expect(page.locator("#wc-live-region")).to_contain_text("Out of memory")


def test_that_a_long_log_is_answered_and_stays_readable(page: Page) -> None:
    """A paste of 7 MB: the panel holds the parts that matter, not the whole of it."""
    noise = "\n".join(
        f"[2025-01-01 00:00:{number % 60:02d}] step {number} loss 0.{number % 97}"
        for number in range(150_000)
    )
    _paste(page, f"{noise}\n{LOG}")
    expect(page.locator("#wc-files li span")).to_contain_text("pasted.log · 6.")
    page.click('#wc-form [type="submit"]')
    page.wait_for_selector(".feedback")
    expect(page.locator("#wc-headline")).to_contain_text("Out of memory")
    assert page.locator(".log .l").count() < 4500
    expect(page.locator(".log .gap").first).to_be_visible()


def _paste(page: Page, text: str) -> None:
    """Paste as a keyboard does."""
    page.evaluate(
        """text => { const pasted = new DataTransfer(); pasted.setData('text/plain', text);
        document.getElementById('wc-text').dispatchEvent(new ClipboardEvent(
          'paste', { clipboardData: pasted, bubbles: true, cancelable: true })); }""",
        text,
    )


@pytest.mark.long
def test_that_a_paste_of_a_megabyte_is_answered_nearly_as_soon_as_a_few_lines(
    pages: OpenPage, server: Server
) -> None:
    """Measured beside each other on the same machine: seconds say nothing on one that does much else."""
    log = (
        "\n".join(f"step {number} loss 0.{number % 97} grad_norm 1.{number % 89}" for number in range(28_000))
        + "\n"
        + LOG
    )[-1_000_000:]
    page = pages(server.url)
    page.fill("#wc-text", LOG)
    few = _answered(page)
    page = pages(server.url)
    _paste(page, log)
    assert _answered(page) < 3 + 10 * few


def _answered(page: Page) -> float:
    """Give the seconds from a click to the first answer."""
    started = time.perf_counter()
    page.click('#wc-form [type="submit"]')
    page.wait_for_selector("#wc-headline")
    return time.perf_counter() - started
