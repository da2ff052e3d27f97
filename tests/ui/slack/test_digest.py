"""The daily digest by channel, and what an answer tells of earlier crashes of its kind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from service.persistence.crashes import TriageScope
from service.persistence.store import Store
from service.schemas.records import Crash, CrashNoteRecord, Recurrence
from service.settings import Settings
from tests.service.factories import diagnosis
from tests.service.persistence.makers import triage
from tests.ui.slack.workspace import shown
from ui.slack.answer import AnswerExtras, SlackMessage, answer
from ui.slack.digest import DigestPoster, digest

SEVEN = datetime(2026, 11, 14, 7, 20, tzinfo=UTC)
HERE = Settings(public_url="https://w.example/", slack_digest_hour=7)


def note(state: Any, fingerprint: str = "ab12") -> CrashNoteRecord:
    """Make a note on a crash."""
    return CrashNoteRecord(
        fingerprint=fingerprint, caller="U1", created=SEVEN, state=state, owner="ann", fixed_by="#812"
    )


def laid(message: SlackMessage) -> str:
    """Give all that a message shows."""
    return shown({"blocks": message.blocks})


def crash(**fields: Any) -> Crash:
    """Make a crash of two jobs."""
    made: dict[str, Any] = {"fingerprint": "ab12", "times": 2, "first": SEVEN, "last": SEVEN, "triage": "T2"}
    return Crash(
        **{**made, "cause": "disk-full", "headline": "The disk <is> full", "jobs": ("n7", "n8"), **fields}
    )


def test_that_a_digest_tells_each_kind_once_and_counts_what_is_ignored() -> None:
    """What is back after it was fixed stands first; no text of a log is markup."""
    back = crash(fingerprint="cd34", times=1, headline="No route", note=note("fixed", "cd34"), is_back=True)
    told = digest((crash(), back, crash(fingerprint="e5", times=4, note=note("ignored", "e5"))), HERE)
    assert told is not None
    text = shown({"blocks": told.blocks})
    assert told.text == "Crashes in this channel in the last day: 3; different ones: 2"
    assert text.index("No route") < text.index("The disk &lt;is&gt; full")
    assert "back after it was fixed" in text
    assert "owner: ann" in text
    assert "4 more are of kinds that are ignored." in text
    assert digest((crash(note=note("ignored")),), HERE) is None


class Channels:
    """What would be posted, by channel."""

    def __init__(self) -> None:
        self.posted: list[tuple[str, str]] = []

    def post(self, channel: str, message: SlackMessage) -> tuple[str, str]:
        """Note a message."""
        self.posted.append((channel, message.text))
        return channel, "1"


@pytest.fixture
def store(tmp_path: Any) -> Any:
    """An empty store."""
    with Store.open(Settings(home=tmp_path)) as opened:
        yield opened


def test_that_each_channel_gets_its_own_once_a_day_at_its_hour(store: Store) -> None:
    """Not before the hour, not twice, not after a restart, not to a direct message; of the last day alone."""
    found = diagnosis(fingerprint="ab12")
    rows = (
        ("slack:T/C1", 1),
        ("slack:T/C1", 2),
        ("slack:T/C2", 3),
        ("slack:T/D1", 3),
        ("", 3),
        ("slack:T/C3", 30),
    )
    for number, (channel, hours) in enumerate(rows):
        created = SEVEN - timedelta(hours=hours)
        store.triages.add(triage(id=f"T{number}", channel=channel, created=created, diagnosis=found))
    service: Any = SimpleNamespace(store=store)
    slack: Any = Channels()
    now = SEVEN - timedelta(hours=1)
    for moment in (now, SEVEN, SEVEN + timedelta(minutes=9)):
        # A new one each time, as after a restart.
        DigestPoster(service, slack, HERE, lambda moment=moment: moment).round()
    assert slack.posted == [
        ("C1", "Crashes in this channel in the last day: 2; different ones: 1"),
        ("C2", "Crashes in this channel in the last day: 1; different ones: 1"),
    ]
    assert store.crashes.since(SEVEN - timedelta(days=1), TriageScope(channel="slack:T/C3")) == ()


def test_that_an_answer_tells_of_earlier_crashes_of_its_kind() -> None:
    """How often, the last one with its job and link, and how it stands; nothing where it is the first."""
    seen = Recurrence(
        times=2,
        first=SEVEN,
        last=SEVEN,
        triage="T7",
        job="n7",
        fix="more disk",
        note=note("fixed"),
        is_back=True,
    )
    text = laid(answer(diagnosis(), HERE, AnswerExtras(seen=seen)))
    assert "Seen 2 times before in this channel" in text
    assert "<https://w.example/?triage=T7|2026-11-14>" in text
    assert "back after it was fixed · by #812 · owner: ann" in text
    assert "said to have cured it: more disk" in text
    assert "before in this channel" not in laid(answer(diagnosis(), HERE))
