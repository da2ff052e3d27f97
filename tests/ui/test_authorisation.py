"""Who may do what: every route of the API, every route and every event of the page, with every kind of key,
in one table.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.api import keys
from service.batches.batches import BatchService
from service.persistence.store import Store
from service.schemas.records import JobPlace, JobSpec, TriageRecord
from service.settings import Settings
from tests.service.factories import diagnosis
from tests.ui.chat.serving import Server
from tests.waiting import PATIENCE
from tests.warm import ROOT
from ui.chat.guard import ACTIONS, ROUTES

# Whose key asks: nobody's, one that was revoked, the owner's of what is asked about and another's of the same
# scope, admin.
KINDS = ("none", "revoked", "triage", "triage2", "batch", "batch2", "admin")
# What each of them is told; "ok" is whatever the work itself answers.
EVERYBODY = ("ok",) * 7
ANY_KEY = ("401", "401", "ok", "ok", "ok", "ok", "ok")
TRIAGE = ("401", "401", "ok", "ok", "403", "403", "ok")
OWN_TRIAGE = ("401", "401", "ok", "404", "403", "403", "ok")
BATCH = ("401", "401", "403", "403", "ok", "ok", "ok")
OWN_BATCH = ("401", "401", "403", "403", "ok", "404", "ok")
# A file is handed in for a triage or for a batch; which of them its key may begin is asked by the event.
UPLOAD = ("401", "401", "ok", "ok", "ok", "ok", "ok")
ADMIN = ("401", "401", "403", "403", "403", "403", "ok")

# {t} is a triage of the key `triage`, {b} a batch of the key `batch`.
API: Sequence[tuple[str, str, Any, Sequence[str]]] = (
    ("GET", "/healthz", None, EVERYBODY),
    ("GET", "/readyz", None, EVERYBODY),
    ("GET", "/openapi.json", None, EVERYBODY),
    ("GET", "/docs", None, EVERYBODY),
    ("GET", "/v1/schemas/diagnosis", None, ANY_KEY),
    ("GET", "/metrics", None, ANY_KEY),
    ("GET", "/v1/status", None, ANY_KEY),
    ("POST", "/v1/triage", {"text": "ValueError: x", "model": False}, TRIAGE),
    ("POST", "/v1/triage", {"text": "ValueError: x", "model": False, "telemetry": "live"}, ADMIN),
    ("GET", "/v1/triages", None, TRIAGE),
    ("GET", "/v1/triages/{t}", None, OWN_TRIAGE),
    ("DELETE", "/v1/triages/{t}", None, OWN_TRIAGE),
    ("GET", "/v1/triages/{t}/excerpt", None, OWN_TRIAGE),
    ("GET", "/v1/triages/{t}/messages", None, OWN_TRIAGE),
    ("POST", "/v1/triages/{t}/messages", {"text": "why?"}, OWN_TRIAGE),
    ("POST", "/v1/triages/{t}/feedback", {"right": True}, OWN_TRIAGE),
    ("GET", "/v1/crashes", None, TRIAGE),
    ("GET", "/v1/crashes/{f}", None, OWN_TRIAGE),
    ("PUT", "/v1/crashes/{f}", {"state": "ignored"}, OWN_TRIAGE),
    ("POST", "/v1/batches", '{"name": "a", "log": "ValueError: x"}\n', BATCH),
    ("GET", "/v1/batches", None, BATCH),
    ("GET", "/v1/batches/{b}", None, OWN_BATCH),
    ("GET", "/v1/batches/{b}/jobs", None, OWN_BATCH),
    ("GET", "/v1/batches/{b}/results", None, OWN_BATCH),
    ("GET", "/v1/batches/{b}/summary", None, OWN_BATCH),
    ("POST", "/v1/batches/{b}/cancel", None, OWN_BATCH),
    ("DELETE", "/v1/batches/{b}", None, OWN_BATCH),
    ("DELETE", "/v1/data", None, ANY_KEY),
    ("GET", "/v1/causes", None, TRIAGE),
    ("GET", "/v1/cases", None, TRIAGE),
    ("GET", "/v1/cases/ray/memory-monitor-kill", None, TRIAGE),
    ("GET", "/v1/search?q=a", None, TRIAGE),
)
# The page's own routes. What they give is the same for all; what a key may see comes by the events below.
PAGE: Sequence[tuple[str, str, Any, Sequence[str]]] = (
    ("GET", "/", None, ANY_KEY),
    ("HEAD", "/", None, ANY_KEY),
    ("GET", "/config", None, ANY_KEY),
    ("GET", "/theme.css", None, ANY_KEY),
    ("GET", "/gradio_api/theme.css", None, ANY_KEY),
    ("GET", "/favicon.ico", None, ANY_KEY),
    ("GET", "/robots.txt", None, ANY_KEY),
    ("GET", "/assets/none.js", None, ANY_KEY),
    ("GET", "/static/none.png", None, ANY_KEY),
    ("GET", "/gradio_api/app_id", None, ANY_KEY),
    ("GET", "/gradio_api/startup-events", None, ANY_KEY),
    ("GET", "/gradio_api/queue/data", None, ANY_KEY),
    ("POST", "/gradio_api/queue/join", {}, ANY_KEY),
    ("POST", "/gradio_api/component_server/", {}, ANY_KEY),
    ("POST", "/gradio_api/upload", {"files": "x"}, UPLOAD),
    ("GET", "/gradio_api/heartbeat/{s}", None, ANY_KEY),
)
# Events and calls of the page by their names.
EVENTS: Sequence[tuple[str, Mapping[str, Any], Sequence[str]]] = (
    ("explain", {"text": "ValueError: x", "model": False}, TRIAGE),
    ("explain", {"text": "ValueError: x", "model": False, "live": True}, ADMIN),
    ("ask", {"triage": "{t}", "question": "why?"}, OWN_TRIAGE),
    ("look", {"triage": "{t}"}, OWN_TRIAGE),
)
CALLS: Sequence[tuple[str, Mapping[str, Any], Sequence[str]]] = (
    ("past", {}, TRIAGE),
    ("log", {"triage": "{t}"}, OWN_TRIAGE),
    ("judge", {"triage": "{t}", "right": True}, OWN_TRIAGE),
    ("note_crash", {"triage": "{t}", "state": "fixed"}, OWN_TRIAGE),
    ("prompt", {"triage": "{t}"}, OWN_TRIAGE),
    ("forget", {"triage": "{t}"}, OWN_TRIAGE),
    ("begin_batch", {"files": [{"place": "/none", "name": "jobs.zip"}]}, BATCH),
    ("batch", {"batch": "{b}"}, OWN_BATCH),
    ("job", {"job": "{b}-1"}, OWN_BATCH),
    ("cancel_batch", {"batch": "{b}"}, OWN_BATCH),
)
# Says which routes Gradio brings, the page's guard aside.
_OFFERED = """
import json, sys
from pathlib import Path
from starlette.routing import Mount
from service.app.triage_service import TriageService
from service.settings import Settings
from ui import server

