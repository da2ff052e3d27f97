"""Servers on loopback that stand in for what a soak has none of: Slack's Web API, and a chat model."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import parse_qsl

BOT_USER, BOT_ID, TEAM = "UBOT", "BBOT", "T1"
# How a model behaves: it answers, answers too late, answers with an error, breaks off in mid-answer.
Mood = Literal["quick", "late", "failing", "cut"]
# Seconds that a late one takes; whoever asked has long given up.
_LATE_S = 300.0
# What it says; of a log it knows nothing, so that nothing of this can be led back to one.
_SAID = json.dumps(
    {
        "cause": "unknown",
        "certainty": "low",
        "quotes": [],
        "cases": [],
        "changes": [],
        "explanation": "Something in this job failed.",
    }
)
_HEAD = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "soak"}


class StandIn:
    """An HTTP server in threads of this process; a context manager."""

    def __init__(self) -> None:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                try:
                    owner.answer(self, self.rfile.read(size))
                except OSError:  # whoever asked was killed
                    self.close_connection = True

            def log_message(self, *_args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Answer one request."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def send(
    handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, kind: str = "application/json"
) -> None:
    """Send a whole answer."""
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


class ModelStandIn(StandIn):
    """Speaks as OpenAI's chat completions do, in the mood that it is put into."""

    def __init__(self) -> None:
        super().__init__()
        self.mood: Mood = "quick"
        self.asked = 0
        self._over = threading.Event()

    def __exit__(self, *given: Any) -> None:
        self._over.set()
        super().__exit__(*given)

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Answer a request for a completion, streamed or whole."""
        self.asked += 1
        mood = self.mood
        if mood == "failing":
            send(handler, b'{"error": {"message": "overloaded", "code": null}}', 500)
            return
        if mood == "late":
            self._over.wait(_LATE_S)
        if not json.loads(body).get("stream"):
            message = {"role": "assistant", "content": _SAID}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            send(handler, json.dumps({**_HEAD, "object": "chat.completion", "choices": [choice]}).encode())
            return
        events = list(_events())
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        for event in events[:2] if mood == "cut" else events:
            handler.wfile.write(f"data: {event}\n\n".encode())
            handler.wfile.flush()


def _events() -> Iterator[str]:
    begun: list[tuple[dict[str, Any], str | None]] = [
        ({"role": "assistant", "content": ""}, None),
        ({"content": _SAID[:40]}, None),
        ({"content": _SAID[40:]}, None),
        ({}, "stop"),
    ]
    for delta, finish in begun:
        yield json.dumps({**_HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    yield "[DONE]"


@dataclass
class SlackThread:
    """What the bot said under one message: the messages as they stand, by their stamps."""

    said: dict[str, dict[str, Any]] = field(default_factory=dict)


class SlackStandIn(StandIn):
    """Slack's Web API as far as the bot uses it for an answer in a thread."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: dict[str, SlackThread] = {}
        self._where: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._turn = threading.Lock()

    def stamp(self) -> str:
        """Make a time stamp that names a message."""
        return f"1790000000.{next(self._numbers):06d}"

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Answer a call of the Web API."""
        is_json = "json" in (handler.headers.get("Content-Type") or "")
        values = json.loads(body or b"{}") if is_json else dict(parse_qsl(body.decode()))
        with self._turn:
            told = self._told(handler.path.rpartition("/")[2], values)
        send(handler, json.dumps({"ok": True, **told}).encode())

    def _told(self, method: str, values: dict[str, Any]) -> dict[str, Any]:
        if method == "auth.test":
            return {"url": self.url, "team": "t", "team_id": TEAM, "user_id": BOT_USER, "bot_id": BOT_ID}
        if method == "chat.postMessage":
            stamp, root = self.stamp(), str(values.get("thread_ts") or "")
            self._where[stamp] = root
            self.threads.setdefault(root, SlackThread()).said[stamp] = values
            return {"channel": values["channel"], "ts": stamp}
        if method == "chat.update":
            stamp = str(values["ts"])
            self.threads[self._where[stamp]].said[stamp] |= values
            return {"channel": values["channel"], "ts": stamp}
        if method == "conversations.replies":
            said = self.threads.get(str(values["ts"]), SlackThread()).said
            return {"messages": [{**item, "ts": stamp, "bot_id": BOT_ID} for stamp, item in said.items()]}
        return {}
