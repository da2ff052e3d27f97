"""One connection of the web server: how large a request's head may be, how many come, how long each takes.

uvicorn's parser keeps all that comes before a body, whoever sends it and however much it is: it has no bound
of its own. What is beyond the bounds here is answered 431 (RFC 6585) or 414, and nothing more is taken from
that connection.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple
from weakref import WeakKeyDictionary

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

# Seconds that a connection may take until a request's headers are there.
HEAD_TIMEOUT = 15.0
# Seconds that a client may take nothing of its answer.
READING = 60.0
# Connections at once; one more is answered 503. Each costs a file and some memory.
CONNECTIONS = 1000
# Connections at once whose request has no complete head yet; for one more, the one that has tried longest is
# closed.
HEADS = 500
# Headers of one request, and their bytes: more than browsers and proxies send, less than it takes to hurt.
MOST_HEADERS = 100
HEAD_BYTES = 65_536
# Bytes of a request's path and query.
URL_BYTES = 16_384
# Requests of one connection that wait for the answers before theirs.
PIPELINED = 16
# Seconds that a refused client has to read why, while what it still sends is thrown away.
_LINGER = 1.0


class _Refusal(NamedTuple):
    status: int
    why: str


_HEADERS_TOO_LARGE = _Refusal(
    431, f"A request may have at most {MOST_HEADERS} headers of {HEAD_BYTES} bytes together."
)
_URL_TOO_LONG = _Refusal(414, f"A request's path and query may have at most {URL_BYTES} bytes.")
_TWO_HOSTS = _Refusal(400, "A request has one Host header.")
_UNKNOWN_CODING = _Refusal(501, "The one transfer coding that is taken is chunked.")
_TOO_MANY_WAITING = _Refusal(429, f"At most {PIPELINED} requests may wait on one connection.")

# The connections of each server whose requests have no complete head yet, oldest first.
OPEN_HEADS: WeakKeyDictionary[ServerState, dict[BoundedProtocol, None]] = WeakKeyDictionary()


class RefusedHeadError(Exception):
    """The request's head is refused; the parser ends with it."""


class BoundedProtocol(HttpToolsProtocol):
    """A connection that ends itself.

    It does where its client sends too much before a body, takes too long for it, or does not take its answer.
    """

    head_timeout = HEAD_TIMEOUT
    reading = READING
    heads = HEADS
    connections_at_once = CONNECTIONS + HEADS
    _unread: asyncio.TimerHandle | None = None
    _clock: asyncio.TimerHandle | None = None
    _refusal: _Refusal | None = None
    _is_leaving = False
    # Bytes since a body, or a request, last went on: a head, the frames between the pieces of a body,
    # trailers.
    _beside = 0
    _in_headers = 0
    _count = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for headers."""
        super().connection_made(transport)
        if len(self.connections) > self.connections_at_once:
            # The web server itself says 503 to a request above its limit, and waits for that request.
            self._is_leaving = True
            transport.abort()
            return
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Parse what came, at most a few hundred KiB at once; no more of it is kept than the bounds say."""
        if self._is_leaving:
            return
        self._beside += len(data)
        super().data_received(data)
        if self._beside > HEAD_BYTES and not self._is_leaving:
            self._refuse(_HEADERS_TOO_LARGE)
        elif self._clock is None and self._is_idle:
            # Line ends between two requests: they begin none, and would hold the connection for ever.
            self._await_head()

    def on_message_begin(self) -> None:
        """Start to wait for the headers of the next request on this connection."""
        super().on_message_begin()
        self._count = self._in_headers = 0
        self._await_head()

    def on_url(self, url: bytes) -> None:
        """Take a part of the path."""
        if len(self.url) + len(url) > URL_BYTES:
            raise self._refused(_URL_TOO_LONG)
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or a trailer after a body, which is counted with them."""
        self._count += 1
        self._in_headers += len(name) + len(value)
        if self._count > MOST_HEADERS or self._in_headers > HEAD_BYTES:
            raise self._refused(_HEADERS_TOO_LARGE)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Wait no more; from here on the app looks at the pace of the body."""
        self._has_head()
        self._beside = 0
        if sum(name == b"host" for name, _ in self.headers) > 1:
            raise self._refused(_TWO_HOSTS)
        codings = [value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"]
        if codings not in ([], [b"chunked"]):
            # The parser would hand the request on, and find only then that its body has no end.
            raise self._refused(_UNKNOWN_CODING)
        if len(self.pipeline) >= PIPELINED:
            raise self._refused(_TOO_MANY_WAITING)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._beside = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take the end of a request."""
        self._beside = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request, or none that is taken.

        The web server calls it where the parser ended.
        """
        self._refuse(self._refusal or _Refusal(400, msg))

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
        self._has_head()
        self._forget_unread()
        super().connection_lost(exc)

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        self._has_head()
        self._clock = self.loop.call_later(self.head_timeout, self._give_up)
        waiting = OPEN_HEADS.setdefault(self.server_state, {})
        waiting[self] = None
        if len(waiting) > self.heads:
            # The longest there and still without a head: no client that means it, or one that is very slow.
            slowest = next(iter(waiting))
            slowest._has_head()
            slowest._is_leaving = True
            slowest.transport.abort()

    def _has_head(self) -> None:
        OPEN_HEADS.get(self.server_state, {}).pop(self, None)
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _refused(self, why: _Refusal) -> RefusedHeadError:
        self._refusal = why
        return RefusedHeadError(why.why)

    def _refuse(self, why: _Refusal) -> None:
        """Say why, once; then throw away what comes, so that the client gets to read it, and close."""
        self._has_head()
        self._is_leaving = True
        self.headers, self.url = [], b""
        if not self._is_idle:
            # Another answer is on its way; a second one in its middle would be read as a part of it.
            self.transport.close()
            return
        headers = dict(self.server_state.default_headers)
        body = why.why.encode()
        told = {
            **headers,
            b"content-type": b"text/plain; charset=utf-8",
            b"content-length": str(len(body)).encode(),
            b"connection": b"close",
        }
        answer = b"".join(
            (STATUS_LINE[why.status], *(b"%b: %b\r\n" % item for item in told.items()), b"\r\n", body)
        )
        self.transport.write(answer)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._clock = self.loop.call_later(_LINGER, self.transport.abort)

    def _forget_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
