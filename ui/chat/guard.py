"""What stands between the API's gate and Gradio: which of its routes are open, and whose a page's session is.

Gradio brings some fifty routes, most of them for development and sharing, and an update may bring more. Those
that the page needs are listed here; the others are not there.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Lock
from typing import Any
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute

from corpus.message import Message
from service.api import problems
from service.api.access import PageKeyError, PageVisitor
from service.api.methods import methods_at
from service.api.uploads import MultipartLimits, read_multipart
from service.app.admission import Principal
from service.persistence.spool import Spool
from service.schemas.errors import NotFoundError, RequestError
from service.schemas.records import Scope
from ui.chat.uploads import MAX_FILES, Uploads

AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

# Bytes of a field that comes with a file; the page sends none.
_FIELD = 4096
# Sessions that are remembered; the one that was bound longest ago is forgotten.
MOST_SESSIONS = 10_000
# What each event of the page, and each call beside them, takes of a key. `admin` covers all.
ACTIONS: Mapping[str, Scope] = {
    "explain": "triage",
    "ask": "triage",
    "look": "triage",
    "past": "triage",
    "log": "triage",
    "judge": "triage",
    "note_crash": "triage",
    "prompt": "triage",
    "forget": "triage",
    "begin_batch": "batch",
    "batch": "batch",
    "cancel_batch": "batch",
    "job": "batch",
}


@dataclass(frozen=True)
class Route:
    """A route of Gradio's that the page uses.

    `takes` are the scopes of a route that does something by itself, which is counted: one of them will do.
    Where there are none, any key will: what is behind is the same for all, or asks by itself, as the page's
    events do.
    """

    methods: tuple[str, ...]
    path: str
    takes: tuple[Scope, ...] = ()


ROUTES: tuple[Route, ...] = (
    Route(("GET", "HEAD"), "/"),
    Route(("GET",), "/config/?"),
    Route(("GET",), r"/(?:gradio_api/)?theme\.css"),
    Route(("GET",), r"/(?:favicon\.ico|robots\.txt)"),
    Route(("GET",), "/(?:assets|static)/.+"),
    Route(("GET",), "/gradio_api/(?:app_id|startup-events)/?"),
    Route(("GET",), "/gradio_api/heartbeat/(?P<session>[^/]+)"),
    Route(("GET",), "/gradio_api/queue/data"),
    Route(("POST",), "/gradio_api/queue/join"),
    Route(("POST",), "/gradio_api/component_server/?"),
    # A file is handed in for a triage or for a batch; which of both its key may begin is asked by the event.
    Route(("POST",), "/gradio_api/upload", ("triage", "batch")),
)
_FOUND = tuple((route, re.compile(route.path)) for route in ROUTES)


class Sessions:
    """Whose each session of a page is: the first one's who used it. Safe to use from many threads."""

    def __init__(self) -> None:
        self._owners: OrderedDict[str, str] = OrderedDict()
        self._turn = Lock()

    def bind(self, session: str, principal: Principal) -> None:
        """Bind a session to who asks; raises NotFoundError where it is another's."""
        with self._turn:
            owner = self._owners.setdefault(session, principal.caller.name)
            if len(self._owners) > MOST_SESSIONS:
                self._owners.popitem(last=False)
        if owner != principal.caller.name:
            raise NotFoundError(Message("errors.no-session-page-load"))


class Guard:
    """Lets through to Gradio what the page needs, for whom it is."""

    def __init__(self, app: App, sessions: Sessions, uploads: Uploads, beside: Sequence[BaseRoute]) -> None:
        """Make it before Gradio's `app`; `beside` are the routes of the API, whose paths end up here too.

        They do by a method that no route of theirs takes.
        """
        self._app = app
        self._sessions = sessions
        self._uploads = uploads
        self._beside = beside

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request; the ASGI interface."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        with ExitStack() as held:
            try:
                if self._check(scope).takes:
                    await run_in_threadpool(self._keep_room, scope, held)
                    await self._keep_upload(scope, receive, send)
                    return
            except RequestError as error:
                await problems.problem_response(scope.get("request_id", ""), scope["path"], error)(
                    scope, receive, send
                )
                return
            await self._app(scope, receive, send)

    def _keep_room(self, scope: Mapping[str, Any], held: ExitStack) -> None:
        """Keep a place among those who send, and room for what is sent; raises BusyError."""
        visitor = visitor_of(scope)
        held.enter_context(visitor.admission.uploads.slot(visitor.principal.caller.owner))
        announced = dict(scope["headers"]).get(b"content-length", b"")
        size = int(announced) if announced.isdigit() else self._uploads.largest
        held.enter_context(self._uploads.room(size))

    async def _keep_upload(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer an upload in place of Gradio, which names files on the disk; raises RequestError."""
        request, spool = Request(scope, receive), Spool()
        try:
            upload = await read_multipart(
                request.headers.get("content-type", ""),
                request.stream(),
                spool,
                MultipartLimits(files=MAX_FILES, fields=1, field_bytes=_FIELD),
                run_in_threadpool,
            )
        except BaseException:
            spool.close()
            raise
        files = [file for _, file in upload.files]
        places = self._uploads.keep(files, visitor_of(scope).principal.caller.name)
        await JSONResponse(places)(scope, receive, send)

    def _check(self, scope: Mapping[str, Any]) -> Route:
        """Give the route that a request takes; raises a RequestError where it may not, or there is none."""
        found = next(
            (
                (route, match)
                for route, shape in _FOUND
                if scope["method"] in route.methods and (match := shape.fullmatch(scope["path"]))
            ),
            None,
        )
        if found is None:
            methods = methods_at(self._beside, scope) or tuple(
                method
                for route, shape in _FOUND
                if shape.fullmatch(scope["path"])
                for method in route.methods
            )
            if methods:
                raise problems.method_not_allowed(scope["method"], methods)
            raise NotFoundError(Message("errors.nothing-path", method=scope["method"]))
        (route, match), visitor = found, visitor_of(scope)
        if route.takes:
            visitor.admit(next(filter(visitor.principal.may, route.takes), route.takes[0]))
        asked = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("session_hash", [])
        for session in (*asked, *match.groupdict().values()):
            self._sessions.bind(session, visitor.principal)
        return route


def visitor_of(scope: Mapping[str, Any]) -> PageVisitor:
    """Give who the API's gate found to ask; raises PageKeyError where no gate has asked them."""
    visitor = scope.get("visitor")
    if not isinstance(visitor, PageVisitor):
        raise PageKeyError(Message("errors.log-any-name-api"))
    return visitor


def admitted(request: Any, action: str, sessions: Sessions) -> Principal:
    """Let an event or a call of the page be done by who asks for it.

    Raises BusyError, ForbiddenError, UnauthorizedError.
    """
    # Calls beside the events get the web framework's own request, events one of Gradio's around it.
    plain: Any = getattr(request, "request", None) or request
    visitor = visitor_of(plain.scope)
    principal = visitor.admit(ACTIONS[action])
    if session := getattr(request, "session_hash", None):
        sessions.bind(str(session), principal)
    return principal
