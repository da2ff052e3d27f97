"""Events on their way out: a thread works them out, the event loop sends them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from itertools import count

from starlette.requests import Request

from corpus.message import Message
from service.api import problems
from service.schemas.errors import BusyError, LateError, ours
from service.schemas.events import Event
from service.schemas.failures import failure_of

MEDIA_TYPE = "text/event-stream"
# Seconds of silence after which a comment is sent: proxies close connections that say nothing.
HEARTBEAT = 10.0
SILENCE = b": still at it\n\n"
LAST = frozenset({"final", "turn", "error"})


def nothing() -> None:
    """Do nothing."""


class EventThreads:
    """The threads that work out events, so many at once; one more is refused, for it would wait unseen."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._running = 0
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="events")

    def submit(self, work: Callable[[], None]) -> None:
        """Start work in a thread; raises BusyError where all are in use."""
        if self._running >= self.most:
            raise BusyError(Message("errors.more-worked-places"), 1.0)
        self._running += 1
        # In the context of who asks, so that the work belongs to the request's trace.
        begun = partial(copy_context().run, work)
        asyncio.get_running_loop().run_in_executor(self._pool, begun).add_done_callback(self._done)

    def _done(self, _future: asyncio.Future[None]) -> None:
        self._running -= 1

    def close(self) -> None:
        """Take no more work."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class EventFlow:
    """The events of one triage or one turn, worked out in a thread from `begin` on.

    `ended` is called when the work is over. Where the client leaves, work that was begun goes on to its end
    or its deadline, and its answer is kept; `abandoned` is then called, in any thread and perhaps more than
    once, so that work that was not begun can be dropped.
    """

    def __init__(
        self,
        begin: Callable[[], Iterator[Event]],
        threads: EventThreads,
        deadline: float,
        ended: Callable[[], None] = nothing,
        abandoned: Callable[[], None] = nothing,
    ) -> None:
        self._begin = begin
        self._ended = ended
        self._abandoned = abandoned
        self._loop = asyncio.get_running_loop()
        self._ends = self._loop.time() + deadline
        self.queue: asyncio.Queue[Event | Exception | None] = asyncio.Queue()
        self._left = threading.Event()
        # Whether the last event was taken, or is not waited for any more.
        self.over = False
        threads.submit(self._work)

    def leave(self) -> None:
        """Listen no more."""
        if self._left.is_set():
            return
        self._left.set()
        if not self.over:
            self._loop.run_in_executor(None, self._abandoned)

    async def next(self, timeout: float | None = None) -> Event | None:
        """Give the next event, None at the end.

        Raises what ended the work, LateError, or TimeoutError after `timeout` seconds.
        """
        left = self._ends - self._loop.time()
        try:
            # Not wait_for, which forgets that it was cancelled where an event comes at that moment
            # (https://github.com/python/cpython/issues/86296): it would wait on, for nobody.
            async with asyncio.timeout(left if timeout is None else min(left, timeout)):
                item = await self.queue.get()
        except TimeoutError as error:
            if self._loop.time() < self._ends:
                raise
            self.leave()
            self.over = True
            raise LateError(Message("errors.work-not-finished-before")) from error
        self.over = item is None or isinstance(item, Exception) or item.kind in LAST
        if isinstance(item, Exception):
            raise item
        return item

    def _work(self) -> None:
        try:
            for event in self._begin():
                self._put(event)
        except Exception as error:  # noqa: BLE001 - it is raised again where the events are taken
            if not isinstance(error, ours()):
                problems.log_problem("-", error)
            self._put(error)
        finally:
            self._ended()
        self._put(None)

    def _put(self, item: Event | Exception | None) -> None:
        if self._left.is_set():
            # Whoever left may have done so before there was anything to spare.
            self._abandoned()
            return
        # A server that has stopped has no loop, and nobody left to tell.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.queue.put_nowait, item)


async def client_left(request: Request) -> None:
    """Return once the client has gone; the body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def collect_answer(flow: EventFlow, request: Request) -> Event | None:
    """Take all events and give the last one; None where the client left before it."""

    async def last_event() -> Event | None:
        last = None
        while (event := await flow.next()) is not None:
            last = event
        return last

    leaving = asyncio.ensure_future(client_left(request))
    taking = asyncio.ensure_future(last_event())
    try:
        await asyncio.wait((leaving, taking), return_when=asyncio.FIRST_COMPLETED)
        return await taking if taking.done() else None
    finally:
        flow.leave()
        for task in (leaving, taking):
            task.cancel()


async def stream_response(flow: EventFlow, first: Event) -> AsyncIterator[bytes]:
    """Write events as server-sent events, with comments in between while nothing happens."""
    numbers = count(1)
    try:
        yield encode_event(first, next(numbers))
        while not flow.over:
            event = await _following(flow)
            yield SILENCE if event is None else encode_event(event, next(numbers))
    finally:
        flow.leave()


async def _following(flow: EventFlow) -> Event | None:
    """Give the next event, None after a silence; an error of the work is its last event."""
    try:
        return await flow.next(HEARTBEAT)
    except TimeoutError:
        return None
    except Exception as error:  # noqa: BLE001 - whatever ended the work is its last event
        return failure_of(error, problems.UNEXPECTED)


def encode_event(event: Event, number: int) -> bytes:
    """Write one event of a stream.

    The fields keep the order that clients of the first version read; FastAPI's own writer has another one.
    """
    return f"id: {number}\nevent: {event.kind}\ndata: {event.model_dump_json(by_alias=True)}\n\n".encode()
