"""The one message that answers a question: posted first, edited as the answer grows."""

from __future__ import annotations

import time
from collections.abc import Callable

from ui.slack.answer import SlackMessage
from ui.slack.client import SlackClient
from ui.slack.errors import SlackRefusedError
from ui.slack.mrkdwn import section
from ui.slack.request_parser import SlackQuestion
from ui.slack.wording import say

# Seconds between two edits of a message while a model writes.
BETWEEN = 3.0


class Reply:
    """The answer to a question in its thread, or as a direct message where the bot is not in the channel."""

    def __init__(
        self,
        slack_client: SlackClient,
        asked: SlackQuestion,
        at: tuple[str, str] | None = None,
        posted: Callable[[tuple[str, str]], None] = lambda _at: None,
    ) -> None:
        """`at` names a message that is there already; `posted` gets the name of one that is posted."""
        self._slack_client = slack_client
        self._asked = asked
        self._thread = asked.thread
        self._at = at
        self._tell = posted
        self._shown: SlackMessage | None = None
        self._next = 0.0

    @property
    def is_posted(self) -> bool:
        """Tell whether anything was said yet."""
        return self._at is not None

    def show(self, message: SlackMessage, *, must: bool = True) -> None:
        """Post or edit; what need not be shown is left out while edits would come too fast.

        Raises SlackError.
        """
        if self._at is None:
            self._at = self._posted(message)
        elif (
            message == self._shown
            or (not must and time.monotonic() < self._next)
            or not self._edited(message, must=must)
        ):
            return
        self._shown = message
        self._next = time.monotonic() + BETWEEN

    def _posted(self, message: SlackMessage) -> tuple[str, str]:
        at = self._sent(message)
        self._tell(at)
        return at

    def _sent(self, message: SlackMessage) -> tuple[str, str]:
        try:
            if self._thread is None and not self._asked.has_root:
                # Say who asked, for want of a message to answer under; gives its time stamp.
                text = say("asked-by", self._asked.language, user=f"<@{self._asked.user}>")
                self._thread = self._slack_client.post(
                    self._asked.channel, SlackMessage(text, [section(text)])
                )[1]
            return self._slack_client.post(self._asked.channel, message, self._thread)
        except SlackRefusedError as error:
            if error.code not in SlackRefusedError.ELSEWHERE or not self._asked.user:
                raise
            # A channel that the bot is no member of: its answer goes to who asked, as a direct message.
            return self._slack_client.post(self._asked.user, message)

    def _edited(self, message: SlackMessage, *, must: bool) -> bool:
        assert self._at is not None  # noqa: S101 - only called once it is posted
        try:
            return self._slack_client.edit(*self._at, message, must=must)
        except SlackRefusedError as error:
            if error.code not in SlackRefusedError.GONE:
                raise
            self._at = self._posted(message)
            return True
