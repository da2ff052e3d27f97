"""The job's own configuration, as its output or a launch script shows it."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.configfiles.shell.commands import logical_lines
from ingest.logs.configs.launch import SettingLog, from_command, from_dump, from_file, is_command
from tests.factories import RAY, ReadLog, interleaved, prefixed
from tests.tables import each_row


@each_row(
    ("command", "expected"),
    [
        (
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo +data.new=1 ~data.old=2",
            {
                "m": ("verl.trainer.main_ppo", "flag"),
                "algorithm.adv_estimator": ("grpo", "hydra"),
                "data.new": ("1", "hydra"),
                "data.old": ("2", "hydra"),
            },
        ),
        (
            "torchrun --nproc_per_node 8 --nnodes=2 train.py --bf16 --lr 1e-6",
            {
                "nproc_per_node": ("8", "flag"),
                "nnodes": ("2", "flag"),
                "bf16": ("true", "flag"),
                "lr": ("1e-6", "flag"),
            },
        ),
        (
            "NCCL_DEBUG=INFO PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py",
            {"NCCL_DEBUG": ("INFO", "env"), "PYTORCH_CUDA_ALLOC_CONF": ("expandable_segments:True", "env")},
        ),
        ("export RAY_memory_usage_threshold=0.9", {"RAY_memory_usage_threshold": ("0.9", "env")}),
        (
            "python a.py 'data.files=[a.parquet, b.parquet]'",
            {"data.files": ("[a.parquet, b.parquet]", "hydra")},
        ),
        ('python a.py --name "two words" --last', {"name": ("two words", "flag"), "last": ("true", "flag")}),
        (
            "python a.py path=$HOME/data lr=${LR:-1e-6}",
            {"path": ("$HOME/data", "hydra"), "lr": ("${LR:-1e-6}", "hydra")},
        ),
        ("python a.py --x 1 # --y 2", {"x": ("1", "flag")}),
        ("python a.py 'unclosed --x=1", {"x": ("1", "flag")}),
        ("python a.py --offset -1 --y 2", {"offset": ("-1", "flag"), "y": ("2", "flag")}),
        ("python a.py --tag run#3 --x 1 2>&1 | tee log.txt", {"tag": ("run#3", "flag"), "x": ("1", "flag")}),
        ("++ export NCCL_DEBUG=INFO", {"NCCL_DEBUG": ("INFO", "env")}),
        ("+ NNODES=2 SEQ=4096", {"NNODES": ("2", "env"), "SEQ": ("4096", "env")}),
        ("env OMP_NUM_THREADS=4 python a.py --x 1", {"OMP_NUM_THREADS": ("4", "env"), "x": ("1", "flag")}),
        (
            "docker run --rm -e NCCL_DEBUG=INFO --env=A=b --shm-size 64g lark:1 python a.py --x 1",
            {
                "rm": ("true", "flag"),
                "NCCL_DEBUG": ("INFO", "env"),
                "A": ("b", "env"),
                "shm-size": ("64g", "flag"),
                "x": ("1", "flag"),
            },
        ),
        (
            "+ srun --export=ALL,NCCL_DEBUG=INFO bash -c 'torchrun --standalone a.py --x 1; echo done'",
            {
                "export": ("ALL,NCCL_DEBUG=INFO", "flag"),
                "NCCL_DEBUG": ("INFO", "env"),
                "c": ("torchrun --standalone a.py --x 1; echo done", "flag"),
                "standalone": ("true", "flag"),
                "x": ("1", "flag"),
            },
        ),
        ("mpirun -np 8 -x NCCL_ALGO=Ring python a.py", {"np": ("8", "flag"), "NCCL_ALGO": ("Ring", "env")}),
        (
            (
                """ray job submit --runtime-env-json='{"env_vars": {"NCCL_DEBUG": "INFO"}, "pip": ["a"]}' """
                "-- python3 -m lark.train trainer.nnodes=2"
            ),
            {
                "NCCL_DEBUG": ("INFO", "env"),
                "pip": ('["a"]', "json"),
                "runtime-env-json": ('{"env_vars": {"NCCL_DEBUG": "INFO"}, "pip": ["a"]}', "flag"),
                "m": ("lark.train", "flag"),
                "trainer.nnodes": ("2", "hydra"),
            },
        ),
        (
            "Running entrypoint for job raysubmit_Kq3: bash run.sh trainer.nnodes=2",
            {"trainer.nnodes": ("2", "hydra")},
        ),
        (
            "cmd = /opt/bin/python3 -u -m deepspeed.launcher.launch --world_info=eyJh sft.py --zero_stage 2",
            {
                "u": ("true", "flag"),
                "m": ("deepspeed.launcher.launch", "flag"),
                "world_info": ("eyJh", "flag"),
                "zero_stage": ("2", "flag"),
            },
        ),
        (
            "run sh: `/opt/bin/python /opt/swift/cli/sft.py --model lark --lora_rank 8`",
            {"model": ("lark", "flag"), "lora_rank": ("8", "flag")},
        ),
        ("step=5 lr=3 of the run by python a.py x=1", {"x": ("1", "hydra")}),
        (
            "+ MODEL_ARGS='--layers 24 --bf16'",
            {"MODEL_ARGS": ("--layers 24 --bf16", "env"), "layers": ("24", "flag"), "bf16": ("true", "flag")},
        ),
        ("+ pip install -U 'vllm==0.8.4' torch", {"vllm": ("==0.8.4", "package")}),
        ("+ uv pip install 'lark[all]>=2,<3'", {"lark": (">=2,<3", "package")}),
    ],
)
def test_a_command_gives_its_settings_as_written(command: str, expected: dict[str, tuple[str, str]]) -> None:
    """Overrides, flags and variables are told apart; nothing is evaluated."""
    assert {item.key: (item.value, item.spelled) for item in from_command(command, 4)} == expected
    assert {item.line for item in from_command(command, 4)} == {4}


@each_row(
    ("text", "expected"),
    [
        ("python3 -m verl.trainer.main_ppo", True),
        ("+ torchrun --nproc 8", True),
        ("set -x; srun bash", True),
        ("export A=1", True),
        ("pythonic code", False),
        ("the ray is bright", True),
        ("loss 0.3", False),
    ],
)
def test_a_line_that_starts_a_program_is_a_command(text: str, expected: bool) -> None:
    """Launchers are known by name."""
    assert is_command(text) is expected


@each_row(
    "text",
    [
        "+ kubectl logs deploy/lark --tail=120",
        "+ echo --lr 1",
        "+ ls -l --color=auto",
        "usage: python a.py [--lr LR]",
        "+ pip list --format=freeze",
        "c++ -MMD -O3 -I/opt/lib/python3.10 a.cpp",
        "+ cat run.sh",
        "",
    ],
)
def test_a_command_that_starts_no_job_configures_none(text: str) -> None:
    """What only shows, moves or builds is left out."""
    assert from_command(text, 1) == []


def test_that_the_head_of_a_slurm_script_is_read_in_a_log(read: ReadLog) -> None:
    """Pasted above its traceback, or printed by the job; a remark that looks like one says nothing."""
    report = read(
        "#!/bin/bash\n#SBATCH --gpus-per-task=1\n#SBATCH -N 2 --exclusive\n# SBATCH --mem=1G\n"
        "RuntimeError: CUDA error: invalid device ordinal\n"
    )
    given = {item.key: item.value for item in report.settings if item.spelled == "directive"}
    assert given == {"gpus-per-task": "1", "nodes": "2", "exclusive": "true"}
    assert "slurm" in {item.name for item in report.frameworks}


def test_continuation_lines_are_one_command() -> None:
    """A backslash joins; each setting has the line it stands in."""
    script = "#!/bin/bash\npython a.py \\\n  --x 1 \\\n  y=2\n\nexport Z=3"
    assert [(item.key, item.value, item.line) for item in from_file(script)] == [
        ("x", "1", 3),
        ("y", "2", 4),
        ("Z", "3", 6),
    ]
    assert list(logical_lines("a \\\n")) == [(1, "a ")]


def test_the_first_value_of_a_setting_stays() -> None:
    """A later print of the same setting does not replace it."""
    log = SettingLog()
    log.add(from_command("python a.py --x 1", 1))
    log.add(from_command("python a.py --x 2 --y 3", 9))
    assert [(item.key, item.value, item.line) for item in log.all()] == [("x", "1", 1), ("y", "3", 9)]


def test_the_options_of_the_last_of_several_runs_count() -> None:
    """A program that prints all its options twice has begun twice; another program's row changes nothing."""
    log = SettingLog()
    names = [f"k{number}" for number in range(SettingLog.WHOLE)]
    for line, value in ((1, "1"), (9, "2")):
        log.add(from_dump(f"Namespace({', '.join(f'{name}={value}' for name in names)})", line))
    log.add(from_dump(f"Namespace({', '.join(f'{name}=3' for name in [*names, 'more'])})", 20))
    told = {item.key: (item.value, item.line) for item in log.all()}
    assert told == dict.fromkeys(names, ("2", 9)) | {"more": ("3", 20)}


