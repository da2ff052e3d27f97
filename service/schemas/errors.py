"""Errors of the service, by what the reader can do about them."""

from __future__ import annotations


class ServiceError(Exception):
    """The service cannot do what was asked."""


class SettingsError(ServiceError):
    """A WHYCRASH_ variable or a line of your whycrash.toml has a value that cannot be used."""


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


class ModelLateError(ModelError):
    """The model did not answer before the deadline."""


class ModelRefusedError(ModelError):
    """The model refuses to answer."""


class ModelNonsenseError(ModelError):
    """The model's answer is not in the form that was asked for, also after one repair."""


class RequestError(ServiceError):
    """The request cannot be answered.

    `status` is the HTTP status that says so; `wait` the seconds after which another try makes sense.
    """

    status = 400
    wait: float | None = None

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class InvalidRequestError(RequestError):
    """The request is not in the form that was asked for."""

    status = 422


class UnauthorizedError(RequestError):
    """There is no key, or it is not valid."""

    status = 401


class ForbiddenError(RequestError):
    """The key does not allow this."""

    status = 403


class NotFoundError(RequestError):
    """There is no such triage, batch, job or case."""

    status = 404


class ConflictError(RequestError):
    """The idempotency key was used for another request, or the request does not fit the state."""

    status = 409


class TooLargeError(RequestError):
    """The body, or what its files unpack to, is larger than the limit."""

    status = 413


class BusyError(RequestError):
    """More is being asked than can be worked on; try again after `wait` seconds."""

    status = 429


class WorkerLostError(RequestError):
    """The process that worked on this died."""

    status = 500


class StoreError(RequestError):
    """The database cannot be reached, is locked, or is damaged."""

    status = 503


class LateError(RequestError):
    """The work was not finished before the deadline."""

    status = 504


class DiskFullError(RequestError):
    """There is no room on the disk."""

    status = 507
