"""Token buckets: how many requests each caller may make in a minute."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from time import monotonic

# Callers that are remembered; the one seen longest ago is forgotten, so that many addresses cannot fill the
# memory.
MOST = 10_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class RateLimiter:
    """One bucket for each caller: `a_minute` tokens at most, filled evenly; 0 lets any number through.

    Safe to use from many threads.
    """

    def __init__(self, a_minute: int, clock: Callable[[], float] = monotonic) -> None:
        self._size = a_minute
        self._clock = clock
        self.callers: OrderedDict[str, _Bucket] = OrderedDict()
        self._turn = Lock()

    def acquire(self, caller: str) -> float:
        """Take a token; gives 0 where there was one, else how many seconds until there is."""
        if not self._size:
            return 0.0
        with self._turn:
            bucket = self._filled(caller)
            if bucket.tokens < 1:
                return (1 - bucket.tokens) * 60 / self._size
            bucket.tokens -= 1
            return 0.0

    def _filled(self, caller: str) -> _Bucket:
        now = self._clock()
        bucket = self.callers.setdefault(caller, _Bucket(self._size, now))
        self.callers.move_to_end(caller)
        if len(self.callers) > MOST:
            self.callers.popitem(last=False)
        bucket.tokens = min(self._size, bucket.tokens + (now - bucket.at) * self._size / 60)
        bucket.at = now
        return bucket
