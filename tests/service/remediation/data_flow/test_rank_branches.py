"""A collective in a branch of one rank is taken out of it; one that the others meet too is left alone."""

from __future__ import annotations

from service.remediation.code_edits.failing_code import JobFile
from service.remediation.data_flow.rank_branches import rank_branch_edit, rank_branch_words
from tests.service.factories import failed, report
from tests.tables import each_row

SAID = "[Rank 1] Watchdog caught collective operation timeout"


def _edited(text: str, cause: str = "collective-desync") -> str | None:
    log = report(failed(text=SAID, body=SAID, cause=cause))
    edit = rank_branch_edit(log, [JobFile("train.py", text)])
    return edit.text if edit is not None else None


HEAD = "def score(x):\n    return accelerator.gather_for_metrics(x)\n"


@each_row(
    ("body", "wanted"),
    [
        (
            "if accelerator.is_main_process:\n    y = score(x)\n    print(y)\n",
            "y = score(x)\nif accelerator.is_main_process:\n    print(y)\n",
        ),
        ("if rank == 0:\n    dist.barrier()\n", "dist.barrier()\n"),
        (
            "if step % 5 == 0 and dist.get_rank() == 0:\n    y = score(x)\n    print(y)\n",
            "if step % 5 == 0:\n    y = score(x)\n    if dist.get_rank() == 0:\n        print(y)\n",
        ),
        (
            "if trainer.is_global_zero and done:\n    dist.all_reduce(x)\n",
            "if done:\n    dist.all_reduce(x)\n",
        ),
        # The other ranks come to the same call, or the collective is amid the branch.
        ("if rank == 0:\n    dist.broadcast(x, 0)\nelse:\n    dist.broadcast(y, 0)\n", None),
        ("if rank == 0:\n    dist.barrier()\nload()\nif local_rank == 0:\n    dist.barrier()\n", None),
        ("if rank == 0:\n    dist.barrier()\n    print(x)\n    dist.barrier()\n", None),
        ("if rank == 0 and done:\n    print(x)\n    dist.barrier()\n", None),
        (
            "if not args.local_rank:\n    torch.save(x, 'a.pt')\n    dist.barrier()\n",
            "if not args.local_rank:\n    torch.save(x, 'a.pt')\ndist.barrier()\n",
        ),
        ("if rank == 0:\n    print(x)\n    dist.barrier()\n    print(y)\n", None),
        # Shards are gathered from all.
        (
            "if rank == 0:\n    with FSDP.state_dict_type(m):\n        s = m.sd()\n    torch.save(s)\n",
            "with FSDP.state_dict_type(m):\n    s = m.sd()\nif rank == 0:\n    torch.save(s)\n",
        ),
        ("if rank == 0 or done:\n    dist.barrier()\n", None),
        ("if rank == 0:\n    print(x)\n", None),
        ("if step == 0:\n    dist.barrier()\n", None),
    ],
)
def test_that_a_collective_is_taken_out_of_a_branch_of_one_rank(body: str, wanted: str | None) -> None:
    assert _edited(HEAD + body) == (None if wanted is None else HEAD + wanted)


def test_that_another_cause_says_nothing_of_branches() -> None:
    assert _edited("if rank == 0:\n    dist.barrier()\n", "host-oom-kill") is None


def test_that_a_branch_whose_rows_cannot_be_moved_is_told() -> None:
    log = report(failed(text=SAID, body=SAID, cause="collective-desync"))
    text = "if rank == 0:\n    print(x)\n    dist.barrier()\n    print(y)\n"
    found = rank_branch_words(log, [JobFile("train.py", text)])
    assert found is not None
    assert found.en.startswith("take row 3 out of the branch at train.py:1: `dist.barrier`")
    assert "train.py:1" in found.zh
