"""A log that goes well until it stops: every view says so in amber, none that there is nothing to do."""

from __future__ import annotations

import io
from datetime import UTC, datetime

from rich.console import Console

from corpus.schema import Language
from ingest.logs.inputs import sources
from service.app.triage_service import Page
from service.pipeline.triage import Triage
from service.schemas.records import TriageRecord
from service.settings import Settings
from tests.warm import diagnosed
from ui.chat import answer as page
from ui.chat import history as past
from ui.chat import words
from ui.chat.view import TriageView
from ui.cli import explain
from ui.slack import answer as slack

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
WORK = "step 40/100 loss 2.1 lr 0.1\nstep 41/100 loss 2.0 lr 0.1\n"
# The text, the page's colour, and the terminal's: bold yellow and bold green.
ROWS = ((WORK, "v-open-end", "\x1b[1;33m"), (WORK + "Training completed.\n", "v-no-failure", "\x1b[1;32m"))


def test_a_stop_is_amber_and_a_good_end_green_in_every_view(triage: Triage) -> None:
    """The page, its history, the terminal and Slack; what to look at next stands where a change would."""
    wrong = []
    languages: tuple[Language, ...] = ("en", "zh")
    for text, colour, style in ROWS:
        for language in languages:
            found = diagnosed(triage, sources.from_text(text), language)
            shown = TriageView(language, "job.log", triage="01A", state="done", diagnosis=found)
            head, changes = page.head(shown, triage.library), page.changes(shown)
            record = TriageRecord(
                id="01A",
                source="job.log",
                origin="chat",
                state="done",
                caller="me",
                created=NOW,
                deadline=NOW,
                diagnosis=found,
            )
            history = past.render(Page(items=(record,), next=None), {}, triage.library, language, NOW)
            terminal = io.StringIO()
            explain.render(
                found, Console(file=terminal, force_terminal=True, width=200, color_system="standard")
            )
            message = str(slack.answer(found, Settings()).blocks)
            idle = words.say("action-none", language)
            is_open = colour == "v-open-end"
            wrong += [
                name
                for name, holds in (
                    ("head", colour in head),
                    ("history", colour in history),
                    ("terminal", style in terminal.getvalue()),
                    ("idle", is_open != (idle in head)),
                    ("changes", is_open == bool(changes)),
                    ("checks", all((check in message) == is_open for check in found.checks[:1])),
                    ("look", bool(found.checks) == is_open),
                )
                if not holds
            ]
    assert not wrong
