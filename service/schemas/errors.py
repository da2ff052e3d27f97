"""Errors of the service by what the reader can do about them, and the one table of what each is to a caller.

The table goes from the kind of an error, which is its class's name without `Error`, to an HTTP status. The
sentence of a kind is the row `kinds.<kind>` of the messages; an error that is raised with a message of its
own is told by that. The API's problems, the last event of a stream and the client go by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from corpus.errors import CorpusError
from ingest.errors import IngestError

# A kind that is not listed has the status of its base class. Of those with one status the first is what a
# client raises for a kind that it does not know.
STATUS: Mapping[str, int] = {
    "Request": 400,
    "Unauthorized": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "UnknownCase": 404,
    "MethodNotAllowed": 405,
    "SlowClient": 408,
    "Conflict": 409,
    "TooLarge": 413,
    "MediaType": 415,
    "Misdirected": 421,
    "InvalidRequest": 422,
    "Ingest": 422,
    "Telemetry": 422,
    "Busy": 429,
    "Quota": 429,
    "Unexpected": 500,
    "WorkerLost": 500,
    "Corpus": 500,
    "Service": 500,
    "Store": 503,
    "Stopping": 503,
    "NoWorker": 503,
    "Abandoned": 503,
    "SearchIndex": 503,
    "PoolLost": 503,
    "Unreachable": 503,
    "Late": 504,
    "DiskFull": 507,
}


class ErrorKind(NamedTuple):
    """What an error is to a caller: the name of its kind, and its HTTP status."""

    name: str
    status: int


def kind_name(name: str) -> str:
    """Give the kind of an error by its class's name: `Busy` of `BusyError`."""
    return name.removesuffix("Error")


def sentence_id(kind: str) -> str:
    """Give the id of the message that tells a kind of error."""
    return f"kinds.{kind}"


def ours() -> tuple[type[Exception], ...]:
    """Give the roots of our errors, whose words may be shown; of others, words may hold lines of a log."""
    return CorpusError, IngestError, ServiceError


def kind_of(kind: type[BaseException]) -> ErrorKind:
    """Give what an error's class is to a caller; one that is none of ours is a fault of the server."""
    if issubclass(kind, ours()):
        names = [kind_name(base.__name__) for base in kind.__mro__]
        return ErrorKind(names[0], next(STATUS[name] for name in names if name in STATUS))
    return ErrorKind("Unexpected", STATUS["Unexpected"])


class ServiceError(Exception):
    """The service cannot do what was asked."""


class SettingsError(ServiceError):
    """A WHYCRASH_ variable or a line of your whycrash.toml has a value that cannot be used."""


class PatchError(ServiceError):
    """The patch cannot be applied or taken back."""


class ModelError(ServiceError):
    """The model did not give an answer; the first answer stands."""


class ModelSetupError(ModelError):
    """The model is set up in a way that cannot work.

    An unknown provider, a package or a key that is missing.
    """


class ModelUnavailableError(ModelError):
    """The model's server cannot be reached, failed, or cut the connection; another try may succeed."""


class ModelBusyError(ModelUnavailableError):
    """The model's server refuses for now, for a rate limit or a quota.

    `wait` is how many seconds it asks to wait; None where it does not say.
    """

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class ModelRejectedError(ModelError):
    """The model's server does not take the request: a wrong key or model name, or too long a prompt."""


class ModelSchemaError(ModelRejectedError):
    """The model's server does not take an output schema."""


class ModelToolsError(ModelRejectedError):
    """The model or its server does not take tools."""


class ModelBudgetError(ModelError):
    """The budget for models is used up, or what was spent cannot be counted; the model was not asked."""


class ModelLateError(ModelError):
    """The model did not answer before the deadline."""


class ModelRefusedError(ModelError):
    """The model refuses to answer."""


class ModelNonsenseError(ModelError):
    """The model's answer is not in the form that was asked for, also after one repair."""


class RequestError(ServiceError):
    """The request cannot be answered.

    `wait` is how many seconds later another try makes sense.
    """

    wait: float | None = None

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait

    @property
    def kind(self) -> ErrorKind:
        """Give what it is to a caller."""
        return kind_of(type(self))

    @property
    def status(self) -> int:
        """Give the HTTP status that says it."""
        return self.kind.status


class InvalidRequestError(RequestError):
    """The request is not in the form that was asked for."""


class UnauthorizedError(RequestError):
    """There is no key, or it is not valid."""


class ForbiddenError(RequestError):
    """The key does not allow this."""


class NotFoundError(RequestError):
    """There is no such triage, batch, job or case."""


class MethodNotAllowedError(RequestError):
    """The path is there, and takes other methods.

    `methods` are those (the Allow header of RFC 9110, 15.5.6).
    """

    def __init__(self, message: str, methods: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.methods = methods


class ConflictError(RequestError):
    """The idempotency key was used for another request, or the request does not fit the state."""


class TooLargeError(RequestError):
    """The body, or what its files unpack to, is larger than the limit."""


class BusyError(RequestError):
    """More is being asked than can be worked on; try again after `wait` seconds."""


class QuotaError(RequestError):
    """As many jobs as may be were handed in within a day."""


class WorkerLostError(RequestError):
    """The process that worked on this died."""


class StoppingError(WorkerLostError):
    """The server is stopping; another try makes sense once it is up again."""


class NoWorkerError(WorkerLostError):
    """No process could be started to work on this; one is tried again in a moment."""


class AbandonedError(RequestError):
    """The client disconnected before its request was started; the record says so."""


class SlowClientError(RequestError):
    """The body came too slowly."""


class MediaTypeError(RequestError):
    """The body has a media type that is not taken here."""


class MisdirectedError(RequestError):
    """The Host header names another server."""


class UnexpectedError(RequestError):
    """The server made a mistake; its log tells which."""


class UnreachableError(RequestError):
    """The server cannot be reached, or cut the connection."""


class StoreError(RequestError):
    """The database cannot be reached, is locked, or is damaged."""


class LateError(RequestError):
    """The work was not finished before the deadline."""


class DiskFullError(RequestError):
    """There is no room on the disk."""
