"""Exponential backoff with jitter: how long to wait after a failure."""

from __future__ import annotations

import random
from dataclasses import dataclass
from time import monotonic


def backoff_delay(failures: int, least: float, most: float) -> float:
    """Give the seconds to wait after failures in a row: `least`, doubled each time, less up to half of it."""
    whole = min(most, least * 2.0 ** min(failures - 1, 30))
    return whole * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, no secret


@dataclass
class Backoff:
    """A wait that doubles with each failure in a row and is reset by a success."""

    least: float
    most: float
    failures: int = 0
    until: float = 0.0

    @property
    def over(self) -> bool:
        """Tell whether another try is due."""
        return monotonic() >= self.until

    def begin(self, wait: float | None = None) -> float:
        """Wait once more; `wait` is what was asked for, at least. Gives the seconds."""
        self.failures += 1
        seconds = max(backoff_delay(self.failures, self.least, self.most), wait or 0.0)
        self.until = monotonic() + seconds
        return seconds

    def end(self) -> None:
        """Reset after a success."""
        self.failures = 0
        self.until = 0.0
