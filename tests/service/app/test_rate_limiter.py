"""Token buckets: so many requests in a minute, for each caller by itself."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from service.app import rate_limiter
from service.app.rate_limiter import RateLimiter


def test_that_a_bucket_is_empty_after_its_size_and_fills_evenly() -> None:
    """The wait that is told is the wait that helps."""
    now = 0.0
    made = RateLimiter(60, lambda: now)
    assert [made.acquire("a") for _ in range(60)] == [0.0] * 60
    wait = made.acquire("a")
    assert 0 < wait <= 1
    now += wait
    assert made.acquire("a") == 0.0
    assert made.acquire("a") > 0
    assert made.acquire("b") == 0.0


def test_that_zero_lets_any_number_through() -> None:
    """Nothing is counted."""
    made = RateLimiter(0)
    assert [made.acquire("a") for _ in range(1000)] == [0.0] * 1000


def test_that_many_callers_do_not_fill_the_memory() -> None:
    """The callers seen longest ago are forgotten."""
    made = RateLimiter(1)
    for number in range(rate_limiter.MOST + 100):
        made.acquire(str(number))
    assert len(made.callers) == rate_limiter.MOST


@given(st.lists(st.floats(0, 30), max_size=200), st.integers(1, 100))
@settings(derandomize=True, deadline=None, max_examples=100)
def test_that_no_minute_has_more_than_twice_the_limit(pauses: list[float], most: int) -> None:
    """A full bucket and what fills in a minute: no more than that gets through in any minute."""
    now = 0.0
    made = RateLimiter(most, lambda: now)
    passed: list[float] = []
    for pause in pauses:
        now += pause
        if not made.acquire("a"):
            passed.append(now)
    for begin in passed:
        assert sum(begin <= when < begin + 60 for when in passed) <= 2 * most
