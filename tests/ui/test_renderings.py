"""The renderings of a diagnosis say the same of a change, for they lay out one view of it."""

from __future__ import annotations

import io
import re

from rich.console import Console

from corpus.schema import Language
from service.schemas.diagnosis import Diagnosis, Resumption
from service.settings import Settings
from tests.factories import whole_corpus
from tests.service.factories import diagnosis, proposal
from ui.chat import answer as page
from ui.chat.view import TriageView
from ui.cli import explain
from ui.slack import answer as slack


def renderings(found: Diagnosis) -> dict[str, str]:
    """Render an answer on a terminal, on the page and for Slack."""
    terminal = io.StringIO()
    explain.render(found, Console(file=terminal, width=200))
    view = TriageView(found.language, "job.log", triage="01J", state="done", diagnosis=found)
    return {
        "terminal": terminal.getvalue(),
        "page": page.changes(view),
        "slack": str(slack.answer(found, Settings()).blocks),
    }


def test_that_a_setting_without_a_value_was_not_set_in_every_rendering() -> None:
    """A person reads words, and no `None` of Python or `null` of YAML."""
    rows: tuple[tuple[Language, str, str], ...] = (
        ("en", "The disk is full", "not set before"),
        ("zh", "磁盘已满", "原未设置"),
    )
    wrong = []
    for language, headline, told in rows:
        for value in ("None", "null"):
            found = diagnosis(headline=headline, changes=(proposal(from_=value),))
            assert found.language == language
            wrong += [
                (language, value, name)
                for name, text in renderings(found).items()
                if told not in text or f" {value}" in text or f"`{value}`" in text
            ]
    assert wrong == []


def test_that_terminal_and_page_tell_how_to_go_on_in_the_words_of_the_language() -> None:
    """What is to be written stands whole; a Chinese sentence has a Chinese stop before it."""
    whole = Resumption(checkpoint="/out/c-5", line=7, step=5, how="--load /out/c-5")
    rows: tuple[tuple[Language, str, str], ...] = (
        ("en", "The disk is full", "(L7). Go on from it with:"),
        ("zh", "磁盘已满", "（L7）。从它继续："),
    )
    for language, headline, told in rows:
        found = diagnosis(headline=headline).model_copy(update={"resumption": whole})
        terminal = io.StringIO()
        explain.render(found, Console(file=terminal, width=200))
        view = TriageView(language, "job.log", triage="01J", state="done", diagnosis=found)
        head = page.head(view, whole_corpus())
        shown = re.sub(r"<[^>]+>", "", head)
        assert told in shown
        assert told in terminal.getvalue()
        assert "--load /out/c-5" in shown
        assert "\n  --load /out/c-5\n" in terminal.getvalue()
