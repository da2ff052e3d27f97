"""Coroutines run to their end in a test."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from tests.waiting import PATIENCE

T = TypeVar("T")


def ran(work: Coroutine[Any, Any, T]) -> T:
    """Run it in a thread of its own: a browser that another test of this process drives has a loop in this
    one.
    """
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(lambda: asyncio.run(work)).result(PATIENCE)
