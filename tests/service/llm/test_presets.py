"""Presets of providers against servers that speak their wire formats, streamed and whole."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from service.llm.chain import explain_with_model
from service.llm.claims import Claims, schema
from service.llm.investigation import LookLimits
from service.llm.models import ChatMessage, LangChainModel, open_model
from service.llm.presets import presets
from service.llm.stages import FinalStage
from service.pipeline.triage import Triage
from service.schemas.errors import ModelSetupError
from service.settings import Settings
from tests.service.llm.answering import OFFLOAD, asked
from tests.service.llm.wire_formats import Said
from tests.service.llm.wire_server import WireServer, speaking
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[3]
TOOL = {
    "type": "function",
    "function": {
        "name": "read_lines",
        "description": "Read lines.",
        "parameters": {
            "type": "object",
            "properties": {"first": {"type": "integer"}, "last": {"type": "integer"}},
            "required": ["first", "last"],
        },
    },
}


@dataclass(frozen=True)
class Way:
    """How a preset is asked: the end of its base URL, the path and the header with the key that it sends."""

    url: str
    path: str
    header: str
    key: str


BEARER = "authorization", "Bearer k3y"
# Prefixes whose client is in the lock; the others need a package of their own.
WAYS = {
    "openai": Way("/v1", "/v1/chat/completions", *BEARER),
    "openai-responses": Way("/v1", "/v1/responses", *BEARER),
    "azure": Way("/openai/v1", "/openai/v1/chat/completions", *BEARER),
    "azure_openai": Way(
        "", "/openai/deployments/m/chat/completions?api-version=2024-10-21", "api-key", "k3y"
    ),
    "anthropic": Way("", "/v1/messages", *BEARER),
    "gemini": Way("/v1beta/openai", "/v1beta/openai/chat/completions", *BEARER),
    "ollama": Way("/v1", "/v1/chat/completions", *BEARER),
    "vllm": Way("/v1", "/v1/chat/completions", *BEARER),
    "sglang": Way("/v1", "/v1/chat/completions", *BEARER),
    "litellm": Way("/v1", "/v1/chat/completions", *BEARER),
}


def opened(prefix: str, server: WireServer, *, stream: bool) -> LangChainModel:
    """Open a preset at a server, with a key."""
    settings = Settings(
        model=f"{prefix}:m",
        model_base_url=server.url + WAYS[prefix].url,
        model_key_env="WIRE_KEY",
        model_deadline=PATIENCE,
        model_stream=int(stream),
    )
    model = open_model(settings)
    assert isinstance(model, LangChainModel)
    return model


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a key and what Azure's client asks for."""
    monkeypatch.setenv("WIRE_KEY", "k3y")
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("prefix", WAYS)
def test_a_preset_asks_at_its_path_with_its_key_and_hears_text_tokens_and_calls(
    prefix: str, stream: bool
) -> None:
    """Text, an answer in a schema, then a call of a tool with its result sent back."""
    way, text = WAYS[prefix], '{"cause": null, "explanation": "Ä long enough text to come in pieces."}'
    call = ("read_lines", {"first": 3, "last": 41})
    with speaking([Said(text), Said(text), Said(calls=(call,)), Said("Done.")]) as server:
        model = opened(prefix, server, stream=stream)
        question = ChatMessage("user", "why?")
        for form in (None, schema(Claims)):
            pieces = list(model.stream([question], form))
            assert json.loads("".join(piece.text for piece in pieces)) == json.loads(text)
            assert max(piece.sent for piece in pieces) == 1234
            assert max(piece.received for piece in pieces) == 56
        called = [piece for piece in model.stream_with_tools([question], [TOOL]) if piece.calls]
        parts = [part for piece in called for part in piece.calls]
        assert "".join(part.name for part in parts) == "read_lines"
        assert json.loads("".join(part.arguments for part in parts)) == call[1]
        assert parts[0].id
        assert len({part.index for part in parts}) == 1
    assert {request.path for request in server.requests} == {way.path}
    assert {request.headers[way.header] for request in server.requests} == {way.key}
    assert {bool(request.body.get("stream")) for request in server.requests} == {stream}


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("prefix", ["openai", "openai-responses", "anthropic"])
def test_a_model_of_each_format_looks_and_then_answers(triage: Triage, prefix: str, stream: bool) -> None:
    """The call's result goes back in the provider's own form, and the look stands in the trace."""
    final_words = {
        "cause": None,
        "certainty": "low",
        "quotes": [],
        "cases": [],
        "changes": [],
        "explanation": "",
    }
    script = [Said(calls=(("read_lines", {"first": 1, "last": 3}),)), Said(json.dumps(final_words))]
    with speaking(script) as server:
        model = opened(prefix, server, stream=stream)
        *_, final = explain_with_model(asked(triage, OFFLOAD), model, PATIENCE, 8000, LookLimits(2, PATIENCE))
    assert isinstance(final, FinalStage)
    assert [step.tool for step in final.diagnosis.engine.trace] == ["read_lines"]
    assert final.diagnosis.engine.tokens is not None
    assert final.diagnosis.engine.tokens.counted
    assert len(server.requests) == 2
    sent_back: Any = server.requests[1].body
    assert any(
        kind in json.dumps(sent_back) for kind in ('"role": "tool"', "function_call_output", "tool_result")
    )


def test_what_a_preset_needs_is_told_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing key or address is named; servers of one's own ask for neither."""
    for preset in presets().values():
        if preset.key_env:
            monkeypatch.delenv(preset.key_env, raising=False)
    told = {}
    for prefix in WAYS:
        try:
            told[prefix] = "" if open_model(Settings(model=f"{prefix}:m")) else "none"
        except ModelSetupError as error:
            told[prefix] = str(error)
    needing = {prefix for prefix, said in told.items() if said}
    assert needing == {"openai", "openai-responses", "azure", "azure_openai", "anthropic", "gemini"}
    assert "GEMINI_API_KEY" in told["gemini"]
    assert "WHYCRASH_MODEL_BASE_URL" in told["azure"]


def test_every_preset_is_documented() -> None:
    """The settings' page says how each is set."""
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert [prefix for prefix in presets() if f"`{prefix}:" not in page] == []
