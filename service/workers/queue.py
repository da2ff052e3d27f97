"""A first-in, first-out queue, from which a waiting item can be removed at any place."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class TaskQueue(Generic[T]):
    """A queue of tasks. Safe to use from many threads."""

    def __init__(self) -> None:
        self._waiting: deque[T] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def push(self, item: T) -> None:
        """Add an item at the end."""
        with self._changed:
            self._waiting.append(item)
            self._changed.notify()

    def pop(self, timeout: float | None = None) -> T | None:
        """Wait for the first item; None once the queue is closed.

        Raises queue.Empty after `timeout` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting or self._closed, timeout):
                raise queue.Empty
            return self._waiting.popleft() if self._waiting else None

    def discard(self, is_it: Callable[[T], bool]) -> T | None:
        """Remove the item that `is_it` accepts; None where no such item waits."""
        with self._changed:
            found = next(filter(is_it, self._waiting), None)
            if found is not None:
                self._waiting.remove(found)
            return found

    def close(self) -> list[T]:
        """Close the queue; gives the items that were waiting."""
        with self._changed:
            self._closed = True
            left = [*self._waiting]
            self._waiting.clear()
            self._changed.notify_all()
            return left