def routes(found, prefix=""):
    for route in found:
        if (inner := getattr(route, "original_router", None)) is not None:
            yield from routes(inner.routes, prefix + route.include_context.prefix)
        elif isinstance(route, Mount):
            yield from routes(route.routes, prefix + route.path)
        else:
            yield from ((method, prefix + route.path) for method in getattr(route, "methods", None) or ())

settings = Settings(home=Path(sys.argv[1]), embedding_model="hash")
app = server.build(settings, TriageService(settings))
[mounted] = [route for route in app.routes if isinstance(route, Mount)]
print(json.dumps(sorted(set(routes(mounted.app._app.routes)))))
"""
# What a page is told in words where a route tells a status.
_WORDS = {
    "403": ("scopes are", "scope admin"),
    "404": ("There is no triage", "There is no batch"),
    "429": ("too often",),
}
SECRET = "of-the-owner.log"  # noqa: S105 - a name that is looked for in what others get


@dataclass
class CurrentAppState:
    """A server with a key of each kind."""

    settings: Settings
    store: Store
    client: httpx.Client
    tokens: Mapping[str, str]
    # What the page is made of, once somebody asked; the same for all.
    page: dict[str, Any] | None = None

    def sent(self, kind: str) -> dict[str, str]:
        """Give the header of a kind of key."""
        return {"authorization": f"Bearer {self.tokens[kind]}"} if kind in self.tokens else {}

    def named(self, text: str) -> str:
        """Put something of the owners', made for this once, where the table has a sign."""
        if "{t}" in text:
            text = text.replace("{t}", self._triage())
        if "{f}" in text:
            text = text.replace("{f}", self._triage().lower())
        if "{b}" in text:
            text = text.replace("{b}", self._batch())
        return text.replace("{s}", secrets.token_hex(8))

    def _triage(self) -> str:
        made, now = f"01{secrets.token_hex(12).upper()}", datetime.now(UTC)
        self.store.triages.add(
            TriageRecord(
                id=made,
                state="running",
                origin="api",
                caller=self._id("triage"),
                source=SECRET,
                created=now,
                deadline=now + timedelta(hours=1),
                # Its own crash, by a name that follows from the triage's.
                diagnosis=diagnosis(headline=SECRET, fingerprint=made.lower()),
            )
        )
        return made

    def _batch(self) -> str:
        batches = BatchService(self.settings, self.store)
        return batches.accept(
            "night",
            "lines",
            [JobSpec(name=SECRET, place=JobPlace(paths=("/nowhere",)))],
            caller=self._id("batch"),
        ).id

    def _id(self, kind: str) -> str:
        parsed = keys.parse_key(self.tokens[kind])
        assert parsed is not None
        return parsed[0]


