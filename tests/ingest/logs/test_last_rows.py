"""A good end that more follows: what breaks off, is only announced, or goes on for pages has not ended."""

from __future__ import annotations

import pytest

from ingest.logs.last_rows import leave_open
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
        # What a program says as it leaves, or of what it has done.
        ("Exiting...\n", "closed"),
        ("Cleaning up...\n", "closed"),
        ("wandb: Waiting for W&B process to finish...\n", "closed"),
        ("Seed 3/3 ...\n", "closed"),
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
