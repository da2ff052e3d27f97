"""A chat server for tests: OpenAI's wire format on loopback, scripted answers and faults, every call
recorded.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.loopback import LoopbackHandler, http_server

STRIDE = 17


@dataclass(frozen=True)
class Turn:
    """What the server does with one request.

    `text` is the answer; `calls` are those of tools, each a name with its arguments, as a dict or as text;
    `status` another HTTP status with `body`; `cut` closes the connection after so many
    characters; `pause` waits before each piece, `hold` is called before each and may wait for what is
    meant; `silent` sends nothing for so many seconds; `refusal` refuses.
    """

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any] | str], ...] = ()
    status: int = 200
    body: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    cut: int | None = None
    pause: float = 0.0
    silent: float = 0.0
    refusal: str = ""
    usage: tuple[int, int] | None = (1234, 56)
    stride: int = STRIDE
    hold: Callable[[], None] | None = None


Script = Callable[[dict[str, Any]], Turn]


@dataclass
class Scripted:
    """A running server: its address and the calls that it got."""

    url: str
    calls: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def prompt(self, call: int = 0) -> str:
        """Give all text of a call's messages."""
        return "\n".join(str(message["content"]) for message in self.calls[call]["messages"])


@contextmanager
def serving(script: Script | Sequence[Turn]) -> Iterator[Scripted]:
    """Serve a script: turns in their order, the last one again and again, or a function of the call's
    body.
    """
    state = Scripted("")
    with http_server(_handler(state, script)) as url:
        state.url = f"{url}/v1"
        yield state


def _handler(state: Scripted, script: Script | Sequence[Turn]) -> type[LoopbackHandler]:
    class Handler(LoopbackHandler):
        def post(self, body: bytes) -> None:
            call = json.loads(body)
            state.calls.append(call)
            state.headers.append(dict(self.headers))
            turn = script(call) if callable(script) else script[min(len(state.calls), len(script)) - 1]
            try:
                _respond(self, turn)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client has given up, which is what some tests want

    return Handler


def _respond(handler: LoopbackHandler, turn: Turn) -> None:
    if turn.silent:
        time.sleep(turn.silent)
    if turn.status != 200:
        body = turn.body or json.dumps({"error": {"message": f"status {turn.status}", "code": None}})
        handler.answer(body.encode(), turn.status, headers=dict(turn.headers))
        return
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.close_connection = True
    for event in _events(turn):
        if turn.pause:
            time.sleep(turn.pause)
        if turn.hold:
            turn.hold()
        handler.wfile.write(f"data: {event}\n\n".encode())
        handler.wfile.flush()


def _events(turn: Turn) -> Iterator[str]:
    yield _chunk({"role": "assistant", "content": ""})
    if turn.refusal:
        yield _chunk({"refusal": turn.refusal})
    text = turn.text if turn.cut is None else turn.text[: turn.cut]
    for begin in range(0, len(text), turn.stride):
        yield _chunk({"content": text[begin : begin + turn.stride]})
    for index, (name, arguments) in enumerate(turn.calls):
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        head = {"index": index, "id": f"id{index}", "type": "function"}
        yield _chunk({"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]})
        for begin in range(0, len(written), turn.stride):
            part = {"arguments": written[begin : begin + turn.stride]}
            yield _chunk({"tool_calls": [{"index": index, "function": part}]})
    if turn.cut is not None:
        return
    usage = turn.usage and {
        "prompt_tokens": turn.usage[0],
        "completion_tokens": turn.usage[1],
        "total_tokens": sum(turn.usage),
    }
    yield _chunk({}, finish="tool_calls" if turn.calls else "stop", usage=usage)
    yield "[DONE]"


def _chunk(delta: dict[str, Any], finish: str | None = None, usage: dict[str, int] | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    made: dict[str, Any] = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": [choice],
    }
    return json.dumps(made | ({"usage": usage} if usage else {}))
