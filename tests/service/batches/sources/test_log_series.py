"""The two ends of a file that a store gives line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from service.batches.sources import log_series
from service.batches.sources.log_series import Line, both_ends
from tests.tables import each_row


@each_row(
    ("lines", "moment", "is_cut"),
    # Lines of one moment across the border of the first end, and a middle that is left out.
    [(25, 30, False), (25, 5, False), (60, 1, True), (19, 100, False)],
)
def test_that_no_line_of_either_end_is_lost(
    lines: int, moment: int, is_cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several lines may be of one moment, and some of them alike; what is left out is told."""
    monkeypatch.setattr(log_series, "END_LINES", 20)
    stored = [Line(number // moment, f"line {number // 2}") for number in range(lines)]
    told: list[bool] = []

    def pages(from_end: bool) -> Iterator[Sequence[Line]]:
        rows = stored[::-1] if from_end else stored
        yield from (rows[at : at + 10] for at in range(0, len(rows), 10))

    found = b"".join(both_ends(pages, lambda: told.append(True))).decode().splitlines()
    texts = [line.text for line in stored]
    assert found == ([*texts[:20], *texts[-20:]] if is_cut else texts)
    assert bool(told) is is_cut
