"""How long what a request has a thread do is waited for; a thread cannot be ended, so it asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import TypeVar

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

from corpus.message import Message
from service.api.app_state import AppState
from service.api.streams import client_left
from service.batches.deadlines import SLOWEST
from service.schemas.errors import AbandonedError, LateError, StoppingError

T = TypeVar("T")


class ReadDeadline:
    """Work goes on until a deadline, while its client is there and the server runs.

    The deadline is later where more came in.
    """

    def __init__(self, app_state: AppState, size: int) -> None:
        self._seconds = app_state.settings.request_deadline + size / SLOWEST
        self._ends = monotonic() + self._seconds
        self._stopping = app_state.stopping
        self.abandoned = Event()

    def check(self) -> None:
        """Raise LateError, StoppingError or AbandonedError where the work is to end."""
        if self._stopping.is_set():
            raise StoppingError(Message("errors.server-stopping-hand-again"), 5.0)
        if self.abandoned.is_set():
            raise AbandonedError(Message("errors.whoever-handed-left-before-read"))
        if monotonic() > self._ends:
            raise LateError(Message("errors.not-read-within-seconds", seconds=f"{self._seconds:.0f}"))


async def run_until_deadline(
    request: Request, work: Callable[[ReadDeadline], T], read_deadline: ReadDeadline
) -> T:
    """Run work in a thread that learns when its client leaves."""

    async def note_leaving() -> None:
        await client_left(request)
        read_deadline.abandoned.set()

    watching = asyncio.create_task(note_leaving())
    try:
        return await run_in_threadpool(work, read_deadline)
    except asyncio.CancelledError:
        read_deadline.abandoned.set()
        raise
    finally:
        watching.cancel()
