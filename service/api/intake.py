"""Bodies as they arrive: not more than allowed, and not slower than a client that means it sends them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from corpus.message import Message
from service.schemas.errors import SlowClientError, TooLargeError

AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]

MIB = 1 << 20


@dataclass(frozen=True)
class BodyRateLimits:
    """How slowly a body may come.

    At most `idle` seconds without a byte, and at least `rate` bytes a second after `grace` seconds.
    """

    idle: float = 15.0
    grace: float = 10.0
    rate: float = 16384.0


class BodyReader:
    """Gives a request's body on as it comes; raises TooLargeError or SlowClientError where it breaks off."""

    def __init__(self, receive: Receive, most: int, pace: BodyRateLimits, *, has_body: bool = True) -> None:
        self._receive = receive
        self._most = most
        self._pace = pace
        self._began = monotonic()
        # Whether all of it has come.
        self.over = not has_body
        self.bytes = 0

    async def __call__(self) -> AsgiMessage:
        """Give the next message."""
        # After its end, a body's next message is that the client has gone, which may be never.
        message = await (self._receive() if self.over else self._receive_in_time())
        if message["type"] == "http.request":
            self.bytes += len(message.get("body", b""))
            self.over = not message.get("more_body", False)
            if self.bytes > self._most:
                raise too_large(self._most)
            spent = monotonic() - self._began
            if not self.over and spent > self._pace.grace and self.bytes < spent * self._pace.rate:
                raise SlowClientError(Message("errors.body-comes-less-bytes", rate=f"{self._pace.rate:g}"))
        return message

    async def _receive_in_time(self) -> AsgiMessage:
        try:
            # Not wait_for: see `service.api.streams.EventFlow.next`.
            async with asyncio.timeout(self._pace.idle):
                return await self._receive()
        except TimeoutError as error:
            raise SlowClientError(Message("errors.no-byte-body-came", idle=f"{self._pace.idle:g}")) from error


def too_large(most: int) -> TooLargeError:
    """Make the error of a body over its limit, with the limit in words."""
    told = f"{most / MIB:.3g} MiB" if most >= MIB else f"{most} bytes"
    return TooLargeError(Message("errors.body-larger-most-taken", told=told))
