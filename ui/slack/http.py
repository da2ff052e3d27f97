"""Slack's requests over HTTP on the service's own server: `/slack/events` for events, commands, clicks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from slack_sdk import WebClient

from corpus.message import Message
from service.app.triage_service import TriageService
from service.schemas.errors import SettingsError
from service.settings import Settings
from ui.slack.bot import Bot, build

if TYPE_CHECKING:
    from slack_bolt import App, BoltResponse

PATH = "/slack/events"
# Slack's largest request is a message with its blocks; a body is read whole before its signature can be
# checked.
MOST = 1 << 20
# Seconds for a body to arrive: Slack itself waits three.
_BODY_TIMEOUT = 10.0
_STAMP = re.compile(r"\d{1,15}")

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Routes(Protocol):
    """A server's application that takes routes."""

    def add_route(
        self,
        path: str,
        route: Any,
        methods: list[str] | None = None,
        name: str | None = None,
        include_in_schema: bool = True,
    ) -> None:
        """Add a route."""


def mount(
    app: Routes, triage_service: TriageService, settings: Settings, base_url: str = WebClient.BASE_URL
) -> Bot:
    """Answer Slack on a server; whoever calls this closes the bot.

    Raises SettingsError where requests could not be checked.
    """
    if not settings.slack_signing_secret.get_secret_value().strip():
        raise SettingsError(Message("errors.slack-over-http-needs"))
    bot = build(settings, triage_service, base_url)
    app.add_route(PATH, Endpoint(bot.app), methods=["POST"], include_in_schema=False)
    return bot


class Endpoint:
    """An ASGI application that hands requests to the bot, bounded in size and time."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Answer one request."""
        response = await self._answered(scope, receive)
        headers = [
            (name.encode("latin-1"), str(value).encode("latin-1"))
            for name, value in response.first_headers_without_set_cookie().items()
        ]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body.encode()})

    async def _answered(self, scope: _Scope, receive: _Receive) -> BoltResponse:
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        # Bolt's verifier raises where these are no number and no ASCII; a forged request is no fault of ours.
        if (
            not _STAMP.fullmatch(headers.get("x-slack-request-timestamp", ""))
            or not headers.get("x-slack-signature", "").isascii()
        ):
            return _refused(401)
        try:
            body = await asyncio.wait_for(_body(receive), _BODY_TIMEOUT)
        except TimeoutError:
            return _refused(408)
        if body is None:
            return _refused(413)
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return _refused(400)
        query = scope.get("query_string", b"").decode("latin-1")
        # In a thread: bolt blocks until its listener sent the receipt.
        return await asyncio.to_thread(_dispatched, self._app, text, query, headers)


def _refused(status: int) -> BoltResponse:
    from slack_bolt import BoltResponse  # slow, see ui.slack.bot

    return BoltResponse(status=status, body="")


def _dispatched(app: App, body: str, query: str, headers: Mapping[str, str | Sequence[str]]) -> BoltResponse:
    from slack_bolt import BoltRequest  # slow, see ui.slack.bot

    try:
        request = BoltRequest(body=body, query=query, headers=dict(headers))
    except (ValueError, AttributeError, TypeError):
        # A body that is no JSON, or no object: bolt looks into it before its signature is checked.
        return _refused(400)
    event = request.body.get("event", {} if request.body.get("type") != "event_callback" else None)
    if not isinstance(event, dict) or (event and not isinstance(event.get("type"), str)):
        return _refused(400)
    return app.dispatch(request)


async def _body(receive: _Receive) -> bytes | None:
    """Read a request's body; None where it is too large."""
    parts = bytearray()
    while True:
        message = await receive()
        parts += message.get("body", b"")
        if len(parts) > MOST:
            return None
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            return bytes(parts)
