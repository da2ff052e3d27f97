"""The gate that every request passes.

It gives a request its id, checks where it comes from and how large it is, sets the headers of its answer, and
writes the log. It stands outside of FastAPI, in plain ASGI: it sees bodies as they arrive, and also what is
mounted beside the API.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect

from corpus.message import Message
from ingest.logs.lines import printable
from ingest.redaction.redactor import Redactor
from service.api import problems
from service.api.access import Authorizer, PageVisitor
from service.api.browsers import OriginPolicy
from service.api.intake import MIB, AsgiMessage, BodyRateLimits, BodyReader, Receive, too_large
from service.api.metrics import Metrics
from service.schemas.errors import RequestError, StoppingError
from service.signals import tracing
from service.workers.pool import STOPPING

AsgiScope = dict[str, Any]
Send = Callable[[AsgiMessage], Awaitable[None]]
App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]

_LOG = logging.getLogger("whycrash.requests")
# What nginx logs for a client that left before its answer; nobody gets it.
CLIENT_LEFT = 499
_API = ("/v1/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs")
_STRICT = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
# What a page in one process with the API may do, unless it names more for itself.
PAGE_POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'self'; form-action 'self'"


@dataclass(frozen=True)
class MiddlewareRules:
    """What the gate goes by.

    `bodies` are the largest bodies by method and path, in bytes, else `small`; `policies` the content
    security policy of pages by the beginning of their path, the longest that fits. API paths have none to
    choose. `signed` are beginnings of paths whose requests prove themselves otherwise, as Slack's do by their
    signature.
    """

    bodies: Mapping[tuple[str, str], int] = field(default_factory=dict)
    small: int = MIB
    policies: Mapping[str, str] = field(default_factory=dict)
    pages: int = 64 * MIB
    signed: tuple[str, ...] = ("/slack/",)
    pace: BodyRateLimits = field(default_factory=BodyRateLimits)


@dataclass(slots=True)
class _RequestInFlight:
    """One request on its way."""

    method: str
    path: str
    api: bool
    status: int = 500
    begun: bool = False
    started: float = field(default_factory=perf_counter)


class RequestMiddleware:
    """Lets requests through to the app behind it."""

    def __init__(
        self,
        app: App,
        boundary: OriginPolicy,
        rules: MiddlewareRules,
        metrics: Callable[[], Metrics | None],
        access: Callable[[], Authorizer | None],
    ) -> None:
        self._app = app
        self._boundary = boundary
        self._rules = rules
        self._metrics = metrics
        self._access = access

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer a request; the ASGI interface."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = scope["request_id"] = secrets.token_hex(8)
        refused = self._refusal(scope, headers) or await self._page_refusal(scope, headers)
        if scope["type"] == "websocket":
            if refused:
                await send({"type": "websocket.close", "code": 1008})
            else:
                await self._app(scope, receive, send)
            return
        passage = _RequestInFlight(scope["method"], scope["path"], scope["path"].startswith(_API))
        intake = BodyReader(
            receive,
            self._most(passage),
            self._rules.pace,
            has_body=headers.get("content-length", "0") != "0" or "transfer-encoding" in headers,
        )
        sending = self._sending(passage, request_id, intake, send)
        with tracing.span(passage.method, kind="server", parent=headers.get("traceparent", "")) as span:
            await self._pass(scope, intake, sending, passage, refused)
            route = _route(scope)
            span.add({"http.request.method": passage.method, "http.route": route})
            span.add({"http.response.status_code": passage.status, "whycrash.request.id": request_id})
            span.rename(f"{passage.method} {route}")
            if passage.status >= 500:
                span.fail(str(passage.status))

    async def _pass(
        self,
        scope: AsgiScope,
        intake: BodyReader,
        send: Send,
        passage: _RequestInFlight,
        refused: Exception | None,
    ) -> None:
        metrics = self._metrics()
        if metrics:
            metrics.running.inc()
        try:
            if refused is not None:
                await self._send_problem(scope, intake, send, passage, refused)
            else:
                await self._app(scope, intake, send)
        except ClientDisconnect:
            passage.status = CLIENT_LEFT
        except asyncio.CancelledError:
            # Nobody but the web server ends a request so: it stops, and has waited for it long enough. Raised
            # on, it would be a stack in the log, and 500 to the client.
            _LOG.warning("%s was cut: the server is stopping", scope["request_id"])
            await self._send_problem(scope, intake, send, passage, StoppingError(Message(STOPPING), 5.0))
        except Exception as error:  # noqa: BLE001 - the client gets an answer whatever it is
            problems.log_problem(scope["request_id"], error)
            await self._send_problem(scope, intake, send, passage, error)
        finally:
            self._note(scope, passage, metrics)

    async def _send_problem(
        self, scope: AsgiScope, intake: BodyReader, send: Send, passage: _RequestInFlight, error: Exception
    ) -> None:
        """Tell an error, unless another answer has begun."""
        if not passage.begun:
            await problems.problem_response(scope["request_id"], passage.path, error)(scope, intake, send)

    def _refusal(self, scope: AsgiScope, headers: Headers) -> RequestError | None:
        method = scope.get("method", "POST")
        if refused := self._boundary.refusal(method, headers):
            return refused
        length = headers.get("content-length", "")
        passage = _RequestInFlight(method, scope["path"], scope["path"].startswith(_API))
        # Refused before a byte of it is read.
        return (
            too_large(self._most(passage))
            if length.isdecimal() and int(length) > self._most(passage)
            else None
        )

    async def _page_refusal(self, scope: AsgiScope, headers: Headers) -> Exception | None:
        """Give why a page is not shown to somebody; API routes ask for their keys themselves."""
        path: str = scope["path"]
        if path.startswith((*_API, *self._rules.signed)) or not (access := self._access()):
            return None
        try:
            client = scope.get("client")
            principal = await access.authorize_reader(client[0] if client else "", headers)
            scope["caller"], scope["visitor"] = (
                principal.caller.name,
                PageVisitor(principal, access.admission),
            )
        except Exception as error:  # noqa: BLE001 - nobody is let in whose key could not be looked up
            if not isinstance(error, RequestError):
                problems.log_problem(scope["request_id"], error)
            return error
        return None

    def _most(self, passage: _RequestInFlight) -> int:
        return self._rules.bodies.get(
            (passage.method, passage.path), self._rules.small if passage.api else self._rules.pages
        )

    def _sending(self, passage: _RequestInFlight, request_id: str, intake: BodyReader, send: Send) -> Send:
        async def sending(message: AsgiMessage) -> None:
            if message["type"] == "http.response.start":
                passage.status, passage.begun = message["status"], True
                headers = MutableHeaders(scope=message)
                self._add(headers, passage, request_id)
                if not intake.over:
                    # The web server would read on to the end of the body, however long and slow, for the next
                    # request.
                    headers["connection"] = "close"
            await send(message)

        return sending

    def _add(self, headers: MutableHeaders, passage: _RequestInFlight, request_id: str) -> None:
        headers["x-request-id"] = request_id
        for name, value in _HEADERS.items():
            headers.setdefault(name, value)
        policies = self._rules.policies
        fitting = sorted((prefix for prefix in policies if passage.path.startswith(prefix)), key=len)
        policy = policies[fitting[-1]] if fitting else PAGE_POLICY
        headers.setdefault("content-security-policy", _STRICT if passage.api else policy)
        if passage.api:
            headers.setdefault("cache-control", "no-store")

    def _note(self, scope: AsgiScope, passage: _RequestInFlight, metrics: Metrics | None) -> None:
        seconds = perf_counter() - passage.started
        route = _route(scope)
        if metrics:
            metrics.running.dec()
            metrics.count_request(passage.method, route, passage.status, seconds)
        if not passage.api:
            return
        # The path and no more of the request: headers hold keys, queries and bodies hold what people write. A
        # path that led to nothing may hold anything; its pattern says enough.
        shown = passage.path if route == "other" or passage.status < 400 else route
        path = Redactor().clean(printable(shown))
        _LOG.info(
            "%s %s %s %d %.1f ms %s",
            scope["request_id"],
            passage.method,
            path,
            passage.status,
            1000 * seconds,
            scope.get("caller", "-"),
        )


def _route(scope: AsgiScope) -> str:
    """Give a path's pattern; ids in it would make a series each."""
    return getattr(scope.get("route"), "path", "") or "other"
