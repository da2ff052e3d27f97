"""Numbers without a name that turn to NaN and stay so fail a job, whatever end it says that it came to."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from ingest.logs import failure_log
from ingest.logs.turned_numbers import ShapedRows
from tests.factories import ReadLog
from tests.tables import each_row

NAN = float("nan")
END = "Training complete.\n"

Row = Callable[[int, float], str]


def log(row: Row, *, broken: range) -> str:
    """Give a log of sixty rows, whose numbers are none in some."""
    return "".join(f"{row(step, NAN if step in broken else 3 / step)}\n" for step in range(1, 61)) + END


@each_row(
    "row",
    [
        lambda step, value: f"{'*' * 40} {step}\n{step} {value} **********",
        lambda step, value: f"{step},{value:.4f},{value:.3f}",
        lambda step, value: f"epoch {step:3d} psnr {value:6.2f} ssim {value:.2f}",
        lambda step, value: f"2026-03-01 10:{step - 1:02d}:00 [{step:2d}/60] gen={value:.3e} | 3.2 s",
        lambda step, value: f"step {step} tensor({value}, device='cuda:0')",
    ],
    ids=["stars", "columns", "scores", "times", "tensors"],
)
def test_that_rows_that_turn_to_nan_are_a_failure(row: Row, read: ReadLog) -> None:
    found = read(log(row, broken=range(40, 61)))
    assert found.root is not None
    assert found.root.cause == "nan-or-inf"


@each_row(
    ("row", "broken"),
    [
        # They have numbers again.
        (lambda step, value: f"{step},{value:.4f}", range(20, 26)),
        # A class that the data does not have.
        (lambda step, value: f"epoch {step}: error {value:.2f}, IoU [0.3, nan, 0.4]", range(0)),
    ],
    ids=["again", "absent"],
)
def test_that_nan_that_was_there_all_along_or_passed_is_none(row: Row, broken: range, read: ReadLog) -> None:
    assert read(log(row, broken=broken)).root is None


def test_that_a_block_is_looked_through_once(read: ReadLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many kinds of rows have no number: a table of thousands would take a second for each."""
    looked: list[int] = []

    class Counted(ShapedRows):
        def __init__(self, data: bytes) -> None:
            looked.append(len(data))
            super().__init__(data)

    monkeypatch.setattr(failure_log, "ShapedRows", Counted)
    names = ["".join(letters) for letters in product("abcdef", repeat=3)]
    read("".join(f"{name} of the table = nan\n" for name in names))
    assert len(looked) == 1
