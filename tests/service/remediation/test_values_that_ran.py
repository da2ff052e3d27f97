"""The value that was in force: the file that the launch line chooses, and what a sweep passes."""

from __future__ import annotations

from ingest.logs.inputs import sources
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import opened

OOM = (
    "[2026-01-01 10:00:00,000] [INFO] [launch.py:256:main] process 1 spawned with command: {command}\n"
    "[2026-01-01 10:00:02,000] [INFO] [logging.py:96:log_dist] [Rank 0] DeepSpeed info: version=0.14.0, "
    "git-hash=unknown, git-branch=unknown\n"
    'Traceback (most recent call last):\n  File "/job/train.py", line 90, in <module>\n    trainer.train()\n'
    '  File "/env/lib/python3.11/site-packages/transformers/trainer.py", line 2000, in training_step\n'
    "    loss = model(**inputs)\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.73 GiB. GPU 1 has a total capacity of "
    "39.56 GiB of which 2.49 GiB is free. Including non-PyTorch memory, this process has 37.06 GiB memory in "
    "use.\n"
)
STAGE = '"stage": 3, "overlap_comm": true, "reduce_bucket_size": 500000000'
PLAIN = '{"bf16": {"enabled": "auto"}, "zero_optimization": {' + STAGE + "}}"
OFFLOAD = (
    '{"bf16": {"enabled": "auto"}, "zero_optimization": {'
    + STAGE
    + ', "offload_optimizer": {"device": "cpu"}}}'
)
RUN = "deepspeed train.py \\\n    --deepspeed configs/zero3.json \\\n    --bf16 True\n"


def files(**texts: str) -> list[ConfigFile]:
    """Give files by their names, `__` for the dot."""
    return [ConfigFile.of(name.replace("__", "."), text) for name, text in texts.items()]


def test_that_the_configuration_beside_the_chosen_one_is_offered(triage: Triage) -> None:
    """What a remedy asks for and the other file has is a switch of the launch line, which the patch makes."""
    given = files(run__sh=RUN, zero3__json=PLAIN, zero3_offload__json=OFFLOAD)
    log = OOM.format(command="['python', '-u', 'train.py', '--deepspeed', 'configs/zero3.json']")
    first = opened(triage, sources.from_text(log), "en", given).first
    change = first.changes[0]
    assert (change.key, change.from_, change.to) == (
        "--deepspeed",
        "configs/zero3.json",
        "configs/zero3_offload.json",
    )
    assert "+    --deepspeed configs/zero3_offload.json \\" in (first.patch or "")


@each_row(
    "other",
    [
        # Another kind of file, one that the launch line names too, and one that is without what is asked for.
        {"zero3_offload__json": '{"columns": {"prompt": "text"}}'},
        {"zero3_offload__json": OFFLOAD, "more__sh": "deepspeed train.py --deepspeed zero3_offload.json\n"},
        {"zero3_wide__json": PLAIN.replace("500000000", "900000000")},
    ],
)
def test_that_no_other_file_is_offered_that_is_none(triage: Triage, other: dict[str, str]) -> None:
    """Only a file of the same kind that the launch line does not name, and that has it, is in its place."""
    given = files(run__sh=RUN, zero3__json=PLAIN, **other)
    first = opened(triage, sources.from_text(OOM.format(command="")), "en", given).first
    assert all(change.key != "--deepspeed" for change in first.changes)


SWEEP = (
    "import subprocess\nsizes = {values}\n\nfor size in sizes:\n"
    '    subprocess.run(f"python train.py --batch_size {{{field}}} --lr 1e-4", shell=True)\n'
)
DEFAULT = "from dataclasses import dataclass\n\n@dataclass\nclass Config:\n    batch_size: int = 4\n"


def test_that_a_configuration_that_others_are_composed_of_stays_the_run_s(triage: Triage) -> None:
    """Files that code puts together have keys in common, and none is in the place of another."""
    program = 'cfg = load("config.yaml")\n'
    given = files(
        train__py=program, config__yaml="batch_size: 8\nlr: 1\n", model__yaml="batch_size: 32\nlr: 2\n"
    )
    found = opened(triage, sources.from_text(OOM.format(command="")), "en", given).assessment.settings
    assert {item.file for item in found if item.key == "batch_size"} == {"config.yaml", "model.yaml"}


@each_row(
    ("sweep", "to", "is_told"),
    [
        (SWEEP.format(values="[16, 64]", field="size"), "below 64", True),
        (SWEEP.format(values="(32,)", field="size"), "below 32", True),
        (SWEEP.format(values="load_sizes()", field="size"), 2, False),
        ("print('no sweep')\n", 2, False),
    ],
)
def test_that_what_a_sweep_passes_is_what_ran(triage: Triage, sweep: str, to: object, is_told: bool) -> None:
    """A default in code is not what ran where a program of the job's passes another value."""
    given = files(train__py=DEFAULT, sweep__py=sweep)
    first = opened(triage, sources.from_text(OOM.format(command="")), "en", given).first
    change = next(change for change in first.changes if "batch_size" in change.key)
    assert (change.to, "passes it" in change.why) == (to, is_told)
    assert not is_told or "batch_size" not in (first.patch or first.suggestion or "")
