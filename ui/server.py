"""The API, the chat page and Slack in one process."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from types import ModuleType

from fastapi import FastAPI

from corpus.message import Message
from ingest.extras import missing
from service.api import serving
from service.api.app import create_app
from service.app.triage_service import TriageService
from service.pipeline.triage import Report
from service.schemas.errors import SettingsError
from service.settings import Settings

MAX_PORT = 65535

_LOG = logging.getLogger("whycrash.server")


def build(settings: Settings, triage_service: TriageService, slack_api: str = "") -> FastAPI:
    """Make the whole app over an open triage service; `slack_api` is another Slack's address, for a trial."""
    # The page and Slack have packages of their own; the API is served without them.
    page = _chat_page()
    app = create_app(settings, triage_service, policies=page.POLICIES if page else None)
    if settings.slack_bot_token.get_secret_value() and not settings.slack_app_token.get_secret_value():
        from ui.slack import http

        http.mount(app, triage_service, settings, *filter(None, [slack_api]))
    # Last: the page takes every path that is left.
    if page:
        page.mount(app, triage_service, settings)
    return app


def _chat_page() -> ModuleType | None:
    """Give the chat page's module; None, with a word in the server's log, where its packages are missing."""
    try:
        from ui.chat import page
    except ModuleNotFoundError as error:
        if (said := missing(error)) is None:
            raise
        _LOG.warning("There is no chat page. %s", said)
        return None
    return page


def serve(settings: Settings, report: Report, started: Callable[[str], None], slack_api: str = "") -> None:
    """Serve until told to stop; `started` gets the address.

    Raises SettingsError where it cannot be bound, or has no key.
    """
    with _bound(settings) as bound, TriageService(settings, report) as triage_service:
        serving.check_binding(settings, triage_service.store.keys.all())
        server = serving.server(build(settings, triage_service, slack_api), settings)
        started(address(settings, bound.getsockname()[1]))
        server.run(sockets=[bound])


def address(settings: Settings, port: int) -> str:
    """Give the address at which the server is reached from this machine."""
    # What the server is bound to names no place where it is reached.
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.host, settings.host)  # noqa: S104 - read
    return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{port}"


def _bound(settings: Settings) -> socket.socket:
    if settings.port > MAX_PORT:
        raise SettingsError(Message("errors.whycrash-port-takes-most", port=settings.port, max_port=MAX_PORT))
    # Bound here and not by the web server, which would leave with its own words where the port is taken.
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=1024)
    except OSError as error:
        raise SettingsError(
            Message(
                "errors.cannot-bound-set-whycrash",
                host=settings.host,
                port=settings.port,
                reason=os.strerror(error.errno or 0),
            )
        ) from error
