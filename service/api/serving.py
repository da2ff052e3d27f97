"""The web server under the app: what it binds to, and how long it waits for a client that says nothing."""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.api.browsers import is_loopback
from service.errors import SettingsError
from service.records import KeyRecord
from service.settings import Settings

# Seconds that a connection may take until a request's headers are there.
PATIENCE = 15.0
# Seconds that a client may take nothing of its answer.
READING = 60.0
# Connections at once; one more is answered 503. Each costs a file and some memory.
CONNECTIONS = 1000
# Seconds that a server which stops waits for the requests that are under way; then they are cut.
LEAVING = 10


class PatientProtocol(HttpToolsProtocol):
    """Closes a connection whose client does not get a request's headers out in time, or does not take its answer.

    uvicorn itself waits for ever for both.
    """

    patience = PATIENCE
    reading = READING
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Start to wait for headers."""
        super().connection_made(transport)
        self._clock = self.loop.call_later(self.patience, self._give_up)

    def on_message_begin(self) -> None:
        """Start to wait for the headers of the next request on this connection."""
        super().on_message_begin()
        self._clock.cancel()
        self._clock = self.loop.call_later(self.patience, self._give_up)

    def on_headers_complete(self) -> None:
        """Wait no more; from here on the app looks at the pace of the body."""
        self._clock.cancel()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Start to wait for the client to read."""
        super().pause_writing()
        # Closed at once, with what was not sent: to send it first would be to wait again.
        self._unread = self.loop.call_later(self.reading, self.transport.abort)

    def resume_writing(self) -> None:
        """Wait no more: the client reads."""
        self._forget_unread()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._clock.cancel()
        self._forget_unread()
        super().connection_lost(exc)

    def _forget_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


def check_binding(settings: Settings, keys: Sequence[KeyRecord]) -> None:
    """Raise SettingsError where others could reach a server that asks for no key."""
    if is_loopback(settings.host) or any(key.revoked is None for key in keys):
        return
    raise SettingsError(
        f"WHYCRASH_HOST is {settings.host}, which others can reach, and there is no API key. Make one first with "
        "`whycrash keys add NAME`, or leave WHYCRASH_HOST at 127.0.0.1.",
    )


def _many_files() -> None:
    """Let this process have as many files open as it may: each connection and each upload is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def server(app: Any, settings: Settings) -> uvicorn.Server:
    """Make the web server for an app; `Server.run` serves until it is told to stop."""
    _many_files()
    # It writes down what bytes of a damaged body it did not expect.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    config = uvicorn.Config(
        app, host=settings.host, port=settings.port, http=PatientProtocol, lifespan="on", log_config=None,
        # Its own access log has the query, and who asks is not who the proxy says unless the proxy is known.
        access_log=False, proxy_headers=False, server_header=False, limit_concurrency=CONNECTIONS, backlog=1024,
        timeout_keep_alive=30, timeout_graceful_shutdown=LEAVING, h11_max_incomplete_event_size=65536,
    )
    return uvicorn.Server(config)
