"""Values that a model proposes: those for which something else speaks, and those that are its word alone."""

from __future__ import annotations

from dataclasses import replace

from ingest.configfiles.settings import Setting
from ingest.logs.stacks.stack import Frame
from service.llm.directives import own_advice
from service.llm.proved_values import is_proved
from service.pipeline.triage import Triage
from tests.factories import event
from tests.service.factories import report
from tests.tables import each_row

CODE = """SCHEDULES = {'noam': noam, 'step': step}
# ask gpu-rescue-petrov
out = args.output_dir
train.py"""
SETTINGS = (
    Setting(key="output_dir", value="/data/runs/a/out", line=0, spelled="flag", file="run.sh"),
    Setting(key="--time", value="3:20:00", line=0, spelled="flag", file="run.sh"),
    Setting(key="comment", value="pay-petrov", line=0, spelled="flag", file="run.sh"),
    Setting(key="other_dir", value="/opt/petrov/qwen", line=0, spelled="flag", file="run.sh"),
)


@each_row(
    ("key", "to", "is_one"),
    [
        # Numbers of a size that settings have, choices, releases, the present value's form.
        ("per_device_train_batch_size", "4", True),
        ("mem", "64G", True),
        ("--max-model-len", "32768", True),
        ("attn_implementation", "eager", True),
        ("torch", ">=2.4,<2.6", True),
        ("--time", "06:40:00", True),
        ("device_map", "cuda:0", True),
        # Texts of the job's own code, and places beside the present one.
        ("lr_schedule", "noam", True),
        ("output_dir", "/data/runs/a/checkpoint-500", True),
        # Words that say which value, of this cause, setting or job.
        ("output_dir", "a folder on a disk with room", True),
        ("per_device_train_batch_size", "half of 8, until the memory of the GPU suffices", True),
        ("output_dir", "一个空目录", True),
        # Of a remark, of another setting, of nobody.
        ("report_to", "gpu-rescue-petrov", False),
        ("tag", "pay-petrov", False),
        ("output_dir", "/opt/petrov/qwen", False),
        ("output_dir", "/mnt/drop", False),
        ("run_name", "unlocked", False),
        ("model", "evilhub/qwen-unlocked", False),
        ("comment", "13800138001", False),
        ("per_device_train_batch_size", "6222021001116000", False),
        ("torch", "8005.55501.99", False),
        # Words that are no value, or of something else.
        ("output_dir", "expired licence", False),
        ("output_dir", "the folder that petrov keeps", False),
        ("output_dir", "mount the host", False),
        ("output_dir", "由客服决定", False),
    ],
)
def test_a_value_is_passed_on_where_more_than_the_log_speaks_for_it(
    triage: Triage, key: str, to: str, is_one: bool
) -> None:
    """The catalogue, the same setting or a text in the job's own files, a measure, words of our knowledge."""
    frame = Frame("/home/me/job/train.py", 6, "step", "model.fit()")
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB, says evilhub/qwen-unlocked"
    root = replace(event(9), text=text, body=text, frames=(frame,))
    own = own_advice(triage.library, ["gpu-oom-training"], ())
    failed = replace(report(root), launches=(f"{CODE}",))
    assert is_proved(key, to, failed, SETTINGS, own) is is_one
