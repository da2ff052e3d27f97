"""From a question to its answer: find or fetch the log, triage it, and update the thread meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from corpus.message import in_language, is_chinese
from corpus.schema import Language
from ingest.errors import IngestError
from service.app.admission import Caller, Principal
from service.app.triage_service import TriageService
from service.llm.conversation import message_text
from service.persistence.crashes import TriageScope
from service.schemas.diagnosis import Diagnosis
from service.schemas.errors import BusyError, ServiceError
from service.schemas.events import (
    Accepted,
    Event,
    ExplanationParagraph,
    FinalAnswer,
    FirstAnswer,
    LogLookedAt,
    Progress,
    TriageFailed,
    TurnAnswered,
)
from service.schemas.records import Recurrence
from service.settings import Settings
from service.workers.tasks import Submission
from ui import sentences
from ui.slack.answer import AnswerExtras, answer, text_message, turn
from ui.slack.client import LOGGER, METADATA, SlackClient
from ui.slack.downloader import DownloadedFiles, Downloader, losses
from ui.slack.errors import SlackError, SlackRefusedError, SlackUnreachableError
from ui.slack.question_log import QuestionEntry
from ui.slack.reply import Reply
from ui.slack.request_parser import MessageContent, SlackQuestion, content_of
from ui.slack.wording import say

# Seconds that the bot waits itself, time after time, where too much is asked of the triage service.
WAITS: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0)
LONGEST_WAIT = 30.0
# Seconds of reading after which the thread is told how far it is.
PROGRESS_AFTER = 2.0
# Bytes fetched beyond which the thread is told beforehand.
_SLOW = 8 << 20
_MB = 1_000_000


class AnswerThread(NamedTuple):
    """Where a question is answered: its message, and its entry in the question log."""

    reply: Reply
    note: QuestionEntry


class Answerer:
    """Answers questions, each in a thread of its own; every failure is reported to the user."""

    def __init__(self, triage_service: TriageService, slack_client: SlackClient, settings: Settings) -> None:
        self._triage_service = triage_service
        self._slack_client = slack_client
        self._settings = settings
        self._downloader = Downloader(slack_client, settings)

    def answer(self, asked: SlackQuestion, note: QuestionEntry) -> None:
        """Answer a question to its end; what goes wrong becomes a sentence in the thread.

        Its `note` is closed then.
        """
        try:
            self._answer(asked, AnswerThread(Reply(self._slack_client, asked, posted=note.posted), note))
        finally:
            note.close()

    def _answer(self, asked: SlackQuestion, thread: AnswerThread) -> None:
        try:
            self._routed(asked, thread)
        except (ServiceError, IngestError) as error:
            self._tell(
                thread, say("failed", asked.language, error=sentences.error_sentence(error, asked.language))
            )
        except SlackError as error:
            LOGGER.error("An answer could not be given: %s", error)
        except Exception:  # noqa: BLE001 - a question must not end in silence
            LOGGER.exception("A question could not be answered.")
            self._tell(thread, say("broken", asked.language))

    def _tell(self, thread: AnswerThread, text: str) -> None:
        try:
            thread.reply.show(text_message(text))
        except SlackError as error:
            LOGGER.error("A sentence could not be said: %s", error)

    def _routed(self, asked: SlackQuestion, thread: AnswerThread) -> None:
        """Route a question: the triage of a log, a question about one, a log further up the thread."""
        if asked.content.has_log:
            self._triage(asked, thread)
        elif asked.is_reply and asked.thread:
            self._in_thread(asked, thread)
        elif asked.content.words:
            self._triage(asked, thread)
        else:
            thread.reply.show(text_message(say("help", asked.language)))

    def _in_thread(self, asked: SlackQuestion, thread: AnswerThread) -> None:
        try:
            messages = self._slack_client.thread(asked.channel, asked.thread or "")
        except SlackRefusedError:
            thread.reply.show(text_message(say("unreachable-thread", asked.language)))
            return
        triage = triage_of(messages, asked.bot)
        if triage and asked.content.words:
            self._ask(asked, triage, thread)
        elif above := log_above(messages, asked.bot):
            self._triage(
                replace(asked, content=replace(above, words=asked.content.words or above.words)), thread
            )
        elif asked.content.words:
            self._triage(asked, thread)
        else:
            thread.reply.show(text_message(say("help", asked.language)))

    # A triage.

    def _triage(self, asked: SlackQuestion, thread: AnswerThread) -> None:
        """Fetch what a message holds and have it triaged; its thread shows how far it is, and the answer."""
        reply, fetched = thread.reply, DownloadedFiles()
        with fetched.spool:
            if sum(file.size for file in asked.content.files) > _SLOW:
                reply.show(text_message(say("fetching", asked.language, count=len(asked.content.files))))
            self._downloader.fetch(asked.content.files, fetched)
            notes = losses(fetched, self._settings, asked.language)
            if fetched.spool.files and asked.content.log:
                fetched.add("message.txt", asked.content.log)
            submission = _submission(asked, fetched)
            if not (submission.paths or submission.text):
                reply.show(text_message("\n".join([say("no-file", asked.language), *notes])))
                return
            telling = ThreadUpdates(
                thread,
                self._settings,
                asked.language,
                tuple(notes),
                is_bare=not asked.content.has_log,
                earlier=partial(self._earlier, place=asked.place),
            )
            for event in self._ask_until_admitted(
                lambda: self._triage_service.triage(submission, self._admitted(asked)), reply, asked.language
            ):
                telling.hear(event)

    def _earlier(self, diagnosis: Diagnosis, place: str) -> Recurrence | None:
        """Look up the same crash in what was asked in this channel; None where the store cannot tell."""
        try:
            return self._triage_service.earlier(
                diagnosis.id, diagnosis.fingerprint, TriageScope(channel=place)
            )
        except ServiceError as error:
            LOGGER.error("Earlier crashes could not be looked up: %s", error)
            return None

    # A conversation.

    def _ask(self, asked: SlackQuestion, triage: str, thread: AnswerThread) -> None:
        telling = ThreadUpdates(thread, self._settings, asked.language)
        thread.note.write(triage=triage, question=message_text(asked.content.words))
        question = asked.content.words
        for event in self._ask_until_admitted(
            lambda: self._triage_service.ask(triage, question, self._admitted(asked)),
            thread.reply,
            asked.language,
        ):
            telling.hear(event)

    def _admitted(self, asked: SlackQuestion) -> Caller:
        """Let a person ask by the limits that hold for everybody; raises BusyError."""
        return self._triage_service.admission.admit(Principal.in_slack(asked.caller), "triage").caller

    def _ask_until_admitted(
        self, ask: Callable[[], Iterator[Event]], reply: Reply, language: Language
    ) -> Iterator[Event]:
        """Ask the triage service; where too many do, say so and try again after a while."""
        for least in WAITS:
            try:
                yield from ask()
            except BusyError as error:
                wait = min(max(error.wait or 0.0, least), LONGEST_WAIT)
                reply.show(text_message(say("busy", language, wait=round(wait) or 1)))
                time.sleep(wait)
            else:
                return
        reply.show(text_message(say("too-busy", language)))


def _submission(asked: SlackQuestion, fetched: DownloadedFiles) -> Submission:
    language = "zh" if is_chinese(asked.content.words) else ""
    configs = tuple(fetched.configs)
    if fetched.spool.files:
        spool = fetched.spool
        return Submission(
            name=spool.names[0],
            paths=spool.paths,
            names=spool.names,
            configs=configs,
            language=language,
            channel=asked.place,
        )
    text = asked.content.log or ("" if asked.content.files else asked.content.words)
    return Submission(name="Slack", text=text, configs=configs, language=language, channel=asked.place)


def triage_of(messages: Sequence[Mapping[str, Any]], bot: str) -> str:
    """Give the latest triage that the bot's own messages of a thread tell of; empty where there is none."""
    for message in reversed(messages):
        metadata = message.get("metadata") or {}
        # Anybody's app may write such metadata; only the bot's own is believed.
        if bot and message.get("bot_id") == bot and metadata.get("event_type") == METADATA:
            return str((metadata.get("event_payload") or {}).get("triage", ""))
    return ""


