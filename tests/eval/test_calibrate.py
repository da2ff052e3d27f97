"""The fit of the weights: what speaks for the right causes weighs for them, and a cold scale is found."""

from __future__ import annotations

from eval.calibrate import RIDGE, Example, fitted, fitted_temperature

LIKELY = [Example(({"seen": 1.0}, {"seen": 0.0}, {"doubt": 1.0}), (0,), (1.0,))] * 9
UNLIKELY = [Example(({"seen": 1.0}, {"seen": 0.0}, {"doubt": 1.0}), (1,), (1.0,))]


def test_that_a_sign_of_the_right_cause_weighs_for_it() -> None:
    learned = fitted(LIKELY + UNLIKELY)
    assert learned["seen"] > 1 > 0 > learned["doubt"]
    assert RIDGE > 0
    assert fitted(LIKELY + UNLIKELY) == learned


def test_that_surer_labels_are_cooled_less() -> None:
    learned = {"seen": 4.0, "doubt": -4.0}
    assert fitted_temperature(LIKELY, learned) < fitted_temperature(LIKELY + UNLIKELY * 9, learned)
