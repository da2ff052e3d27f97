"""The page of a batch: what it says, that it is inert, and how it stands in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from corpus.schema import Language
from service.batches.page import number, page
from service.batches.summary import Summary
from service.batches.tally import summarize
from service.batches.trend import TrendPoint
from service.schemas.records import JobRecord
from tests.browsers import launch_browser, require_browser
from tests.service.batches.outcomes import NOON, TITLES, answer, batch, healthy, job, line
from tests.service.factories import proposal
from tests.tables import each_row

HOSTILE = '<img src=x onerror="alert(1)">\x1b[31m\u202e</title><script>alert(2)</script>'


def _jobs() -> list[JobRecord]:
    memory = answer(changes=(proposal("actor.offload", to=True, costs="a slower step"),))
    return [
        job(1, memory, nodes=2, node_names=("gpu01", "gpu02"), gpu_hours=120.0, ended=NOON),
        job(
            2,
            same_as="B-1",
            nodes=2,
            node_names=("gpu02", "gpu03"),
            gpu_hours=64.25,
            ended=NOON + timedelta(hours=3),
        ),
        job(
            3,
            answer(
                "nccl-network",
                changes=(proposal("NCCL_IB_TIMEOUT", to=22, framework="nccl", kind="env"),),
                action="retry",
            ),
            gpu_hours=10.0,
            ended=NOON + timedelta(hours=5),
        ),
        job(4, healthy(), gpu_hours=1.0),
        job(5, state="failed", error="Its worker died (3 tries)"),
    ]


def _trend(summary: Summary) -> list[TrendPoint]:
    return [
        TrendPoint(
            batch=str(day),
            name="n",
            created=NOON + timedelta(days=day),
            jobs=9,
            died=day,
            gpu_hours=None,
            causes={"host-oom-kill": day, "gone": 1},
        )
        for day in range(1, 4)
    ]


def _page(language: Language = "en", **fields: Any) -> str:
    summary = summarize(
        batch(left_out={"no_output_found": "2: 8, 9"}, **fields), map(line, _jobs()), TITLES, language
    )
    return page(summary, _trend(summary))


def _text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition("<body>")[2]))


def test_that_the_page_says_what_died_what_it_cost_and_what_to_change() -> None:
    """The first screen has the figures and the one change.

    Below stand all causes, crashes and what has no answer.
    """
    text = _text(_page())
    for told in (
        "3 jobs died of 5",
        "194 GPU hours lost",
        "2 different crashes",
        "3 nodes hit most often gpu02",
        "1 without an answer",
        "actor.offload = True",
        "2 of the 3 jobs that died (67%)",
        "184 GPU hours, 95% of what was lost",
        "It costs: a slower step",
        "NCCL_IB_TIMEOUT=22",
        "One of the jobs may simply be run again.",
        "1 job ended well.",
        "It is host-oom-kill",
        "2026-11-20 12:00 – 2026-11-20 15:00",
        "job 1",
        "Its worker died (3 tries)",
        "no output found",
        "2: 8, 9",
    ):
        assert told in text, told
    assert text.index("actor.offload = True") < text.rindex("What died, and why")


def test_that_the_page_speaks_chinese() -> None:
    """All of its own words are in the summary's language."""
    html = _page("zh")
    text = _text(html)
    assert 'lang="zh-CN"' in html
    for told in ("先改这里", "个作业失败", "GPU 小时损失", "没有结论的作业", "逐个崩溃"):
        assert told in text, told
    assert not re.search(
        r"Change this first|jobs died|different crashes|Crash by crash|Then these|without an answer", text
    )


@each_row(("state", "told"), [("running", "still running"), ("cancelled", "was cancelled")])
def test_that_a_batch_that_is_not_whole_says_so(state: str, told: str) -> None:
    """A reader must not take half for all."""
    assert told in _text(_page(state=state))


def test_that_a_batch_without_deaths_says_so() -> None:
    """Nothing is made up where nothing died."""
    text = _text(page(summarize(batch(), [line(job(1, healthy()))], TITLES)))
    assert "Nothing here died." in text
    assert "Change this first" not in text


def test_that_what_logs_say_is_inert() -> None:
    """Names, headlines, errors and values are text, wherever they stand; the page loads and runs nothing."""
    diagnosis = answer(headline=HOSTILE, changes=(proposal(HOSTILE, to=HOSTILE, why=HOSTILE, costs=HOSTILE),))
    jobs = [
        job(1, diagnosis, name=HOSTILE, node_names=(HOSTILE,), nodes=1),
        job(2, state="failed", error=HOSTILE, name=HOSTILE),
    ]
    html = page(
        summarize(
            batch(name=HOSTILE, left_out={HOSTILE: HOSTILE}), map(line, jobs), {"host-oom-kill": HOSTILE}
        )
    )
    assert "<img" not in html
    assert "<script" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert not re.search(r"(?:src|href)=\"(?!#)", html)
    assert "default-src &#x27;none&#x27;" in html


@each_row(
    ("value", "told"),
    [
        (None, "-"),
        (0, "0"),
        (3, "3"),
        (0.256, "0.26"),
        (12.34, "12.3"),
        (1234.5, "1,234"),
        (1e6, "1,000,000"),
    ],
)
def test_that_numbers_read_easily(value: float | None, told: str) -> None:
    """Three digits count."""
    assert number(value) == told


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start a real browser."""
    require_browser()
    with sync_playwright() as playwright:
        found = launch_browser(playwright)
        yield found
        found.close()


@each_row("scheme", ["light", "dark"])
@each_row("width", [390, 1440])
@each_row("language", ["en", "zh"])
@pytest.mark.long
def test_that_the_page_stands_on_a_screen(
    browser: Any, tmp_path: Path, width: int, scheme: str, language: Language
) -> None:
    """Nothing is wider than the screen, nothing is reported, and what axe checks of accessibility holds."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    path = tmp_path / "page.html"
    path.write_text(_page(language), encoding="utf-8")
    told: list[str] = []
    # axe is a script of the test's own, which the page's policy would refuse.
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
    )
    with context.new_page() as shown:
        shown.on("console", lambda message: told.append(message.text))
        shown.goto(path.as_uri())
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        found = axe.run(shown)
        assert found.violations_count == 0, found.generate_report()
    context.close()
    assert told == []
