"""The bot: what of Slack it listens to, and what each of it starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from slack_sdk import WebClient

from corpus.schema import Language
from service.app.admission import Principal
from service.app.triage_service import TriageService
from service.schemas.errors import BusyError, RequestError, StoreError
from service.settings import Settings
from ui import sentences
from ui.slack import request_parser as asking
from ui.slack.answer import MORE, OPEN, PATCH, RIGHT, WRONG, hits_message, text_message
from ui.slack.answer_threads import AnswerThreads
from ui.slack.answering import Answerer
from ui.slack.client import LOGGER, SlackClient, open_client
from ui.slack.digest import DigestPoster
from ui.slack.errors import SlackError
from ui.slack.feedback import MODAL, FeedbackHandler
from ui.slack.question_log import QuestionLog
from ui.slack.reply import Reply
from ui.slack.request_parser import SlackQuestion
from ui.slack.resuming import Resumer
from ui.slack.wording import say, spoken

if TYPE_CHECKING:
    from slack_bolt import Ack, App, BoltContext, BoltResponse, Respond

COMMAND, SHORTCUT = "/whycrash", "whycrash_explain"
# Answers at a time: most of one is waiting, for the triage service or a model.
THREADS = 8
_SEARCH = ("search", "查")
_SEEN = "slack"
_Body = Mapping[str, Any]


@dataclass
class Bot:
    """The bot with its threads; closed once the server stops, after its triage service."""

    app: App
    slack_client: SlackClient
    answer_threads: AnswerThreads
    question_log: QuestionLog
    resumer: Resumer
    digests: DigestPoster

    def close(self) -> None:
        """Take no more questions."""
        self.resumer.close()
        self.digests.close()
        self.answer_threads.close()
        self.question_log.close()
        executor = self.app.listener_runner.listener_executor
        executor.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def build(settings: Settings, triage_service: TriageService, base_url: str = WebClient.BASE_URL) -> Bot:
    """Make the bot; it asks Slack nothing before the first request, except to finish open questions."""
    # Imported here, as below: a server without Slack does not wait for it.
    from slack_bolt import App

    slack_client = open_client(settings, base_url)
    app = App(
        name="whycrash",
        logger=LOGGER,
        client=slack_client.client,
        signing_secret=settings.slack_signing_secret.get_secret_value(),
        # Asked with the first request: a server must start while Slack cannot be reached.
        token_verification_enabled=False,
    )
    answer_threads = AnswerThreads(THREADS, settings.queue)
    question_log = QuestionLog(settings.home)
    app.use(_once(triage_service))
    _Listeners(triage_service, slack_client, answer_threads, question_log, settings).register(app)
    resumer = Resumer(question_log, triage_service, slack_client, settings)
    resumer.start()
    digests = DigestPoster(triage_service, slack_client, settings)
    digests.start()
    return Bot(app, slack_client, answer_threads, question_log, resumer, digests)


def _once(triage_service: TriageService) -> Callable[..., BoltResponse]:
    """Let each event through once, also over restarts: Slack sends one again where the receipt came late."""
    from slack_bolt import BoltResponse

    # Bolt passes `next` by this name.
    def middleware(body: _Body, next: Callable[[], BoltResponse]) -> BoltResponse:  # noqa: A002
        name = name_of(body)
        try:
            is_new = not name or triage_service.store.seen.is_first(_SEEN, name, datetime.now(UTC))
        except StoreError:
            # Not taken: Slack sends it again in a while.
            return BoltResponse(status=503, body="")
        return next() if is_new else BoltResponse(status=200, body="")

    return middleware


def name_of(body: _Body) -> str:
    """Give what tells a request from all others; empty where Slack gives it nothing of the kind."""
    actions = body.get("actions") or [{}]
    stamp = actions[0].get("action_ts", "") if isinstance(actions, list) else ""
    return str(
        body.get("event_id") or (f"{body.get('trigger_id', '')}{stamp}" if body.get("trigger_id") else "")
    )


class _Listeners:
    """What each request of Slack's starts.

    Receipts go out at once; all else is done by the answer threads.
    """

    def __init__(
        self,
        triage_service: TriageService,
        slack_client: SlackClient,
        answer_threads: AnswerThreads,
        question_log: QuestionLog,
        settings: Settings,
    ) -> None:
        self._triage_service = triage_service
        self._slack_client = slack_client
        self._answer_threads = answer_threads
        self._question_log = question_log
        self._language: Language = "zh" if settings.lang == "zh" else "en"
        self._answerer = Answerer(triage_service, slack_client, settings)
        self._feedback = FeedbackHandler(triage_service, slack_client, settings)

    def register(self, app: App) -> None:
        """Tell the app what to listen to."""
        app.event("app_mention")(self.event)
        app.event("message")(self.event)
        app.shortcut(SHORTCUT)(self.shortcut)
        app.command(COMMAND)(self.command)
        app.action(RIGHT)(self.button_listener(self._feedback.right))
        app.action(PATCH)(self.button_listener(self._feedback.patch))
        app.action(MORE)(self.button_listener(self._feedback.more))
        # A modal opens only within three seconds of its click.
        app.action(WRONG)(self.button_listener(self._feedback.wrong, at_once=True))
        app.action(OPEN)(self.opened)
        app.view(MODAL)(self.submitted)

    def event(self, event: _Body, context: BoltContext) -> None:
        """Answer a mention or a direct message."""
        asked = asking.from_event(event, context.team_id or "", context.bot_id or "")
        if asked is not None:
            self._begin(asked)

    def shortcut(self, ack: Ack, body: _Body, context: BoltContext) -> None:
        """Explain the message that the shortcut was used on."""
        ack()
        self._begin(asking.from_shortcut(body, context.bot_id or ""))

    def command(self, ack: Ack, body: _Body, respond: Respond, context: BoltContext) -> None:
        """Explain the log that follows the command, search, or say how to ask."""
        text = str(body.get("text") or "").strip()
        first, _, rest = text.partition(" ")
        language = spoken(text)
        if first in _SEARCH:
            ack()
            who = Principal.in_slack(f"{body.get('team_id', '')}:{body.get('user_id', '')}")
            self._answer_threads.take(partial(self._search, rest.strip(), who, respond))
        elif text in ("", "help", "帮助"):
            ack(text=say("help", "zh" if text == "帮助" else language), response_type="ephemeral")
        else:
            ack()
            self._begin(asking.from_command(body, context.bot_id or ""))

    def button_listener(
        self, work: Callable[[_Body], None], *, at_once: bool = False
    ) -> Callable[[Ack, _Body], None]:
        """Make the listener of a button, which acknowledges the click and then does `work` with its body."""

        def listener(ack: Ack, body: _Body) -> None:
            ack()
            done = partial(self._safely, partial(work, body))
            if at_once or not self._answer_threads.take(done):
                done()

        return listener

    def opened(self, ack: Ack) -> None:
        """Acknowledge a link button, which Slack opens by itself."""
        ack()

    def submitted(self, ack: Ack, body: _Body) -> None:
        """Keep the real cause, or say what is wrong with it in the modal."""
        wrong = self._feedback.submitted(body)
        if wrong:
            ack(response_action="errors", errors=wrong)
        else:
            ack()
            self._answer_threads.take(partial(self._safely, partial(self._feedback.thank, body)))

    def _begin(self, asked: SlackQuestion) -> None:
        asked = replace(asked, fallback=self._language)
        # Before the receipt: from then on Slack does not send it again.
        note = self._question_log.begin(asked)
        if not self._answer_threads.take(partial(self._answerer.answer, asked, note)):
            note.close()
            self._safely(
                lambda: Reply(self._slack_client, asked).show(text_message(say("too-busy", asked.language)))
            )

    def _search(self, words: str, who: Principal, respond: Respond) -> None:
        language = spoken(words)
        try:
            if words:
                self._triage_service.admission.admit(who, "triage")
                message = hits_message(self._triage_service.search(words, 5, language), language)
            else:
                message = text_message(say("search-what", language))
        except BusyError:
            message = text_message(say("too-busy", language))
        except RequestError as error:
            message = text_message(say("failed", language, error=sentences.error_sentence(error, language)))
        self._safely(
            lambda: respond(text=message.text, blocks=message.blocks, unfurl_links=False, unfurl_media=False)
        )

    def _safely(self, work: Callable[[], object]) -> None:
        try:
            work()
        except (SlackError, OSError) as error:
            LOGGER.error("Slack was not told: %s", error)
