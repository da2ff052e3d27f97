"""A clock that leaps forward deletes nothing; one that goes evenly deletes what is old."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from service.persistence.clock import ACTOR, REST
from service.persistence.store import Store
from tests.service.persistence.makers import NOW, add, later, triage

DAY = 24 * 3600
YEARS = 4 * 365
# At which days the clock is looked at, the first being the day of the last record, and at which of them it is
# believed.
LOOKS = {
    "evenly": ([0, 0.5, 1, 2, 3, 5, 8], [True] * 7),
    "a leap": (
        [0, YEARS, YEARS + 0.04, YEARS + 2, YEARS + 4, YEARS + 6.9, YEARS + 7.1],
        [True, *[False] * 5, True],
    ),
    "a leap that is set right": ([0, YEARS, YEARS + 1, 1, 2, 3], [True, False, False, True, True, True]),
    "two leaps": ([0, 10, 16, 30, 33, 36, 37.5], [True, False, False, False, False, False, True]),
    "set back": ([0, -100, -99, 0], [True, True, True, False]),
    "a first look long after": ([40, 43, 46, 47.5], [False, False, False, True]),
}


@pytest.mark.parametrize(("days", "believed"), LOOKS.values(), ids=LOOKS)
def test_that_a_clock_that_leaps_is_believed_after_a_week(
    store: Store, days: Sequence[float], believed: Sequence[bool]
) -> None:
    store.triages.add(triage(state="done"))
    found = []
    for day in days:
        asked = store.clock.is_resting(later(day * DAY))
        found.append(store.clock.observe(later(day * DAY)))
        assert found[-1] == asked
    assert [rest is None for rest in found] == list(believed)


def test_that_a_clock_is_believed_where_nothing_was_ever_kept(store: Store) -> None:
    assert store.clock.observe(NOW) is None
    assert store.clock.observe(later(YEARS * DAY)) == later(YEARS * DAY) + REST


def test_that_a_batch_alone_tells_the_time(store: Store) -> None:
    add(store, 1)
    assert store.clock.is_resting(later(2 * DAY)) is None
    assert store.clock.is_resting(later(9 * DAY)) is not None


def test_that_the_clock_is_written_down_twice_a_day(store: Store) -> None:
    for hour in range(96):
        store.clock.observe(later(hour * 3600))
    assert [item.actor for item in store.audit.page()[0]] == [ACTOR] * 8
