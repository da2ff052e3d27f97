"""A log is text of strangers: nothing of it is ever rendered, run, or fetched."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from tests.ui.chat.serving import ROOT, Server
from tests.ui.chat.test_asking import explain

LOG = (ROOT / "ui" / "chat" / "examples" / "gpu-memory" / "log.txt").read_text(encoding="utf-8")
MARKUP = (
    "<script>window.owned = 1</script>",
    "<img src=x onerror='window.owned = 1'>",
    "<svg onload=window.owned=1><iframe src=https://example.com/>",
    "</code></div><a href='javascript:window.owned=1'>here</a>",
    (
        "[click](javascript:window.owned=1) ![i](https://example.com/i.png) **bold** "
        "`</code><script>window.owned=1</script>`"
    ),
    (
        "${window.owned = 1} `${window.owned = 1}` {{constructor.constructor('window.owned = 1')()}} {{#each "
        "value}}{{/each}} @children"
    ),
    "\" onmouseover=\"window.owned = 1\" x=\"' onfocus='window.owned = 1' autofocus '",
    '[L1](https://example.com) [case:x](https://example.com) [L1" onclick="window.owned=1]',
)
ANSI = "\x1b[31mred\x1b[0m \x1b]8;;https://example.com\x07link\x1b]8;;\x07 \x1b[2J\x1b[1;1Hmoved \x9b31mold"
TURNED = "rank \u202e0 thgir ot tfel\u202c \u2066isolated\u2069 \u200fmark"
# Every place of an answer that quotes a log: the root line, its facts, the source, the command.
WRAPPED = "\n".join(
    f"(WorkerDict pid=7<b>{place}</b>) RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB. {text}"
    for place, text in enumerate(MARKUP)
)


@pytest.mark.parametrize(
    "log",
    [
        pytest.param("\n".join([*MARKUP, LOG, *MARKUP]), id="around"),
        pytest.param(WRAPPED, id="in the root line"),
        pytest.param(
            LOG.replace(
                "CUDA out of memory.",
                f"CUDA out of memory. {MARKUP[0]} {MARKUP[1]} {MARKUP[5]} {ANSI} {TURNED}",
            ),
            id="in the quotes",
            marks=pytest.mark.long,
        ),
        pytest.param(
            f"+ python3 -m verl.trainer.main_ppo trainer.project_name='{MARKUP[1]}' {MARKUP[0]}\n{LOG}",
            id="in the command",
            marks=pytest.mark.long,
        ),
    ],
)
def test_that_markup_of_a_log_is_text(page: Page, log: str) -> None:
    """No element, handler, link or image of a log comes to be; what it wrote is there to read."""
    explain(page, log)
    page.fill("#wc-question", MARKUP[0] + MARKUP[1] + MARKUP[4])
    page.press("#wc-question", "Enter")
    page.wait_for_selector(".talk .ours:not([aria-busy])")
    for summary in page.locator("#wc-answer summary").all():
        summary.click()
    page.wait_for_timeout(200)
    assert page.evaluate("window.owned") is None
    assert (
        page.locator("#wc-answer")
        .locator(
            "script, img, iframe, object, embed, svg svg, [onclick], [onerror], [onload], [onmouseover], "
            "[onfocus]"
        )
        .count()
        == 0
    )
    links = page.locator("#wc-answer a").evaluate_all("links => links.map(link => link.href)")
    assert [link for link in links if "example.com" in link or link.startswith("javascript")] == []
    assert "<script>" in page.locator("#wc-evidence").inner_text()


def test_that_terminal_codes_and_turned_text_are_taken_out(page: Page) -> None:
    """What would colour, move, link or turn text is gone from all that is shown; the words stay."""
    explain(page, f"{ANSI}\n{TURNED}\n{LOG}\n{ANSI} {TURNED}")
    shown = page.locator("#wc-answer").inner_text()
    assert not {char for char in shown if char in "\x1b\x9b\x07\u202e\u202c\u2066\u2069\u200f"}
    assert all(words in shown for words in ("red", "link", "moved", "thgir ot tfel", "isolated"))
    assert "[31m" not in shown


def test_that_names_of_files_are_text(page: Page) -> None:
    """A file may be called anything."""
    name = "<img src=x onerror=window.owned=1>.log"
    page.set_input_files("#wc-file", {"name": name, "mimeType": "text/plain", "buffer": LOG.encode()})
    expect(page.locator("#wc-files li span")).to_contain_text(name)
    page.click('#wc-form [type="submit"]')
    page.wait_for_selector(".feedback")
    expect(page.locator(".stages .source")).to_contain_text("<img")
    expect(page.locator("#wc-past li").first).to_contain_text("<img")
    assert page.evaluate("window.owned") is None


def test_that_the_page_may_load_nothing_of_another_site(page: Page, server: Server) -> None:
    """What a log would smuggle in could not be fetched; the server gives no file of its own."""
    answer = page.request.get(server.url)
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["object-src"] == "'none'"
    for path in ("/etc/passwd", str(server.home / "whycrash.db"), str(ROOT / "README.md"), "README.md"):
        assert page.request.get(f"{server.url}gradio_api/file={path}").status in (403, 404)


@pytest.mark.parametrize(
    "place",
    [
        "/etc/passwd",
        "{root}/../../etc/passwd",
        pytest.param("/proc/self/environ", marks=pytest.mark.long),
        pytest.param("{root}/x.log", marks=pytest.mark.long),
    ],
)
def test_that_only_uploads_are_read(page: Page, place: str) -> None:
    """A page that names a path of the server as its upload gets nothing of it."""
    page.route(
        "**/gradio_api/queue/join*",
        lambda route: route.continue_(post_data=_renamed(route.request.post_data or "", place)),
    )
    page.set_input_files("#wc-file", {"name": "x.log", "mimeType": "text/plain", "buffer": LOG.encode()})
    page.click('#wc-form [type="submit"]')
    expect(page.locator("[data-panel] .trouble")).to_contain_text("x.log is no uploaded file")


def _renamed(body: str, place: str) -> str:
    sent = json.loads(body)
    own = sent["event_data"]["files"][0]
    own["place"] = place.format(root=own["place"])
    return json.dumps(sent)
