"""A server on loopback that takes what is posted, or refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.loopback import LoopbackHandler, http_server


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

    class Handler(LoopbackHandler):
        def post(self, body: bytes) -> None:
            refused = state.refuse > 0
            state.refuse -= refused
            if not refused:
                state.bodies.append(body)
                state.headers.append(dict(self.headers))
            self.answer(b'{"id": "01X"}', 503 if refused else 200)

    with http_server(Handler) as state.url:
        yield state
