"""Rows that show a program at work without counting: results and checkpoints."""

from __future__ import annotations

from tests.factories import ReadLog
from tests.tables import each_row

TESTED = "Accuracy of the network on the 50000 test images: 8{0}.3%\n"
# A text, and how it ends.
ROWS = {
    "results": ("tuning ...\nval loss: 0.62\nt_pred:\n[0.13 0.15]\nPrecision: 1.0\nF1 Score: 0.8\n", "open"),
    "results of a round": ("Train loss at epoch 3:   1.92\n", "open"),
    "a table of results": ("  bleu    meteor\n------  --------\n0.91     0.90\n==========\n", "open"),
    "a banner": ("loss: 0.5\n##### Done! #####\n", "closed"),
    "a banner of a part": ("#### Done ####\n" + "a row\n" * 20 + "#### Testing ####\n", "open"),
    "a banner of each part": ("==== done ====\na row\n==== done ====\na row\n", "unseen"),
    "a checkpoint": ("nohup: ignoring input\nSaved checkpoint to None...\n", "open"),
    "results far above": ("Accuracy: 0.7\n" + "a row\n" * 200, "unseen"),
    "no result": ("precision is a matter of taste\nthe score: see below\n", "unseen"),
    "a model's test": ("Test: [9/10] Loss 0.6\n" + TESTED.format(1), "closed"),
    "a test amid the training": ("step 4/100 loss 2.1\n" * 3 + TESTED.format(1), "open"),
    "a test of each epoch": (TESTED.format(1) + "a row\n" + TESTED.format(2), "unseen"),
    "a test far above": (TESTED.format(1) + "a row\n" * 200, "open"),
    "a result behind what counts": ("step 4/100 loss 2.1\n" * 3 + "a row\n" * 200 + "F1: 0.8\n", "unseen"),
}


@each_row("name", ROWS, ids=str)
def test_that_results_are_signs_of_work(name: str, read: ReadLog) -> None:
    """They count where nothing tells how far the program came, and make no good end."""
    text, kind = ROWS[name]
    assert read(text).log_end.kind == kind


STAGE = "Training completed successfully.\n"
NEXT = [f"eval: {step}%|###   | {step}/100 [00:0{step % 10}<00:09, 9.1it/s]\n" for step in range(1, 60)]


def test_that_another_stage_behind_a_good_end_leaves_it_open(read: ReadLog) -> None:
    """A last evaluation that comes to its end does not; one left amid, or far below the end, does."""
    work = "step 10/10 loss 0.1\n"
    whole = [row.replace("/100 ", "/12 ") for row in NEXT[:12]]
    assert read(work + STAGE + "".join(whole)).log_end.kind == "closed"
    assert read(work + STAGE + "".join(NEXT[:12])).log_end.kind == "open"
    assert read(work + STAGE + "a row\n" * 90 + "".join(NEXT)).log_end.kind == "open"


def test_that_an_error_level_without_a_word_of_trouble_may_end_well(read: ReadLog) -> None:
    done = "INFO:__main__:Finetuning done!\n"
    assert read("CRITICAL:__main__:Starting finetuning\n" + done).root is None
    assert read("CRITICAL:__main__:Starting finetuning\n").root is not None
    assert read("CRITICAL:__main__:cannot reach the tracker\n" + done).root is not None
