"""From an error to the event that tells it, and back; the one way in which an error crosses a border."""

from __future__ import annotations

import re
import traceback
from http import HTTPStatus

from corpus.message import Message, edited
from ingest.redaction.redactor import Redactor
from service.schemas import errors
from service.schemas.errors import STATUS, ErrorKind, RequestError, kind_name, kind_of, ours
from service.schemas.events import TriageFailed

# What leads to a file or a database of the server: folders, a scheme with user and host.
_LEADING_TO = re.compile(r"(?:[\w.+-]+:/)?/(?:[^/\s]+/)+")
UNEXPECTED = "errors.something-went-wrong-here"


class ReportedError(RequestError):
    """An error as another process told it, of the kind and with the status that were told."""

    def __init__(self, failed: TriageFailed) -> None:
        super().__init__(failed.error, failed.retry_after)
        self._kind = ErrorKind(kind_name(failed.type), failed.status)

    @property
    def kind(self) -> ErrorKind:
        """Give the kind that was told."""
        return self._kind


def failure_of(error: BaseException, unexpected: str = UNEXPECTED) -> TriageFailed:
    """Give the event that tells an error, redacted; one that is none of ours by the message `unexpected`.

    Of a failure of the server's own, no folder and no address of its database is told.
    """
    kind = error.kind if isinstance(error, RequestError) else kind_of(type(error))
    text = edited(str(error), Redactor().clean) if isinstance(error, ours()) else Message(unexpected)
    if kind.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        text = edited(text, lambda value: _LEADING_TO.sub("", value))
    wait = error.wait if isinstance(error, RequestError) else None
    return TriageFailed(type=kind.name, status=kind.status, error=text, retry_after=wait)


def failing_frame(error: Exception) -> str:
    """Tell an error's kind and place for the server's log.

    Not its message, which may hold lines of a job's log.
    """
    return f"{type(error).__name__} in {''.join(traceback.format_tb(error.__traceback__))}"


def error_of(failed: TriageFailed) -> RequestError:
    """Make the error that an event tells: of its own class, else of the first one with its status."""
    names = [kind_name(failed.type), *(name for name, status in STATUS.items() if status == failed.status)]
    for name in names:
        found = getattr(errors, f"{name}Error", None)
        if isinstance(found, type) and issubclass(found, RequestError):
            return found(failed.error, failed.retry_after)
    return ReportedError(failed)
