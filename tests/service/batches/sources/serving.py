"""A stand-in of a server over HTTP: what is to be answered is a function, what was asked is kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


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

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
