"""What all ranks must call stands where all ranks come."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

LOG = (
    "[rank{rank}]:[E1107 05:44:11.1 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=90, OpType=ALLREDUCE, NumelIn={count}, NumelOut={count}, "
    "Timeout(ms)=600000) ran for 600021 milliseconds before timing out.\n"
)
WAITED = LOG.format(rank=0, count=1) + LOG.format(rank=1, count=4096)
BARRIER = (
    "def save(model, rank):\n    if {test}:\n        torch.save(model, 'a.pt')\n        dist.barrier()\n"
    "    return 1\n"
)
LOGGED = (
    "class Net(L.LightningModule):\n    def on_validation_epoch_end(self):\n"
    "        if self.trainer.is_global_zero:\n            self.log('b', 1.0, {argument})\n"
)


@each_row(
    ("code", "put"),
    [
        (BARRIER.format(test="rank == 0"), "    dist.barrier()"),
        (BARRIER.format(test="accelerator.is_main_process"), "    dist.barrier()"),
        (BARRIER.format(test="not args.local_rank"), "    dist.barrier()"),
        (BARRIER.format(test="dist.get_rank() == 0"), "    dist.barrier()"),
        (LOGGED.format(argument="sync_dist=True"), "            self.log('b', 1.0, rank_zero_only=True)"),
        # Without the argument, or of one rank by another, it is no call of all; another test is no guard.
        (LOGGED.format(argument="prog_bar=True"), ""),
        (LOGGED.format(argument="sync_dist=True, rank_zero_only=True"), ""),
        (BARRIER.format(test="step == 0"), ""),
    ],
)
def test_that_a_call_of_all_ranks_leaves_the_block_of_one(triage: Triage, code: str, put: str) -> None:
    made = explained(triage, WAITED, ConfigFile("train.py", code))
    rows = [row for row in (made.suggestion or "").split("\n") if row.startswith("+") and "+++" not in row]
    assert rows == ([f"+{put}"] if put else [])


@each_row(
    "code",
    [
        "def save(x):\n    if rank != 0:\n        return\n    write(x)\n    dist.all_reduce(x)\n",
        "def f(x):\n    if not self.is_global_zero:\n        pass\n    else:\n        self.all_gather(x)\n",
        "def save(x):\n    if rank == 0:\n        dist.broadcast(x, src=0)\n        write(x)\n",
    ],
)
def test_that_a_call_that_cannot_be_moved_by_itself_is_only_told(triage: Triage, code: str) -> None:
    made = explained(triage, WAITED, ConfigFile("train.py", code))
    told = [str(change.to) for change in made.changes if change.key.startswith("train.py:")]
    assert (made.suggestion, len(told)) == (None, 1)
    assert "every rank" in told[0]


@each_row(
    "code",
    [
        # Two of them, a function that is only defined there, and what the ranks do call together.
        "if rank == 0:\n    dist.barrier()\n    dist.barrier()\n",
        "if rank == 0:\n    def wait():\n        dist.barrier()\n",
        "if rank == 0:\n    write()\ndist.barrier()\n",
    ],
)
def test_that_nothing_is_told_of_what_may_be_right(triage: Triage, code: str) -> None:
    made = explained(triage, WAITED, ConfigFile("train.py", code))
    assert not any(change.key.startswith("train.py:") for change in made.changes)