@pytest.fixture(scope="module")
def app_state(warm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CurrentAppState]:
    """Serve page and API with a key of each kind."""
    yield from _served(warm, tmp_path_factory, rate_limit=0)


@pytest.fixture(scope="module")
def strict(warm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CurrentAppState]:
    """Serve with few requests a minute."""
    yield from _served(warm, tmp_path_factory, rate_limit=6)


def _served(warm: Path, folders: pytest.TempPathFactory, rate_limit: int) -> Iterator[CurrentAppState]:
    home = shutil.copytree(warm, folders.mktemp("doors") / "home")
    settings = Settings(home=home, embedding_model="hash")
    with Store.open(settings) as store:
        tokens = {kind: _key(store, kind) for kind in KINDS[1:]}
        # A process of its own: Gradio leaves loops and sockets behind in the one that it is served by.
        started = Server(home, {"RATE_LIMIT": str(rate_limit)}).start()
        try:
            with httpx.Client(base_url=started.url, timeout=PATIENCE) as client:
                yield CurrentAppState(settings, store, client, tokens)
        finally:
            started.stop()


def _key(store: Store, kind: str) -> str:
    now = datetime.now(UTC)
    record, token = keys.make_key(kind, ["admin" if kind in ("admin", "revoked") else kind.rstrip("2")], now)
    store.keys.add(record)
    if kind == "revoked":
        store.keys.revoke(record.id, now)
    return token


def _asked(app_state: CurrentAppState, kind: str, method: str, path: str, body: Any) -> str:
    sent: dict[str, Any] = {"headers": app_state.sent(kind)}
    if isinstance(body, str):
        sent |= {"content": body, "headers": {**sent["headers"], "content-type": "application/x-ndjson"}}
    elif body is not None and "upload" in path:
        sent |= {"files": {"files": ("a.log", b"a line")}}
    elif body is not None:
        sent |= {"json": body}
    with app_state.client.stream(method, app_state.named(path), **sent) as answer:
        if answer.status_code == 200 and ("heartbeat" in path or "queue/data" in path):
            return "ok"
        text = answer.read().decode("utf-8", "replace")
    if answer.status_code in (401, 403, 404):
        assert SECRET not in text, (kind, method, path)
    # An asset or a page's session that is not there is Gradio's own word.
    if answer.status_code == 404 and "urn:whycrash" not in text:
        return "ok"
    assert answer.status_code < 500 or path.startswith("/gradio_api"), (kind, method, path, text)
    return str(answer.status_code) if answer.status_code in (401, 403, 404, 429) else "ok"


