"""Errors as the last event of a task: one table from what went wrong to a status and a sentence."""

from __future__ import annotations

import traceback

from corpus.errors import CorpusError
from corpus.message import Message, edited
from ingest.errors import IngestError, InputError, SearchIndexError
from ingest.redaction.redactor import Redactor
from service.schemas.errors import RequestError, ServiceError, WorkerLostError
from service.schemas.events import TriageFailed
from service.telemetry.errors import TelemetryError

# The first kind that fits decides; what fits none is a fault of ours.
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (InputError, 422),
    (TelemetryError, 422),
    (SearchIndexError, 503),
    (IngestError, 422),
    (CorpusError, 500),
    (ServiceError, 500),
)
UNEXPECTED = "errors.something-went-wrong-here"


class StoppingError(WorkerLostError):
    """The server is stopping; another try makes sense once it is up again."""

    status = 503


class NoWorkerError(WorkerLostError):
    """No process could be started to work on this; one is tried again in a moment."""

    status = 503


class AbandonedError(RequestError):
    """Whoever handed this in left before its turn came; nobody is told, but the record is."""

    status = 503


def failing_frame(error: Exception) -> str:
    """Tell an error's kind and place for the server's log.

    Not its message, which may hold lines of a job's log.
    """
    return f"{type(error).__name__} in {''.join(traceback.format_tb(error.__traceback__))}"


def is_expected(error: Exception) -> bool:
    """Tell whether an error is one that its reader can do something about."""
    return isinstance(error, tuple(kind for kind, _ in _STATUS))


def failure_event(error: Exception) -> TriageFailed:
    """Give the event for an error."""
    name = type(error).__name__.removesuffix("Error")
    if isinstance(error, RequestError):
        return TriageFailed(
            type=name, status=error.status, error=edited(str(error), Redactor().clean), retry_after=error.wait
        )
    if not is_expected(error):
        return TriageFailed(type="Unexpected", status=500, error=Message(UNEXPECTED))
    status = next(status for kind, status in _STATUS if isinstance(error, kind))
    return TriageFailed(type=name, status=status, error=edited(str(error), Redactor().clean))
