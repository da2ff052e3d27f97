"""A server on loopback that takes what is posted, or refuses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Received:
    """What came in; `refuse` is how many requests are still refused."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refuse: int = 0

    def json(self, number: int = -1) -> dict[str, object]:
        """Give a body as an object."""
        found: dict[str, object] = json.loads(self.bodies[number])
        return found


@contextmanager
def receiving() -> Iterator[Received]:
    """Serve until left."""
    state = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = (
                self._chunked()
                if self.headers.get("Transfer-Encoding")
                else self.rfile.read(int(self.headers["Content-Length"]))
            )
            refused = state.refuse > 0
            state.refuse -= refused
            if not refused:
                state.bodies.append(body)
                state.headers.append(dict(self.headers))
            answer = b'{"id": "01X"}'
            self.send_response(503 if refused else 200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def _chunked(self) -> bytes:
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
