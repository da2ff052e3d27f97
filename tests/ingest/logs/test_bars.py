"""Progress bars beside failures: what is drawn as a program dies, and what shows that it works on."""

from __future__ import annotations

import pytest

from tests.factories import ReadLog
from tests.tables import each_row

DEATH = """Traceback (most recent call last):
  File "/home/ana/job/train.py", line 9, in <module>
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory.
"""
MAIN_DIES = DEATH.replace("loss.backward()", "main()")
UPLOAD = "WARNING - __main__ - upload failed: [Errno 28] No space left on device: '/tmp/a'"


def bar(step: int, total: int, name: str = "batch") -> str:
    """Draw a bar as tqdm does."""
    return f"{name}: {100 * step // total:3d}%|###   | {step}/{total} [04:18<04:01,  1.12s/it]"


def rows(first: int, last: int, total: int) -> list[str]:
    """Draw a bar again and again."""
    return [bar(step, total) for step in range(first, last)]


# What stands in a log, and whether a failure of it stands at its end.
ROWS = {
    "closing bars of an epoch and a batch": (
        [*rows(221, 231, 445), *DEATH.splitlines(), bar(2, 20, "epoch"), bar(230, 445)],
        True,
    ),
    "work that goes on": ([*rows(1, 9, 445), *DEATH.splitlines(), *rows(9, 19, 445)], False),
    "the bars of others that write into the same log": (
        [*rows(1, 9, 445), *MAIN_DIES.splitlines(), *rows(9, 19, 445)],
        True,
    ),
    "a later run's bars below the end of an earlier one's main program": (
        [*rows(1, 9, 99), *MAIN_DIES.splitlines(), *rows(0, 40, 445)],
        False,
    ),
    # What another rank draws once says nothing of the one that died.
    "another rank's shards": ([*DEATH.splitlines(), bar(4, 4, "Loading checkpoint shards")], True),
    "a warning at each checkpoint and the last one": (
        [*rows(1, 9, 20), UPLOAD, *rows(9, 21, 20), UPLOAD, bar(20, 20)],
        False,
    ),
}


@each_row("name", ROWS, ids=str)
def test_whether_a_failure_stands_among_bars(name: str, read: ReadLog) -> None:
    """Each bar counts by its own length; a redraw at the same count is no work, but a sign of life."""
    lines, stands = ROWS[name]
    assert (read("\n".join(lines) + "\n").root is not None) is stands


@pytest.mark.parametrize("more", [0, 30])
def test_the_end_of_a_part_is_the_end_where_it_is_last(more: int, read: ReadLog) -> None:
    """Results that are saved amid the work close nothing."""
    lines = ["Evaluating 1/2", "Results saved to out/eval_0.json"]
    lines += [f"scoring sample {number}" for number in range(more)]
    end = read("\n".join(lines) + "\n").log_end
    assert (end.kind == "closed") is (more == 0)


def drawn(step: int, total: int, taken: str, name: str = "") -> str:
    """Draw a bar with the time that it has taken."""
    return f"{name}{100 * step // total:3d}%|###   | {step}/{total} [{taken}<00:10,  1.12s/it]"


MAIN = [drawn(step, 50, f"02:{step:02d}") for step in (1, 20, 40, 50)]
# What a log shows that holds no failure, and whether that is its good end.
ENDS = {
    "the bar of the work is full": (MAIN, True),
    "results behind it": ([*MAIN, "Accuracy: 48.4 Hit: 54.5"], True),
    "redrawn within one row": (["\r".join(MAIN)], True),
    "a row of many redrawings, longer than is read": (
        ["\r".join(drawn(step, 9999, "10:00") for step in range(9000)) + "\r" + drawn(9999, 9999, "11:00")],
        True,
    ),
    "a bar that is not full": (MAIN[:3], False),
    "much more behind it": ([*MAIN, *(f"reading shard {number}" for number in range(30))], False),
    "an epoch's bar, which begins again": ([*MAIN, *MAIN], False),
    "an epoch's bar within one that is not full": ([drawn(0, 10, "00:00", "Epoch: "), *MAIN], False),
    "the last of all epochs": ([*MAIN, drawn(10, 10, "20:00", "Epoch: ")], True),
    "a bar of what is loaded": (
        [line.replace("%|", "%|", 1) for line in map("Loading shards: ".__add__, MAIN)],
        False,
    ),
    "a short one behind the work": ([*MAIN[:3], drawn(9, 9, "00:02", "Saving: ")], False),
    "steps that are short of their number": (["step 3/900 loss: 2.1", "step 4/900 loss: 2.0", *MAIN], False),
    # Each of four adapters draws a bar within, whose last rows are left out.
    "bars within the main one, which has counted on": (
        [
            drawn(0, 4, "00:00", "adapters: "),
            *(drawn(step, total, "00:40") for total in (61, 62) for step in (1, total - 9)),
            drawn(4, 4, "09:00", "adapters: "),
        ],
        True,
    ),
    "a bar within the main one, begun before that": (
        [drawn(0, 4, "00:00", "epochs: "), drawn(1, 61, "00:09"), drawn(61, 61, "09:00")],
        False,
    ),
    "a bar that is drawn once more as a trainer stops": (
        ["`Trainer.fit` stopped: `max_steps=2` reached.", drawn(2, 2058, "00:03", "Epoch 0: ")],
        True,
    ),
    "another bar, begun as a trainer has stopped": (
        ["`Trainer.fit` stopped: `max_steps=2` reached.", drawn(0, 99, "00:00"), drawn(2, 99, "00:03")],
        False,
    ),
    "results behind a count in strides, the last one short of its end": (
        [*(f"step {step}/942 loss: 2.1" for step in range(100, 1000, 100)), "Results saved to out/a.json"],
        True,
    ),
    "results behind a count in strides, one stride before its end": (
        [*(f"step {step}/1000 loss: 2.1" for step in range(100, 1000, 100)), "Results saved to out/a.json"],
        False,
    ),
    "results behind the last step but one": (
        [*(f"step {step}/5 loss: 2.1" for step in range(1, 5)), "Results saved to out/a.json"],
        False,
    ),
    "results behind a count in strides, amid it": (
        [*(f"step {step}/942 loss: 2.1" for step in range(100, 800, 100)), "Results saved to out/a.json"],
        False,
    ),
    "steps that count from zero": ([f"step {step}/5 loss: {9 - step}" for step in range(5)], True),
    "steps that count from one": ([f"step {step}/5 loss: {9 - step}" for step in range(1, 5)], False),
    "the shell's prompt": (["Perplexity: 9.31", "(torch2) [zk@node sparsegpt]$"], True),
    "a stop on the job's own condition": (["epoch 15 done", "[Stop Condition Met] Stopping training."], True),
    "all items done": (["Q 40: B", "Finished all questions. Saving JSON to out/results.json..."], True),
    "a wait for an end": (["Perplexity: 9.31", ">>> 等待本批次 8 个任务完成..."], False),
    "where the tracker keeps its logs": (
        ["test accuracy 0.66", "wandb: Find logs at: wandb/run-20250218_0226-ab12/logs"],
        True,
    ),
    "a prompt with a command": (["Perplexity: 9.31", "(torch2) [zk@node sparsegpt]$ python a.py"], False),
}


@each_row("name", ENDS, ids=str)
def test_whether_a_log_without_a_failure_shows_a_good_end(name: str, read: ReadLog) -> None:
    """Only the bar of the main work closes a log, and only where the text ends with it."""
    lines, is_closed = ENDS[name]
    assert (read("\n".join(lines) + "\n").log_end.kind == "closed") is is_closed
