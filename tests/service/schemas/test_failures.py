"""An error crosses a border with its kind, status and message: each reader has it in their language."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from corpus.errors import UnknownCaseError
from corpus.message import Message, Translatable, is_message
from ingest.errors import BinaryInputError, SearchIndexError
from service.api.problems import Problem, problem_response
from service.batches.journal import JobEnded
from service.batches.summary import FailureReason, JobName
from service.schemas import errors
from service.schemas.diagnosis import Dropped, JobNote
from service.schemas.errors import (
    BusyError,
    DiskFullError,
    InvalidRequestError,
    LateError,
    RequestError,
    StoppingError,
    StoreError,
    kind_of,
    sentence_id,
)
from service.schemas.events import TriageFailed
from service.schemas.failures import ReportedError, error_of, failure_of
from service.schemas.records import TriageRecord
from service.telemetry.errors import InvalidSnapshotError
from service.telemetry.snapshot import Reading
from tests.tables import each_row

BUSY = Message("errors.triages-way-try-again", open=3, wait="2")
CHINESE = "正在处理的分析有 3 个，请 2 秒后重试。"
NOW = datetime(2026, 11, 22, tzinfo=UTC)


@each_row(
    ("made", "field"),
    [
        (TriageFailed(type="Busy", status=429, error=BUSY), "error"),
        (Problem(type="a", title="b", status=429, detail=BUSY, instance="/", request_id="1"), "detail"),
        (Reading[float](unavailable=BUSY), "unavailable"),
        (JobEnded(number=1, state="failed", error=BUSY, finished=NOW), "error"),
        (JobNote(id="B-1", batch="B", name="one", state="failed", error=BUSY), "error"),
        (Dropped(what="a claim", why=BUSY), "why"),
        (FailureReason(error=BUSY, jobs=1, example=JobName(id="B-1", name="one")), "error"),
        (
            TriageRecord(
                id="1",
                state="failed",
                origin="api",
                caller="k",
                source="a.log",
                created=NOW,
                deadline=NOW,
                error=BUSY,
            ),
            "error",
        ),
    ],
)
def test_that_what_crosses_a_border_as_json_has_its_message_again(made: Translatable, field: str) -> None:
    """The sentence stays English in JSON, with the message's id and values beside it."""
    text = made.model_dump_json(by_alias=True)
    assert f'"{field}":"{BUSY}"' in text
    read = getattr(type(made).model_validate_json(text), field)
    assert isinstance(read, Message)
    assert read.in_language("zh") == CHINESE


@each_row(
    ("text", "expected"),
    [
        # As an older version wrote it.
        ('{"type":"Busy","status":429,"error":"Too many."}', "Too many."),
        # A message of a newer version, one whose values are others now, and one that names a file elsewhere.
        (
            '{"type":"Busy","status":429,"error":"New.","messages":{"error":{"message":"errors.later"}}}',
            "New.",
        ),
        (
            '{"type":"X","status":429,"error":"Old.","messages":{"error":{"message":"errors.cannot-read"}}}',
            "Old.",
        ),
        (
            '{"type":"Busy","status":429,"error":"Far.","messages":{"error":{"message":"../causes.yaml"}}}',
            "Far.",
        ),
    ],
)
def test_that_a_sentence_without_a_message_of_ours_stays_as_it_is(text: str, expected: str) -> None:
    read = TriageFailed.model_validate_json(text).error
    assert (read, isinstance(read, Message)) == (expected, False)


def test_that_a_copy_has_the_references_of_its_own_text() -> None:
    made = TriageFailed(type="Busy", status=429, error=BUSY)
    assert made.model_copy(update={"error": "Other words."}).messages == {}
    assert made.model_copy(update={"status": 503}).messages == made.messages


