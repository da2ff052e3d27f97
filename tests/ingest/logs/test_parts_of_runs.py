"""One of several runs in a file ends for itself; a model is written at the last epoch of all."""

from __future__ import annotations

from tests.factories import ReadLog
from tests.tables import each_row

SAVED = "Model saved to out/model.pt\n"
DONE = "Training completed.\n"


def epochs(first: int, last: int, of: int = 5) -> str:
    """Give the lines of these epochs, the last one included."""
    return "".join(f"Epoch {number}/{of} train loss 0.{90 - number}\n" for number in range(first, last + 1))


@each_row(
    "heading",
    [
        "Fold {0}/3\n",
        "=== Run {0} of 3: seed=7 ===\n",
        "Starting experiment {0}/3\n",
        "[{0}/3] Running config lr=1e-4\n",
        "[{0}/3] seed 7\n",
    ],
)
def test_that_the_end_of_one_part_is_not_that_of_all(heading: str, read: ReadLog) -> None:
    """Whatever a part says as it ends: only the last of them may end the log."""
    for last in (1, 2):
        parts = range(1, last + 1)
        for words in ("", DONE, SAVED, "All epochs finished.\n" + DONE):
            text = "".join(heading.format(part) + epochs(1, 5) + words for part in parts)
            assert read(text).log_end.kind == "open", text
    whole = "".join(heading.format(part) + epochs(1, 5) + DONE for part in (1, 2, 3))
    assert read(whole).log_end.kind == "closed"


@each_row("words", [DONE, SAVED, "Training finished in 31 s\n"])
def test_a_second_stage(words: str, read: ReadLog) -> None:
    """Another stage that has begun to count is not ended by the word of the first."""
    assert read(epochs(1, 5) + words).log_end.kind == "closed"
    assert read(epochs(1, 5) + words + "Now the student\n" + epochs(1, 1)).log_end.kind == "open"


def test_a_written_model_at_the_last_epoch(read: ReadLog) -> None:
    """Where the epochs begin with 0 the last one is one less than their number."""
    assert read(epochs(0, 4) + SAVED).log_end.kind == "closed"
    assert read(epochs(0, 4) + "Saved the trained model to out/m.pt\n").log_end.kind == "closed"


@each_row(
    "text",
    [
        # One before the last, whether the first was 0, 1 or not told.
        epochs(0, 3) + SAVED,
        epochs(1, 4) + SAVED,
        epochs(3, 4) + SAVED,
        # Written after each epoch, and the last one lacks.
        "".join(epochs(number, number) + SAVED for number in range(4)),
        "".join(epochs(number, number) + SAVED for number in range(1, 5)),
        # How many there are nobody says.
        "epoch 1 loss 0.9\nepoch 2 loss 0.8\n" + SAVED,
        # Said of what is to come.
        epochs(0, 3) + "Model will be saved to out/model.pt\n",
    ],
)
def test_a_written_model_before_the_last_epoch(text: str, read: ReadLog) -> None:
    """The same words tell of a checkpoint, which is no end."""
    assert read(text).log_end.kind == "open"


@each_row("death", ["Killed\n", "Segmentation fault (core dumped)\n", "RuntimeError: no such luck\n"])
def test_a_death_behind_the_written_model(death: str, read: ReadLog) -> None:
    """What dies behind it has died."""
    assert read(epochs(0, 4) + SAVED + death).root is not None
