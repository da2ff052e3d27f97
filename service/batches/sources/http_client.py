"""Ask a server that knows of jobs over HTTP: what fails for now is asked again, answers are bounded."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from corpus.message import Message
from service.batches.sources.found import shown_path
from service.schemas.errors import InvalidRequestError

# Seconds without a byte, and those that one answer may take in all.
TIMEOUT_S, ANSWER_S = 30.0, 120.0
# Seconds before a request that failed is made again; where the server says how long, that.
PAUSES = (0.5, 2.0, 6.0)
LONGEST_PAUSE = 10.0
MAX_PAGE = 64 << 20
# Of a refusal, what its reason takes.
MAX_REFUSAL = 64 << 10
# What a server says of a refusal may be a page of a proxy.
_LONGEST_REASON = 300

Row = TypeVar("Row", bound=BaseModel)


class JsonApi:
    """A server that answers in JSON, by its address; a context manager.

    `kind` is what people call it, `reason` takes its own words out of an answer that refuses.
    """

    def __init__(
        self, kind: str, url: str, headers: Mapping[str, str], reason: Callable[[bytes], str]
    ) -> None:
        self.kind, self.place = kind, url.rstrip("/")
        self._reason = reason
        try:
            parts = urlsplit(url)
            _ = parts.port
            httpx.URL(url)
        except (ValueError, httpx.InvalidURL) as error:
            raise self.refused(str(error)) from error
        is_plain = not (parts.username or parts.query or parts.fragment)
        if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
            raise InvalidRequestError(Message("errors.source-no-address", kind=kind, url=shown_path(url)))
        try:
            self._client = open_client(self.place, dict(headers), trusted())
        except (OSError, ValueError) as error:  # no file of certificates, a token of no plain signs
            raise self.refused(str(error)) from error

    def __enter__(self) -> JsonApi:
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()

    def get(self, path: str, given: Mapping[str, str], row: type[Row]) -> Row:
        """Ask for what a path holds; raises InvalidRequestError with the server's reason."""
        return self._read(self._client.build_request("GET", path, params=given), row)

    def send(self, method: str, path: str, given: Mapping[str, str], body: object, row: type[Row]) -> Row:
        """Ask by a JSON body; raises InvalidRequestError with the server's reason."""
        return self._read(self._client.build_request(method, path, params=given, json=body), row)

    def _read(self, request: httpx.Request, row: type[Row]) -> Row:
        try:
            with asked(self._client, lambda: request) as response:
                return row.model_validate_json(bounded(response))
        except httpx.HTTPStatusError as error:
            status = error.response.status_code
            raise self.refused(self._reason(error.response.content) or f"HTTP {status}") from error
        except ValidationError as error:
            raise self.refused("its answer is none of such a server") from error
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise self.refused(str(error) or type(error).__name__) from error

    def refused(self, reason: str) -> InvalidRequestError:
        """Make the error of a server that did not answer what it was asked."""
        return InvalidRequestError(
            Message(
                "errors.source-not-asked",
                kind=self.kind,
                url=shown_path(self.place),
                reason=shown_path(reason[:_LONGEST_REASON]),
            )
        )


def open_client(base: str, headers: Mapping[str, str], verify: ssl.SSLContext | bool = True) -> httpx.Client:
    """Open a client that asks nothing but this server: no redirect, no proxy of the environment."""
    return httpx.Client(base_url=base, timeout=TIMEOUT_S, headers=headers, verify=verify, trust_env=False)


def trusted() -> ssl.SSLContext | bool:
    """Give the certificates of an organisation's own authority, where `SSL_CERT_FILE` names them."""
    own = os.environ.get("SSL_CERT_FILE")
    return ssl.create_default_context(cafile=own) if own else True


@contextmanager
def asked(client: httpx.Client, request: Callable[[], httpx.Request]) -> Iterator[httpx.Response]:
    """Send a request, and again after each of PAUSES where the server cannot just now; raises HTTPError.

    The answer is a stream; of one that refuses, the beginning of its content is read.
    """

    def send() -> httpx.Response:
        response = client.send(request(), stream=True)
        return response if response.is_success else _told(response)

    response = _again(send)
    try:
        response.raise_for_status()
        yield response
    finally:
        response.close()


def bounded(response: httpx.Response, most: int = MAX_PAGE) -> bytes:
    """Read all of an answer; raises ValueError where it is longer than answers are."""
    whole = bytearray()
    until = time.monotonic() + ANSWER_S
    for piece in response.iter_bytes():
        whole += piece
        if len(whole) > most:
            raise ValueError("a page of its list is too long")
        if time.monotonic() > until:
            raise ValueError("it takes too long over a page of its list")
    return bytes(whole)


def _told(response: httpx.Response) -> httpx.Response:
    """Give a refusal with the beginning of its reason, and close it: a stream that is closed has none."""
    with closing(response):
        told = bytearray()
        until = time.monotonic() + TIMEOUT_S
        with suppress(httpx.HTTPError):
            for piece in response.iter_bytes():
                told += piece
                if len(told) > MAX_REFUSAL or time.monotonic() > until:
                    break
    headers = {"Retry-After": response.headers.get("Retry-After", "")}
    return httpx.Response(
        response.status_code, headers=headers, content=bytes(told[:MAX_REFUSAL]), request=response.request
    )


def _again(send: Callable[[], httpx.Response]) -> httpx.Response:
    for pause in PAUSES:
        try:
            response = send()
        except httpx.TransportError:
            time.sleep(pause)
            continue
        if response.status_code != httpx.codes.TOO_MANY_REQUESTS and not response.is_server_error:
            return response
        response.close()
        told = response.headers.get("Retry-After", "")
        time.sleep(min(float(told), LONGEST_PAUSE) if told.isdecimal() else pause)
    return send()
