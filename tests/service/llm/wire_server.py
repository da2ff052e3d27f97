"""A server on loopback that speaks each provider's wire format, chosen by the path that is asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.service.llm.wire_formats import (
    Said,
    anthropic_events,
    anthropic_whole,
    chat_events,
    chat_whole,
    response_events,
    response_whole,
)

FORMATS = {
    "/chat/completions": (chat_events, chat_whole),
    "/responses": (response_events, response_whole),
    "/v1/messages": (anthropic_events, anthropic_whole),
}


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class WireServer:
    """A running server: its address without a path, and what it was sent."""

    url: str
    requests: list[Request] = field(default_factory=list)


@contextmanager
def speaking(script: Sequence[Said]) -> Iterator[WireServer]:
    """Serve answers in their order, the last one again and again."""
    state = WireServer("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            path = self.path.partition("?")[0]
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.requests.append(Request(self.path, headers, body))
            said = script[min(len(state.requests), len(script)) - 1]
            streamed, whole = next(made for end, made in FORMATS.items() if path.endswith(end))
            if body.get("stream"):
                kind, raw = "text/event-stream", b"".join(event.encoded() for event in streamed(said))
            else:
                kind, raw = "application/json", json.dumps(whole(said)).encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
