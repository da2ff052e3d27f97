"""An answer holds a part of each curve, and says in words which one went wrong."""

from __future__ import annotations

import math
from dataclasses import replace

from ingest.logs.curves import LoggedCurve, Point
from service.composition.curves import MOST_POINTS, curve_words, curves_of
from service.schemas.diagnosis import Curve
from tests.service.factories import report
from tests.tables import each_row


def _curve(**given: object) -> Curve:
    return Curve.model_validate(
        {"name": "loss", "points": [(1, 2.0), (9, 0.5)], "since": 5, "before": 2.0} | given
    )


@each_row(
    ("given", "told"),
    [
        ({"finding": "broken"}, "The loss is no finite number from step 5 on (before: 2)."),
        ({"finding": "zero", "counts_steps": False}, "The loss stays at 0.5 from line 5 on (before: 2)."),
        (
            {"finding": "jump", "name": "gradient"},
            "The gradient norm leaps at step 5, from 2, and stays high.",
        ),
        (
            {"finding": "rise", "name": "host-memory", "full_at": 40},
            "The host memory grows all along, from 2 to 0.5. At this pace it reaches the limit at step 40.",
        ),
        (
            {"finding": "slow", "name": "step-time"},
            "The time per step is a multiple of before (2) from step 5 on: 0.5.",
        ),
    ],
)
def test_what_went_wrong_is_said_with_its_place(given: dict[str, object], told: str) -> None:
    assert list(curve_words((_curve(**given),), "en")) == [told]
    assert list(curve_words((_curve(**given),), "zh")) != [told]


def test_a_sound_curve_needs_no_words() -> None:
    assert list(curve_words((_curve(finding=None),), "en")) == []


def test_an_answer_holds_few_points_and_no_number_that_json_lacks() -> None:
    """Values are as exact as a plot shows them."""
    points = tuple(
        Point(float(step), math.nan if step > 900 else 1 / (step + 1), step) for step in range(1000)
    )
    found = LoggedCurve("loss", points, "broken", points[901], 0.00111)
    (curve,) = curves_of(replace(report(), curves=(found,)))
    assert len(curve.points) == MOST_POINTS
    assert curve.points[-1] == (999.0, None)
    assert curve.points[1][1] == 0.05882
    assert (curve.since, curve.line) == (901.0, 901)
