"""The log's panel: found by words, by who printed it, and each line by an address of its own."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.ui.chat.conftest import OpenPage
from tests.ui.chat.serving import Server
from tests.ui.chat.test_first_screen import answered


def test_that_lines_are_found_by_words_and_by_rank(page: Page) -> None:
    """What does not fit is not shown, how many fit is told, and an empty search shows all again."""
    answered(page, "nccl-timeout")
    lines, shown = page.locator(".log .l"), page.locator(".log .l:visible")
    total = lines.count()
    page.fill("#wc-log-search", "WATCHDOG")
    assert 0 < shown.count() < total
    expect(page.locator("#wc-log-count")).to_contain_text("line")
    page.fill("#wc-log-search", "")
    assert shown.count() == total
    names = page.locator("#wc-log-who option").evaluate_all("all => all.map(one => one.value)")
    ranks = [name for name in names if name.startswith("rank ")]
    assert ranks == sorted(ranks, key=lambda name: int(name.split()[1]))
    page.select_option("#wc-log-who", ranks[0])
    who = shown.evaluate_all("all => all.map(one => one.dataset.who)")
    assert who
    assert set(who) == {ranks[0]}


def test_that_a_line_has_an_address(pages: OpenPage, server: Server) -> None:
    """Its number changes the address in the bar; opened anew, that address leads to the line."""
    page = answered(pages(server.url))
    line = page.locator('.log .l[data-line="3"]')
    line.locator(".n").click()
    assert page.url.endswith("#L3")
    other = pages(page.url)
    expect(other.locator('.log .l[data-line="3"]')).to_have_class("l now")
    assert other.url == page.url


def test_that_a_cited_line_is_shown_whatever_is_searched(page: Page) -> None:
    """A citation leads to its line, also where the search had hidden it."""
    answered(page)
    page.fill("#wc-log-search", "no line says this")
    assert page.locator(".log .l:visible").count() == 0
    page.locator("#wc-why .cite, .proof .cite").first.click()
    expect(page.locator(".log .l.now")).to_be_visible()


def test_that_an_address_seeks_its_line_in_its_own_answer_alone(pages: OpenPage, server: Server) -> None:
    """A line or file that an answer does not have, and what is no line, lead nowhere; no answer, no line."""
    page = answered(pages(server.url))
    address = page.url
    for hash_ in ("#L999999", "#none.log:L3", "#%E0%A4%A", "#L99999999999999999999", "#" + ":" * 5_000 + "L"):
        other = pages(address + hash_)
        expect(other.locator('.log .l[data-role="root"]').first).to_be_visible()
        assert other.locator(".log .l.now").count() == 0, hash_
