"""A stand-in of a server over HTTP: what is to be answered is a function, what was asked is kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.loopback import http_server


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    given: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


# Gives the status, and what is written as JSON, or as it is where it is a text.
Answer = Callable[[Asked], tuple[int, Any]]


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """Serve on loopback; gives the address."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            parts = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(
                self.command,
                parts.path,
                dict(parse_qsl(parts.query)),
                headers,
                json.loads(raw) if raw else None,
            )
            status, told = answer(asked)
            told_raw = told.encode() if isinstance(told, str) else json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(told_raw)))
            self.end_headers()
            self.wfile.write(told_raw)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - the names that http.server calls

        def log_message(self, *_said: object) -> None:
            """Print nothing."""

    with http_server(Handler) as address:
        yield address
