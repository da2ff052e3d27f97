"""Many jobs at once on the page: handed in, watched, summed up, and each one opened."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.factories import OOM, traceback
from tests.service.batches.sources.handing import zipped
from tests.ui.chat.conftest import OpenPage
from tests.ui.chat.serving import Server
from tests.ui.chat.test_looks import PHONE, faults

FILES = {
    "oom-a.log": f"step:1 - loss:0.1\n{traceback(OOM)}",
    "oom-b.log": f"step:1 - loss:0.1\n{traceback(OOM)}",
    "strange.log": "step:1 - loss:0.1\nzzq flurb went away\nexit code: 3\n",
    "well.log": "step:1 - loss:0.1\nTraining completed\n",
    "stopped.log": "step:1 - loss:0.1\nstep:2 - loss:0.1\n",
}
HOSTILE = '<img src=x onerror="document.title=1">'


def handed_in(page: Page, folder: Path, files: dict[str, str]) -> None:
    """Add an archive of logs and hand it in as many jobs; gives when all of them are over."""
    (folder / "night.zip").write_bytes(zipped(files))
    page.set_input_files("#wc-file", folder / "night.zip")
    page.click("#wc-as-batch")
    page.wait_for_selector("#wc-batch .files-of")


@pytest.mark.long
def test_that_an_archive_is_summed_up_and_its_jobs_open(page: Page, tmp_path: Path) -> None:
    """Jobs of one crash stand together with its line, its change and how sure that is.

    What is not known comes last; what ended well is apart from what only stopped. A job's name leads to its
    answer, and the way back to the batch.
    """
    handed_in(page, tmp_path, FILES)
    expect(page.locator("#wc-batch-title")).to_have_text("night.zip")
    expect(page.locator("#wc-batch .head .told")).to_contain_text("of 5 jobs died")
    crash = page.locator(".crashes li").first
    expect(crash).to_contain_text("2 jobs · about")
    expect(crash.locator(".proof")).to_contain_text("out of memory")
    assert crash.locator(".setting").count() == 1
    expect(page.locator("#wc-batch")).to_contain_text("1 job ended well: well")
    expect(page.locator("#wc-batch")).to_contain_text("no failure and no end")
    address = page.url
    assert "?batch=" in address
    crash.get_by_text("oom-b", exact=True).click()
    page.wait_for_selector("#wc-headline")
    assert "?job=" in page.url
    assert page.locator(".feedback").count() == 0
    expect(page.locator("#wc-follow")).to_be_hidden()
    page.reload()
    page.wait_for_selector("#wc-headline")
    page.click(".back a")
    page.wait_for_selector(".crashes")
    assert page.url == address


@pytest.mark.long
def test_that_a_batch_stands_in_the_history_and_gives_its_files(page: Page, tmp_path: Path) -> None:
    """It is found again; the report, the table and the answers are a click away."""
    handed_in(page, tmp_path, FILES)
    expect(page.locator(".history .batches a").first).to_contain_text("5 jobs")
    ways = {
        way: page.request.get(page.evaluate("way => new URL(way, location.href).href", way))
        for way in page.locator(".files-of a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    }
    assert [answer.status for answer in ways.values()] == [200, 200, 200]
    report, _, lines = ways.values()
    assert re.search(r'href="\.\./\.\./\.\./\?job=\w+-1"', report.text())
    assert {json.loads(row)["job"]["name"] for row in lines.text().splitlines()} == {
        name.partition(".")[0] for name in FILES
    }


@pytest.mark.long
def test_that_several_logs_are_offered_as_jobs_and_one_is_not(page: Page, tmp_path: Path) -> None:
    """A log with its launch script is one job; two logs may be two."""
    for name in ("a.log", "b.log", "run.sh"):
        (tmp_path / name).write_text(FILES["well.log"])
    page.set_input_files("#wc-file", [tmp_path / "a.log", tmp_path / "run.sh"])
    expect(page.locator("#wc-as-batch")).to_be_hidden()
    page.set_input_files("#wc-file", [tmp_path / "b.log"])
    expect(page.locator("#wc-as-batch")).to_be_visible()
    page.click("#wc-as-batch")
    page.wait_for_selector("#wc-batch .files-of")
    expect(page.locator("#wc-batch .head .told")).to_contain_text("0 of 2 jobs died")


@pytest.mark.long
def test_that_a_batch_is_watched_on_after_an_error_that_passes(page: Page, tmp_path: Path) -> None:
    """The error stands there meanwhile; of a batch that is not there nothing more is asked.

    Pasted text beside the files is said to be left out.
    """
    asked: list[str] = []

    def busy_at_first(route: Route) -> None:
        if '"batch"' not in (route.request.post_data or "").replace("\\", ""):
            route.continue_()
            return
        asked.append("")
        if len(asked) == 1:
            route.fulfill(json={"error": "All places are taken.", "status": 429})
        else:
            route.continue_()

    page.route("**/component_server/**", busy_at_first)
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(FILES["well.log"])
    page.fill("#wc-text", "pasted beside them")
    page.set_input_files("#wc-file", [tmp_path / "a.log", tmp_path / "b.log"])
    page.click("#wc-as-batch")
    expect(page.locator("#wc-batch-trouble")).to_have_text("All places are taken.")
    expect(page.locator(".wc")).to_contain_text("The pasted text is no part of the batch")
    page.wait_for_selector("#wc-batch .files-of")
    expect(page.locator("#wc-batch-trouble")).to_have_count(0)
    address = page.url.split("?")[0]
    page.clock.install()
    page.goto(f"{address}?batch=01NOTTHERE")
    expect(page.locator("#wc-batch")).to_contain_text("01NOTTHERE")
    count = len(asked)
    page.clock.run_for(10_000)
    assert len(asked) == count
    page.goto(f"{address}?job=01NOTTHERE-1")
    expect(page.locator("#wc-answer")).to_contain_text("01NOTTHERE")


@pytest.mark.long
def test_that_an_archive_without_a_log_says_so(page: Page, tmp_path: Path) -> None:
    """The page stays where it was, with the reason beside the button."""
    (tmp_path / "empty.zip").write_bytes(zipped({}))
    page.set_input_files("#wc-file", tmp_path / "empty.zip")
    page.click("#wc-as-batch")
    expect(page.locator("#wc-complaint")).not_to_be_empty()
    expect(page.locator("#wc-form")).to_be_visible()


@pytest.mark.long
@pytest.mark.parametrize(
    "way",
    [
        pytest.param({**PHONE, "locale": "zh-CN", "color_scheme": "dark"}, id="phone zh dark"),
        pytest.param({"locale": "en-US"}, id="desktop en", marks=pytest.mark.long),
    ],
)
def test_that_a_batch_is_for_everybody_and_acts_on_nothing(
    pages: OpenPage, server: Server, tmp_path: Path, way: dict[str, object]
) -> None:
    """No serious fault of access, nothing wider than the screen, and what names and lines hold is shown."""
    page = pages(server.url, **way)
    handed_in(page, tmp_path, {**FILES, f"{HOSTILE}.log": traceback(f"ValueError: {HOSTILE}")})
    assert faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.locator("#wc-batch img").count() == 0
    assert page.title() == "night.zip · whycrash"
    if way["locale"] == "zh-CN":
        assert not re.search(r"jobs died|ended well|GPU hours|Apart from", page.inner_text("#wc-batch"))
