"""The wire formats of chat servers, as their makers document them: OpenAI's chat completions and responses,
Anthropic's messages; each streamed and whole, with calls of tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

STRIDE = 17


@dataclass(frozen=True)
class Said:
    """What a server says: text, calls of tools with their arguments, tokens in and out."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    usage: tuple[int, int] = (1234, 56)

    def pieces(self) -> list[str]:
        """Give the text as it streams."""
        return [self.text[begin : begin + STRIDE] for begin in range(0, len(self.text), STRIDE)]


@dataclass(frozen=True)
class Event:
    """A server-sent event."""

    data: Mapping[str, Any] | str
    name: str = ""

    def encoded(self) -> bytes:
        """Give its bytes."""
        told = self.data if isinstance(self.data, str) else json.dumps(self.data)
        return (f"event: {self.name}\n" if self.name else "").encode() + f"data: {told}\n\n".encode()


def chat_events(said: Said) -> Iterator[Event]:
    """Stream as `POST /chat/completions` does."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
        return Event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    yield from (chunk({"content": piece}) for piece in said.pieces())
    for index, (name, arguments) in enumerate(said.calls):
        call = {"index": index, "id": f"call_{index}", "type": "function"}
        yield chunk({"tool_calls": [{**call, "function": {"name": name, "arguments": ""}}]})
        for piece in Said(json.dumps(arguments)).pieces():
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if said.calls else "stop")
    yield Event({**head, "choices": [], "usage": _chat_usage(said)})
    yield Event("[DONE]")


def chat_whole(said: Said) -> dict[str, Any]:
    """Answer as `POST /chat/completions` does without streaming."""
    calls = [
        {
            "id": f"call_{index}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(given)},
        }
        for index, (name, given) in enumerate(said.calls)
    ]
    message = {"role": "assistant", "content": said.text, **({"tool_calls": calls} if calls else {})}
    finish = "tool_calls" if calls else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": _chat_usage(said),
    }


def _chat_usage(said: Said) -> dict[str, int]:
    sent, received = said.usage
    return {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}


def response_whole(said: Said, status: str = "completed") -> dict[str, Any]:
    """Answer as `POST /responses` does without streaming."""
    done = status == "completed"
    sent, received = said.usage
    usage = {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": received,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sent + received,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": "m",
        "output": _items(said) if done else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage if done else None,
    }


def _items(said: Said) -> list[dict[str, Any]]:
    content = [{"type": "output_text", "text": said.text, "annotations": []}]
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    calls = [
        {
            "type": "function_call",
            "id": f"fc_{index}",
            "call_id": f"call_{index}",
            "name": name,
            "arguments": json.dumps(given),
            "status": "completed",
        }
        for index, (name, given) in enumerate(said.calls)
    ]
    return [*([{**message, "content": content}] if said.text else []), *calls]


@dataclass
class _Numbered:
    """Numbers the events of a response."""

    count: int = field(default=-1)

    def event(self, kind: str, **fields: Any) -> Event:
        self.count += 1
        return Event({"type": kind, "sequence_number": self.count, **fields}, kind)


def response_events(said: Said) -> Iterator[Event]:
    """Stream as `POST /responses` does."""
    made = _Numbered()
    yield made.event("response.created", response=response_whole(said, "in_progress"))
    for place, item in enumerate(_items(said)):
        at = {"output_index": place, "item_id": item["id"]}
        empty = {**item, "status": "in_progress"}
        empty |= {"content": []} if item["type"] == "message" else {"arguments": ""}
        yield made.event("response.output_item.added", output_index=place, item=empty)
        if item["type"] == "message":
            at["content_index"] = 0
            blank = {"type": "output_text", "text": "", "annotations": []}
            yield made.event("response.content_part.added", **at, part=blank)
            for piece in said.pieces():
                yield made.event("response.output_text.delta", **at, delta=piece, logprobs=[])
            yield made.event("response.output_text.done", **at, text=said.text, logprobs=[])
            yield made.event("response.content_part.done", **at, part=item["content"][0])
        else:
            for piece in Said(item["arguments"]).pieces():
                yield made.event("response.function_call_arguments.delta", **at, delta=piece)
            yield made.event(
                "response.function_call_arguments.done", **at, name=item["name"], arguments=item["arguments"]
            )
        yield made.event("response.output_item.done", output_index=place, item=item)
    yield made.event("response.completed", response=response_whole(said))


def anthropic_whole(said: Said) -> dict[str, Any]:
    """Answer as Anthropic's `POST /v1/messages` does without streaming."""
    sent, received = said.usage
    calls = [
        {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": given}
        for index, (name, given) in enumerate(said.calls)
    ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [*([{"type": "text", "text": said.text}] if said.text else []), *calls],
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": sent, "output_tokens": received},
    }


def anthropic_events(said: Said) -> Iterator[Event]:
    """Stream as Anthropic's `POST /v1/messages` does."""
    sent, received = said.usage
    whole = anthropic_whole(said)
    begun = {**whole, "content": [], "stop_reason": None, "usage": {"input_tokens": sent, "output_tokens": 1}}
    yield Event({"type": "message_start", "message": begun}, "message_start")
    yield Event({"type": "ping"}, "ping")
    for place, block in enumerate(whole["content"]):
        is_text = block["type"] == "text"
        empty = {**block, "text": ""} if is_text else {**block, "input": {}}
        yield Event(
            {"type": "content_block_start", "index": place, "content_block": empty}, "content_block_start"
        )
        pieces = said.pieces() if is_text else Said(json.dumps(block["input"])).pieces()
        for piece in pieces:
            delta = (
                {"type": "text_delta", "text": piece}
                if is_text
                else {"type": "input_json_delta", "partial_json": piece}
            )
            yield Event(
                {"type": "content_block_delta", "index": place, "delta": delta}, "content_block_delta"
            )
        yield Event({"type": "content_block_stop", "index": place}, "content_block_stop")
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    # Cumulative, as the first event's: a client may read either.
    usage = {"input_tokens": sent, "output_tokens": received}
    yield Event({"type": "message_delta", "delta": ended, "usage": usage}, "message_delta")
    yield Event({"type": "message_stop"}, "message_stop")
