"""Plots stay within their frame, whatever they are given."""

from __future__ import annotations

import re

from service.html.drawing import Scale
from service.html.plots import Amount, Column, bar_plot, clipped, column_plot
from tests.tables import each_row


def test_that_plots_hold_any_counts() -> None:
    """Nothing, one and a million are drawn within their frame."""
    for value in (0.0, 1.0, 1e6):
        drawn = column_plot("t", [Column(str(place), {"a": value}) for place in range(60)], {"a": "c1"})
        assert all(0 <= float(place) <= 360 for place in re.findall(r'\bx="([^"]+)"', drawn))
        assert all(-1e-6 <= float(place) <= 190 for place in re.findall(r'\by="([^"]+)"', drawn))
        assert float(re.findall(r'width="([^"]+)"', bar_plot("t", [Amount("n", value, "told")]))[-1]) <= 360
    assert bar_plot("t", []) != ""
    assert clipped("a long name", 30) == "a l…"


@each_row(("value", "place"), [(0.0, 10.0), (0.5, 60.0), (1.0, 110.0), (7.0, 110.0)])
def test_a_scale_keeps_points_in_the_drawing(value: float, place: float) -> None:
    """What is outside stands at the edge."""
    assert Scale(0, 1, 10, 110).at(value) == place
