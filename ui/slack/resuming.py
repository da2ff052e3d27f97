"""Finish open threads after a kill or an outage of Slack: with the stored answer, or a note."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from corpus.message import message_id
from service.app.triage_service import TriageService
from service.persistence.triages import INTERRUPTED
from service.schemas.errors import NotFoundError, RequestError
from service.schemas.records import TriageRecord
from service.settings import Settings
from ui import sentences
from ui.slack.answer import AnswerExtras, SlackMessage, answer, text_message, turn
from ui.slack.client import LOGGER, SlackClient
from ui.slack.errors import SlackError, SlackUnreachableError
from ui.slack.question_log import LeftOpenQuestions, OpenQuestion, QuestionLog
from ui.slack.reply import Reply
from ui.slack.request_parser import MessageContent, SlackQuestion
from ui.slack.wording import say

# Seconds between two looks: another server on the same home may be killed while this one lives.
EVERY = 30.0
# After so long nobody waits for an answer of which nothing was ever said.
FORGOTTEN = timedelta(hours=24)


class Resumer:
    """Looks for questions left open, beside the bot."""

    def __init__(
        self,
        question_log: QuestionLog,
        triage_service: TriageService,
        slack_client: SlackClient,
        settings: Settings,
    ) -> None:
        self._question_log = question_log
        self._triage_service = triage_service
        self._slack_client = slack_client
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
        """Finish what can be finished now: what this process could not note or say, and what others left."""
        self._question_log.write_owed()
        for item in self._question_log.unsaid():
            self._finish(item, self._question_log)
        for left in self._question_log.left():
            try:
                for item in left.items:
                    self._finish(item, left)
            finally:
                left.close()

    def _finish(self, item: OpenQuestion, left: LeftOpenQuestions | QuestionLog) -> None:
        if self._stop.is_set():
            return
        try:
            if item.at is not None or datetime.now(UTC) - item.begun < FORGOTTEN:
                asked = SlackQuestion(
                    team="",
                    channel=item.channel,
                    user=item.user,
                    bot="",
                    content=MessageContent(),
                    thread=item.thread,
                    has_root=item.has_root,
                    fallback=item.language,
                )
                Reply(self._slack_client, asked, item.at).show(
                    finished(item, self._triage_service, self._settings)
                )
        except (RequestError, SlackUnreachableError) as error:
            LOGGER.error("A thread is left open for now: %s", error)
            return
        except SlackError as error:
            # The channel is gone, or the bot is not in it any more: another try would end the same way.
            LOGGER.error("A thread cannot be finished: %s", error)
        left.drop(item)


def finished(item: OpenQuestion, triage_service: TriageService, settings: Settings) -> SlackMessage:
    """Give what a thread is told in the end; raises RequestError where the store cannot tell."""
    try:
        record = triage_service.record(item.triage) if item.triage else None
        if record is not None and item.question:
            return _turned(item, record, triage_service, settings)
    except NotFoundError:
        record = None
    if record is not None and record.diagnosis is not None:
        cut = record.state == "running" or bool(record.error)
        notes = (say("stopped-model", record.diagnosis.language),) if cut else ()
        return answer(record.diagnosis, settings, AnswerExtras(notes=notes))
    if record is not None and record.state == "failed" and message_id(record.error) != INTERRUPTED:
        return text_message(
            say("failed", item.language, error=sentences.worded("", record.error, item.language))
        )
    return text_message(say("stopped", item.language))


def _turned(
    item: OpenQuestion, record: TriageRecord, triage_service: TriageService, settings: Settings
) -> SlackMessage:
    """Give the answer to a question about a triage, where it was kept before the server ended."""
    said = list(triage_service.messages(item.triage))
    for question, reply in pairwise(said):
        is_it = (
            question.role == "user"
            and reply.role == "assistant"
            and question.text == item.question
            and question.created >= item.begun
        )
        if is_it and record.diagnosis is not None:
            return turn(reply.text, record.diagnosis, settings)
    return text_message(say("stopped", item.language))
