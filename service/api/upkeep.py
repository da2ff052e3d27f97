"""What the server does by itself from time to time: it forgets what is older than the retention."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

from fastapi.concurrency import run_in_threadpool

from service.app.triage_service import TriageService
from service.batches.batches import BatchService
from service.schemas.errors import RequestError

_LOG = logging.getLogger("whycrash.api")
HOUR = 3600.0


@asynccontextmanager
async def expire_records(
    triage_service: TriageService, batches: BatchService, days: int, every: float = HOUR
) -> AsyncIterator[None]:
    """Forget what is old, now and then; `days` 0 keeps everything."""
    task = asyncio.create_task(_forget(triage_service, batches, days, every)) if days else None
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _forget(triage_service: TriageService, batches: BatchService, days: int, every: float) -> None:
    def forget_once() -> None:
        now = datetime.now(UTC)
        count = triage_service.forget_old(now)
        batches.sweep(now - timedelta(days=days))
        if count:
            _LOG.info("%d triages and batches were older than %d days and are forgotten", count, days)

    while True:
        try:
            await run_in_threadpool(forget_once)
        except RequestError as error:
            # The database is away; the next hour will do.
            _LOG.warning("nothing was forgotten: %s", error)
        await asyncio.sleep(every)
