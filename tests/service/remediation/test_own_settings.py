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


def test_that_each_kind_of_option_is_known_by_its_name(triage: Triage) -> None:
    """What a cause calls for has many names: lengths in tokens, counts of answers, a norm, a type."""
    nan = "ValueError: loss is nan at step 12, stopping training\n"
    half = "RuntimeError: Input type (c10::Half) and bias type (float) should be the same\n"
    rows = {
        f"+ python train.py --max-prompt-tokens 2048\n{STACK}{OOM}": ("max-prompt-tokens", 1024),
        f"+ python train.py --max_response_length 1024\n{STACK}{OOM}": ("max_response_length", 512),
        f"+ python train.py --num-rollouts 64\n{STACK}{OOM}": ("num-rollouts", "smaller than now"),
        f"+ python train.py --n_envs 4096\n{STACK}{OOM}": ("n_envs", "smaller than now"),
        f"+ python train.py --grad-clip-norm 10\n{STACK}{nan}": ("grad-clip-norm", "1.0, or less than now"),
        f"+ python train.py --clip_grad 50\n{STACK}{nan}": ("clip_grad", "1.0, or less than now"),
        f"+ python train.py --grad_checkpoint False\n{STACK}{OOM}": ("grad_checkpoint", True),
        f"+ python train.py --use_amp True\n{STACK}{half}": ("use_amp", False),
        f"+ python train.py --model-dtype float16\n{STACK}{half}": (
            "model-dtype",
            "one type for weights and input, such as float32",
        ),
    }
    found = {log: [(key, to) for key, _, to in own(triage, log)[0]] for log in rows}
    assert {log: (rows[log] if rows[log] in made else made) for log, made in found.items()} == rows
    others = [
        f"+ python train.py --warmup-rollout-steps 64\n{STACK}{OOM}",
        f"+ python train.py --log-grad-norm-every 10\n{STACK}{nan}",
        f"+ python train.py --index-dtype-names a\n{STACK}{half}",
    ]
    assert [own(triage, log)[0] for log in others] == [[], [], []]
