"""A circuit breaker before a model: after failures in a row a batch goes on without it for a while."""

from __future__ import annotations

from ingest.workers.backoff import Backoff
from service.schemas.diagnosis import Diagnosis

# Failures in a row that open the breaker: each may have taken the whole deadline.
MOST = 3
# Seconds until one job asks again: the least, doubled each time it fails too, and the most.
REST = (30.0, 600.0)


class CircuitBreaker:
    """Tells whether a model is to be asked; not to be shared between threads."""

    def __init__(self) -> None:
        self._failures = 0
        self.pause = Backoff(*REST)

    @property
    def allows(self) -> bool:
        """Tell whether the model may be asked."""
        return self.pause.over

    def record(self, answer: Diagnosis) -> None:
        """Count a success or a failure of the model; an answer made without it counts as neither."""
        if answer.engine.tokens is None:
            return
        if answer.engine.tokens.received:
            self._failures = 0
            self.pause.end()
            return
        self._failures += 1
        if self._failures >= MOST:
            self.pause.begin()
