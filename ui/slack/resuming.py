"""Finishing what stands open in threads, where a server was killed or Slack was away: the kept answer, or that it was cut."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from service.desk import Desk
from service.errors import NotFoundError, RequestError
from service.records import TriageRecord
from service.settings import Settings
from service.store.triages import INTERRUPTED
from ui import sentences
from ui.slack.answer import Extras, Message, answer, told, turn
from ui.slack.asked import Asked, Content
from ui.slack.errors import SlackError, SlackUnreachableError
from ui.slack.ledger import Item, Ledger, Left
from ui.slack.reply import Reply
from ui.slack.voice import LOGGER, Voice
from ui.slack.wording import language_of, say

# Seconds between two looks: another server on the same home may be killed while this one lives.
EVERY = 30.0
# After so long nobody waits for an answer of which nothing was ever said.
FORGOTTEN = timedelta(hours=24)


class Resumer:
    """Looks for questions left open, beside the bot."""

    def __init__(self, ledger: Ledger, desk: Desk, voice: Voice, settings: Settings) -> None:
        self._ledger = ledger
        self._desk = desk
        self._voice = voice
        self._settings = settings
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slack-resumer", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Look no more; what is not finished is found again."""
        self._stop.set()

    def _run(self) -> None:
        while True:
            try:
                self.round()
            except Exception:  # noqa: BLE001 - the next look may do better, and nobody else would look
                LOGGER.exception("What was left open could not be finished.")
            if self._stop.wait(EVERY):
                return

    def round(self) -> None:
        """Finish what can be finished now: what this process could not say, and what others left."""
        for item in self._ledger.unsaid():
            self._finish(item, self._ledger)
        for left in self._ledger.left():
            try:
                for item in left.items:
                    self._finish(item, left)
            finally:
                left.close()

    def _finish(self, item: Item, left: Left | Ledger) -> None:
        if self._stop.is_set():
            return
        try:
            if item.at is not None or datetime.now(UTC) - item.begun < FORGOTTEN:
                Reply(self._voice, _asked(item), item.at).show(finished(item, self._desk, self._settings))
        except (RequestError, SlackUnreachableError) as error:
            LOGGER.error("A thread is left open for now: %s", error)
            return
        except SlackError as error:
            # The channel is gone, or the bot is not in it any more: another try would end the same way.
            LOGGER.error("A thread cannot be finished: %s", error)
        left.drop(item)


def _asked(item: Item) -> Asked:
    return Asked(
        team="", channel=item.channel, user=item.user, bot="", content=Content(), thread=item.thread, has_root=item.has_root, fallback=item.language,
    )


def finished(item: Item, desk: Desk, settings: Settings) -> Message:
    """Give what a thread is told in the end; raises RequestError where the store cannot tell."""
    try:
        record = desk.record(item.triage) if item.triage else None
        if record is not None and item.question:
            return _turned(item, record, desk, settings)
    except NotFoundError:
        record = None
    if record is not None and record.diagnosis is not None:
        cut = record.state == "running" or bool(record.error)
        notes = (say("stopped-model", language_of(record.diagnosis)),) if cut else ()
        return answer(record.diagnosis, settings, Extras(notes=notes))
    if record is not None and record.state == "failed" and record.error != INTERRUPTED:
        return told(say("failed", item.language, error=sentences.worded("", record.error, item.language)))
    return told(say("stopped", item.language))


def _turned(item: Item, record: TriageRecord, desk: Desk, settings: Settings) -> Message:
    """Give the answer to a question about a triage, where it was kept before the server ended."""
    said = list(desk.messages(item.triage))
    for question, reply in pairwise(said):
        is_it = question.role == "user" and reply.role == "assistant" and question.text == item.question and question.created >= item.begun
        if is_it and record.diagnosis is not None:
            return turn(reply.text, record.diagnosis, settings)
    return told(say("stopped", item.language))
