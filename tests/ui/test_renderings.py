"""The renderings of a diagnosis say the same of a change, for they lay out one view of it."""

from __future__ import annotations

import io

from rich.console import Console

from corpus.schema import Language
from service.schemas.diagnosis import Diagnosis
from service.settings import Settings
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