@each_row(
    ("error", "kind", "status"),
    [
        (BusyError("x"), "Busy", 429),
        (StoppingError("x"), "Stopping", 503),
        (BinaryInputError("x"), "BinaryInput", 422),
        (SearchIndexError("x"), "SearchIndex", 503),
        (UnknownCaseError("x"), "UnknownCase", 404),
        (InvalidSnapshotError("x"), "InvalidSnapshot", 422),
        (ZeroDivisionError("x"), "Unexpected", 500),
    ],
)
def test_that_an_error_is_the_same_to_a_stream_and_to_a_request(
    error: Exception, kind: str, status: int
) -> None:
    failed = failure_of(error)
    assert (failed.type, failed.status) == (kind, status)
    problem = Problem.model_validate_json(bytes(problem_response("1", "/v1/x", error).body))
    assert problem.status == status
    assert problem.type.rpartition(":")[2].replace("-", "") == kind.lower()


def test_that_words_of_no_error_of_ours_reach_nobody() -> None:
    assert "inner words" not in failure_of(ZeroDivisionError("inner words")).model_dump_json()
    assert b"inner words" not in bytes(problem_response("1", "/", ZeroDivisionError("inner words")).body)


@each_row(
    ("failed", "expected"),
    [
        (TriageFailed(type="Busy", status=429, error=BUSY, retry_after=2.0), BusyError),
        # The stream of an older server names the class.
        (TriageFailed(type="LateError", status=504, error="x"), LateError),
        # A kind without a class here is the first one with its status.
        (TriageFailed(type="BinaryInput", status=422, error="x"), errors.InvalidRequestError),
        (TriageFailed(type="DamagedStore", status=503, error="x"), errors.StoreError),
        (TriageFailed(type="Teapot", status=418, error="x"), ReportedError),
    ],
)
def test_that_an_event_becomes_its_error_again(failed: TriageFailed, expected: type[RequestError]) -> None:
    made = error_of(failed)
    assert type(made) is expected
    assert (str(made), made.status, made.wait) == (failed.error, failed.status, failed.retry_after)


@pytest.mark.parametrize(
    "module",
    [
        "corpus.errors",
        "ingest.errors",
        "service.schemas.errors",
        "service.telemetry.errors",
        "service.persistence.errors",
    ],
)
def test_that_every_error_has_a_status_and_a_sentence(module: str) -> None:
    """Of the model's own errors the chain tells by other words; they never reach a caller."""
    told: Callable[[type], bool] = lambda kind: not kind.__name__.startswith("Model")  # noqa: E731
    found = [
        kind
        for _, kind in inspect.getmembers(importlib.import_module(module), inspect.isclass)
        if issubclass(kind, Exception) and kind.__module__ == module and told(kind)
    ]
    wrong = [
        kind.__name__
        for kind in found
        if (kind_of(kind).name == "Unexpected" and kind.__name__ != "UnexpectedError")
        or not is_message(sentence_id(kind_of(kind).name))
    ]
    assert found
    assert wrong == []


def test_a_failure_of_the_servers_own_tells_nobody_where_things_lie() -> None:
    """Neither a folder nor a database's host and user: whoever may triage learns nothing of the machine."""
    rows: tuple[tuple[RequestError, str], ...] = (
        (
            DiskFullError(_of_place("/srv/ann/.whycrash/whycrash.db", "disk I/O error")),
            "There is no room for the database whycrash.db (disk I/O error); free some space",
        ),
        (
            StoreError(_of_place("postgresql+psycopg://ann:***@db.internal:5432/crashes", "no room")),
            "There is no room for the database crashes (no room); free some space, then try again.",
        ),
        (StoreError(_of_place("whycrash.db", "at /dev/mapper/secret/x 5/7")), "(at x 5/7)"),
        (DiskFullError("No room below /srv/ann/x"), "No room below x"),
        # What was asked wrong stays as it was asked.
        (InvalidRequestError("no such folder: /srv/ann/x"), "no such folder: /srv/ann/x"),
    )
    wrong = []
    for error, words in rows:
        told = str(failure_of(error).error)
        shown = problem_response("1", "/v1/triage", error).body
        if words not in told or (
            error.status >= 500 and any(word in shown for word in (b"srv", b"internal"))
        ):
            wrong.append((words, told, shown))
    assert wrong == []


def _of_place(place: str, said: str) -> Message:
    return Message("errors.no-room-database-free", place=place, said=said)
