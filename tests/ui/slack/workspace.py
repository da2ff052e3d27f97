"""People in a workspace: what they write and click comes to the bot as Slack sends it, signed."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import httpx
from slack_sdk.signature import SignatureVerifier

from tests.ui.slack.standin import BOT_USER, SECRET, TEAM, Slack
from tests.waiting import PATIENCE

_CHANNELS = itertools.count(1)
_EVENTS = itertools.count(1)
WAIT = PATIENCE


def eventually(told: Callable[[], Any], wait: float = WAIT) -> Any:
    """Wait until something holds, and give it."""
    until = time.monotonic() + wait
    while not (found := told()):
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.02)
    return found


@dataclass
class Workspace:
    """Sends to the bot at `url`. Each has a channel of its own, so that no test waits for another's."""

    slack: Slack
    url: str
    channel: str = field(default_factory=lambda: f"C{next(_CHANNELS)}")
    secret: str = SECRET
    user: str = "UANNA"

    # Sending.

    def post(
        self, body: str, kind: str = "application/json", stamp: int | str | None = None, **headers: str
    ) -> httpx.Response:
        """Send a signed request."""
        stamp = str(int(time.time()) if stamp is None else stamp)
        signature = SignatureVerifier(self.secret).generate_signature(timestamp=stamp, body=body) or ""
        made = {"Content-Type": kind, "X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": signature}
        return httpx.post(self.url, content=body.encode(), headers={**made, **headers}, timeout=PATIENCE)

    def deliver(self, event: dict[str, Any], event_id: str = "", **headers: str) -> httpx.Response:
        """Send an event."""
        return self.post(json.dumps(envelope(event, event_id)), **headers)

    def interact(self, payload: dict[str, Any]) -> httpx.Response:
        """Send a click, a shortcut or a modal."""
        made = {
            "team": {"id": TEAM},
            "user": {"id": self.user},
            "trigger_id": f"trigger-{next(_EVENTS)}",
            "api_app_id": "A1",
            **payload,
        }
        return self.post(urlencode({"payload": json.dumps(made)}), "application/x-www-form-urlencoded")

    # What people do.

    def message(
        self, text: str, files: tuple[dict[str, Any], ...] = (), thread: str = "", **fields: Any
    ) -> dict[str, Any]:
        """Write a message into the channel; gives it as an event."""
        stamp = self.slack.stamp()
        made = {
            "type": "app_mention",
            "user": self.user,
            "text": text,
            "ts": stamp,
            "channel": self.channel,
            "event_ts": stamp,
        }
        made |= ({"thread_ts": thread} if thread else {}) | ({"files": list(files)} if files else {}) | fields
        self.slack.messages[self.channel, stamp] = made
        return made

    def mention(
        self, text: str, files: tuple[dict[str, Any], ...] = (), thread: str = "", **fields: Any
    ) -> dict[str, Any]:
        """Mention the bot; gives the event once the bot took it."""
        event = self.message(f"<@{BOT_USER}> {text}", files, thread, **fields)
        assert self.deliver(event).status_code == 200
        return event

    def command(self, text: str) -> httpx.Response:
        """Use the slash command."""
        return self.post(
            urlencode(
                {
                    "command": "/whycrash",
                    "text": text,
                    "team_id": TEAM,
                    "channel_id": self.channel,
                    "user_id": self.user,
                    "trigger_id": f"trigger-{next(_EVENTS)}",
                    "response_url": f"{self.slack.url}/respond/1",
                    "api_app_id": "A1",
                }
            ),
            "application/x-www-form-urlencoded",
        )

    def shortcut(self, message: dict[str, Any]) -> httpx.Response:
        """Use the shortcut on a message."""
        return self.interact(
            {
                "type": "message_action",
                "callback_id": "whycrash_explain",
                "message": message,
                "message_ts": message["ts"],
                "channel": {"id": self.channel, "name": "c"},
                "response_url": f"{self.slack.url}/respond/1",
            }
        )

    def click(self, action: str, message: dict[str, Any]) -> httpx.Response:
        """Click a button under an answer."""
        button = next(item for item in buttons(message) if item["action_id"] == action)
        return self.interact(
            {
                "type": "block_actions",
                "channel": {"id": self.channel, "name": "c"},
                "message": message,
                "container": {"type": "message", "channel_id": self.channel, "message_ts": message["ts"]},
                "actions": [
                    {
                        "type": "button",
                        "action_id": action,
                        "value": button["value"],
                        "action_ts": "1",
                        "block_id": "b",
                    }
                ],
            }
        )

    # What the bot says.

    def answers(self, thread: str) -> list[dict[str, Any]]:
        """Give the bot's messages in a thread, as they stand now."""
        return [
            item
            for _, item in sorted(self.slack.messages.items())
            if item.get("bot_id") and item.get("thread_ts") == thread
        ]

    def answer(self, thread: str, holds: str = "") -> dict[str, Any]:
        """Wait for the bot's message in a thread, with buttons or with certain words."""

        def told() -> dict[str, Any] | None:
            found = [
                item for item in self.answers(thread) if (holds in shown(item) if holds else buttons(item))
            ]
            return found[0] if found else None

        made: dict[str, Any] = eventually(told)
        return made


def envelope(event: dict[str, Any], event_id: str = "") -> dict[str, Any]:
    """Make what Slack sends around an event."""
    return {
        "type": "event_callback",
        "token": "t",
        "team_id": TEAM,
        "api_app_id": "A1",
        "event": event,
        "event_id": event_id or f"Ev{next(_EVENTS)}-{time.time_ns()}",
        "event_time": 1,
        "authorizations": [{"team_id": TEAM, "user_id": BOT_USER, "is_bot": True}],
    }


def buttons(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Give a message's buttons."""
    return [
        item
        for block in message.get("blocks", ())
        if block["type"] == "actions"
        for item in block["elements"]
    ]


def texts(part: object) -> Iterator[str]:
    """Give all texts of blocks."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "text" and isinstance(value, str):
                yield value
            else:
                yield from texts(value)
    elif isinstance(part, list):
        for item in part:
            yield from texts(item)


def shown(message: dict[str, Any]) -> str:
    """Give all that a message shows."""
    return "\n".join(texts(message.get("blocks", []))) or str(message.get("text", ""))
