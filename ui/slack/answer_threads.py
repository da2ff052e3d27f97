"""A thread pool for answers: Slack is acknowledged within three seconds, however long an answer takes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

_Work = Callable[[], None]


class AnswerThreads:
    """So many questions are answered at a time, and so many more wait.

    Its threads do not keep a server from stopping.
    """

    def __init__(self, threads: int, waiting: int) -> None:
        self._room = threading.BoundedSemaphore(threads + waiting)
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._run, name=f"slack-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def take(self, work: _Work) -> bool:
        """Take work that handles its own errors; tells whether there was room for it."""
        if self._closed or not self._room.acquire(blocking=False):
            return False
        self._queue.put(work)
        return True

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            try:
                work()
            finally:
                self._room.release()

    def close(self) -> None:
        """Take nothing more, and let go what waits.

        What has begun goes on until its triage service ends it.
        """
        self._closed = True
        while not self._queue.empty():
            self._queue.get()
        for _ in self._threads:
            self._queue.put(None)
