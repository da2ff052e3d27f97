"""Chat models behind one seam: from the settings to a stream of text.

The one module that imports langchain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from corpus.message import Message
from ingest.logs.lines import printable
from ingest.redaction.redactor import Redactor
from service.llm.presets import client_options, preset_of
from service.schemas.errors import (
    ModelBusyError,
    ModelError,
    ModelRefusedError,
    ModelRejectedError,
    ModelSchemaError,
    ModelSetupError,
    ModelToolsError,
    ModelUnavailableError,
)
from service.settings import Settings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

_SCHEMA_WORDS = re.compile(
    r"response_format|json_schema|structured output|guided|output_config|\bformat\b", re.IGNORECASE
)
_TOOL_WORDS = re.compile(r"\btools?\b|tool_choice|\bfunctions?\b|function[ _]call", re.IGNORECASE)
_REFUSALS = ("ContentFilter", "Refusal")
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's call of a tool; `arguments` is JSON as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolCallPiece:
    """A piece of a call as it streams.

    Pieces with one `index` belong together; without one, a piece without a name goes on with the last call.
    """

    index: int | None
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a prompt.

    An assistant's may make `calls`; a tool's answers the call `call_id`.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """A piece of an answer as it streams; tokens are 0 where the provider has not counted them yet."""

    text: str = ""
    sent: int = 0
    received: int = 0
    calls: tuple[ToolCallPiece, ...] = ()


class ChatModel(Protocol):
    """Something that answers messages with text."""

    @property
    def name(self) -> str:
        """Name the model, as `provider:name`."""

    def stream(
        self, messages: Sequence[ChatMessage], schema: Mapping[str, Any] | None
    ) -> Iterator[AnswerPiece]:
        """Answer piece by piece, in the form of a JSON schema where one is given; raises ModelError."""


@runtime_checkable
class ToolCallingModel(ChatModel, Protocol):
    """A chat model that may call tools."""

    def stream_with_tools(
        self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]
    ) -> Iterator[AnswerPiece]:
        """Answer or call tools, piece by piece; raises ModelError, ModelToolsError where there are none."""


def open_models(settings: Settings) -> tuple[ChatModel, ...]:
    """Open the configured model and the one that stands by for it; raises ModelSetupError.

    Empty where no model is set.
    """
    second = replace(
        settings,
        model=settings.model_fallback,
        model_base_url=settings.model_fallback_base_url,
        model_key_env=settings.model_fallback_key_env,
    )
    first = open_model(settings)
    return tuple(filter(None, (first, open_model(second)))) if first else ()


def open_model(settings: Settings) -> ChatModel | None:
    """Open the configured model; None where none is. Raises ModelSetupError where it cannot work."""
    if not settings.model:
        return None
    return LangChainModel(settings.model, _built(settings))


def _built(settings: Settings) -> BaseChatModel:
    # Imported here: langchain takes longer to load than a whole answer without a model.
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise ModelSetupError(Message("model.model-needs-packages-extra")) from error
    options = client_options(settings)
    prefix, colon, name = settings.model.partition(":")
    try:
        made: BaseChatModel = init_chat_model(
            name or prefix, model_provider=preset_of(settings.model).provider if colon else None, **options
        )
    except (
        Exception
    ) as error:  # each provider's package raises what it likes for a wrong name or a missing key
        raise ModelSetupError(
            Message("model.model-cannot-set-up", model=repr(settings.model), said=_error_text(error))
        ) from error
    return made


class LangChainModel:
    """A chat model of langchain's, with its errors put into ours."""

    def __init__(self, name: str, model: BaseChatModel) -> None:
        self._name = name
        self._model = model

    @property
    def name(self) -> str:
        """Name the model, as it was configured."""
        return self._name

    def stream(
        self, messages: Sequence[ChatMessage], schema: Mapping[str, Any] | None
    ) -> Iterator[AnswerPiece]:
        """Answer piece by piece; raises ModelError."""
        plain = [(message.role, message.text) for message in messages]
        with _errors_put_into_ours(asked_schema=schema is not None):
            for chunk in self._chunks(plain, schema):
                _raise_refusal(chunk)
                # Providers that have no schemas of their own answer through the arguments of a tool.
                text = str(chunk.text) or "".join(call.arguments for call in _calls(chunk))
                yield AnswerPiece(text, *_usage(chunk))

    def stream_with_tools(
        self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]
    ) -> Iterator[AnswerPiece]:
        """Answer or call tools, piece by piece; raises ModelError, ModelToolsError where there are none."""
        with _errors_put_into_ours(asked_tools=True):
            try:
                bound = self._model.bind_tools([dict(tool) for tool in tools])
            except NotImplementedError as error:
                raise ModelToolsError(
                    Message("model.model-server-takes-no-tools", said=self._name)
                ) from error
            for chunk in bound.stream(list(map(_with_calls, messages))):
                _raise_refusal(chunk)
                yield AnswerPiece(str(chunk.text), *_usage(chunk), _calls(chunk))

    def _chunks(self, messages: Any, schema: Mapping[str, Any] | None) -> Iterator[AIMessageChunk]:
        if schema is None:
            yield from self._model.stream(messages)
            return
        strict = {"strict": True} if preset_of(self._name).strict else {}
        try:
            structured = self._model.with_structured_output(dict(schema), method="json_schema", **strict)
        except (TypeError, ValueError, NotImplementedError) as error:
            raise ModelSchemaError(f"{self._name} takes no output schema: {_error_text(error)}") from error
        # Of the model and its parser only the model is wanted: a parser hands on what it can read, and that
        # at the end.
        bound = getattr(structured, "first", None)
        if bound is None:
            raise ModelSchemaError(f"{self._name} takes no output schema while it streams.")
        yield from bound.stream(messages)