def test_the_last_value_of_one_command_counts(read: ReadLog) -> None:
    """A program takes what stands last, as where a script adds the user's own arguments to its defaults."""
    command = "NCCL_DEBUG=INFO python train.py data.size=1 --lr 1 data.size=2 --lr=3"
    expected = [("NCCL_DEBUG", "INFO"), ("data.size", "2"), ("lr", "3")]
    assert [(item.key, item.value) for item in from_command(command, 1)] == expected
    assert [(item.key, item.value) for item in from_file(command, "run.sh")] == expected
    assert [(item.key, item.value) for item in read(f"+ {command}\nValueError: x\n").settings] == expected


def test_a_hostile_log_cannot_fill_the_memory_with_settings() -> None:
    """There is a bound."""
    log = SettingLog()
    log.add(from_command("python a.py " + " ".join(f"k{number}=1" for number in range(9000)), 1))
    assert len(log.all()) == SettingLog.LIMIT


def test_a_logs_command_and_its_continuation_are_read_and_redacted(read: ReadLog) -> None:
    """The report holds the job's settings with secrets masked."""
    report = read(
        "+ python3 -m verl.trainer.main_ppo \\\n    trainer.nnodes=2 \\\n    --api_key "
        "sk-proj-abcdefghijklmnopqrstuvwx\n"
    )
    assert {item.key: item.value for item in report.settings} == {
        "m": "verl.trainer.main_ppo",
        "trainer.nnodes": "2",
        "api_key": "[redacted:openai-key]",
    }


