"""The job's launch command with a change in it can be pasted as it stands, or there is none."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

from corpus.schema import ChangeKind, Scalar
from service.patching.commands import corrected_command, launch_command, recorded_command, shown_command
from service.patching.patches import ConfigFile
from service.patching.target import PatchTarget
from tests.service.patching.applying import is_bash, target
from tests.tables import each_row

SERVE = "vllm serve m --max-num-seqs 8"
VERL = "python3 -m verl.trainer.main_ppo trainer.nnodes=1"


def vllm(key: str, to: Scalar, kind: ChangeKind = "flag") -> PatchTarget:
    """Make a target of vLLM's command line."""
    return target(key, to, kind, "vllm", "flag")


EAGER = vllm("--enforce-eager", True)
LENGTH = vllm("--max-model-len", 4096)
STEPS = target("trainer.nnodes", 2, spelled="hydra")
DEBUG = target("NCCL_DEBUG", "IN FO", "env", "env", "env")
PACKAGE = target("einops", "0.8.0", "package", "pip")
MEMORY = target("--mem", "64G", "setting", "slurm", "directive")


@each_row(
    ("shown", "wanted", "expected"),
    [
        (SERVE, EAGER, f"{SERVE} --enforce-eager"),
        (SERVE, LENGTH, f"{SERVE} --max-model-len 4096"),
        ("vllm serve m --max-num-seqs=8", LENGTH, "vllm serve m --max-num-seqs=8 --max-model-len=4096"),
        (VERL, STEPS, "python3 -m verl.trainer.main_ppo trainer.nnodes=2"),
        (VERL, DEBUG, f"NCCL_DEBUG='IN FO' {VERL}"),
        (f"A=1 {VERL}", DEBUG, f"NCCL_DEBUG='IN FO' A=1 {VERL}"),
        (f"cd /w && {VERL}", DEBUG, f"export NCCL_DEBUG='IN FO'\ncd /w && {VERL}"),
        (VERL, PACKAGE, f"python3 -m pip install einops==0.8.0\n{VERL}"),
        ("docker run img vllm serve m", EAGER, "docker run img vllm serve m --enforce-eager"),
        # What stands before a command in a log.
        (f"$ {SERVE}", EAGER, f"{SERVE} --enforce-eager"),
        (f"(base) me@gpu-7:~/work$ {SERVE}", EAGER, f"{SERVE} --enforce-eager"),
        (f"root@gpu-7:/srv# {SERVE}\n", EAGER, f"{SERVE} --enforce-eager"),
        (f"12++ {VERL}", STEPS, "python3 -m verl.trainer.main_ppo trainer.nnodes=2"),
        (f"run sh: `{VERL}`", STEPS, "python3 -m verl.trainer.main_ppo trainer.nnodes=2"),
        (f"./go.sh: line 9:  71 Killed   {SERVE}", EAGER, f"{SERVE} --enforce-eager"),
        (f"./go.sh: line 9:  71 Aborted (core dumped)  {SERVE}", EAGER, f"{SERVE} --enforce-eager"),
        (f"exec {SERVE}", EAGER, f"{SERVE} --enforce-eager"),
        (
            f'ray job submit --runtime-env-json={{"working_dir": "/w"}} -- {SERVE}',
            EAGER,
            f'ray job submit \'--runtime-env-json={{"working_dir": "/w"}}\' -- {SERVE} --enforce-eager',
        ),
        # What cannot be pasted, or needs no change.
        (f"{SERVE} ...", EAGER, None),
        (f"{SERVE} --api-key [redacted:key]", EAGER, None),
        (f"{SERVE} --seed $SEED", EAGER, None),
        (f"srun bash -c '{SERVE} --seed $SEED'", EAGER, None),
        ("swift sft 跑模型报错，命令 --model m", target("max_length", 64, "flag", "ms-swift", "flag"), None),
        ("export NCCL_DEBUG=INFO", EAGER, None),
        ("vllm serve m --x (1,2)", EAGER, None),
        (f"{SERVE} --enforce-eager", EAGER, None),
        (SERVE, STEPS, None),
    ],
)
def test_that_a_command_of_a_log_is_given_whole_with_the_change(
    shown: str, wanted: PatchTarget, expected: str | None
) -> None:
    """In the program's own style; a switch is a word, not an assignment."""
    made = corrected_command([], shown, [wanted])
    assert made == expected
    assert made is None or is_bash(made)


SCRIPT = """#!/bin/bash
set -x
MODEL="a b"
SEQS=${SEQS:-8}
MORE="--dtype half"
ARGS=(--served-model-name "$MODEL" --allowed-origins ["*"])
export TOKENIZERS_PARALLELISM=false
cd /srv/it
vllm serve $MODEL --max-num-seqs $SEQS $MORE "${ARGS[@]}" --download-dir "$HOME/x y" 2>&1 | tee log
"""
PASTED = r"""cd /srv/it && \
    TOKENIZERS_PARALLELISM=false vllm serve a b \
    --max-num-seqs 8 \
    --dtype half \
    --served-model-name 'a b' \
    --allowed-origins ["*"] \
    --download-dir "$HOME/x y"
""".strip()


