"""The job's own configuration, as its output or a launch script shows it."""

from __future__ import annotations

import pytest

from ingest.logs.launch import SettingLog, from_command, from_dump, from_file, is_command, logical_lines
from tests.factories import ReadLog


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo +data.new=1 ~data.old=2",
         {"m": ("verl.trainer.main_ppo", "flag"), "algorithm.adv_estimator": ("grpo", "hydra"), "data.new": ("1", "hydra"), "data.old": ("2", "hydra")}),
        ("torchrun --nproc_per_node 8 --nnodes=2 train.py --bf16 --lr 1e-6",
         {"nproc_per_node": ("8", "flag"), "nnodes": ("2", "flag"), "bf16": ("true", "flag"), "lr": ("1e-6", "flag")}),
        ("NCCL_DEBUG=INFO PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py",
         {"NCCL_DEBUG": ("INFO", "env"), "PYTORCH_CUDA_ALLOC_CONF": ("expandable_segments:True", "env")}),
        ("export RAY_memory_usage_threshold=0.9", {"RAY_memory_usage_threshold": ("0.9", "env")}),
        ("python a.py 'data.files=[a.parquet, b.parquet]'", {"data.files": ("[a.parquet, b.parquet]", "hydra")}),
        ('python a.py --name "two words" --last', {"name": ("two words", "flag"), "last": ("true", "flag")}),
        ("python a.py path=$HOME/data lr=${LR:-1e-6}", {"path": ("$HOME/data", "hydra"), "lr": ("${LR:-1e-6}", "hydra")}),
        ("python a.py --x 1 # --y 2", {"x": ("1", "flag")}),
        ("python a.py 'unclosed --x=1", {"x": ("1", "flag")}),
        ("python a.py --offset -1 --y 2", {"offset": ("-1", "flag"), "y": ("2", "flag")}),
    ],
)
def test_a_command_gives_its_settings_as_written(command: str, expected: dict[str, tuple[str, str]]) -> None:
    """Overrides, flags and variables are told apart; nothing is evaluated."""
    assert {item.key: (item.value, item.spelled) for item in from_command(command, 4)} == expected
    assert {item.line for item in from_command(command, 4)} == {4}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Namespace(lr=1e-06, zero_stage=3, name='a b')", {"lr": "1e-06", "zero_stage": "3", "name": "a b"}),
        ("Error executing job with overrides: ['data.train_batch_size=30', '+x.y=z']", {"data.train_batch_size": "30", "x.y": "z"}),
        ("INFO 03-02 10:00:00 [utils.py:326] non-default args: {'model': 'm', 'max_model_len': 8192}", {"model": "m", "max_model_len": "8192"}),
        ("server_args=ServerArgs(model_path='m', mem_fraction_static=0.88)", {"model_path": "m", "mem_fraction_static": "0.88"}),
        ("non-default args: {'model': __import__('os').system('x')}", {}),
        ("Error executing job with overrides: ['cut off", {}),
        ("nothing here", {}),
    ],
)
def test_a_printed_configuration_gives_its_settings(text: str, expected: dict[str, str]) -> None:
    """What frameworks print of themselves is read, never run."""
    assert {item.key: item.value for item in from_dump(text, 1)} == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("python3 -m verl.trainer.main_ppo", True), ("+ torchrun --nproc 8", True), ("set -x; srun bash", True), ("export A=1", True),
     ("pythonic code", False), ("the ray is bright", True), ("loss 0.3", False)],
)
def test_a_line_that_starts_a_program_is_a_command(text: str, expected: bool) -> None:
    """Launchers are known by name."""
    assert is_command(text) is expected


def test_continuation_lines_are_one_command() -> None:
    """A backslash joins; the number is that of the first line."""
    script = "#!/bin/bash\npython a.py \\\n  --x 1 \\\n  y=2\n\nexport Z=3"
    assert [(item.key, item.value, item.line) for item in from_file(script)] == [("x", "1", 2), ("y", "2", 2), ("Z", "3", 6)]
    assert list(logical_lines("a \\\n")) == [(1, "a ")]


def test_the_first_value_of_a_setting_stays() -> None:
    """A later print of the same setting does not replace it."""
    log = SettingLog()
    log.add(from_command("python a.py --x 1", 1))
    log.add(from_command("python a.py --x 2 --y 3", 9))
    assert [(item.key, item.value, item.line) for item in log.all()] == [("x", "1", 1), ("y", "3", 9)]


def test_a_hostile_log_cannot_fill_the_memory_with_settings() -> None:
    """There is a bound."""
    log = SettingLog()
    log.add(from_command("python a.py " + " ".join(f"k{number}=1" for number in range(9000)), 1))
    assert len(log.all()) == SettingLog.LIMIT


def test_a_logs_command_and_its_continuation_are_read_and_redacted(read: ReadLog) -> None:
    """The report holds the job's settings with secrets masked."""
    report = read("+ python3 -m verl.trainer.main_ppo \\\n    trainer.nnodes=2 \\\n    --api_key sk-proj-abcdefghijklmnopqrstuvwx\n")
    assert {item.key: item.value for item in report.settings} == {"m": "verl.trainer.main_ppo", "trainer.nnodes": "2",
                                                                  "api_key": "[redacted:openai-key]"}
