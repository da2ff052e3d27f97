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