def log_above(messages: Sequence[Mapping[str, Any]], bot: str) -> MessageContent | None:
    """Give what the first message of a thread that holds a log has.

    Else the words of the one that began it.
    """
    others = [
        content_of(message, whole=True) for message in messages if not (bot and message.get("bot_id") == bot)
    ]
    found = next((content for content in others if content.has_log), None)
    if found is None and others and others[0].words:
        # People and monitors also paste logs as they are.
        found = MessageContent(logs=(others[0].words,))
    return found


@dataclass
class ThreadUpdates:
    """Updates a Slack thread with the events of a triage."""

    thread: AnswerThread
    settings: Settings
    language: Language
    notes: tuple[str, ...] = ()
    is_bare: bool = False
    earlier: Callable[[Diagnosis], Recurrence | None] = lambda _diagnosis: None
    first: Diagnosis | None = None
    said: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    @property
    def reply(self) -> Reply:
        """The message that answers."""
        return self.thread.reply

    def hear(self, event: Event) -> None:
        """Handle an event; a failure of Slack does not end the triage, and a later edit may succeed."""
        handler = _HANDLERS.get(type(event))
        if handler is None:
            return
        try:
            handler(self, event)
        except SlackError as error:
            LOGGER.error("An answer could not be shown: %s", error)
            if isinstance(error, SlackUnreachableError) and isinstance(
                event, FinalAnswer | TurnAnswered | TriageFailed
            ):
                self.thread.note.leave()

    def accepted(self, event: Accepted) -> None:
        """Note whose answer the thread waits for."""
        self.thread.note.write(triage=event.id)

    def progress(self, event: Progress) -> None:
        """Say how far reading is, once it takes long."""
        if time.monotonic() - self.began < PROGRESS_AFTER:
            return
        done, total = round(event.bytes / _MB), round(event.total / _MB)
        name = "thinking" if not done else "reading-of" if total else "reading"
        self.reply.show(text_message(say(name, self.language, done=done, total=total)), must=False)

    def opened(self, event: FirstAnswer) -> None:
        """Show the first answer, unless the whole follows at once."""
        self.first = event.diagnosis
        if self.settings.model:
            self._show(event.diagnosis, say("explaining", event.diagnosis.language))

    def looked(self, event: LogLookedAt) -> None:
        """Say what a model looks at, while its words are awaited."""
        if self.first is not None:
            language = self.first.language
            self._show(self.first, say("explaining", language), in_language(event.says, language), must=False)
        elif not self.said:
            self.reply.show(text_message(in_language(event.says, self.language)), must=False)

    def spoken(self, event: ExplanationParagraph) -> None:
        """Add a paragraph of a model's."""
        self.said.append(event.text)
        if self.first is not None:
            self._show(self.first, say("explaining", self.first.language), must=False)
        else:
            self.reply.show(text_message("\n\n".join(self.said)), must=not self.reply.is_posted)

    def closed(self, event: FinalAnswer) -> None:
        """Show the whole answer."""
        self.said = []
        is_unhelped = self.is_bare and event.diagnosis.verdict in ("unknown", "no-failure")
        self._show(event.diagnosis, *([say("hint", event.diagnosis.language)] if is_unhelped else []))

    def turned(self, event: TurnAnswered) -> None:
        """Show the answer to a follow-up question."""
        self.reply.show(turn(event.text, event.diagnosis, self.settings))

    def failed(self, event: TriageFailed) -> None:
        """Say why there is no answer, or no more of it."""
        if self.first is not None:
            self._show(
                self.first,
                say("unfinished", self.first.language, error=sentences.of_failed(event, self.first.language)),
            )
        else:
            self.reply.show(
                text_message(say("failed", self.language, error=sentences.of_failed(event, self.language)))
            )

    def _show(self, diagnosis: Diagnosis, *notes: str, must: bool = True) -> None:
        seen = self.earlier(diagnosis)
        extras = AnswerExtras(tuple(self.said), (*notes, *self.notes), self.settings.model, seen)
        self.reply.show(answer(diagnosis, self.settings, extras), must=must)


_HANDLERS: Mapping[type[Event], Callable[[ThreadUpdates, Any], None]] = {
    Accepted: ThreadUpdates.accepted,
    Progress: ThreadUpdates.progress,
    FirstAnswer: ThreadUpdates.opened,
    LogLookedAt: ThreadUpdates.looked,
    ExplanationParagraph: ThreadUpdates.spoken,
    FinalAnswer: ThreadUpdates.closed,
    TurnAnswered: ThreadUpdates.turned,
    TriageFailed: ThreadUpdates.failed,
}
