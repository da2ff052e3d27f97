"""A good end that more follows: what breaks off, is only announced, or goes on for pages has not ended."""

from __future__ import annotations

import pytest

from ingest.logs.last_rows import leave_open, leave_uncounted
from tests.factories import ReadLog

ENDED = "step 10/10 | loss: 1.2\nTraining complete!\n"
FRAME = '  File "/job/save.py", line 40, in write\n'
CALLS = "Traceback (most recent call last):\n" + FRAME


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ("", "closed"),
        ("Final loss: 1.2\n", "closed"),
        # Calls of an exception whose name was never written.
        (CALLS, "open"),
        (CALLS + "    os.rename(old, new)\n", "open"),
        (CALLS + "    os.rename(old, new)\n    ^^^^^^^^^\n", "open"),
        # What begins, in the words of its program.
        ("Saving the final model...\n", "open"),
        ("2026-01-02 10:11:12,345 - INFO - [job] - Converting to GGUF …\n", "open"),
        ("[2/3] Evaluating on math...\n", "open"),
        ("正在保存最终模型...\n", "open"),
        ("Seed 1/3 ...\n", "open"),
        ("Seed 3/3 ...\n", "open"),
        # What a program says as it leaves, or of what it has done.
        ("Exiting...\n", "closed"),
        ("Cleaning up...\n", "closed"),
        ("wandb: Waiting for W&B process to finish...\n", "closed"),
        ("Training took 3 hours, evaluating 10 minutes.\n", "closed"),
        # Pages behind an end are of other work.
        ("".join(f"Images processed: {number}\n" for number in range(300)), "open"),
    ],
)
def test_that_an_end_counts_only_where_the_log_ends_with_it(read: ReadLog, rows: str, kind: str) -> None:
    assert read(ENDED + rows).log_end.kind == kind


@pytest.mark.parametrize("last", [b"", b"\n", b"a row that just ends", b"loss: 0.1...", b"\r\r"])
def test_that_rows_which_announce_nothing_leave_nothing_open(last: bytes) -> None:
    assert not leave_open([(1, b"Training complete!"), (2, last)])


COUNTS = "Answering {0}/900 questions\nAnswering {1}/900 questions\n"


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (COUNTS.format(41, 42), "open"),
        ("scored 300 of 900\nscored 400 of 900\nMean so far: 0.4\n", "open"),
        # By hundreds, or from 0, the last that is told is not the total.
        (COUNTS.format(700, 800), "closed"),
        (COUNTS.format(898, 899), "closed"),
        # One row alone may count anything, and so do rows in other words.
        ("Correct: 42/900\n", "closed"),
        ("Correct: 42/900\nSkipped: 43/900\n", "closed"),
        ("Fold 2/5\nCorrect: 41/900\nFold 3/5\nCorrect: 40/900\nFold 4/5\nFold 5/5\n", "closed"),
    ],
)
def test_that_results_amid_a_count_are_those_of_a_part(read: ReadLog, rows: str, kind: str) -> None:
    """A script that saves after some of its questions and is killed then has not come to its end."""
    assert read(f"{rows}Results saved to out/scores.json\n").log_end.kind == kind


def test_that_counts_of_other_totals_are_not_one() -> None:
    """Two loops in like words count apart."""
    assert not leave_uncounted([(1, b"row 4/10"), (2, b"row 5/90")])
