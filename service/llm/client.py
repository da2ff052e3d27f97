"""Asking a model within one deadline: schemas where it has them, retries where they help, one repair."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from corpus.message import Message
from service.llm.claims import MAX_ANSWER, Claim, parse, schema
from service.llm.deadline import Deadline, within
from service.llm.models import AnswerPiece, ChatMessage, ChatModel
from service.llm.prompt import for_repair
from service.llm.tokens import estimate_tokens
from service.schemas.diagnosis import Tokens
from service.schemas.errors import ModelBusyError, ModelNonsenseError, ModelSchemaError, ModelUnavailableError

TRIES = 4
FIRST_WAIT = 0.5

C = TypeVar("C", bound=Claim)


@dataclass
class _ReceivedAnswer:
    """What came of one answer, and the tokens that its pieces tell."""

    text: str = ""
    sent: int = 0
    received: int = 0

    def texts(self, pieces: Iterator[AnswerPiece]) -> Iterator[str]:
        """Take the pieces in, and give the text as far as it has come, up to the longest that is read."""
        for piece in pieces:
            self.sent, self.received = max(self.sent, piece.sent), max(self.received, piece.received)
            self.text += piece.text
            if piece.text:
                yield self.text[:MAX_ANSWER]
            if len(self.text) >= MAX_ANSWER:
                return


@dataclass
class LlmClient:
    """A model with its deadline and budget, and what was spent of both."""

    model: ChatModel
    deadline: Deadline
    budget: int
    sleep: Callable[[float], None] = time.sleep
    sent: int = 0
    received: int = 0
    counted: bool = True
    _takes_schema: bool = field(default=True, repr=False)

    @property
    def tokens(self) -> Tokens:
        """Give what was sent and received so far."""
        return Tokens(sent=self.sent, received=self.received, counted=self.counted)

    def stream(
        self, messages: Sequence[ChatMessage], kind: type[Claim], is_said: Callable[[], bool] = lambda: False
    ) -> Iterator[str]:
        """Yield the answer as far as it has come, again and again; raises ModelError.

        A try that fails is made again, from the beginning, unless `is_said` tells that a part was passed on
        already.
        """
        for attempt in range(TRIES):
            try:
                yield from self._once(messages, kind)
            except ModelSchemaError:
                self._takes_schema = False
            except ModelUnavailableError as error:
                self._wait(error, attempt, last=is_said() or attempt + 1 == TRIES)
            else:
                return
        raise ModelNonsenseError(Message("model.model-server-takes-neither"))

    def _wait(self, error: ModelUnavailableError, attempt: int, *, last: bool) -> None:
        """Wait before another try; raises the error where there is to be none."""
        asked = error.wait if isinstance(error, ModelBusyError) else None
        seconds = FIRST_WAIT * 2**attempt if asked is None else asked
        if last or seconds >= self.deadline.left:
            raise error
        self.sleep(seconds)

    def _once(self, messages: Sequence[ChatMessage], kind: type[Claim]) -> Iterator[str]:
        form = schema(kind) if self._takes_schema else None
        heard = _ReceivedAnswer()
        try:
            yield from heard.texts(within(self.deadline, lambda: self.model.stream(messages, form)))
        finally:
            self.counted = self.counted and heard.sent > 0
            self.sent += heard.sent or sum(estimate_tokens(message.text) for message in messages)
            self.received += heard.received or estimate_tokens(heard.text)

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
        mended = self.whole(for_repair(kind, text, problem, self.budget), kind)
        try:
            return parse(kind, mended)
        except ValueError as error:
            raise ModelNonsenseError(Message("model.model-answer-not-form", reason=error)) from error