def _told(status: int, text: str, kind: str, name: str) -> str:
    found = (
        next((code for code, words in _WORDS.items() if any(word in text for word in words)), "ok")
        if status == 200
        else str(status)
    )
    if found != "ok":
        assert SECRET not in text, (kind, name)
    return found


def _page(app_state: CurrentAppState) -> tuple[Mapping[str, Any], int]:
    """Give the events of the page by their names, and the number of its component."""
    if app_state.page is None:
        app_state.page = app_state.client.get("/config", headers=app_state.sent("admin")).json()
    config = app_state.page
    events = {item["targets"][0][1]: item for item in config["dependencies"]}
    return events, next(item["id"] for item in config["components"] if item["type"] == "html")


def _event(app_state: CurrentAppState, kind: str, name: str, sent: Mapping[str, Any]) -> str:
    events, component = _page(app_state)
    session = secrets.token_hex(8)
    body = {
        "data": [],
        "event_data": json.loads(app_state.named(json.dumps(sent))),
        "fn_index": events[name]["id"],
        "session_hash": session,
        "trigger_id": component,
    }
    answer = app_state.client.post("/gradio_api/queue/join", json=body, headers=app_state.sent(kind))
    if answer.status_code != 200:
        return _told(answer.status_code, answer.text, kind, name)
    found = app_state.client.get(
        "/gradio_api/queue/data", params={"session_hash": session}, headers=app_state.sent(kind)
    )
    return _told(found.status_code, found.text, kind, name)


def _call(app_state: CurrentAppState, kind: str, name: str, sent: Mapping[str, Any]) -> str:
    _, component = _page(app_state)
    body = {
        "session_hash": secrets.token_hex(8),
        "component_id": component,
        "fn_name": name,
        "data": json.loads(app_state.named(json.dumps(sent))),
    }
    answer = app_state.client.post("/gradio_api/component_server/", json=body, headers=app_state.sent(kind))
    return _told(answer.status_code, answer.text, kind, name)


def test_that_each_kind_of_key_gets_what_it_may_from_every_route(app_state: CurrentAppState) -> None:
    """And nobody else gets anything."""
    wrong = [
        (method, path, kind, found, expected)
        for method, path, body, row in (*API, *PAGE)
        for kind, expected in zip(KINDS, row, strict=True)
        if (found := _asked(app_state, kind, method, path, body)) != expected
    ]
    assert wrong == []


def test_that_each_kind_of_key_gets_what_it_may_from_every_event_of_the_page(
    app_state: CurrentAppState,
) -> None:
    """As from the API: the page is another way to the same things, not a way round."""
    wrong = [
        (name, sent, kind, found, expected)
        for rows, does in ((EVENTS, _event), (CALLS, _call))
        for name, sent, row in rows
        for kind, expected in zip(KINDS, row, strict=True)
        if (found := does(app_state, kind, name, sent)) != expected
    ]
    assert wrong == []


def test_that_every_route_and_event_has_a_row(app_state: CurrentAppState) -> None:
    """What is new and forgotten here would be tested by nobody: a route of the API, an event, a call, a route
    of the page's guard.
    """
    told = {
        (method.upper(), path)
        for path, methods in app_state.client.get("/openapi.json").json()["paths"].items()
        for method in methods
    } | {("GET", "/openapi.json"), ("GET", "/docs")}
    rows = {(method, re.sub(r"\{.\}", "{}", path.partition("?")[0])) for method, path, _, _ in API}
    shapes = {(method, re.sub(r"\{\w+\}", "{}", path)) for method, path in told}
    assert {row if "/cases/ray/" not in row[1] else (row[0], "/v1/cases/{}/{}") for row in rows} == shapes
    events, _ = _page(app_state)
    offered = {call for call in ACTIONS if _call(app_state, "admin", call, {}) != "404"}
    assert set(events) == {name for name, _, _ in EVENTS}
    assert set(events) | offered == set(ACTIONS)
    assert offered == {name for name, _, _ in CALLS}
    for route in ROUTES:
        for method in route.methods:
            assert [
                path
                for asked, path, _, _ in PAGE
                if asked == method and re.fullmatch(route.path, path.replace("{s}", "s"))
            ], route


