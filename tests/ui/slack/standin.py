"""A stand-in for Slack on loopback: its Web API, its files and its Socket Mode, with every call recorded."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote

from websockets.sync.server import ServerConnection, serve

from tests.loopback import LoopbackHandler, http_server

BOT_TOKEN, APP_TOKEN, SECRET = "xoxb-" + "test", "xapp-" + "test", "signing-of-a-test"
BOT_USER, BOT_ID, TEAM = "UBOT", "BBOT", "T1"


@dataclass(frozen=True)
class Call:
    """A call of the Web API."""

    method: str
    values: dict[str, Any]
    token: str
    at: float


@dataclass
class Stored:
    """A file that lies at Slack; `status`, `cut`, `kind` and `location` are what goes wrong with it."""

    data: bytes
    status: int = 200
    cut: int | None = None
    kind: str = "text/plain"
    location: str = ""


@dataclass
class Slack:
    """What the stand-in holds.

    `refusals` are answers that come instead of the usual one, by method, in their order.
    """

    url: str = ""
    socket: str = ""
    calls: list[Call] = field(default_factory=list)
    messages: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    files: dict[str, Stored] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    uploads: dict[str, bytes] = field(default_factory=dict)
    refusals: dict[str, list[tuple[int, dict[str, str], dict[str, Any]]]] = field(default_factory=dict)
    asked_files: list[tuple[str, str]] = field(default_factory=list)
    responses: list[dict[str, Any]] = field(default_factory=list)
    receipts: list[dict[str, Any]] = field(default_factory=list)
    links: list[ServerConnection] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def said(self, method: str = "chat.postMessage", channel: str = "") -> list[Call]:
        """Give the calls of a method, those to one channel."""
        return [
            call
            for call in list(self.calls)
            if call.method == method and (not channel or call.values.get("channel") == channel)
        ]

    def refuse(self, method: str, error: str = "", status: int = 200, **headers: str) -> None:
        """Let the next call of a method fail."""
        self.refusals.setdefault(method, []).append(
            (status, headers, {"ok": False, "error": error or "ratelimited"})
        )

    def everything(self) -> str:
        """Give all that was ever sent to Slack, as one text."""
        sent = [json.dumps(call.values, ensure_ascii=False) for call in self.calls]
        return "\n".join(
            [
                *sent,
                *(data.decode("utf-8", "replace") for data in self.uploads.values()),
                json.dumps(self.responses, ensure_ascii=False),
            ]
        )

    def stamp(self) -> str:
        """Make a time stamp that names a message."""
        return f"1790000000.{next(self.numbers):06d}"

    # The methods.

    def answer(self, method: str, values: dict[str, Any]) -> dict[str, Any]:
        """Answer a call as Slack does."""
        handler = getattr(self, "_" + method.replace(".", "_"), None)
        return {"ok": True, **(handler(values) if handler else {})}

    def _auth_test(self, _values: dict[str, Any]) -> dict[str, Any]:
        return {
            "url": self.url,
            "team": "t",
            "user": "whycrash",
            "team_id": TEAM,
            "user_id": BOT_USER,
            "bot_id": BOT_ID,
        }

    def _chat_postMessage(self, values: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        channel = (
            values["channel"].replace("U", "D") if values["channel"].startswith("U") else values["channel"]
        )
        stamp = self.stamp()
        self.messages[channel, stamp] = {**values, "ts": stamp, "bot_id": BOT_ID, "user": BOT_USER}
        return {"channel": channel, "ts": stamp}

    def _chat_update(self, values: dict[str, Any]) -> dict[str, Any]:
        self.messages[values["channel"], values["ts"]] |= values
        return {"channel": values["channel"], "ts": values["ts"]}

    def _conversations_replies(self, values: dict[str, Any]) -> dict[str, Any]:
        channel, root = values["channel"], values["ts"]
        found = [
            item
            for (place, stamp), item in sorted(self.messages.items())
            if place == channel and root in (stamp, item.get("thread_ts"))
        ]
        return {"messages": found}

    def _files_info(self, values: dict[str, Any]) -> dict[str, Any]:
        return {"file": self.facts[values["file"]]}

    def _files_getUploadURLExternal(self, values: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        name = f"F{next(self.numbers)}-{values['filename']}"
        return {"upload_url": f"{self.url}/upload/{name}", "file_id": name}

    def _files_completeUploadExternal(self, values: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"files": json.loads(values["files"])}

    def _apps_connections_open(self, _values: dict[str, Any]) -> dict[str, Any]:
        return {"url": self.socket}

    # What people do.

    def put(self, name: str, data: bytes, **wrong: Any) -> dict[str, Any]:
        """Put a file where the bot may fetch it; gives it as a message names it."""
        identity = f"F{next(self.numbers)}"
        place = f"/files-pri/{identity}/{quote(name)}"
        self.files[place] = Stored(data, **wrong)
        return {
            "id": identity,
            "name": name,
            "size": len(data),
            "mimetype": "text/plain",
            "mode": "hosted",
            "url_private": f"{self.url}{place}",
            "url_private_download": f"{self.url}{place}",
        }

    def send(self, envelope: dict[str, Any]) -> None:
        """Send something over Socket Mode."""
        self.links[-1].send(json.dumps(envelope))


@contextmanager
def slack() -> Iterator[Slack]:
    """Run the stand-in."""
    state = Slack()
    with http_server(_handler(state)) as state.url:
        yield state


@contextmanager
def linked(state: Slack) -> Iterator[None]:
    """Run the stand-in's side of Socket Mode."""

    def talk(connection: ServerConnection) -> None:
        state.links.append(connection)
        connection.send(
            json.dumps({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"}})
        )
        for text in connection:
            state.receipts.append(json.loads(text))

    with serve(talk, "127.0.0.1", 0) as server:
        state.socket = f"ws://127.0.0.1:{server.socket.getsockname()[1]}/link/?ticket=1"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield
        server.shutdown()
        thread.join(timeout=5)


def _handler(state: Slack) -> type[LoopbackHandler]:
    class Handler(LoopbackHandler):
        protocol_version = "HTTP/1.1"

        def post(self, body: bytes) -> None:
            if self.path.startswith("/upload/"):
                state.uploads[self.path.removeprefix("/upload/")] = body
                self.answer(b"OK", kind="text/plain")
            elif self.path.startswith("/respond"):
                state.responses.append(json.loads(body))
                self.answer(b"ok", kind="text/plain")
            else:
                self._call(self.path.removeprefix("/api/"), body)

        def _call(self, method: str, raw: bytes) -> None:
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            values = _values(self.headers.get("Content-Type") or "", raw)
            state.calls.append(Call(method, values, token, time.monotonic()))
            waiting = state.refusals.get(method)
            status, headers, told = waiting.pop(0) if waiting else (200, {}, state.answer(method, values))
            if token != (APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN):
                told = {"ok": False, "error": "invalid_auth"}
            headers = {name.replace("_", "-"): value for name, value in headers.items()}
            self.answer(json.dumps(told).encode(), status, headers=headers)

        def get(self) -> None:
            state.asked_files.append((self.path, self.headers.get("Authorization") or ""))
            stored = state.files.get(self.path, Stored(b"", 404))
            headers = {"Location": stored.location} if stored.location else {}
            if stored.cut is None:
                self.answer(stored.data, stored.status, stored.kind, headers)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(stored.data)))
            self.end_headers()
            self.wfile.write(stored.data[: stored.cut])
            self.close_connection = True

    return Handler


def _values(kind: str, raw: bytes) -> dict[str, Any]:
    if "json" in kind and raw:
        found: dict[str, Any] = json.loads(raw)
        return found
    return dict(parse_qsl(raw.decode()))
