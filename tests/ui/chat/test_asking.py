"""From a log to an answer, in a real browser."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.ui.chat.conftest import OpenPage
from tests.ui.chat.serving import ROOT, Server

EXAMPLES = ROOT / "ui" / "chat" / "examples"
LOG = (EXAMPLES / "gpu-memory" / "log.txt").read_text(encoding="utf-8")
JUDGED = """  File "/job/judged.py", line 8, in <module>
    shape_the_judged(batch)
  File "/job/judged.py", line 4, in shape_the_judged
    raise ValueError("the judged batch has no rows")
ValueError: the judged batch has no rows
"""
HEADLINE = "Out of memory in the training step"


def explain(page: Page, log: str = LOG) -> None:
    """Paste a log, ask, and wait for the whole answer."""
    page.fill("#wc-text", log)
    page.press("#wc-text", "Control+Enter")
    page.wait_for_selector(".feedback")


def test_that_a_pasted_log_is_answered(page: Page) -> None:
    """The headline, how firmly it stands and what to change come above the explanation and the log."""
    explain(page)
    expect(page.locator("#wc-headline")).to_contain_text(HEADLINE)
    expect(page.locator(".firm")).to_have_text(re.compile(r"about \d+ % · Several signs support it"))
    tops = [
        page.locator(name).bounding_box()["y"]
        for name in ("#wc-headline", "#wc-changes", "#wc-why", "#wc-evidence", "#wc-cases")
    ]  # type: ignore[index]
    assert tops == sorted(tops)


def test_that_the_stages_are_told(page: Page) -> None:
    """What was read and found stands above the answer."""
    explain(page)
    told = page.locator(".stages").inner_text()
    assert all(
        words in told
        for words in (
            "pasted text",
            "Read 4.9 kB",
            "failure events",
            "known cases",
            "No telemetry",
            "without a model",
        )
    )


def test_that_the_log_is_shown_around_its_root(page: Page) -> None:
    """The root line is marked, in view, and has its number in the pasted text."""
    explain(page)
    root = page.locator('.log .l[data-role="root"]')
    number = int(root.get_attribute("data-line") or 0)
    assert "CUDA out of memory" in LOG.split("\n")[number - 1]
    box, line = page.locator(".log").bounding_box(), root.bounding_box()
    assert box is not None
    assert line is not None
    assert box["y"] <= line["y"] <= box["y"] + box["height"]


def test_that_one_jumps_from_event_to_event(page: Page) -> None:
    """The button of a role goes to its next line each time; a citation goes to the line that it cites."""
    explain(page)
    page.click('.jump[data-role="collateral"]')
    first = page.locator(".log .l.now").get_attribute("data-line")
    page.click('.jump[data-role="collateral"]')
    assert page.locator(".log .l.now").get_attribute("data-line") != first
    cited = page.locator("#wc-why .cite[data-line] >> nth=0")
    cited.click()
    assert page.locator(".log .l.now").get_attribute("data-line") == cited.get_attribute("data-line")


def test_that_files_are_dropped_anywhere(page: Page) -> None:
    """A log and a launch script that are dropped on the page make an answer with a patch of the script."""
    drop(
        page,
        [
            ("train.log.gz", gzip.compress(LOG.encode())),
            ("launch.sh", (EXAMPLES / "gpu-memory" / "run.sh").read_bytes()),
        ],
    )
    expect(page.locator("#wc-files li")).to_have_count(2)
    page.click('#wc-form [type="submit"]')
    page.wait_for_selector(".feedback")
    expect(page.locator(".stages .source")).to_have_text("train.log.gz (+1)")
    expect(page.locator(".patch h3").first).to_have_text("Patch of launch.sh")


def drop(page: Page, files: list[tuple[str, bytes]]) -> None:
    """Drop files on the middle of the page, as a mouse does."""
    transfer = page.evaluate_handle(
        "files => { const made = new DataTransfer(); for (const [name, bytes] of files) "
        "made.items.add(new File([new Uint8Array(bytes)], name)); return made; }",
        [[name, list(raw)] for name, raw in files],
    )
    for event in ("dragenter", "dragover", "drop"):
        page.dispatch_event("body", event, {"dataTransfer": transfer})


def test_that_uploads_are_gone_after_the_answer(page: Page, server: Server) -> None:
    """What was uploaded is kept, without a name, only while it is read."""
    page.set_input_files("#wc-file", {"name": "one.log", "mimeType": "text/plain", "buffer": LOG.encode()})
    page.click('#wc-form [type="submit"]')
    page.wait_for_selector(".feedback")
    assert server.process is not None
    held = [path for path in Path(f"/proc/{server.process.pid}/fd").iterdir() if path.is_file()]
    assert [path for path in held if " (deleted)" in path.readlink().name and path.read_text() == LOG] == []


def test_that_a_snapshot_is_weighed_and_plotted(page: Page) -> None:
    """A snapshot of the machine that is added beside the log is named, and its history drawn."""
    folder = ROOT / "eval" / "incidents" / "kelp-tide"
    page.set_input_files("#wc-file", [folder / "log.txt", folder / "telemetry.json"])
    page.click('#wc-form [type="submit"]')
    page.wait_for_selector(".feedback")
    expect(page.locator(".stages")).to_contain_text("Telemetry: host")
    expect(page.locator("#wc-machine .curve polyline").first).to_be_visible()


def test_that_a_patch_is_saved_and_copied_as_it_is(page: Page) -> None:
    """The file and the clipboard hold the patch that the API gives, byte for byte."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click('[data-example="gpu-memory"]')
    page.wait_for_selector(".feedback")
    record = page.evaluate(
        "async () => (await fetch('/v1/triages/' + new "
        "URLSearchParams(location.search).get('triage'))).json()"
    )
    with page.expect_download() as waiting:
        page.click('[data-do="save-patch"]')
    assert waiting.value.suggested_filename == "whycrash.patch"
    patch = record["diagnosis"]["patch"]
    assert waiting.value.path().read_bytes().decode() == patch
    page.click('[data-do="copy-patch"]')
    expect(page.locator("#wc-toast")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == patch


@pytest.mark.parametrize(
    ("example", "verdict"),
    [
        ("gpu-memory", "Cause found"),
        # What another test said of its kind makes it surer.
        pytest.param(
            "nccl-timeout", "(?:Probable cause|Cause found) · One rank is late", marks=pytest.mark.long
        ),
        pytest.param("host-memory", "Probable cause", marks=pytest.mark.long),
        ("recovered", "No failure found"),
    ],
)
def test_that_each_example_is_answered(page: Page, example: str, verdict: str) -> None:
    """An example is one click; whose cause is under 70 % sure is told as probable."""
    page.click(f'[data-example="{example}"]')
    page.wait_for_selector(".feedback")
    expect(page.locator(".verdict")).to_contain_text(re.compile(verdict))


def test_that_nothing_pasted_is_said_at_once(page: Page) -> None:
    """The page says what is missing and asks nobody."""
    page.click('#wc-form [type="submit"]')
    expect(page.locator("#wc-complaint")).to_have_text("Paste a log or add a file first.")


def test_that_a_file_without_text_is_refused_in_words(page: Page) -> None:
    """What is no log ends in a sentence, and a new log can be asked about."""
    page.set_input_files(
        "#wc-file",
        {"name": "weights.bin", "mimeType": "application/octet-stream", "buffer": bytes(range(256)) * 64},
    )
    page.click('#wc-form [type="submit"]')
    expect(page.locator("[data-panel] .trouble")).to_contain_text("That did not work")
    page.click('[data-do="again"]')
    expect(page.locator("#wc-files li span")).to_contain_text("weights.bin")
    page.click("#wc-files button")
    explain(page)


def test_that_an_answer_is_heard_and_judged(page: Page) -> None:
    """Wrong opens a form with all causes; what is sent stands in the store.

    The crash is one of its own: what is said of one counts in the next answers of its kind.
    """
    explain(page, "step 3 loss 0.5\nTraceback (most recent call last):\n" + JUDGED)
    page.click('[data-do="wrong"]')
    page.select_option("#wc-real-cause", "host-oom-kill")
    page.fill('#wc-wrong [name="fix"]', "more memory for the pod")
    page.click('#wc-wrong [type="submit"]')
    expect(page.locator("#wc-thanks")).to_have_text("Thank you, noted.")
    expect(page.locator('[data-do="wrong"]')).to_have_attribute("aria-pressed", "true")


def test_that_a_link_opens_the_triage(page: Page, pages: OpenPage) -> None:
    """The address of an answer shows it to whoever opens it."""
    explain(page)
    # Not a headline of its own: what a test before confirmed of the same crash may have moved the cause.
    headline = page.locator("#wc-headline").inner_text()
    other = pages(page.url)
    other.wait_for_selector(".feedback")
    expect(other.locator("#wc-headline")).to_contain_text(headline)
    expect(other.locator('.log .l[data-role="root"]').first).to_be_visible()


def test_that_a_wrong_link_is_told(pages: OpenPage, server: Server) -> None:
    """An address of nothing ends in a sentence."""
    page = pages(f"{server.url}?triage=01AAAAAAAAAAAAAAAAAAAAAAAA")
    expect(page.locator("[data-panel] .trouble")).to_contain_text("There is no triage")


def test_that_the_history_is_searched(page: Page) -> None:
    """Past triages are listed, newest first; words narrow the list; a click opens one."""
    page.click('[data-example="nccl-timeout"]')
    page.wait_for_selector(".feedback")
    page.click('.bar [data-do="new"].when-answer')
    page.fill("#wc-search", "nccl-timeout")
    expect(page.locator("#wc-past li").first).to_contain_text("Ranks time out")
    page.fill("#wc-search", "no-such-words-anywhere")
    expect(page.locator("#wc-past")).to_have_text("Nothing here yet.")
    page.fill("#wc-search", "nccl")
    page.click("#wc-past a >> nth=0")
    expect(page.locator("#wc-headline")).to_contain_text("Ranks time out")


def test_that_a_triage_is_deleted(page: Page) -> None:
    """Deleting asks once, and then the triage is gone from the history and its address."""
    explain(page, f"{LOG}\nthe one that goes\n")
    address = page.url
    page.on("dialog", lambda dialog: dialog.accept())
    page.click("#wc-privacy summary >> nth=0")
    page.click('[data-do="forget"]')
    expect(page.locator("#wc-form")).to_be_visible()
    page.goto(address)
    expect(page.locator("[data-panel] .trouble")).to_contain_text("There is no triage")


def test_that_the_prompt_is_shown(page: Page) -> None:
    """The privacy panel shows exactly what a model would be sent, with secrets masked."""
    explain(page, f"export HF_TOKEN=hf_{'aB3' * 12}\n{LOG}")
    page.click("#wc-privacy summary >> nth=0")
    expect(page.locator("#wc-privacy")).to_contain_text("1 secret masked")
    page.click('[data-do="prompt"]')
    expect(page.locator("#wc-prompt")).to_contain_text("===== system =====")
    assert "aB3aB3" not in page.content()
