"""What a number must become where one does not divide another."""

from __future__ import annotations

from math import gcd

# No further is a divisor sought: what is larger counts bytes.
LARGEST = 1_000_000


def multiple_below(number: int, by: int) -> int:
    """Give the multiple of `by` at or below a number, at least `by` itself."""
    return max(number // by, 1) * by


def divisor_below(number: int, by: int) -> int:
    """Give the largest divisor of a number that is not above `by`."""
    return next((each for each in range(min(by, number, LARGEST), 0, -1) if number % each == 0), 1)


def shared_divisor(number: int, by: int) -> int:
    """Give a divisor of a number in the place of `by`: one that divides `by` too comes first."""
    shared = gcd(number, by)
    return shared if shared > 1 else divisor_below(number, by)
