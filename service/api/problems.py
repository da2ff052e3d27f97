"""Errors as `application/problem+json` (RFC 9457): the place that turns our errors into responses."""

from __future__ import annotations

import logging
import math
import re
import traceback
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from corpus.errors import CorpusError
from corpus.message import Message, MessageText, References, Translatable
from ingest.errors import IngestError
from ingest.redaction.redactor import Redactor
from service.api.access import PageKeyError
from service.api.methods import methods_at
from service.schemas.errors import (
    InvalidRequestError,
    MethodNotAllowedError,
    RequestError,
    ServiceError,
    UnexpectedError,
    kind_of,
    ours,
)
from service.schemas.events import TriageFailed
from service.schemas.failures import ReportedError, failure_of

MEDIA_TYPE = "application/problem+json"
_LOG = logging.getLogger("whycrash.api")
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")
# An error's title is the first sentence of its class's docstring.
_SENTENCE_END = re.compile(r"\.(?=\s|$)")
_MOST_FIELDS = 20
# What is told of an error that is none of ours.
UNEXPECTED = "errors.server-made-mistake-log"


class Problem(Translatable):
    """Why a request was not answered (RFC 9457)."""

    type: str = Field(
        description="`urn:whycrash:error:` and the kind of the error.",
        examples=["urn:whycrash:error:not-found"],
    )
    title: str = Field(description="What the kind means.")
    status: int = Field(description="The HTTP status.")
    detail: MessageText = Field(description="What is wrong here, and what to do.")
    instance: str = Field(description="The path that was asked.")
    request_id: str = Field(description="What to name when asking about this; the log has it too.")
    errors: list[str] = Field(default=[], description="The fields that are wrong, each with its reason.")
    messages: References = Field(default={})


def problem_type(name: str) -> str:
    """Give an error's kind as a problem's type ends: NotFound is `not-found`."""
    return _WORDS.sub("-", name).lower()


def problem_response(request_id: str, path: str, error: Exception, errors: Sequence[str] = ()) -> Response:
    """Make the response that tells an error, whatever it is."""
    clean = Redactor().clean
    if not isinstance(error, ours()):
        error = UnexpectedError(Message(UNEXPECTED))
    failed = failure_of(error)
    problem = Problem(
        type=f"urn:whycrash:error:{problem_type(failed.type)}",
        title=HTTPStatus(failed.status).phrase
        if isinstance(error, ReportedError)
        else _SENTENCE_END.split(type(error).__doc__ or "")[0],
        status=failed.status,
        detail=failed.error,
        instance=clean(path),
        request_id=request_id,
        errors=[clean(item) for item in errors],
    )
    return Response(
        problem.model_dump_json(exclude_defaults=not errors), failed.status, headers_of(error), MEDIA_TYPE
    )


def log_problem(request_id: str, error: BaseException) -> None:
    """Write down an error that is our mistake, with its stack.

    What it says may hold what people sent, and is redacted.
    """
    _LOG.error("%s %s", request_id, Redactor().clean("".join(traceback.format_exception(error))))


def headers_of(error: Exception) -> dict[str, str]:
    """Give the headers that belong to an error's status."""
    if not isinstance(error, RequestError):
        return {}
    headers = {"retry-after": str(math.ceil(error.wait))} if error.wait is not None else {}
    if isinstance(error, MethodNotAllowedError):
        headers["allow"] = ", ".join(error.methods)
    if error.status == HTTPStatus.UNAUTHORIZED:
        # A browser that is told Basic asks its user; for the API that would be a dialog out of nowhere.
        headers["www-authenticate"] = (
            f'{"Basic" if isinstance(error, PageKeyError) else "Bearer"} realm="whycrash"'
        )
    return headers


def problem_of(request: Request, error: Exception) -> Response:
    """Make the response to a request that ended in an error of ours, or was not in its form."""
    wrong: list[str] = []
    if isinstance(error, RequestValidationError):
        wrong = fields(error.errors())
        error = InvalidRequestError("; ".join(wrong[:3]) or Message("errors.request-not-form-asked"))
    if kind_of(type(error)).status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _LOG.error(
            "%s %s", request.scope.get("request_id", ""), Redactor().clean(f"{type(error).__name__}: {error}")
        )
    return problem_response(request.scope.get("request_id", ""), request.url.path, error, wrong)


def fields(errors: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tell each wrong field with its reason; never what it held."""
    # A field's name may be anything, too; each is cleaned by itself, for what stands beside it may hide what
    # it is.
    clean = Redactor().clean
    return [
        f"{'.'.join(clean(str(part)) for part in item['loc'])}: {item['msg']}"
        for item in errors[:_MOST_FIELDS]
    ]


def method_not_allowed(method: str, methods: tuple[str, ...]) -> MethodNotAllowedError:
    """Make the error of a path that is there, but not for this method."""
    said = Message("errors.other-methods", method=method, methods=", ".join(methods))
    return MethodNotAllowedError(said if methods else Message("errors.nothing-path", method=method), methods)


def _of_status(request: Request, error: HTTPException) -> Response:
    """Tell what the router found: no such path, or not by this method."""
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        methods = methods_at(request.app.routes, request.scope)
        return problem_of(request, method_not_allowed(request.method, methods))
    if error.status_code == HTTPStatus.BAD_REQUEST:
        # A body that is no text at all, which the framework finds before it looks at any field.
        return problem_of(request, InvalidRequestError(Message("errors.request-not-form-asked")))
    failed = TriageFailed(
        type=HTTPStatus(error.status_code).phrase.title().replace(" ", ""),
        status=error.status_code,
        error=Message("errors.nothing-path", method=request.method),
    )
    answer = problem_response(request.scope.get("request_id", ""), request.url.path, ReportedError(failed))
    answer.headers.update(error.headers or {})
    return answer


def install(app: FastAPI) -> None:
    """Let an app tell all its errors as problems."""
    for kind in (RequestError, ServiceError, CorpusError, IngestError, RequestValidationError):
        app.add_exception_handler(kind, problem_of)
    # The handler is only called with its own kind of error.
    app.add_exception_handler(HTTPException, _of_status)  # type: ignore[arg-type]


DOCUMENTED: Mapping[int, str] = {
    401: "There is no key, or it is not valid.",
    403: "The key does not allow this, or a page of another origin asks.",
    404: "There is no such thing.",
    408: "The body came too slowly.",
    409: "It does not fit the state of things, or the idempotency key was used for another request.",
    413: "The body is too large.",
    415: "The body has a media type that is not taken here.",
    421: "The Host header names another server.",
    422: "The request is not in the form that was asked for, or the log cannot be read.",
    429: "Too many requests, or too much is waiting; `Retry-After` says how long to wait.",
    500: "The work ended without an answer, by the server's fault.",
    503: "The database cannot be used just now.",
    504: "It took too long.",
    507: "There is no room on the disk.",
}


def documented_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the problems that a route may answer with, for its OpenAPI entry."""
    return {
        status: {
            "description": DOCUMENTED[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in (401, 403, 408, 413, 421, 422, 429, 500, 503, *statuses)
    }
