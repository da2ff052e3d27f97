"""The Slack client: one method for each method of the Web API that the bot uses."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError

from service.settings import Settings
from ui.slack.answer import SlackMessage
from ui.slack.errors import SlackRefusedError, SlackUnreachableError
from ui.slack.mrkdwn import Block, section
from ui.slack.rate_limiter import ChannelRateLimiter, retries
from ui.slack.request_parser import SlackFile, file_of

# Bolt and the SDK tell requests and messages at lower levels, and those hold logs of users.
LOGGER = logging.getLogger("whycrash.slack")
LOGGER.setLevel(logging.ERROR)
METADATA = "whycrash_triage"
_TIMEOUT = 30
_THREAD = 200
# What Slack says of a message whose blocks it does not take.
_NO_BLOCKS = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long"})


class SlackClient:
    """Slack's Web API as the bot uses it: paced, retried, its errors translated.

    Safe to use from many threads.
    """

    def __init__(self, client: WebClient, pace: ChannelRateLimiter) -> None:
        self.client = client
        self.pace = pace

    def post(self, channel: str, message: SlackMessage, thread: str | None = None) -> tuple[str, str]:
        """Post a message; gives the channel and the time stamp that name it."""
        self.pace.wait(channel)
        shown = _shown(message)
        with _translated():
            try:
                told = self.client.chat_postMessage(
                    channel=channel, thread_ts=thread, unfurl_links=False, unfurl_media=False, **shown
                )
            except SlackApiError as error:
                if _code(error) not in _NO_BLOCKS:
                    raise
                told = self.client.chat_postMessage(
                    channel=channel, thread_ts=thread, unfurl_links=False, unfurl_media=False, **_bare(shown)
                )
        return str(told["channel"]), str(told["ts"])

    def edit(self, channel: str, stamp: str, message: SlackMessage, *, must: bool) -> bool:
        """Edit a message; one that need not be is left out where Slack would find it too fast.

        Tells whether it was edited.
        """
        if must:
            self.pace.wait_to_edit()
        elif not self.pace.may_edit():
            return False
        shown = _shown(message)
        with _translated():
            try:
                self.client.chat_update(channel=channel, ts=stamp, **shown)
            except SlackApiError as error:
                if _code(error) not in _NO_BLOCKS:
                    raise
                self.client.chat_update(channel=channel, ts=stamp, **_bare(shown))
        return True

    def post_ephemeral(self, channel: str, user: str, text: str, thread: str | None = None) -> None:
        """Post a message that only one person in a channel sees."""
        self.pace.wait(channel)
        with _translated():
            self.client.chat_postEphemeral(
                channel=channel, user=user, text=text, blocks=[section(text)], thread_ts=thread
            )

    def give(self, channel: str, thread: str | None, name: str, title: str, text: str) -> None:
        """Put a text into a channel as a file."""
        self.pace.wait(channel)
        with _translated():
            self.client.files_upload_v2(
                channel=channel, thread_ts=thread, filename=name, title=title, content=text.encode()
            )

    def show(self, trigger: str, view: Block) -> None:
        """Open a modal."""
        with _translated():
            self.client.views_open(trigger_id=trigger, view=view)

    def file(self, file: SlackFile) -> SlackFile:
        """Ask where a file lies that its message does not tell."""
        with _translated():
            return file_of(cast("Mapping[str, Any]", self.client.files_info(file=file.id)["file"]))

    def thread(self, channel: str, stamp: str) -> Sequence[Mapping[str, Any]]:
        """Give the messages of a thread, oldest first."""
        with _translated():
            told = self.client.conversations_replies(
                channel=channel, ts=stamp, limit=_THREAD, include_all_metadata=True
            )
        return cast("Sequence[Mapping[str, Any]]", told.get("messages") or ())


def open_client(settings: Settings, base_url: str = WebClient.BASE_URL) -> SlackClient:
    """Make the client; nothing is asked of Slack yet."""
    pace = ChannelRateLimiter()
    client = WebClient(
        token=settings.slack_bot_token.get_secret_value(),
        base_url=base_url,
        timeout=_TIMEOUT,
        logger=LOGGER,
        retry_handlers=retries(pace),
    )
    return SlackClient(client, pace)


def _shown(message: SlackMessage) -> dict[str, Any]:
    shown: dict[str, Any] = {"text": message.text}
    if message.blocks:
        shown["blocks"] = message.blocks
    if message.triage:
        # So that the triage of a thread is known after a restart, too: Slack keeps it with the message.
        shown["metadata"] = {"event_type": METADATA, "event_payload": {"triage": message.triage}}
    return shown


def _bare(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Give a message whose blocks Slack did not take: its text, and its buttons."""
    buttons = [block for block in shown.get("blocks", ()) if block["type"] == "actions"]
    return {**shown, "blocks": [section(shown["text"]), *buttons]}


def _code(error: SlackApiError) -> str:
    return str(error.response.get("error", "")) if error.response is not None else ""


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except SlackApiError as error:
        raise SlackRefusedError(_code(error)) from error
    except (SlackClientError, OSError, ValueError) as error:
        raise SlackUnreachableError(f"Slack cannot be reached: {type(error).__name__}.") from error
