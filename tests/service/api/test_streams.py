"""Events and bodies on their way: who is told to stop stops, also where something comes at that moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

from service.api.intake import AsgiMessage, BodyRateLimits, BodyReader
from service.api.streams import EventFlow, EventThreads
from service.schemas.events import Event, Progress
from tests.service.api.loops import ran
from tests.tables import each_row
from tests.waiting import PATIENCE

Arrive = Callable[[], None]


def events(ending: threading.Event) -> tuple[Callable[[], Awaitable[object]], Arrive]:
    """Wait for the events of work that has none yet."""

    def begin() -> Iterator[Event]:
        ending.wait(PATIENCE)
        yield from ()

    flow = EventFlow(begin, EventThreads(1), 60.0)
    return flow.next, lambda: flow.queue.put_nowait(Progress(bytes=1, total=2))


def body(_ending: threading.Event) -> tuple[Callable[[], Awaitable[object]], Arrive]:
    """Wait for a body of which nothing has come yet."""
    coming: asyncio.Queue[AsgiMessage] = asyncio.Queue()
    return BodyReader(coming.get, 100, BodyRateLimits()), lambda: coming.put_nowait(
        {"type": "http.request", "body": b"x", "more_body": True}
    )


@each_row("kind", [events, body])
def test_that_who_is_told_to_stop_waits_no_more(
    kind: Callable[[threading.Event], tuple[Callable[[], Awaitable[object]], Arrive]],
) -> None:
    """What it waited for may come in the same moment."""
    ending = threading.Event()

    async def cancelled() -> bool:
        take, arrive = kind(ending)

        async def taking() -> None:
            while True:
                await take()

        task = asyncio.ensure_future(taking())
        await asyncio.sleep(0.01)
        arrive()
        task.cancel()
        await asyncio.wait([task], timeout=PATIENCE)
        ending.set()
        return task.cancelled()

    assert ran(cancelled())
