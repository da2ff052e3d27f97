"""Commands that a message tells how to write are none that ran."""

from __future__ import annotations

from ingest.configfiles.shell.commands import is_usage
from tests.factories import ReadLog
from tests.tables import each_row


@each_row(
    "row",
    [
        "  Example: sglang serve --model-path <model> [options]",
        "vllm serve <model> --port 8000",
        "torchrun --nproc_per_node=<gpus> train.py",
        "python train.py [--lr LR] --seed 1",
    ],
)
def test_that_blanks_are_a_usage_text(row: str, read: ReadLog) -> None:
    assert is_usage(row)
    assert not read(f"{row}\nstep 1/10 loss 2.0\n").settings


@each_row(
    "row",
    [
        "torchrun --nproc_per_node=8 train.py --lr 1e-5 <input.txt >out.log",
        "python -m verl.trainer.main_ppo data.files=[a,b] trainer.n_gpus_per_node=8",
    ],
)
def test_that_redirections_and_lists_are_none(row: str) -> None:
    assert not is_usage(row)
