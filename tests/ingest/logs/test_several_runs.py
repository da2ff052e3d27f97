"""Several runs in one file: what one of them counted, and how it ended, tells nothing of another's end."""

from __future__ import annotations

from tests.factories import ReadLog, prefixed
from tests.tables import each_row

BEGIN = (
    "Namespace(data='/data/lark', epochs=3, device='cuda')\nUsing a world size of eight cards here\n"
    "Number of parameters in the network: many\nCreating the data set of the training part\n"
)
TRAINED = "".join(
    f"Train: epoch [{epoch}/3], step [40/40], Loss: 0.5\nBest val accuracy: 9{epoch}.1\n"
    for epoch in (1, 2, 3)
)
TESTED = "Test: [20/20] Time 0.5\nBest val accuracy: 93.2\n"
DONE = "Training complete!\n"
CUT = "Train: epoch [1/3], step [20/40], Loss: 0.5\n"


@each_row(
    ("text", "kind"),
    [
        # The words of an end were said by the training above, and once by the run that ends here.
        (BEGIN + TRAINED + DONE + BEGIN + TESTED, "closed"),
        (prefixed("[05-01 10:00:00] ", BEGIN + TRAINED + DONE + BEGIN + TESTED), "closed"),
        # Three trainings, of which the second is shorter and each reaches its last step.
        (BEGIN + "step 90/90 loss 0.5\n" + BEGIN + "step 40/40 loss 0.4\n", "closed"),
        # One that has only begun, or is amid its work, is no end for the good one of the first.
        (BEGIN + TRAINED + DONE + BEGIN, "open"),
        (BEGIN + TRAINED + DONE + BEGIN + CUT, "open"),
        (BEGIN + "step 90/90 loss 0.5\n" + BEGIN + "step 20/40 loss 0.4\n", "open"),
        # What comes after each epoch ends nothing, where the file begins amid a loop as well.
        (BEGIN + TRAINED.replace("/3]", "/9]"), "open"),
    ],
)
def test_that_each_run_has_an_end_of_its_own(read: ReadLog, text: str, kind: str) -> None:
    assert read(text).log_end.kind == kind


LOOP = (
    "Collecting rollouts of the policy for the round\nTraining the critic on what was seen there\n"
    "Saving what the round has given so far\nBest val accuracy: 91.0\n"
)


def test_that_a_loop_that_a_file_begins_amid_is_no_start_of_a_program(read: ReadLog) -> None:
    assert read(LOOP * 4).log_end.kind != "closed"


WANDB = "wandb: Tracking run with wandb version 0.19.1\n"
FINISHED = "{'train_runtime': 51.2, 'train_samples_per_second': 31.2, 'train_loss': 0.41, 'epoch': 3.0}\n"
LAST_STEP = "step 90/90 loss 0.5\n"


@each_row(
    ("text", "kind"),
    [
        (WANDB + FINISHED, "closed"),
        (WANDB + FINISHED + WANDB + "reading the data\n", "open"),
        (WANDB + FINISHED + "***** Running training *****\n  Num examples = 50\n", "open"),
        (LAST_STEP + "swanlab: Tracking run with swanlab version 0.6.1\nreading the data\n", "open"),
        (WANDB + FINISHED + WANDB + "reading the data\n" + FINISHED, "closed"),
        # What dies has said so much, or so little, of it when its log is cut.
        (FINISHED + "Traceback (most recent call last):\n", "open"),
    ],
)
def test_that_work_that_begins_behind_a_good_end_has_not_ended(read: ReadLog, text: str, kind: str) -> None:
    assert read(text).log_end.kind == kind