@contextmanager
def _errors_put_into_ours(*, asked_schema: bool = False, asked_tools: bool = False) -> Iterator[None]:
    """Translate a provider's errors, and keep what is sent from everybody else."""
    # langsmith's tracing, which a variable of the environment turns on, would send the prompt elsewhere too.
    from langsmith import tracing_context

    try:
        with tracing_context(enabled=False):
            yield
    except ModelError:
        raise
    except Exception as error:  # each provider has its own tree of errors
        raise translated(error, asked_schema, asked_tools) from error


def _with_calls(message: ChatMessage) -> BaseMessage | tuple[str, str]:
    """Put a message into langchain's form, with the calls that it makes or answers."""
    from langchain_core.messages import AIMessage, ToolMessage

    if message.role == "tool":
        return ToolMessage(message.text, tool_call_id=message.call_id)
    if not message.calls:
        return (message.role, message.text)
    calls = [
        {
            "name": call.name,
            "args": parsed_arguments(call.arguments) or {},
            "id": call.id,
            "type": "tool_call",
        }
        for call in message.calls
    ]
    return AIMessage(message.text, tool_calls=calls)


def parsed_arguments(text: str) -> dict[str, Any] | None:
    """Read the arguments of a call; None where they are no object of JSON."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _calls(chunk: AIMessage) -> tuple[ToolCallPiece, ...]:
    """Give the calls in a piece of an answer, or in an answer that came whole."""
    streamed = getattr(chunk, "tool_call_chunks", None)
    if streamed is None:
        return tuple(
            ToolCallPiece(index, call["id"] or "", call["name"], json.dumps(call["args"]))
            for index, call in enumerate(chunk.tool_calls)
        )
    return tuple(
        ToolCallPiece(call["index"], call["id"] or "", call["name"] or "", call["args"] or "")
        for call in streamed
    )


def _raise_refusal(chunk: AIMessage) -> None:
    if refusal := chunk.additional_kwargs.get("refusal"):
        raise ModelRefusedError(Message("model.model-refuses", bounded=_bounded(str(refusal))))


def _usage(chunk: AIMessage) -> tuple[int, int]:
    usage = chunk.usage_metadata or {"input_tokens": 0, "output_tokens": 0}
    return int(usage["input_tokens"]), int(usage["output_tokens"])


def translated(error: Exception, asked_schema: bool = False, asked_tools: bool = False) -> ModelError:
    """Put a provider's error into one of ours, by what can be done about it."""
    status = getattr(error, "status_code", None)
    said = _error_text(error)
    if any(word in type(error).__name__ for word in _REFUSALS):
        return ModelRefusedError(Message("model.model-refuses", bounded=said))
    if status == 429:
        if "insufficient_quota" in str(error):
            return ModelRejectedError(Message("model.model-quota-used-up", said=said))
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        try:
            wait = max(0.0, float(headers.get("retry-after", "")))
        except (TypeError, ValueError):
            wait = None
        return ModelBusyError(Message("model.model-server-over-rate", said=said), wait)
    if not isinstance(status, int) or status >= 500 or status in (408, 409):
        return ModelUnavailableError(Message("model.model-server-failed-cannot", said=said))
    if asked_schema and status in (400, 404, 422, 501) and _SCHEMA_WORDS.search(str(error)):
        return ModelSchemaError(Message("model.model-server-takes-no", said=said))
    if asked_tools and status in (400, 404, 422, 501) and _TOOL_WORDS.search(str(error)):
        return ModelToolsError(Message("model.model-server-takes-no-tools", said=said))
    return ModelRejectedError(Message("model.model-server-not-take", status=status, said=said))


def _error_text(error: Exception) -> str:
    return _bounded(str(error) or type(error).__name__)


def _bounded(text: str) -> str:
    # A server's message may repeat the key that it was given.
    return printable(" ".join(Redactor().clean(text).split()))[:_SHOWN]
