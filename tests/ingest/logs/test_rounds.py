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


def keras(epoch: int) -> list[str]:
    """Give what Keras prints of one of two epochs."""
    return [f"Epoch {epoch}/2", f"9/9 [{'=' * 30}] - 3s 28ms/step - loss: 0.3 - val_loss: 0.4"]


def runs(last: int) -> list[str]:
    """Give the runs of three up to one, each with its result."""
    return [
        row
        for run in range(1, last + 1)
        for row in (f"=== run {run}/3: lr=1e-{run} ===", "step 200 loss 0.3", f"acc 0.8{run}")
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
    "epochs from 0 on": (epochs(0, 2, 3), "closed"),
    "epochs from 0 on, and one is left": (epochs(0, 1, 3), "open"),
    "the last batch, where both counts begin with 0": (
        [f"Epoch: [{epoch}/2][{batch}/100] Loss 0.3" for epoch in (0, 1) for batch in (0, 50, 99)],
        "closed",
    ),
    "as many as the arguments say": (
        ["Namespace(batch_size=32, epochs=3)", *(f"Epoch {epoch} loss: 0.3" for epoch in range(3))],
        "closed",
    ),
    "fewer than the arguments say": (
        ["Namespace(batch_size=32, epochs=3)", *(f"Epoch {epoch} loss: 0.3" for epoch in range(2))],
        "open",
    ),
    "more than some number says that is of something else": (
        ["epochs: 2", *(f"Epoch {epoch} loss: 0.3" for epoch in range(1, 5))],
        "open",
    ),
    "the smaller of two numbers that the arguments say": (
        ["Namespace(epochs=3, max_epochs=30)", *(f"Epoch {epoch} loss: 0.3" for epoch in range(3))],
        "open",
    ),
    "the last epoch without the result of each": (
        [row for epoch in (1, 2, 3) for row in (f"Epoch {epoch}/3 loss: 0.3", f"val acc: 0.8{epoch}")][:-1],
        "open",
    ),
    "the last epoch with the result of each": (
        [row for epoch in (1, 2, 3) for row in (f"Epoch {epoch}/3 loss: 0.3", f"val acc: 0.8{epoch}")],
        "closed",
    ),
    "the last step that the command says": (
        ["+ python train.py --steps 40", *(f"iter {step}: loss 0.3" for step in (20, 40))],
        "closed",
    ),
    "a step before the last that the command says": (
        ["+ python train.py --steps 60", *(f"iter {step}: loss 0.3" for step in (20, 40))],
        "open",
    ),
    "bars of Keras to the last": ([row for epoch in (1, 2) for row in keras(epoch)], "closed"),
    "a bar of Keras before its validation": (
        [*keras(1), "Epoch 2/2", f"9/9 [{'=' * 30}] - ETA: 0s - loss: 0.3"],
        "open",
    ),
    "a bar of Keras amid its epoch": (
        [*keras(1), "Epoch 2/2", f"4/9 [{'=' * 12}>{'.' * 17}] - ETA: 2s - loss: 0.3"],
        "open",
    ),
    "an epoch of Keras that has begun": ([*keras(1), "Epoch 2/2"], "open"),
    "another training of Keras that has begun": (
        [row for epoch in (1, 2) for row in keras(epoch)] + ["Epoch 1/2"],
        "open",
    ),
    "a test once, behind all epochs": (
        [*(f"Epoch {epoch} loss: 0.3" for epoch in range(3)), "Test accuracy 0.81"],
        "closed",
    ),
    "a test behind the first epoch": (["Epoch 1 loss: 0.3", "Test accuracy 0.81"], "open"),
    "a test before another epoch": (
        ["Epoch 1 loss: 0.3", "Epoch 2 loss: 0.3", "Test accuracy 0.81", "Epoch 3 loss: 0.3"],
        "open",
    ),
    "runs to the last": (runs(3), "closed"),
    "the last run without what each ends with": (runs(3)[:-1], "open"),
    "the heading of the last run": (runs(3)[:-2], "open"),
    "runs before the last": (runs(2), "open"),
    "a last run behind the words of a good end": (
        ["step 9/9 loss 0.1", "Training complete.", "=== run 2/2: test ==="],
        "open",
    ),
    "a list of runs behind the words of a good end": (
        ["step 9/9 loss 0.1", "Training complete.", "run 1/2: best", "run 2/2: second"],
        "closed",
    ),
    "a program that a shell begins behind the words of a good end": (
        ["step 9/9 loss 0.1", "Training complete.", "+ python export.py --in out"],
        "open",
    ),
    "what a shell cleans up behind the words of a good end": (
        ["step 9/9 loss 0.1", "Training complete.", "+ rm -rf /tmp/stage"],
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
