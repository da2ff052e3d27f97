"""What is noted of a crash on the page stands with the next one of its kind, and in the list."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.ui.chat.test_asking import explain
from tests.ui.chat.test_looks import faults

# A crash of its own: the server's other triages are not of it.
LOG = """step 3 loss 1.2
Traceback (most recent call last):
  File "/job/noted.py", line 8, in <module>
    reshape_the_noted(batch)
  File "/job/noted.py", line 4, in reshape_the_noted
    raise ValueError("the noted batch has no rows")
ValueError: the noted batch has no rows
"""


def test_that_a_note_on_a_crash_stands_with_the_next_one(page: Page) -> None:
    """Its state, owner and fix; one that was called fixed and came again is told as back."""
    explain(page, LOG)
    page.click('[data-key="crash"] > summary')
    page.select_option('#wc-crash [name="state"]', "fixed")
    page.fill('#wc-crash [name="owner"]', "ann")
    page.fill('#wc-crash [name="fixed_by"]', "pull request 812")
    page.click('#wc-crash [type="submit"]')
    expect(page.locator("#wc-thanks")).to_have_text("Thank you, noted.")
    page.click('.bar [data-do="new"].when-answer')
    explain(page, LOG)
    seen = page.locator(".standing .seen")
    expect(seen).to_contain_text("back after it was fixed · by pull request 812 · owner: ann")
    expect(page.locator('#wc-crash [name="owner"]')).to_have_value("ann")
    expect(page.locator("#wc-past .crash").first).to_contain_text("back after it was fixed")
    assert faults(page) == []
