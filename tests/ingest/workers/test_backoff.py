"""Exponential backoff with jitter."""

from __future__ import annotations

from ingest.workers import backoff
from tests.tables import each_row


@each_row(
    ("failures", "least", "most"),
    [(1, 0.5, 1.0), (2, 1.0, 2.0), (4, 4.0, 8.0), (50, 30.0, 60.0), (5000, 30.0, 60.0)],
)
def test_that_a_wait_doubles_up_to_a_limit_and_is_never_quite_the_same(
    failures: int, least: float, most: float
) -> None:
    waits = {backoff.backoff_delay(failures, 1.0, 60.0) for _ in range(50)}
    assert len(waits) > 1
    assert all(least <= wait <= most for wait in waits)
