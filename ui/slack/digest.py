"""The daily digest: what crashed in each channel in the last day, once a kind, at a set hour."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from corpus.schema import Language
from service.app.triage_service import TriageService
from service.persistence.crashes import TriageScope
from service.schemas.errors import RequestError
from service.schemas.records import Crash
from service.settings import Settings
from ui.slack.answer import SlackMessage, crash_state, page_of
from ui.slack.client import LOGGER, SlackClient
from ui.slack.errors import SlackError
from ui.slack.mrkdwn import BULLET, clip, code, context, escape, header, link, section
from ui.slack.request_parser import PLACE
from ui.slack.wording import say

EVERY = 60.0
_SEEN = "slack-digest"
_DAY = timedelta(days=1)
_KINDS, _JOBS, _HEADLINE = 20, 3, 200
# Ids of direct messages; whoever asks there alone needs no digest of it.
_DIRECT = "D"


class DigestPoster:
    """Posts each channel's digest once a day, over all processes and restarts; `hour` is in UTC."""

    def __init__(
        self,
        triage_service: TriageService,
        slack_client: SlackClient,
        settings: Settings,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._triage_service = triage_service
        self._slack_client = slack_client
        self._settings = settings
        self._clock = clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slack-digest", daemon=True)

    def start(self) -> None:
        """Begin to look at the clock, where digests are wanted."""
        if self._settings.slack_digest_hour >= 0:
            self._thread.start()

    def close(self) -> None:
        """Post no more."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(EVERY):
            try:
                self.round()
            except RequestError as error:
                LOGGER.error("The digest waits: %s", error)

    def round(self) -> None:
        """Post what is due now and was not posted today; raises RequestError where the store cannot tell."""
        now = self._clock()
        if now.hour != self._settings.slack_digest_hour:
            return
        store = self._triage_service.store
        for place in store.crashes.channels(now - _DAY):
            channel = place.rpartition("/")[2]
            if not place.startswith(PLACE) or channel.startswith(_DIRECT):
                continue
            crashes = store.crashes.since(now - _DAY, TriageScope(channel=place), _KINDS)
            message = digest(crashes, self._settings)
            if message is None or not store.seen.is_first(_SEEN, f"{place}:{now.date()}", now):
                continue
            try:
                self._slack_client.post(channel, message)
            except SlackError as error:
                LOGGER.error("A digest could not be posted: %s", error)


def digest(crashes: tuple[Crash, ...], settings: Settings) -> SlackMessage | None:
    """Lay out a channel's crashes, that which came most often first; None where there is nothing to tell."""
    language: Language = "zh" if settings.lang == "zh" else "en"
    shown = [crash for crash in crashes if crash.note is None or crash.note.state != "ignored"]
    if not shown:
        return None
    jobs = sum(crash.times for crash in shown)
    title = say("digest", language, jobs=f"{jobs:,}", kinds=f"{len(shown):,}")
    ranked = sorted(shown, key=lambda crash: (-crash.is_back, -crash.times))
    rows = [section(_row(crash, settings, language)) for crash in ranked]
    ignored = sum(crash.times for crash in crashes) - jobs
    notes = [context(say("digest-ignored", language, count=f"{ignored:,}"))] if ignored else []
    return SlackMessage(title, [header(title), *rows, *notes])


def _row(crash: Crash, settings: Settings, language: Language) -> str:
    page, told = page_of(settings, crash.triage), clip(crash.headline, _HEADLINE)
    parts = [
        ", ".join(code(clip(job, 60)) for job in crash.jobs[:_JOBS]),
        *crash_state(crash.note, language, is_back=crash.is_back),
    ]
    head = link(page, told) if page else escape(told)
    return f"{BULLET}*{crash.times:,}×* {head}\n{' · '.join(part for part in parts if part)}"