def test_a_command_over_rows_of_two_processes_is_told_apart(read: ReadLog) -> None:
    """Each process's continuation lines are its own."""
    one = prefixed(RAY, "+ python a.py \\\n  --x 1 \\\n  --y 2")
    other = prefixed("(Other pid=7) ", "+ python b.py \\\n  --z 3 \\\n  --w 4")
    assert {item.key: (item.value, item.line) for item in read(interleaved(one, other)).settings} == {
        "x": ("1", 1),
        "y": ("2", 1),
        "z": ("3", 2),
        "w": ("4", 2),
    }


SCRIPT = """\
#!/bin/bash
#SBATCH --nodes=2 --mem=64G  # per node
#SBATCH -t 12:00:00
MODEL=/m/lark   # the model
STEPS=100
STEPS=200
export NCCL_DEBUG=INFO
GPT_ARGS=(
    --num-layers 24
    --bf16
)
DATA_ARGS="
    --data-path $MODEL/text \\
    --split 99,1
"
python a.py "${GPT_ARGS[@]}" --model ${MODEL} --steps $STEPS --lr ${LR:-1e-6} \\
    out.dir=$MODEL/out
"""
FILES = [
    (
        "run.sbatch",
        SCRIPT,
        {
            "nodes": ("2", 2, "directive"),
            "mem": ("64G", 2, "directive"),
            "time": ("12:00:00", 3, "directive"),
            "MODEL": ("/m/lark", 4, "env"),
            "STEPS": ("100", 5, "env"),
            "NCCL_DEBUG": ("INFO", 7, "env"),
            "num-layers": ("24", 9, "flag"),
            "bf16": ("true", 10, "flag"),
            "data-path": ("/m/lark/text", 13, "flag"),
            "split": ("99,1", 14, "flag"),
            "model": ("/m/lark", 16, "flag"),
            "steps": ("$STEPS", 16, "flag"),
            "lr": ("${LR:-1e-6}", 16, "flag"),
            "out.dir": ("/m/lark/out", 17, "hydra"),
        },
    ),
    (
        "config.yaml",
        "trainer:\n  nnodes: 2  # two\n  logger: [console]\ndata: {files: a, n: 1}\n",
        {
            "trainer.nnodes": ("2", 2, "yaml"),
            "trainer.logger": ("[console]", 3, "yaml"),
            "data.files": ("a", 4, "yaml"),
            "data.n": ("1", 4, "yaml"),
        },
    ),
    (
        ".hydra/overrides.yaml",
        "- data.train_batch_size=30\n- +x.y=z\n",
        {"data.train_batch_size": ("30", 1, "hydra"), "x.y": ("z", 2, "hydra")},
    ),
    (
        "pod.yaml",
        (
            "apiVersion: v1\nkind: Pod\nspec:\n  priorityClassName: low\n  containers:\n  - name: lark\n  "
            "  resources:\n      limits:\n        memory: 64Gi\n"
            "    env:\n    - name: NCCL_DEBUG\n      value: INFO\n"
        ),
        {
            "apiVersion": ("v1", 1, "yaml"),
            "kind": ("Pod", 2, "yaml"),
            "priorityClassName": ("low", 4, "yaml"),
            "name": ("lark", 6, "yaml"),
            "resources.limits.memory": ("64Gi", 9, "yaml"),
            "NCCL_DEBUG": ("INFO", 12, "env"),
        },
    ),
    (
        "compose.yml",
        "services:\n  lark:\n    shm_size: 64g\n    environment:\n      - NCCL_DEBUG=INFO\n",
        {"services.lark.shm_size": ("64g", 3, "yaml"), "NCCL_DEBUG": ("INFO", 5, "env")},
    ),
    (
        "ds.json",
        '{\n  "zero_optimization": {\n    "stage": 3\n  },\n  "bf16": {"enabled": true}\n}\n',
        {"zero_optimization.stage": ("3", 3, "json"), "bf16.enabled": ("true", 5, "json")},
    ),
    (
        "requirements-gpu.txt",
        "# pins\nvllm==0.8.4 ; python_version > '3.8'\ntorch>=2.5,<2.7  # both\nnumpy\n-e .\n",
        {"vllm": ("==0.8.4", 2, "package"), "torch": (">=2.5,<2.7", 3, "package")},
    ),
    (
        ".env",
        "# a\nexport HF_HOME='/d/hf'\nRAY_DEDUP_LOGS=0 # off\n",
        {"HF_HOME": ("/d/hf", 2, "env"), "RAY_DEDUP_LOGS": ("0", 3, "env")},
    ),
    (
        "lark.toml",
        'seed = 7\n[trainer]\nnnodes = 2 # two\nname = "a b"\n',
        {"seed": ("7", 1, "dump"), "trainer.nnodes": ("2", 3, "dump"), "trainer.name": ("a b", 4, "dump")},
    ),
]


