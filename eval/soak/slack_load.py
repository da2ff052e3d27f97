"""People in Slack who mention the bot: signed events, sent again until they are taken, as Slack does."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import re
import time
from typing import Any

import httpx

from corpus.message import Message, words
from eval.soak.load import LoadContext, LoadKind
from eval.soak.standin import BOT_USER, TEAM, SlackStandIn
from service.schemas.errors import UnreachableError

BOT_TOKEN, SECRET = "xoxb-" + "soak", "signing-of-a-soak"
PATH = "/slack/events"
# Slack waits three seconds; here other work is done too.
_RECEIPT = 20.0
# How often an event is sent, and the seconds between.
_TIMES, _BETWEEN = 12, 5.0
# Seconds for the threads that are still open once the load is over.
SETTLES = 180.0
# What the bot says while an answer is on its way, in its messages' catalogue.
_ON_THE_WAY = ("explaining", "thinking", "reading", "reading-of", "fetching", "busy")
_BEGINNING = re.compile(r"[^\d]{,24}")


class SlackLoad(LoadKind):
    """Mentions the bot with a log; in the end each thread must hold one message of the bot's, a last word."""

    name = "Slack"
    pause = 4.0

    def __init__(self, context: LoadContext, slack: SlackStandIn) -> None:
        super().__init__(context)
        self._slack = slack
        self._taken: list[str] = []
        given = {"done": 1, "total": 1, "count": 1, "wait": 1}
        said = [words(f"slack.{name}", "en", **given) for name in _ON_THE_WAY]
        self._interim = [found[0] for each in said if (found := _BEGINNING.match(each))]

    def ask(self, draws: random.Random, turn: int) -> None:
        """Mention the bot, and send it again until a receipt comes."""
        stamp = self._slack.stamp()
        text = self.context.text(draws, turn)[-3000:].replace("```", "")
        event = {
            "type": "app_mention",
            "user": f"U{turn % 5}",
            "text": f"<@{BOT_USER}> why?\n```\n{text}```",
            "ts": stamp,
            "channel": "C1",
            "event_ts": stamp,
        }
        refused = ""
        for _ in range(_TIMES):
            if not (refused := self._sent(event, f"Ev{turn}")):
                self._taken.append(stamp)
                return
            if self.context.over.wait(_BETWEEN):
                break
        raise UnreachableError(Message("errors.cannot-asked", base_url=PATH, reason=refused))

    def _sent(self, event: dict[str, Any], name: str) -> str:
        """Send an event; gives why it was not taken."""
        envelope = {
            "type": "event_callback",
            "token": "t",
            "team_id": TEAM,
            "api_app_id": "A1",
            "event": event,
            "event_id": name,
            "event_time": 1,
            "authorizations": [{"team_id": TEAM, "user_id": BOT_USER, "is_bot": True}],
        }
        body, now = json.dumps(envelope), str(int(time.time()))
        signed = hmac.new(SECRET.encode(), f"v0:{now}:{body}".encode(), hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json",
            "X-Slack-Request-Timestamp": now,
            "X-Slack-Signature": f"v0={signed}",
        }
        try:
            answer = httpx.post(f"{self.context.url}{PATH}", content=body, headers=headers, timeout=_RECEIPT)
        except httpx.HTTPError as error:
            return type(error).__name__
        return "" if answer.is_success else f"status {answer.status_code}"

    def wrong(self) -> list[str]:
        """Name threads in which the bot said nothing, two things, or no last word."""
        ends = time.monotonic() + SETTLES
        while (found := self._open()) and time.monotonic() < ends:
            time.sleep(1.0)
        return found

    def counts(self) -> dict[str, int]:
        """Count the threads, by whether they end with an answer or with why there is none."""
        told = [self._slack.threads[stamp].said for stamp in self._taken if stamp in self._slack.threads]
        # An answer has buttons, which are actions.
        answered = sum('"actions"' in json.dumps(list(said.values())).replace("\\", "") for said in told)
        return {"threads answered": answered, "threads told why not": len(told) - answered}

    def _open(self) -> list[str]:
        found = []
        for stamp in self._taken:
            thread = self._slack.threads.get(stamp)
            said = list(thread.said.values()) if thread else []
            if len(said) != 1:
                found.append(f"thread {stamp} has {len(said)} messages")
            elif any(begun in json.dumps(said[0], ensure_ascii=False) for begun in self._interim):
                found.append(f"thread {stamp} ends with {str(said[0].get('text'))[:80]!r}")
        return found