@each_row(
    ("text", "expected"),
    [
        (SCRIPT, PASTED),
        ("export A=1\nA=2 exec vllm serve m\n", "A=2 vllm serve m"),
        ("pip install x\nsrun --label vllm serve m\n", "srun --label vllm serve m"),
        (SCRIPT.replace("8}", "$N}"), None),
        ("A='x y'\nvllm serve m --name n-$A\n", None),
        ("vllm serve $1\n", None),
        ("vllm serve $(cat model)\n", None),
        ("for m in a b; do vllm serve $m; done\n", None),
        ("if true; then vllm serve m; fi\n", None),
        ("vllm serve a\nvllm serve b\n", None),
        ("unset A\nvllm serve a\n", None),
        # What is made of itself goes on from what the shell was given.
        ("export A=/x:$A\nvllm serve a\n", None),
        ("export A=/x:$B\nexport B=/y:$A\nvllm serve a\n", None),
        ("M=a\nM=b\nvllm serve $M\n", None),
        ("echo hello\n", None),
        ("vllm serve 'a\n", None),
    ],
)
def test_that_a_scripts_command_is_given_with_what_the_script_sets(text: str, expected: str | None) -> None:
    """Or not at all, where only a run of the script can tell."""
    assert launch_command(text) == (expected or "")


def test_that_a_pasted_command_starts_with_the_words_and_variables_of_the_script(tmp_path: Path) -> None:
    """A shell runs both, with a program that prints what it gets."""
    program = tmp_path / "vllm"
    program.write_text('#!/bin/sh\nprintf "%s|" "$TOKENIZERS_PARALLELISM" "$(pwd)" "$@"\n')
    program.chmod(0o755)
    text = SCRIPT.replace("/srv/it", str(tmp_path)).replace(" 2>&1 | tee log", "")
    ran = [
        subprocess.run(
            ["bash", "-c", each],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": "/h"},
            capture_output=True,
            check=True,
        ).stdout
        for each in (text, launch_command(text))
    ]
    assert ran[0] == ran[1]
    assert b"|a b|" in ran[0]


@each_row(
    ("text", "wanted", "expected"),
    [
        ("#SBATCH --nodes=2\nsrun vllm serve m\n", MEMORY, "sbatch --mem=64G 'a b/job.sh'"),
        ("#SBATCH --nodes=2\nsrun vllm serve m\n", DEBUG, "NCCL_DEBUG='IN FO' sbatch 'a b/job.sh'"),
        ("#SBATCH --nodes=2\nexport NCCL_DEBUG=WARN\nsrun vllm serve m\n", DEBUG, None),
        ("#SBATCH --nodes=2\nsrun vllm serve m\n", EAGER, None),
        ("vllm serve m\n", EAGER, "vllm serve m --enforce-eager"),
    ],
)
def test_that_a_batch_script_is_handed_to_its_scheduler(
    text: str, wanted: PatchTarget, expected: str | None
) -> None:
    """What the script itself sets wins over what it is given, so that is no command."""
    assert corrected_command([ConfigFile("a b/job.sh", text)], "", [wanted]) == expected


def test_that_the_jobs_own_script_comes_before_what_a_launcher_made_of_it() -> None:
    files = [ConfigFile("c.yaml", "a: 1\n"), ConfigFile("run.sh", "deepspeed train.py --bf16\n")]
    shown = "/usr/bin/python3 -u -m deepspeed.launcher.launch --world_info=e30= train.py --bf16"
    made = corrected_command(files, shown, [DEBUG])
    assert made == "NCCL_DEBUG='IN FO' deepspeed train.py --bf16"
    assert corrected_command(files[:1], shown, [DEBUG]) == f"NCCL_DEBUG='IN FO' {shown}"


def test_that_a_command_over_several_rows_stays_as_it_is_written() -> None:
    shown = "vllm serve m \\\n  --max-num-seqs 8 \\\n  --dtype half\n"
    assert shown_command(shown) == shown.strip()
    made = corrected_command([], shown, [LENGTH])
    assert made is not None
    assert shlex.split(made)[-2:] == ["--max-model-len", "4096"]


@each_row(
    ("cards", "words", "expected"),
    [
        (1, ["--out", "./a b,"], "python /job/train.py --out './a b'"),
        # What started several processes of it is not kept.
        (4, ["--out", "./a b,"], None),
        (1, [], None),
    ],
)
def test_that_the_command_which_a_tracker_kept_is_given_with_the_change(
    cards: int, words: list[str], expected: str | None
) -> None:
    kept = {"args": words, "program": "/job/train.py", "gpu_count": cards, "startedAt": "2025-01-01T00:00:00"}
    record = ConfigFile("wandb-metadata.json", json.dumps(kept))
    wanted = target("--out", "./a b", "flag", "python", "flag")
    assert corrected_command([], recorded_command([record]), [wanted]) == expected
    assert recorded_command([record, record]) == ""
