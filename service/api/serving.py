"""The web server under the app: what it binds to, and how long it waits for a client that says nothing."""

from __future__ import annotations

import logging
import resource
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import uvicorn

from corpus.message import Message
from service.api.browsers import is_loopback
from service.api.connections import CONNECTIONS, BoundedProtocol
from service.schemas.errors import SettingsError
from service.schemas.records import KeyRecord
from service.settings import Settings

# Seconds that a server which stops waits for the requests that are under way; then they are cut.
LEAVING = 10


def check_binding(settings: Settings, keys: Sequence[KeyRecord]) -> None:
    """Raise SettingsError where others could reach a server that asks for no key."""
    is_asked_for = bool(settings.oidc_issuer) or any(key.revoked is None for key in keys)
    if is_loopback(settings.host) or is_asked_for:
        return
    raise SettingsError(Message("errors.whycrash-host-others-reach", host=settings.host))


def server(app: Any, settings: Settings) -> uvicorn.Server:
    """Make the web server for an app; `Server.run` serves until it is told to stop."""
    # Let this process have as many files open as it may: each connection and each upload is one.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # It writes down what bytes of a damaged body it did not expect.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=BoundedProtocol,
        lifespan="on",
        log_config=None,
        # Its own access log has the query, and who asks is not who the proxy says unless the proxy is known.
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        backlog=1024,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=LEAVING,
    )
    return uvicorn.Server(config)
