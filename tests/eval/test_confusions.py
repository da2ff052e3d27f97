"""The table of confusions: counted from answers at first sight, judged by rounds that it was not made of."""

from __future__ import annotations

import pytest

from eval.confusions import FirstAnswer, HeldOut, counted, first_answers, held_out
from service.scoring.confusions import shipped

WRONG = FirstAnswer(1, ("framework-bug",), ("user-code-error",))
RIGHT = FirstAnswer(1, ("framework-bug",), ("framework-bug", "package-incompatible"))


def test_that_a_wrong_answer_counts_in_full_and_one_beside_a_right_one_in_part() -> None:
    shares = counted([WRONG, RIGHT]).shares["framework-bug"]
    assert list(shares) == ["user-code-error", "package-incompatible"]
    assert shares["user-code-error"] == pytest.approx(1.0 / 1.15, abs=0.001)


def test_that_a_round_is_judged_by_the_others_alone() -> None:
    """The only answer of its kind finds no right cause in a table that it is left out of."""
    elsewhere = FirstAnswer(2, ("disk-full",), ("stale-state",))
    again = FirstAnswer(3, ("framework-bug", "disk-full"), ("user-code-error",))
    beside = FirstAnswer(2, ("nan-or-inf", "node-lost"), ("node-lost",))
    assert held_out([WRONG, elsewhere]) == HeldOut(2, 0, 0)
    assert held_out([WRONG, again]) == HeldOut(2, 0, 2)
    assert held_out([beside, RIGHT]) == HeldOut(1, 1, 1)


def test_that_the_shipped_table_is_of_the_recorded_rounds() -> None:
    """It counts no more answers than there are."""
    assert 0 < shipped().answers <= len(first_answers())
