"""Which of a job's files its first remedy is written into."""

from __future__ import annotations

from dataclasses import replace

from ingest.logs.report import CrashReport
from service.patching.diagnosis_patch import patch_first_step
from service.patching.patches import ConfigFile
from service.schemas.diagnosis import ProposedChange
from tests.factories import whole_corpus
from tests.service.factories import failed, proposal, report
from tests.tables import each_row

TORCH = proposal("torch", ">=2.3.0", kind="package", framework="pip")
NUMPY = proposal("numpy", "<2", kind="package", framework="pip")


@each_row(
    ("listed", "changes", "is_patched"),
    [
        ("dependencies:\n- pip:\n  - torch==2.0.1\n  - numpy==2.1.3\n", [TORCH, NUMPY], True),
        # The run had an older release than this list has: it was not installed from it.
        ("dependencies:\n- pip:\n  - torch==2.6.0\n  - numpy==2.1.3\n", [TORCH, NUMPY], False),
        ("dependencies:\n- pip:\n  - torch==2.6.0\n  - numpy==2.1.3\n", [NUMPY, TORCH], False),
    ],
)
def test_that_no_list_is_patched_which_the_environment_was_not_made_from(
    listed: str, changes: list[ProposedChange], *, is_patched: bool
) -> None:
    told: CrashReport = report(failed())
    made = patch_first_step(changes, [ConfigFile("environment.yml", listed)], told, whole_corpus())
    assert bool(made.edits) is is_patched


PARSER = "p = argparse.ArgumentParser()\np.add_argument('--per_device_train_batch_size')\n{}p.parse_args()\n"


@each_row(
    ("code", "is_patched"),
    [
        (PARSER.format(""), False),
        (PARSER.format("p = deepspeed.add_config_arguments(p)\n"), False),
        (PARSER.format("p.add_argument('--attn_implementation')\n"), True),
        # Options that another module adds, and what the parser lets pass, are not to be seen here.
        (PARSER.format("add_model_options(p)\n"), True),
        (PARSER.format("").replace("parse_args", "parse_known_args"), True),
        ("args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n", True),
    ],
    ids=["own", "and-deepspeed", "defined", "added-elsewhere", "lets-pass", "of-dataclasses"],
)
def test_that_no_option_is_added_that_the_script_refuses(code: str, *, is_patched: bool) -> None:
    """A script's own parser ends the program at an option that it was not told of."""
    told = replace(report(failed()), launches=(f"{code}\ntrain.py",))
    script = "torchrun --nproc_per_node 2 train.py \\\n  --per_device_train_batch_size 4 --output_dir out\n"
    files = [ConfigFile("run.sh", script), ConfigFile("train.py", code)]
    change = proposal("attn_implementation", "sdpa", framework="transformers")
    assert bool(patch_first_step([change], files, told, whole_corpus()).edits) is is_patched
