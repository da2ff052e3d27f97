"""Sessions of the chat page, as a browser has them: its events over Gradio's queue, its calls beside them."""

from __future__ import annotations

import json
import random
import re
import secrets
from typing import Any

import httpx

from corpus.message import Message
from eval.soak.load import LoadKind
from service.schemas.errors import LateError, ServiceError, UnreachableError

# Seconds without a word of the page's server.
SILENCE = 150.0
_TRIAGE = re.compile(r'"triage": ?"(\w+)"')


class PageLoad(LoadKind):
    """Opens the page, has a log explained, asks on about it, and looks at it again and at what is past."""

    name = "page"
    pause = 3.0

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._lost: list[str] = []

    def ask(self, draws: random.Random, turn: int) -> None:
        """Go through one session of a page."""
        try:
            with httpx.Client(base_url=self.context.url, timeout=SILENCE) as http:
                self._session(PageSession(http), draws, turn)
        except httpx.TimeoutException as error:
            raise LateError(Message("errors.server-not-answer-time")) from error
        except (httpx.HTTPError, json.JSONDecodeError) as error:
            told = Message("errors.cannot-asked", base_url=self.context.url, reason=error)
            raise UnreachableError(told) from error

    def wrong(self) -> list[str]:
        """Name answers that the page itself gave, and then no more."""
        return self._lost

    def _session(self, page: PageSession, draws: random.Random, turn: int) -> None:
        told = page.event("explain", {"text": self.context.text(draws, turn), "model": draws.random() < 0.3})
        found = _TRIAGE.findall(told)
        if not found:
            # The page says why there is no answer: too much is asked, or what it needs is away.
            raise ServiceError(told[-300:])
        triage = found[-1]
        self.context.asked.triages.append(triage)
        page.event("ask", {"triage": triage, "question": "why?"})
        seen = page.event("look", {"triage": triage})
        if triage not in seen:
            raise ServiceError(seen[-300:])
        page.call("past", {})


class PageSession:
    """One load of the page."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._hash = secrets.token_hex(8)
        config = self._got("GET", "/config").json()
        self._component = next(item["id"] for item in config["components"] if item["type"] == "html")
        self._events = {item["targets"][0][1]: item["id"] for item in config["dependencies"]}

    def event(self, name: str, sent: dict[str, Any]) -> str:
        """Send an event, and give all that the page is told of it."""
        body = {
            "data": [],
            "event_data": sent,
            "fn_index": self._events[name],
            "session_hash": self._hash,
            "trigger_id": self._component,
        }
        self._got("POST", "/gradio_api/queue/join", json=body)
        return self._got("GET", "/gradio_api/queue/data", params={"session_hash": self._hash}).text

    def call(self, name: str, sent: dict[str, Any]) -> Any:
        """Call what is no event."""
        body = {"session_hash": self._hash, "component_id": self._component, "fn_name": name, "data": sent}
        return self._got("POST", "/gradio_api/component_server/", json=body).json()

    def _got(self, method: str, path: str, **sent: Any) -> httpx.Response:
        answer = self._http.request(method, path, **sent)
        answer.raise_for_status()
        return answer