@pytest.mark.long
def test_that_what_else_gradio_offers_is_not_there(app_state: CurrentAppState) -> None:
    """Its routes for development, sharing and recording, and those that an update brings: nobody gets there,
    not with any key.
    """
    ran = subprocess.run(
        [sys.executable, "-c", _OFFERED, str(app_state.settings.home)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    offered = json.loads(ran.stdout.splitlines()[-1])
    assert len(offered) > 40
    used = [(method, re.compile(route.path)) for route in ROUTES for method in route.methods]
    wrong = []
    for method, path in offered:
        asked = re.sub(r"\{[^}]*\}", "x", path)
        if any(method == one and shape.fullmatch(asked) for one, shape in used):
            continue
        wrong += [
            (method, asked, kind, status)
            for kind in ("triage", "admin")
            if (status := app_state.client.request(method, asked, headers=app_state.sent(kind)).status_code)
            not in (404, 405)
        ]
    assert wrong == []


@pytest.mark.long
def test_that_a_path_of_either_takes_its_own_methods_alone(app_state: CurrentAppState) -> None:
    """The page lies behind every path of the API: what no route takes is told 405, and what is taken."""
    rows = (
        ("TRACE", "/v1/triage", "POST"),
        ("PUT", "/v1/triages/x", "GET, DELETE"),
        ("OPTIONS", "/openapi.json", "GET, HEAD"),
        ("TRACE", "/", "GET, HEAD"),
        ("DELETE", "/gradio_api/queue/join", "POST"),
    )
    wrong = []
    for method, path, methods in rows:
        answer = app_state.client.request(method, path, headers=app_state.sent("admin"))
        if (told := (answer.status_code, answer.headers.get("allow"))) != (405, methods):
            wrong.append((method, path, told))
    assert wrong == []


def test_that_a_session_of_the_page_is_its_own_keys(app_state: CurrentAppState) -> None:
    """Who learns its name reads nothing of it, and puts nothing into it."""
    session = secrets.token_hex(8)
    asked = {"params": {"session_hash": session}}
    with app_state.client.stream(
        "GET", f"/gradio_api/heartbeat/{session}", headers=app_state.sent("triage")
    ) as answer:
        assert answer.status_code == 200
    assert (
        app_state.client.get("/gradio_api/queue/data", **asked, headers=app_state.sent("triage2")).status_code
        == 404
    )
    assert (
        app_state.client.get(f"/gradio_api/heartbeat/{session}", headers=app_state.sent("admin")).status_code
        == 404
    )


@pytest.mark.long
def test_that_the_page_and_the_api_count_together(strict: CurrentAppState) -> None:
    """Six a minute are six, whichever way they come; and one key's do not count for another's."""
    answers = [strict.client.get("/v1/causes", headers=strict.sent("triage")).status_code for _ in range(3)]
    told = [
        _call(strict, "triage", "past", {}),
        _event(strict, "triage", "look", {"triage": "x"}),
        _asked(strict, "triage", "POST", "/gradio_api/upload", {}),
    ]
    assert (answers, told) == ([200] * 3, ["ok", "404", "ok"])
    spent = [
        _call(strict, "triage", "past", {}),
        _event(strict, "triage", "look", {"triage": "x"}),
        _asked(strict, "triage", "POST", "/gradio_api/upload", {}),
        _asked(strict, "triage", "GET", "/v1/causes", None),
    ]
    assert spent == ["429"] * 4
    assert _call(strict, "triage2", "past", {}) == "ok"
