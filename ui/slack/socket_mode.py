"""Socket Mode, without a public address: the bot calls Slack, and requests come over that connection."""

from __future__ import annotations

import signal
import threading

from slack_sdk import WebClient

from corpus.message import Message
from service.app.triage_service import TriageService
from service.pipeline.triage import Report, no_progress
from service.schemas.errors import SettingsError
from service.settings import Settings
from ui.slack.bot import Bot, build
from ui.slack.client import LOGGER


class SocketConnection:
    """An open connection to Slack."""

    def __init__(self, bot: Bot, settings: Settings) -> None:
        from slack_bolt.adapter.socket_mode import SocketModeHandler  # slow, see ui.slack.bot

        self._bot = bot
        token = settings.slack_app_token.get_secret_value()
        self._handler = SocketModeHandler(bot.app, token, logger=LOGGER, web_client=bot.slack_client.client)

    def open(self) -> None:
        """Connect; a connection that Slack ends is opened anew by itself."""
        self._handler.connect()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Hang up and take no more questions."""
        self._handler.close()  # type: ignore[no-untyped-call]
        self._bot.close()


def connect(
    triage_service: TriageService, settings: Settings, base_url: str = WebClient.BASE_URL
) -> SocketConnection:
    """Answer Slack over Socket Mode beside whatever else the process does.

    Whoever calls this closes the line.
    """
    check(settings)
    line = SocketConnection(build(settings, triage_service, base_url), settings)
    line.open()
    return line


def check(settings: Settings) -> None:
    """Raise SettingsError where a token is missing."""
    for name, begins in (("slack_bot_token", "xoxb-"), ("slack_app_token", "xapp-")):
        if not getattr(settings, name).get_secret_value().startswith(begins):
            raise SettingsError(
                Message("errors.socket-mode-needs-whycrash", name=name.upper(), begins=begins)
            )


def serve(settings: Settings, report: Report = no_progress, base_url: str = WebClient.BASE_URL) -> None:
    """Answer Slack until the process is told to stop."""
    check(settings)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with TriageService(settings, report) as triage_service:
        line = connect(triage_service, settings, base_url)
        try:
            stop.wait()
        finally:
            line.close()
