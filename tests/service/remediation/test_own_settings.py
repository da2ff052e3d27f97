"""Settings that only the job's own program knows, such as a script's batch size: changed where they stand."""

from __future__ import annotations

from ingest.logs.inputs import sources
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.warm import diagnosed

STACK = """\
Traceback (most recent call last):
  File "/job/train.py", line 61, in main
    loss.backward()
  File "/opt/env/lib/python3.11/site-packages/torch/_tensor.py", line 626, in backward
    torch.autograd.backward(
"""
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    "79.11 GiB of which 1.31 GiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and "
    "500.00 MiB is reserved by PyTorch but unallocated.\n"
)
KILLED = "RuntimeError: DataLoader worker (pid 4321) is killed by signal: Killed.\n"
TRL = 'File "/opt/env/lib/python3.11/site-packages/trl/trainer/sft_trainer.py", line 9, in training_step\n'


def own(triage: Triage, log: str, *files: ConfigFile) -> tuple[list[tuple[str, str | None, object]], str]:
    """Give the changes of the program's own settings, and the patch."""
    answer = diagnosed(triage, sources.from_text(log), "en", files)
    changes = [
        (change.key, change.from_, change.to) for change in answer.changes if change.framework == "python"
    ]
    return changes, answer.patch or ""


def test_that_one_row_is_not_lowered_under_the_name_of_a_class(triage: Triage) -> None:
    """A batch of one row is what `DataLoader.batch_size` would be; an unknown number leaves it open."""
    rows = {"--batch-size 1": False, "--batch-size $SIZE": True, "": True}
    found = {}
    for words in rows:
        log = f"+ python train.py {words} --lr 3e-4\n{STACK}{OOM}"
        answer = diagnosed(triage, sources.from_text(log), "en", ())
        found[words] = "DataLoader.batch_size" in [change.key for change in answer.changes]
    assert found == rows


def test_that_a_scripts_own_setting_is_lowered_where_it_stands(triage: Triage) -> None:
    """On its command line and in its file, with a value from the job's own; none where none helps."""
    yaml = ConfigFile("conf.yaml", "train:\n  batch_size: 48\n  workers: 16\n")
    rows = {
        f"+ python train.py --batch-size 64 --lr 3e-4\n{STACK}{OOM}": [("batch-size", "64", 32)],
        f"+ python train.py --bs 6 --seq_len 1024\n{STACK}{OOM}": [("bs", "6", 3), ("seq_len", "1024", 512)],
        f"+ python train.py --batch-size 1\n{STACK}{OOM}": [],
        f"+ python train.py --warmup-batch-sizes 64\n{STACK}{OOM}": [],
        f"+ python train.py --num-workers 16 --batch-size 64\n{STACK}{KILLED}": [("num-workers", "16", 8)],
        f"+ python train.py --batch-size 64\n{STACK}{TRL}{OOM}": [],
    }
    assert {log: own(triage, log)[0] for log in rows} == rows
    changes, patch = own(triage, f"{STACK}{OOM}", yaml)
    assert changes == [("train.batch_size", "48", 24)]
    assert "-  batch_size: 48\n+  batch_size: 24\n" in patch


def test_that_a_setting_of_another_phase_is_left_alone(triage: Triage) -> None:
    """The innermost call that names a phase tells which failed."""
    evaluates = STACK.replace("    loss.backward()", "    score = evaluate(model)").replace(
        '  File "/opt', '  File "/job/score.py", line 9, in evaluate\n    out = model(rows)\n  File "/opt', 1
    )
    both = "+ python train.py --eval-batch-size 64 --train-batch-size 32\n"
    rows = {
        f"{both}{STACK}{OOM}": [("train-batch-size", "32", 16)],
        f"{both}{evaluates}{OOM}": [("eval-batch-size", "64", 32)],
        f"+ python train.py --eval-batch-size 64\n{STACK}{OOM}": [],
        f"+ python train.py --batch-size 8\n{evaluates}{OOM}": [("batch-size", "8", 4)],
    }
    assert {log: own(triage, log)[0] for log in rows} == rows
