"""What all routes share, and who stands before them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from service.api.access import Authorizer
from service.api.idempotency import IdempotentRequest
from service.api.metrics import Metrics
from service.api.streams import EventFlow, EventThreads, nothing
from service.app.admission import Admission, Principal
from service.app.triage_service import TriageService
from service.batches.batches import BatchService
from service.batches.trend import BatchSummaries
from service.schemas.events import Event
from service.schemas.records import Scope
from service.settings import Settings

# How much longer a request is waited for than the work itself is given, in seconds: the work's own word comes
# first.
GRACE = 10.0


@dataclass(frozen=True)
class AppState:
    """What all routes share while the server runs."""

    settings: Settings
    triage_service: TriageService
    access: Authorizer
    metrics: Metrics
    threads: EventThreads
    admission: Admission
    batches: BatchService
    summaries: BatchSummaries
    # Set when the server stops: what runs in a thread ends by itself then.
    stopping: threading.Event

    def flow(
        self,
        begin: Callable[[], Iterator[Event]],
        ended: Callable[[], None] = nothing,
        abandoned: Callable[[], None] = nothing,
    ) -> EventFlow:
        """Start to work out events; raises BusyError."""
        return EventFlow(begin, self.threads, self.settings.request_deadline + GRACE, ended, abandoned)


def get_app_state(request: Request) -> AppState:
    """Give what all routes share."""
    found: AppState = request.app.state.app_state
    return found


async def _app_state(request: Request) -> AppState:
    # Not the function above: what is no coroutine is called in a thread, and each request would wait for one.
    return get_app_state(request)


_BEARER = HTTPBearer(
    auto_error=False,
    description="A key of `whycrash keys add`. On a loopback address without any key, none is needed.",
)


async def _principal(
    request: Request, _shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
) -> Principal:
    peer = request.client.host if request.client else ""
    found = await get_app_state(request).access.authenticate(peer, request.headers)
    request.scope["caller"] = found.caller.name
    return found


def _principal_with(scope: Scope | None) -> Callable[..., object]:
    async def check(
        app_state: Annotated[AppState, Depends(_app_state)],
        principal: Annotated[Principal, Depends(_principal)],
    ) -> Principal:
        return app_state.admission.admit(principal, scope)

    return check


CurrentAppState = Annotated[AppState, Depends(_app_state)]
Anyone = Annotated[Principal, Depends(_principal_with(None))]
TriagePrincipal = Annotated[Principal, Depends(_principal_with("triage"))]
BatchPrincipal = Annotated[Principal, Depends(_principal_with("batch"))]
IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        json_schema_extra={"pattern": "^[!-~]{0,200}$"},
        description="Send a request again with the same key, and it is answered as it was the first time.",
    ),
]


def idempotent_request(app_state: AppState, key: str, principal: Principal) -> IdempotentRequest:
    """Give a request's memory of itself; raises InvalidRequestError where its key is none."""
    return IdempotentRequest(app_state.triage_service.store.requests, key, principal.caller)
