"""HTTP servers on loopback, in a thread of the test's own process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class LoopbackHandler(BaseHTTPRequestHandler):
    """A handler's common part: it reads a body, answers with a length, and logs nothing."""

    def do_GET(self) -> None:
        """Hand a GET on."""
        self.get()

    def do_POST(self) -> None:
        """Hand a POST on, with its body."""
        self.post(self._body())

    def get(self) -> None:
        """Answer a GET; a server that has nothing to give says so."""
        self.send_error(HTTPStatus.NOT_IMPLEMENTED)

    def post(self, body: bytes) -> None:
        """Answer a POST; a server that takes nothing says so."""
        del body
        self.send_error(HTTPStatus.NOT_IMPLEMENTED)

    def _body(self) -> bytes:
        """Read the request's body, whole or in chunks."""
        if not self.headers.get("Transfer-Encoding"):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(
        self,
        data: bytes,
        status: int = 200,
        kind: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a whole answer."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


@contextmanager
def http_server(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve until left; gives the address without a path."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


@contextmanager
def folder_server(folder: Path) -> Iterator[str]:
    """Serve the files of a folder, and lists of them, by a server that knows no ranges."""
    with http_server(partial(_Files, directory=str(folder))) as address:
        yield address


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        """Say nothing."""
