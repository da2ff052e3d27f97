"""What all routes share, and who stands before them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

import anyio.to_thread
from fastapi import Depends, Header, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from service.api.access import Access, Visitor, demand
from service.api.idempotency import Once
from service.api.metrics import Metrics
from service.api.streams import Flow, Places, Threads, nothing
from service.batch.batches import Batches
from service.batch.trend import Summaries
from service.desk import Desk
from service.events import Event
from service.records import Scope
from service.settings import Settings

# How much longer a request is waited for than the work itself is given, in seconds: the work's own word comes first.
GRACE = 10.0


@dataclass(frozen=True)
class Reception:
    """What all routes share while the server runs."""

    settings: Settings
    desk: Desk
    access: Access
    metrics: Metrics
    threads: Threads
    uploads: Places
    batches: Batches
    summaries: Summaries
    # Set when the server stops: what runs in a thread ends by itself then.
    stopping: threading.Event

    def flow(self, begin: Callable[[], Iterator[Event]], ended: Callable[[], None] = nothing, forsaken: Callable[[], None] = nothing) -> Flow:
        """Start to work out events; raises BusyError."""
        return Flow(begin, self.threads, self.settings.request_deadline + GRACE, ended, forsaken)


def reception(request: Request) -> Reception:
    """Give what all routes share."""
    found: Reception = request.app.state.reception
    return found


async def _house(request: Request) -> Reception:
    # Not the function above: what is no coroutine is called in a thread, and each request would wait for one.
    return reception(request)


_BEARER = HTTPBearer(auto_error=False, description="A key of `whycrash keys add`. On a loopback address without any key, none is needed.")


async def _visitor(request: Request, _shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]) -> Visitor:
    peer = request.client.host if request.client else ""
    found = await reception(request).access.visitor(peer, request.headers)
    request.scope["caller"] = found.caller.name
    return found


def _with(scope: Scope) -> Callable[..., object]:
    async def check(visitor: Annotated[Visitor, Depends(_visitor)]) -> Visitor:
        demand(visitor, scope)
        return visitor

    return check


House = Annotated[Reception, Depends(_house)]
Anyone = Annotated[Visitor, Depends(_visitor)]
Triager = Annotated[Visitor, Depends(_with("triage"))]
Batcher = Annotated[Visitor, Depends(_with("batch"))]
IdempotencyKey = Annotated[str, Header(
    alias="Idempotency-Key", max_length=200, description="Send a request again with the same key, and it is answered as it was the first time.")]


def once(house: Reception, key: str, visitor: Visitor) -> Once:
    """Give a request's memory of itself; raises InvalidRequestError where its key is none."""
    return Once(house.desk.store.requests, key, visitor.caller)


async def in_thread(work: Callable[[], None]) -> None:
    """Run what blocks outside of the event loop."""
    await anyio.to_thread.run_sync(work)
