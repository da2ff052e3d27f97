"""Asking a model within one deadline: schemas where it has them, retries where they help, one repair."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from corpus.message import Message
from corpus.schema import Language
from service.llm.claims import MAX_ANSWER, Claim, parse, schema
from service.llm.deadline import Deadline, within
from service.llm.model_calls import ModelCall
from service.llm.models import AnswerPiece, ChatMessage, ChatModel, ToolCall, ToolCallingModel, ToolCallPiece
from service.llm.prompt import for_repair
from service.llm.spending import Spending
from service.llm.tokens import estimate_tokens
from service.schemas.diagnosis import Tokens
from service.schemas.errors import (
    ModelBusyError,
    ModelError,
    ModelNonsenseError,
    ModelSchemaError,
    ModelToolsError,
    ModelUnavailableError,
)

TRIES = 4
FIRST_WAIT = 0.5
# Characters of one answer's calls; what is longer is no call of ours, and is read no further.
MAX_CALLS_WRITTEN = 20_000

C = TypeVar("C", bound=Claim)


@dataclass
class _ReceivedAnswer:
    """What came of one answer, and the tokens that its pieces tell."""

    text: str = ""
    sent: int = 0
    received: int = 0
    calls: dict[int, ToolCall] = field(default_factory=dict)
    _written: int = 0

    def texts(self, pieces: Iterator[AnswerPiece]) -> Iterator[str]:
        """Take the pieces in, and give the text as far as it has come, up to the longest that is read."""
        for piece in pieces:
            self.sent, self.received = max(self.sent, piece.sent), max(self.received, piece.received)
            self.text += piece.text
            for part in piece.calls:
                _join_call(self.calls, part)
                self._written += len(part.arguments) + len(part.name) + 1
            if piece.text:
                yield self.text[:MAX_ANSWER]
            if len(self.text) >= MAX_ANSWER or self._written >= MAX_CALLS_WRITTEN:
                return


def _join_call(calls: dict[int, ToolCall], part: ToolCallPiece) -> None:
    """Put a piece of a call to the others of its index."""
    last = max(calls, default=-1)
    index = part.index if part.index is not None else last + bool(part.name or last < 0)
    known = calls.get(index, ToolCall("", "", ""))
    calls[index] = ToolCall(known.id or part.id, known.name or part.name, known.arguments + part.arguments)


def joined_calls(pieces: Iterable[AnswerPiece]) -> tuple[ToolCall, ...]:
    """Give the calls that the pieces of an answer make."""
    calls: dict[int, ToolCall] = {}
    for piece in pieces:
        for part in piece.calls:
            _join_call(calls, part)
    return tuple(calls.values())


@dataclass
class LlmClient:
    """A model with its deadline and budget, and what was spent of both."""

    model: ChatModel
    deadline: Deadline
    budget: int
    spending: Spending | None = None
    sleep: Callable[[float], None] = time.sleep
    language: Language = "en"
    sent: int = 0
    received: int = 0
    counted: bool = True
    calls: tuple[ToolCall, ...] = ()
    _takes_schema: bool = field(default=True, repr=False)

    @property
    def tokens(self) -> Tokens:
        """Give what was sent and received so far."""
        return Tokens(sent=self.sent, received=self.received, counted=self.counted)

    @property
    def was_asked(self) -> bool:
        """Whether anything was sent at all."""
        return self.sent > 0

    def stream(
        self, messages: Sequence[ChatMessage], kind: type[Claim], is_said: Callable[[], bool] = lambda: False
    ) -> Iterator[str]:
        """Yield the answer as far as it has come, again and again; raises ModelError.

        A try that fails is made again, from the beginning, unless `is_said` tells that a part was passed on
        already.
        """
        for attempt in range(TRIES):
            form = schema(kind) if self._takes_schema else None
            try:
                yield from self._one_request(messages, partial(self.model.stream, messages, form))
            except ModelSchemaError:
                self._takes_schema = False
            except ModelUnavailableError as error:
                self._wait(error, attempt, last=is_said() or attempt + 1 == TRIES)
            else:
                return
        raise ModelNonsenseError(Message("model.model-server-takes-neither"))

    def stream_with_tools(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        is_said: Callable[[], bool] = lambda: False,
    ) -> Iterator[str]:
        """Yield the answer as `stream` does; afterwards `calls` holds those that the model made instead.

        Raises ModelToolsError where the model calls no tools.
        """
        if not isinstance(self.model, ToolCallingModel):
            raise ModelToolsError(Message("model.model-server-takes-no-tools", said=self.model.name))
        for attempt in range(TRIES):
            try:
                yield from self._one_request(messages, partial(self.model.stream_with_tools, messages, tools))
            except ModelUnavailableError as error:
                self._wait(error, attempt, last=is_said() or attempt + 1 == TRIES)
            else:
                return

    def _wait(self, error: ModelUnavailableError, attempt: int, *, last: bool) -> None:
        """Wait before another try; raises the error where there is to be none."""
        asked = error.wait if isinstance(error, ModelBusyError) else None
        seconds = FIRST_WAIT * 2**attempt if asked is None else asked
        if last or seconds >= self.deadline.left:
            raise error
        self.sleep(seconds)

    def _one_request(
        self, messages: Sequence[ChatMessage], answer: Callable[[], Iterator[AnswerPiece]]
    ) -> Iterator[str]:
        heard = _ReceivedAnswer()
        estimated = sum(estimate_tokens(message.text) for message in messages)
        reserved = self.spending.reserve(self.model.name, estimated) if self.spending else None
        call = ModelCall(self.model.name)
        try:
            yield from heard.texts(within(self.deadline, answer))
        except ModelError as error:
            call.fail(error)
            raise
        finally:
            self.calls = tuple(heard.calls.values())
            self.counted = self.counted and heard.sent > 0
            sent, received = heard.sent or estimated, heard.received or estimate_tokens(heard.text)
            self.sent += sent
            self.received += received
            if self.spending and reserved:
                self.spending.settle(self.model.name, reserved, sent, received)
            call.end(sent, received)

    def whole(self, messages: Sequence[ChatMessage], kind: type[Claim]) -> str:
        """Give the whole answer; raises ModelError."""
        return next(iter(deque(self.stream(messages, kind), maxlen=1)), "")

    def read(self, kind: type[C], text: str) -> C:
        """Read an answer, with one repair by the model; raises ModelError."""
        try:
            return parse(kind, text)
        except ValueError as error:
            problem = str(error)
        if not text.strip():
            raise ModelNonsenseError(Message("model.model-gave-empty-answer"))
        mended = self.whole(for_repair(kind, text, problem, self.budget, self.language), kind)
        try:
            return parse(kind, mended)
        except ValueError as error:
            raise ModelNonsenseError(Message("model.model-answer-not-form", reason=error)) from error


def added_tokens(taken: Sequence[Tokens]) -> Tokens | None:
    """Add up what the models took; None where none was asked, as where a budget is used up."""
    if not taken:
        return None
    return Tokens(
        sent=sum(item.sent for item in taken),
        received=sum(item.received for item in taken),
        counted=all(item.counted for item in taken),
    )
