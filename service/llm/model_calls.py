"""Model and tool calls as OpenTelemetry's conventions for generative AI name them; never what was said.

https://opentelemetry.io/docs/specs/semconv/gen-ai/
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from time import perf_counter

from service.signals import tracing
from service.signals.tracing import Span

_TOKENS = "gen_ai.client.token.usage"
_SECONDS = "gen_ai.client.operation.duration"


class ModelCall:
    """One request to a model, from when it is sent to the end of its answer."""

    def __init__(self, name: str) -> None:
        """Begin; `name` is the model's as it is set, `provider:name`."""
        provider, _, model = name.rpartition(":")
        self._told = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider or "unknown",
            "gen_ai.request.model": model,
        }
        self._started = perf_counter()
        self._span = tracing.begin(f"chat {model}", kind="client", attributes=self._told)
        self._failed: dict[str, str] = {}

    def fail(self, error: Exception) -> None:
        """Note that there was no answer."""
        self._failed = {"error.type": type(error).__name__}
        self._span.fail(type(error).__name__)

    def end(self, sent: int, received: int) -> None:
        """Note the tokens, which are estimates where the provider counts none."""
        self._span.add({"gen_ai.usage.input_tokens": sent, "gen_ai.usage.output_tokens": received})
        self._span.end()
        tracing.measure(_SECONDS, "s", perf_counter() - self._started, self._told | self._failed)
        for kind, count in (("input", sent), ("output", received)):
            tracing.measure(_TOKENS, "{token}", count, self._told | {"gen_ai.token.type": kind})


def tool_call(name: str) -> AbstractContextManager[Span]:
    """Record a call of one of our tools by a model, without its arguments and without what it found."""
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return tracing.span(f"execute_tool {name}", attributes=told)
