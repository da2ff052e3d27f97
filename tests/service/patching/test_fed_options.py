"""A framework's setting that the code has from an option of the job's own is changed at that option."""

from __future__ import annotations

from pathlib import Path

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.fed_options import fed_by
from tests.service.patching.applying import applied
from tests.tables import each_row
from tests.warm import explained

PARSER = "p = ArgumentParser()\np.add_argument('--per_step', type=int, default=8)\nargs = p.parse_args()\n"


@each_row(
    ("code", "fed"),
    [
        (f"{PARSER}Trainer(rows=args.per_step)\n", "--per_step"),
        (f"{PARSER}size = args.per_step\nTrainer(rows=size)\n", "--per_step"),
        ("Trainer(rows=cfg.data.batch_size)\n", "data.batch_size"),
        ("Trainer(rows=config['data']['batch_size'])\n", "data.batch_size"),
        ("Trainer(rows=self.cfg.batch_size)\n", "batch_size"),
        # What is counted from an option is another number.
        (f"{PARSER}Trainer(rows=args.per_step // 2)\n", None),
        (f"{PARSER}Trainer(rows=args.per_step)\nTrainer(rows=args.other)\n", None),
        ("Trainer(rows=8)\n", None),
        ("size = 1\nsize = args.per_step\nTrainer(rows=size)\n", None),
        ("Trainer(rows=net.batch_size)\n", None),
    ],
)
def test_a_keyword_leads_to_the_option_that_it_is_given(code: str, fed: str | None) -> None:
    assert fed_by("rows", "", [JobFile("train.py", code)]) == fed


LOG = (
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 5, in <module>\n'
    "    trainer.train()\n"
    '  File "/env/lib/python3.11/site-packages/transformers/trainer.py", line 3736, in training_step\n'
    "    loss = self.compute_loss(model, inputs)\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of "
    "23.69 GiB of which 1.00 GiB is free. Of the allocated memory 21.00 GiB is allocated by PyTorch\n"
)
TRAIN = (
    f"{PARSER}trainer = Trainer(args=TrainingArguments(output_dir='out', learning_rate=1e-5, "
    "per_device_train_batch_size=args.per_step))\ntrainer.train()\n"
)


def test_the_patch_changes_the_command_that_gives_the_option(triage: Triage, tmp_path: Path) -> None:
    script = "python train.py --per_step 8 --lr 1e-5\n"
    answer = explained(triage, LOG, ConfigFile("train.py", TRAIN), ConfigFile("run.sh", script))
    first = answer.changes[0]
    assert first.key == "per_device_train_batch_size"
    assert "`--per_step`" in first.why
    after = applied(tmp_path, script, answer.patch or "", "run.sh")
    assert after == script.replace("--per_step 8", f"--per_step {first.to}")


def test_a_script_that_only_installs_is_patched_for_a_package(triage: Triage, tmp_path: Path) -> None:
    """It starts no program of the run, and yet it makes the environment."""
    log = (
        "Traceback (most recent call last):\n"
        '  File "/job/train.py", line 3, in <module>\n    rows = load_dataset("a/b")\n'
        '  File "/env/lib/python3.11/site-packages/datasets/load.py", line 1031, in dataset_module_factory\n'
        '    raise RuntimeError(f"Dataset scripts are no longer supported, but found {filename}")\n'
        "RuntimeError: Dataset scripts are no longer supported, but found b.py\n"
    )
    setup = 'pip install \\\n    "torch" \\\n    "datasets>=3.0"\n'
    train = "from datasets import load_dataset\n\nrows = load_dataset('a/b')\n"
    answer = explained(triage, log, ConfigFile("train.py", train), ConfigFile("setup_node.sh", setup))
    after = applied(tmp_path, setup, answer.patch or "", "setup_node.sh")
    assert after == setup.replace("datasets>=3.0", "datasets<4.0.0")
