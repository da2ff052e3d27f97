"""The seam around chat models: what is opened, how errors are put, and what a silent stream does."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from service.llm.claims import ModelReply
from service.llm.client import TRIES, LlmClient
from service.llm.deadline import Deadline, within
from service.llm.models import AnswerPiece, ChatMessage, open_model, translated
from service.schemas.errors import (
    ModelBusyError,
    ModelError,
    ModelLateError,
    ModelRefusedError,
    ModelRejectedError,
    ModelSchemaError,
    ModelSetupError,
    ModelUnavailableError,
)
from service.settings import Settings
from tests.tables import each_row
from tests.waiting import PATIENCE

QUESTION = (ChatMessage("user", "why?"),)


class Answered:
    """An HTTP answer as clients hand it on."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers


class StatusError(Exception):
    """A provider's error with a status."""

    def __init__(
        self, message: str, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status_code = status
        self.response = Answered(headers or {})


class ContentFilterStop(Exception):  # noqa: N818 - named as a provider names it
    """A provider's word for a refusal."""


@each_row(
    ("error", "asked_schema", "expected"),
    [
        (StatusError("slow down", 429), False, ModelBusyError),
        (StatusError("insufficient_quota", 429), False, ModelRejectedError),
        (StatusError("boom", 500), False, ModelUnavailableError),
        (StatusError("later", 408), False, ModelUnavailableError),
        (StatusError("no key", 401), False, ModelRejectedError),
        (StatusError("no response_format here", 400), True, ModelSchemaError),
        (StatusError("no response_format here", 400), False, ModelRejectedError),
        (StatusError("prompt too long", 400), True, ModelRejectedError),
        (StatusError("no status"), False, ModelUnavailableError),
        (OSError("refused"), False, ModelUnavailableError),
        (ContentFilterStop("no"), False, ModelRefusedError),
    ],
)
def test_an_error_is_put_by_what_can_be_done(
    error: Exception, asked_schema: bool, expected: type[ModelError]
) -> None:
    """Retry, wait, ask without a schema, or give up: the type says which."""
    assert type(translated(error, asked_schema)) is expected


@each_row(
    ("headers", "wait"),
    [
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "soon"}, None),
        ({}, None),
        ({"retry-after": "-1"}, 0.0),
    ],
)
def test_a_server_may_say_how_long_to_wait(headers: dict[str, str], wait: float | None) -> None:
    """Seconds are taken; anything else is no wait that is known."""
    error = translated(StatusError("x", 429, headers))
    assert isinstance(error, ModelBusyError)
    assert error.wait == wait


def test_a_servers_words_are_bounded_and_without_secrets() -> None:
    """A message may be long, hold the key, or colour a terminal."""
    said = str(translated(StatusError("key sk-proj-ABCDEFGHIJKLMNOPQRSTUVWX \x1b[31m" + "y" * 5000, 401)))
    assert "ABCDEFGH" not in said
    assert len(said) < 400
    assert said.isprintable()


@each_row("model", ["nonesuch:x", "x-without-provider", "mistralai:x"])
def test_what_cannot_be_opened_is_refused_in_a_sentence(model: str) -> None:
    """A wrong provider or a missing package is named."""
    with pytest.raises(ModelSetupError, match="cannot be set up"):
        open_model(Settings(model=model))


def test_no_model_is_opened_without_one() -> None:
    """Nothing leaves the machine unless a model is set."""
    assert open_model(Settings()) is None


def test_tracing_of_the_environment_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that turns on a tracing service does not send prompts there."""
    from tests.service.llm.scripted import Turn, serving

    with serving([Turn("ok")]) as model_server, serving([Turn("{}")]) as tracer:
        for name, value in {
            "LANGSMITH_TRACING": "true",
            "LANGCHAIN_TRACING_V2": "true",
            "LANGSMITH_ENDPOINT": tracer.url,
            "LANGSMITH_API_KEY": "x",
        }.items():
            monkeypatch.setenv(name, value)
        model = open_model(Settings(model="openai:x", model_base_url=model_server.url, model_deadline=10.0))
        assert model is not None
        assert "".join(piece.text for piece in model.stream(QUESTION, None)) == "ok"
        time.sleep(0.5)
    assert tracer.calls == []


class Scripted:
    """A model that fails, waits or answers, by a list."""

    name = "scripted:x"

    def __init__(self, *steps: str | ModelError | float) -> None:
        self.steps = list(steps)
        self.forms: list[bool] = []

    def stream(
        self, messages: Sequence[ChatMessage], schema: Mapping[str, Any] | None
    ) -> Iterator[AnswerPiece]:
        """Take the next step."""
        assert messages
        self.forms.append(schema is not None)
        step = self.steps.pop(0)
        if isinstance(step, ModelError):
            raise step
        if isinstance(step, float):
            time.sleep(step)
            return
        yield AnswerPiece(step)


def asker(model: Scripted, slept: list[float], seconds: float = 30.0) -> LlmClient:
    """Make an asker whose waits are only noted."""
    return LlmClient(model, Deadline(seconds), 4000, sleep=slept.append)


def test_waits_grow_and_a_servers_own_wait_wins() -> None:
    """Half a second, then twice as much; or what the server says."""
    slept: list[float] = []
    model = Scripted(ModelUnavailableError("x"), ModelBusyError("x", 3.0), ModelUnavailableError("x"), "done")
    assert asker(model, slept).whole(QUESTION, ModelReply) == "done"
    assert slept == [0.5, 3.0, 2.0]


def test_after_the_last_try_the_error_stands() -> None:
    """No more tries than are set."""
    slept: list[float] = []
    model = Scripted(*[ModelUnavailableError("down")] * TRIES)
    with pytest.raises(ModelUnavailableError, match="down"):
        asker(model, slept).whole(QUESTION, ModelReply)
    assert len(slept) == TRIES - 1


def test_a_wait_past_the_deadline_is_not_begun() -> None:
    """What would be too late is told at once."""
    slept: list[float] = []
    with pytest.raises(ModelBusyError):
        asker(Scripted(ModelBusyError("x", 60.0)), slept).whole(QUESTION, ModelReply)
    assert slept == []


def test_a_schema_that_is_refused_is_not_sent_again() -> None:
    """Later calls of the same answer go without it."""
    slept: list[float] = []
    model = Scripted(ModelSchemaError("no"), "one", "two")
    made = asker(model, slept)
    assert (made.whole(QUESTION, ModelReply), made.whole(QUESTION, ModelReply)) == ("one", "two")
    assert model.forms == [True, False, False]


def test_a_silent_stream_is_left_at_the_deadline() -> None:
    """The wait ends, whatever the client does."""
    silence, ended = threading.Event(), threading.Event()

    def stream() -> Iterator[AnswerPiece]:
        silence.wait(PATIENCE)
        ended.set()
        yield AnswerPiece("late")

    with pytest.raises(ModelLateError):
        list(within(Deadline(0.2), stream))
    assert not ended.is_set()
    silence.set()


def test_an_error_of_a_client_ends_the_wait() -> None:
    """What no provider documents is still an error of the model's, not of the program's."""

    def broken() -> Iterator[AnswerPiece]:
        yield AnswerPiece("a")
        raise KeyError("b")

    with pytest.raises(ModelUnavailableError, match="KeyError"):
        list(within(Deadline(5.0), broken))
