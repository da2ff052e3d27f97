"""A server on loopback that speaks each provider's wire format, chosen by the path that is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.loopback import LoopbackHandler, http_server
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

    class Handler(LoopbackHandler):
        def post(self, body: bytes) -> None:
            asked = json.loads(body)
            path = self.path.partition("?")[0]
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.requests.append(Request(self.path, headers, asked))
            said = script[min(len(state.requests), len(script)) - 1]
            streamed, whole = next(made for end, made in FORMATS.items() if path.endswith(end))
            if asked.get("stream"):
                raw = b"".join(event.encoded() for event in streamed(said))
                self.answer(raw, kind="text/event-stream")
            else:
                self.answer(json.dumps(whole(said)).encode())

    with http_server(Handler) as state.url:
        yield state