@each_row(("name", "text", "expected"), FILES, ids=[row[0] for row in FILES])
def test_each_of_the_jobs_own_files_gives_its_settings(
    name: str, text: str, expected: dict[str, tuple[str, int, str]]
) -> None:
    """By its name; the line is the file's."""
    found: dict[str, tuple[str, int, str]] = {}
    for item in from_file(text, name):
        found.setdefault(item.key, (item.value, item.line, item.spelled))
    assert {key: value for key, value in found.items() if key not in ("GPT_ARGS", "DATA_ARGS")} == expected


@each_row(
    ("name", "text"),
    [row[:2] for row in FILES if row[0] != ".env"],
    ids=[row[0] for row in FILES if row[0] != ".env"],
)
def test_a_file_without_a_name_is_known_by_its_text(name: str, text: str) -> None:
    """A paste has no name."""
    if name == "lark.toml":
        text = text.split("\n", 1)[1]
    assert [(item.key, item.value) for item in from_file(text)] == [
        (item.key, item.value) for item in from_file(text, name)
    ]


@given(
    st.text(max_size=120),
    st.text("'\"\\{}[]():=,- \n#ab$`|&;", max_size=150),
    st.sampled_from([row[0] for row in FILES] + [""]),
)
@settings(derandomize=True, deadline=None, max_examples=300)
def test_no_file_or_command_raises(first: str, second: str, name: str) -> None:
    """Whatever it holds, its settings have a name and a line."""
    for text in (first, second, first + second, f"python {second}"):
        assert all(item.key and item.line > 0 for item in [*from_command(text, 1), *from_file(text, name)])


@pytest.mark.long
@each_row(
    "piece",
    [
        "'",
        '"',
        "\\",
        "\\'",
        "$(",
        "$(a",
        "`",
        "a'",
        "$",
        "(",
        "{",
        "--a ",
        "a=",
        " ",
        "#",
        "- ",
        "[",
        "a: ",
        "b==1,",
    ],
    quick=4,
)
@each_row("name", ["", "a.sh", "a.yaml", "a.json", "requirements.txt", ".env", "a.toml"])
def test_the_time_of_a_file_grows_with_its_length(name: str, piece: str) -> None:
    """Nothing is read over and over, whatever repeats."""
    begun = process_time()
    from_command("python " + piece * (60_000 // len(piece)), 1)
    from_file("a: " + piece * (60_000 // len(piece)), name)
    assert process_time() - begun < 1.5


def test_rows_of_a_command_begin_no_other_one(read: ReadLog) -> None:
    """A command without end is read once, and not once more from each of its rows."""
    started = process_time()
    report = read(
        "".join(f"+ python train.py --key{number}={'x' * (1 + number % 50)} \\\n" for number in range(2000))
    )
    assert report.command[0] == 1
    assert {item.key for item in report.settings} >= {"key0", "key900"}
    assert process_time() - started < 15


def test_a_value_that_a_secret_hides_is_taken_from_no_long_row(read: ReadLog) -> None:
    """The end of a row whose beginning is too far away to be shown may be a secret without its name."""
    report = read(
        f'password={"Zq9" * 6000}\nTraceback (most recent call last):\n  File "a.py", line 3, in f\n    '
        "f()\nValueError: bad\n"
    )
    assert not [text for _, text in (*report.surroundings, *report.tail) if "Zq9" in text]
