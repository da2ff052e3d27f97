"""Epochs that a log numbers: the last of all ends it, where it was told as fully as those before it."""

from __future__ import annotations

from tests.factories import ReadLog
from tests.tables import each_row


def epochs(first: int, last: int, of: int, *more: str) -> list[str]:
    """Give a line for each epoch, with more lines of the same kind in each."""
    return [
        row
        for epoch in range(first, last + 1)
        for row in (
            f"Epoch {epoch}/{of} train loss: 0.{epoch}1",
            *(f"Epoch {epoch}/{of} {one}" for one in more),
        )
    ]


# The rows of a log, and how it ends.
ROWS = {
    "the last of all epochs": (epochs(1, 3, 3), "closed"),
    "two rows for each epoch": (epochs(1, 3, 3, "val loss: 0.4"), "closed"),
    "the last epoch without its second row": (epochs(1, 3, 3, "val loss: 0.4")[:-1], "open"),
    "an epoch before the last": (epochs(1, 2, 3), "open"),
    "one epoch alone, which may have begun": (epochs(3, 3, 3), "open"),
    "many rows in each epoch, and it stops amid": (
        [*epochs(1, 2, 3, *["batch loss: 0.3"] * 9), *epochs(3, 3, 3, *["batch loss: 0.3"] * 4)],
        "open",
    ),
    "a gap, as of a long log parts are read": (
        [*epochs(1, 3, 99, "val loss: 0.4"), *epochs(95, 99, 99, "val loss: 0.4")],
        "closed",
    ),
    "a gap, and the last epoch without its second row": (
        [*epochs(1, 3, 99, "val loss: 0.4"), *epochs(95, 99, 99, "val loss: 0.4")[:-1]],
        "open",
    ),
    "epochs that begin anew": ([*epochs(1, 3, 3), *epochs(1, 3, 3)], "open"),
    "the time that it took, once": (["epoch 7 loss: 0.2", "Elapsed time: 306.59 minutes"], "closed"),
    "the time that it took, before the last epoch": (
        [*epochs(1, 7, 9), "Elapsed time: 306.59 minutes"],
        "open",
    ),
    "the time that each epoch took": (
        [row for epoch in (1, 2) for row in (f"epoch {epoch} loss: 0.3", "Elapsed time: 30.1 minutes")],
        "open",
    ),
    "the time that a part took, amid the counted steps": (
        ["step 10/100 loss: 0.3", "step 11/100 loss: 0.3", "Elapsed time: 30.1 minutes"],
        "open",
    ),
    "the time that it took, far above the end": (
        ["Total time: 12.1 s", *["a row"] * 20, *epochs(1, 2, 3)],
        "open",
    ),
    "a bar of the first epoch, which warms up, below the words of an end": (
        [
            "Early stopping.",
            *(
                f"Epoch 0 [warmup]: {step}%|#  | {step}/100 [00:0{step}<00:09, 9.1it/s]"
                for step in range(1, 9)
            ),
        ],
        "open",
    ),
    "far above the end": ([*epochs(1, 3, 3), *["a row"] * 40], "open"),
    "the last batch of the last epoch": (
        ["Epoch:[2/2](400/400), Reward: -1.4, Learning Rate: 0.01"],
        "closed",
    ),
    "the last batch of another epoch": (["Epoch:[1/2](400/400), Reward: -1.4, Learning Rate: 0.01"], "open"),
    "a batch of the last epoch": (["Epoch:[2/2](300/400), Reward: -1.4, Learning Rate: 0.01"], "open"),
    "a bar of more work below it": (
        [
            *epochs(1, 3, 3),
            *(f"{step}%|#   | {step}/100 [00:0{step}<00:09, 9.1it/s]" for step in range(1, 9)),
        ],
        "open",
    ),
}


@each_row("name", ROWS, ids=str)
def test_whether_the_last_epoch_ends_a_log(name: str, read: ReadLog) -> None:
    lines, kind = ROWS[name]
    assert read("\n".join(lines) + "\n").log_end.kind == kind


def test_that_a_failure_below_the_last_epoch_stands(read: ReadLog) -> None:
    report = read("\n".join([*epochs(1, 3, 3), "KeyError: 'model'"]) + "\n")
    assert report.root is not None
