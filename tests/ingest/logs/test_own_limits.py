"""Runs that end by a limit which they set themselves, and such as are ended by somebody else's."""

from __future__ import annotations

from tests.factories import ReadLog
from tests.tables import each_row

EPOCHS = "Epoch 1/90 train loss 2.1 val loss 2.2\nEpoch 2/90 train loss 1.8 val loss 2.0\n"
STEPS = "step 100/9000 loss 2.1\nstep 200/9000 loss 2.0\n"


@each_row(
    "text",
    [
        STEPS + "stopping: time budget of 600s reached\nfinal val_loss 1.88\n",
        STEPS + "stopping_early: wallclock_cap train_time: 600120ms step:201/9000\npeak memory: 30123 MiB\n",
        STEPS + "Time budget exhausted (10 min). Stopping training.\nval loss 1.97\n",
        STEPS + "Training time limit reached (3600s). Saving checkpoint and exiting.\nSaved out/ckpt.pt\n",
        STEPS + "Wall-clock limit reached after 30 min, ending training\n",
        STEPS + "Token budget of 10B reached; finishing\n",
        EPOCHS + "Time limit reached. Elapsed time is 0:02:25. Signaling Trainer to stop.\n",
        EPOCHS + "Early stopping triggered after 2 epochs (patience 1)\nBest val loss 2.0\n",
        EPOCHS + "No improvement for 10 epochs. Early stopping.\nLoaded the best model of epoch 2\n",
        EPOCHS + "Validation loss has not improved for 5 epochs, stopping early\n",
        EPOCHS + "Early stop at epoch 2 (patience exhausted)\n",
        EPOCHS + "LAUNCH INFO 2026-01-05 03:04:10,000 Pod completed\n",
        "[1/3] scored\n[2/3] scored: no answer found\n[3/3] scored\n",
        "step 100 loss 2.1\nstep 200 loss 2.0\nAll done!\n",
    ],
)
def test_that_a_run_which_its_own_limit_ends_has_ended_well(text: str, read: ReadLog) -> None:
    report = read(text)
    assert (report.root, report.log_end.kind) == (None, "closed")


@each_row(
    "text",
    [
        # Somebody else's limit, or one of a part.
        STEPS + "Time limit exceeded, killing job\n",
        STEPS + "wall time limit reached, job killed\n",
        STEPS
        + "slurmstepd: error: *** JOB 88123 ON n1 CANCELLED AT 2026-01-05T03:04:05 DUE TO TIME LIMIT ***\n",
        STEPS + "timeout: sending signal TERM to command 'python'\n",
        STEPS + "time limit reached for problem 3\n",
        STEPS + "time budget 600 s\n",
        STEPS + "Early stopping: loss is nan\n",
        STEPS + "LAUNCH INFO 2026-01-05 03:04:10,000 Pod failed\n",
        # Words that others say too, before the last step.
        STEPS + "All done!\n",
        STEPS + "Done.\n",
        "[1/3] scored\n[2/3] scored: no answer found\n",
        # And what fails behind such an end, or had failed before it.
        STEPS + "stopping: time budget of 600s reached\nOSError: [Errno 28] No space left on device\n",
        STEPS + "torch.OutOfMemoryError: CUDA out of memory.\nstopping: time budget of 600s reached\n",
    ],
)
def test_that_a_run_which_somebody_else_ends_has_not(text: str, read: ReadLog) -> None:
    report = read(text)
    assert report.root is not None or report.log_end.kind != "closed"


@each_row(
    "word", ["Early stopping: loss is nan", "aborting, loss was inf", "exiting since the loss is not finite"]
)
def test_that_a_run_which_its_loss_ends_has_failed_by_that(word: str, read: ReadLog) -> None:
    root = read(f"{STEPS}{word}\n").root
    assert root is not None
    assert root.cause == "nan-or-inf"
