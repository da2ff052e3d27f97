"""Launch scripts: what is changed where, what is left alone, and what bash then hands to the programs."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from corpus.schema import Scalar
from ingest.configfiles.errors import NotPatchableError
from service.patching.shell import apply, holds
from service.patching.target import PatchTarget
from tests.tables import each_row
from tests.waiting import PATIENCE

PROGRAMS = [
    "python", "python3", "torchrun", "deepspeed", "accelerate", "ray", "vllm", "srun", "docker", "swift",
    "trl", "llamafactory-cli", "conda", "module",
]  # fmt: skip
# Each program writes down its arguments and its environment, and passes on to what `srun` or `env` would
# start.
STUB = """#!/bin/bash
{ printf '%s\\0' "${0##*/}" "$@"; printf '\\1\\0'; env -0; printf '\\2\\0'; } >> "$RECORD"
"""
VERL = "python3 -m verl.trainer.main_ppo"
ORLHF = "python3 -m openrlhf.cli.train_ppo_ray"
SUBMIT = "ray job submit --address=http://h:8265"


def hydra(key: str, to: Scalar = 128) -> PatchTarget:
    return PatchTarget("verl", "setting", (key,), to, "hydra")


def flag(key: str, to: Scalar, framework: str = "openrlhf") -> PatchTarget:
    return PatchTarget(framework, "flag", (key,), to, "flag")


def env(key: str, to: Scalar, framework: str = "env") -> PatchTarget:
    return PatchTarget(framework, "env", (key,), to, "env")


def slurm(key: str, to: Scalar) -> PatchTarget:
    return PatchTarget("slurm", "setting", (key,), to, "directive")


def yaml(framework: str, key: str, to: Scalar) -> PatchTarget:
    return PatchTarget(framework, "setting", (key,), to, "yaml")


@dataclass(frozen=True, slots=True)
class Started:
    """What one program was started with."""

    argv: tuple[str, ...]
    env: dict[str, str]


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    """Give a folder of programs that only write down how they are started."""
    with tempfile.TemporaryDirectory() as folder:
        for name in PROGRAMS:
            (Path(folder) / name).write_text(STUB)
            (Path(folder) / name).chmod(0o755)
        yield Path(folder)


def started(text: str, programs: Path) -> list[Started]:
    """Run a script with the stubs on its path; gives what they were started with, in order."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record"
        record.touch()
        (Path(folder) / "run.sh").write_bytes(text.encode())
        surroundings = {"PATH": f"{programs}:{os.environ['PATH']}", "RECORD": str(record), "HOME": folder}
        subprocess.run(
            ["bash", "run.sh"],
            cwd=folder,
            env=surroundings,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE,
        )
        return [_started(one) for one in record.read_bytes().decode().split("\2\0")[:-1]]


def _started(record: str) -> Started:
    argv, _, variables = record.partition("\1\0")
    pairs = dict(row.split("=", 1) for row in variables.split("\0") if "=" in row)
    ours = {
        name: value
        for name, value in pairs.items()
        if name not in ("PATH", "RECORD", "HOME", "PWD", "SHLVL", "_", "OLDPWD")
    }
    return Started(tuple(argv.split("\0")[:-1]), ours)


def parses(text: str) -> bool:
    """Tell whether bash can parse a script."""
    return (
        subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True, check=False).returncode == 0
    )


def lost_and_new(before: str, after: str) -> tuple[list[str], list[str]]:
    """Give the lines that are gone and those that have come."""
    old, new = Counter(before.split("\n")), Counter(after.split("\n"))
    return sorted((old - new).elements()), sorted((new - old).elements())


# What stands there, the setting, what stands there then.
CHANGED = [
    # Hydra overrides and how they are quoted.
    (f"{VERL} data.size=1024 \\\n  x.y=1\n", hydra("data.size"), f"{VERL} data.size=128 \\\n  x.y=1\n"),
    (f"{VERL} +data.size=1024\n", hydra("data.size"), f"{VERL} +data.size=128\n"),
    (f"{VERL} ++data.size=1024", hydra("data.size"), f"{VERL} ++data.size=128"),
    (f"{VERL} data.size='1024'\n", hydra("data.size"), f"{VERL} data.size='128'\n"),
    (f'{VERL} data.size="1024"\n', hydra("data.size"), f'{VERL} data.size="128"\n'),
    (f"{VERL} 'data.size=1024'\n", hydra("data.size"), f"{VERL} 'data.size=128'\n"),
    (f'{VERL} "data.size=1024" x=1\n', hydra("data.size"), f'{VERL} "data.size=128" x=1\n'),
    (f"{VERL} data.size=\n", hydra("data.size"), f"{VERL} data.size=128\n"),
    (f'{VERL} data.size="" x=1\n', hydra("data.size"), f'{VERL} data.size="128" x=1\n'),
    (f"{VERL} a.name=old\n", hydra("a.name", "new name's"), f"{VERL} a.name='new name'\"'\"'s'\n"),
    (f"{VERL} a.name='old'\n", hydra("a.name", "it's"), f"{VERL} a.name='it'\\''s'\n"),
    (f'{VERL} a.name="old"\n', hydra("a.name", 'a "b"'), f'{VERL} a.name="a \\"b\\""\n'),
    (
        f"{VERL} a.logger=['console']\n",
        hydra("a.logger", "[console,wandb]"),
        f"{VERL} a.logger='[console,wandb]'\n",
    ),
    (f"{VERL} a.logger=[console]\n", hydra("a.logger", "[wandb]"), f"{VERL} a.logger='[wandb]'\n"),
    (f"{VERL} a.offload=True\n", hydra("a.offload", to=False), f"{VERL} a.offload=False\n"),
    (f"{VERL} a.offload=true\n", hydra("a.offload", to=False), f"{VERL} a.offload=false\n"),
    (f"{VERL} a.lr=1e-6\n", hydra("a.lr", 5e-7), f"{VERL} a.lr=5e-07\n"),
    (f"{VERL} a.b=1 a.b=2\n", hydra("a.b", 3), f"{VERL} a.b=1 a.b=3\n"),
    # What stands for a variable that is not given, and a variable that serves others too.
    (f"{VERL} a.b=${{1:-8}}\n", hydra("a.b", 4), f"{VERL} a.b=${{1:-4}}\n"),
    (f'X="${{X:-8}}"\n{VERL} a.b=$X\n', hydra("a.b", 4), f'X="${{X:-4}}"\n{VERL} a.b=$X\n'),
    (f'X=${{2-"m/8"}}\n{VERL} a.b="${{X}}"\n', hydra("a.b", "m/4"), f'X=${{2-"m/4"}}\n{VERL} a.b="${{X}}"\n'),
    (f"X=8\n{VERL} a.b=$X c.d=$X\n", hydra("a.b", 4), f"X=8\n{VERL} a.b=4 c.d=$X\n"),
    (f'X=8\n{VERL} a.b="$X" c.d=$X\n', hydra("a.b", "4 b"), f'X=8\n{VERL} a.b="4 b" c.d=$X\n'),
    (f"{VERL} a.b=1 a.b=1\n", hydra("a.b", 3), f"{VERL} a.b=3 a.b=3\n"),
    (
        f"# a.b=1 was tried\n{VERL} a.b=2 # not a.b=3\n",
        hydra("a.b", 4),
        f"# a.b=1 was tried\n{VERL} a.b=4 # not a.b=3\n",
    ),
    (f"(cd /tmp && {VERL} a.b=2)\n", hydra("a.b", 4), f"(cd /tmp && {VERL} a.b=4)\n"),
    (f"if true; then\n\t{VERL} a.b=2\nfi\n", hydra("a.b", 4), f"if true; then\n\t{VERL} a.b=4\nfi\n"),
    (f"go() {{\n  {VERL} a.b=2\n}}\ngo\n", hydra("a.b", 4), f"go() {{\n  {VERL} a.b=4\n}}\ngo\n"),
    (f"{VERL} a.b=2 2>&1 | tee x.log\n", hydra("a.b", 4), f"{VERL} a.b=4 2>&1 | tee x.log\n"),
    (f"+ {VERL} a.b=2", hydra("a.b", 4), f"+ {VERL} a.b=4"),
    (f"# 批大小 é\n{VERL} a.n=é a.b=2\n", hydra("a.b", 4), f"# 批大小 é\n{VERL} a.n=é a.b=4\n"),
    (
        "srun bash -c 'exec python -u t.py --bsz 1'\n",
        flag("--bsz", 2, "x"),
        "srun bash -c 'exec python -u t.py --bsz 2'\n",
    ),
    # Hydra overrides that are added.
    (f"{VERL} x.y=1\n", hydra("x.z"), f"{VERL} x.y=1 x.z=128\n"),
    (
        f"{VERL} \\\n    x.y=1 \\\n    x.n=a\n",
        hydra("x.z"),
        f"{VERL} \\\n    x.y=1 \\\n    x.n=a \\\n    x.z=128\n",
    ),
    (
        f"{VERL} \\\n  x.y=1 \\\n  x.n=a $@ > log\n",
        hydra("x.z"),
        f"{VERL} \\\n  x.y=1 \\\n  x.n=a \\\n  x.z=128 $@ > log\n",
    ),
    (f"{VERL} x.y=1 \\\n", hydra("x.z", "a b"), f"{VERL} x.y=1 x.z='a b' \\\n"),
    (f"{VERL} +r.k.a=1 x.y=1\n", hydra("r.k.b", to=True), f"{VERL} +r.k.a=1 x.y=1 +r.k.b=True\n"),
    (
        f"python3 prep.py --out d\n{VERL} x.y=1\n",
        hydra("x.z"),
        f"python3 prep.py --out d\n{VERL} x.y=1 x.z=128\n",
    ),
    (f"{VERL} x.y=1 2>&1 | tee l\n", hydra("x.z"), f"{VERL} x.y=1 x.z=128 2>&1 | tee l\n"),
    # Flags.
    (
        "deepspeed t.py --zero_stage 3 --bf16\n",
        flag("zero_stage", 2),
        "deepspeed t.py --zero_stage 2 --bf16\n",
    ),
    ("deepspeed t.py --zero-stage=3\n", flag("zero_stage", 2), "deepspeed t.py --zero-stage=2\n"),
    ("deepspeed t.py --zero_stage\t3\n", flag("zero_stage", 2), "deepspeed t.py --zero_stage\t2\n"),
    ("python t.py --lr -1.5\n", flag("--lr", 0.5, "x"), "python t.py --lr 0.5\n"),
    ("python t.py -b 4\n", PatchTarget("x", "flag", ("--batch", "-b"), 2, "flag"), "python t.py -b 2\n"),
    (f"{ORLHF} --a 1 \\\n   --bf16 \\\n   --c 2\n", flag("bf16", to=False), f"{ORLHF} --a 1 \\\n   --c 2\n"),
    (
        f"{ORLHF} \\\n   --a 1\n",
        flag("packing_samples", to=True),
        f"{ORLHF} \\\n   --a 1 \\\n   --packing_samples\n",
    ),
    (f"{ORLHF} --a 1\n", flag("max_len", 9), f"{ORLHF} --a 1 --max_len 9\n"),
    (f"{ORLHF} --a=1\n", flag("max_len", 9), f"{ORLHF} --a=1 --max_len=9\n"),
    (
        "vllm serve m --no-enable-lora\n",
        flag("--enable-lora", to=True, framework="vllm"),
        "vllm serve m --enable-lora\n",
    ),
    (
        "vllm serve m --port 80\n",
        flag("--enforce-eager", to=True, framework="vllm"),
        "vllm serve m --port 80 --enforce-eager\n",
    ),
    (
        "swift sft --bf16 true --x 1\n",
        flag("--bf16", to=False, framework="ms-swift"),
        "swift sft --bf16 false --x 1\n",
    ),
    (
        "swift sft --bf16 --x 1\n",
        flag("--bf16", to=False, framework="ms-swift"),
        "swift sft --bf16 false --x 1\n",
    ),
    ("trl sft --a 1\n", yaml("trl", "bf16", to=True), "trl sft --a 1 --bf16 true\n"),
    (
        "llamafactory-cli train c.yaml bf16=false\n",
        yaml("llamafactory", "bf16", to=True),
        "llamafactory-cli train c.yaml bf16=true\n",
    ),
    # Launchers take their options before the program that they start.
    (
        "torchrun --nnodes 1 t.py --lr 1\n",
        flag("--master_port", 1234, "pytorch"),
        "torchrun --master_port 1234 --nnodes 1 t.py --lr 1\n",
    ),
    (
        "torchrun \\\n  --nnodes 1 \\\n  t.py --lr 1\n",
        flag("--master_port", 1234, "pytorch"),
        "torchrun \\\n  --master_port 1234 \\\n  --nnodes 1 \\\n  t.py --lr 1\n",
    ),
    (
        "docker run --rm img python t.py\n",
        flag("--shm-size", "16g", "docker"),
        "docker run --shm-size 16g --rm img python t.py\n",
    ),
    (
        "docker run --ulimit stack=1 img python t.py\n",
        flag("--ulimit", "memlock=-1", "docker"),
        "docker run --ulimit memlock=-1 --ulimit stack=1 img python t.py\n",
    ),
    (
        "docker run --ulimit stack=1 --ulimit memlock=2 img\n",
        flag("--ulimit", "memlock=-1", "docker"),
        "docker run --ulimit stack=1 --ulimit memlock=-1 img\n",
    ),
    (
        "ray start --head --port=6379 --object-store-memory=100\n",
        flag("--object-store-memory", 10**9, "ray"),
        "ray start --head --port=6379 --object-store-memory=1000000000\n",
    ),
    (
        f"ray start --head\n{SUBMIT} -- {ORLHF} --port 1\n",
        flag("--port", 6380, "ray"),
        f"ray start --port 6380 --head\n{SUBMIT} -- {ORLHF} --port 1\n",
    ),
    (f"{SUBMIT} -- {ORLHF} --zero_stage 3\n", flag("zero_stage", 2), f"{SUBMIT} -- {ORLHF} --zero_stage 2\n"),
    # Variables, arrays, strings.
    (f"B=8\n{VERL} a.b=$B\necho $B\n", hydra("a.b", 4), f"B=4\n{VERL} a.b=$B\necho $B\n"),
    (f'export B="8" # x\n{VERL} a.b=${{B}}\n', hydra("a.b", 4), f'export B="4" # x\n{VERL} a.b=${{B}}\n'),
    ('B=8\npython t.py --b "$B"\n', flag("--b", 4, "x"), 'B=4\npython t.py --b "$B"\n'),
    (
        f'A=(\n  a.b=1 # one\n  c.d=2\n)\n{VERL} "${{A[@]}}"\n',
        hydra("a.b", 4),
        f'A=(\n  a.b=4 # one\n  c.d=2\n)\n{VERL} "${{A[@]}}"\n',
    ),
    (
        f'A=(a.b=1)\nA+=(c.d=2)\n{VERL} "${{A[@]}}"\n',
        hydra("c.d", 4),
        f'A=(a.b=1)\nA+=(c.d=4)\n{VERL} "${{A[@]}}"\n',
    ),
    (f'A=(a.b=1)\n{VERL} "${{A[@]}}"\n', hydra("a.c", 4), f'A=(a.b=1)\n{VERL} "${{A[@]}}" a.c=4\n'),
    (
        'A=(--a 1 # one\n  --bf16 # two\n)\ndeepspeed t.py "${A[@]}"\n',
        flag("bf16", to=False),
        'A=(--a 1 # one # two\n)\ndeepspeed t.py "${A[@]}"\n',
    ),
    (
        'A=(--c 3)\nB=(--bf16 --a 1)\ndeepspeed t.py ${A[@]} "${B[@]}"\n',
        flag("bf16", to=False),
        'A=(--c 3)\nB=(--a 1)\ndeepspeed t.py ${A[@]} "${B[@]}"\n',
    ),
    (f"{VERL} a.b=yes c=1\n", hydra("a.b", to=True), f"{VERL} a.b=True c=1\n"),
    (f"{VERL} a.b=1 c=1\n", hydra("a.b", to=False), f"{VERL} a.b=False c=1\n"),
    (
        'A="--zero_stage 3 \\\n --bf16"\ndeepspeed t.py $A\n',
        flag("zero_stage", 2),
        'A="--zero_stage 2 \\\n --bf16"\ndeepspeed t.py $A\n',
    ),
    (
        "read -r -d '' c <<EOF\nx/train_ppo.py \\\n   --zero_stage 3 \\\n   --bf16\nEOF\ndeepspeed $c\n",
        flag("zero_stage", 2),
        "read -r -d '' c <<EOF\nx/train_ppo.py \\\n   --zero_stage 2 \\\n   --bf16\nEOF\ndeepspeed $c\n",
    ),
    (
        "read -r -d '' c <<EOF\nx/train_ppo.py \\\n   --bf16\nEOF\ndeepspeed $c\n",
        flag("zero_stage", 2),
        "read -r -d '' c <<EOF\nx/train_ppo.py \\\n   --bf16 \\\n   --zero_stage 2\nEOF\ndeepspeed $c\n",
    ),
    # The environment.
    (f"export A=WARN B=1\n{VERL} a=1\n", env("A", "INFO"), f"export A=INFO B=1\n{VERL} a=1\n"),
    (f'A="WARN" {VERL} a=1\n', env("A", "INFO"), f'A="INFO" {VERL} a=1\n'),
    (f"env A=WARN {VERL} a=1\n", env("A", "INFO"), f"env A=INFO {VERL} a=1\n"),
    (f"declare -x A=WARN\n{VERL} a=1\n", env("A", "INFO"), f"declare -x A=INFO\n{VERL} a=1\n"),
    (f"A=WARN\nexport A\n{VERL} a=1\n", env("A", "INFO"), f"A=INFO\nexport A\n{VERL} a=1\n"),
    (f"A=WARN\n{VERL} a=1\n", env("A", "INFO"), f"export A=INFO\n{VERL} a=1\n"),
    (f"A=WARN B=1\n{VERL} a=1\n", env("A", "INFO"), f"export A=INFO B=1\n{VERL} a=1\n"),
    (f"export A=False\n{VERL} a=1\n", env("A", to=True), f"export A=True\n{VERL} a=1\n"),
    (f"export A=1\nexport A=2\n{VERL} a=1\n", env("A", 3), f"export A=1\nexport A=3\n{VERL} a=1\n"),
    (f"set -x\n{VERL} a=1\n", env("A", "a b"), f"set -x\nexport A='a b'\n{VERL} a=1\n"),
    (
        f"export B=1 # b\nset -x\n{VERL} a=1\n",
        env("A", to=True),
        f"export B=1 # b\nexport A=1\nset -x\n{VERL} a=1\n",
    ),
    (f"export B=(1 \\\n  2)\n{VERL} a=1\n", env("A", 1), f"export B=(1 \\\n  2)\nexport A=1\n{VERL} a=1\n"),
    (f"if true; then\n  {VERL} a=1\nfi\n", env("A", 1), f"export A=1\nif true; then\n  {VERL} a=1\nfi\n"),
    (f"{VERL} a=1", env("A", 1), f"export A=1\n{VERL} a=1"),
    (f"export A=1\n{VERL} a=1\n", env("A", "unset"), f"export A=1\nunset A\n{VERL} a=1\n"),
    (
        "docker run --rm -e A=0 img python t.py\n",
        env("A", to=True),
        "docker run --rm -e A=1 img python t.py\n",
    ),
    ("docker run --env=A=0 img python t.py\n", env("A", 2), "docker run --env=A=2 img python t.py\n"),
    ("docker run --rm img python t.py\n", env("A", 2), "docker run -e A=2 --rm img python t.py\n"),
    (
        f'{SUBMIT} --runtime-env-json=\'{{"working_dir": "/w", "env_vars": {{"A": "b"}}}}\' -- {VERL} a=1\n',
        env("A", "c"),
        f'{SUBMIT} --runtime-env-json=\'{{"working_dir": "/w", "env_vars": {{"A": "c"}}}}\' -- {VERL} a=1\n',
    ),
    (
        f'{SUBMIT} --runtime-env-json=\'{{"working_dir": "/w", "env_vars": {{"B": "b"}}}}\' -- {VERL} a=1\n',
        env("A", "c"),
        (
            f'{SUBMIT} --runtime-env-json=\'{{"working_dir": "/w", "env_vars": {{"A": "c", "B": "b"}}}}\' -- '
            f"{VERL} a=1\n"
        ),
    ),
    (
        f'{SUBMIT} --runtime-env-json "{{\\"working_dir\\": \\"/w\\"}}" -- {VERL} a=1\n',
        env("A", "c"),
        (
            f'{SUBMIT} --runtime-env-json "{{\\"working_dir\\": \\"/w\\", \\"env_vars\\": {{\\"A\\": '
            f'\\"c\\"}}}}" -- {VERL} a=1\n'
        ),
    ),
    (
        f"{SUBMIT} -- {VERL} a=1\n",
        env("A", "c"),
        (
            f'ray job submit --runtime-env-json=\'{{"env_vars": {{"A": "c"}}}}\' --address=http://h:8265 -- '
            f"{VERL} a=1\n"
        ),
    ),
    # Slurm.
    (
        "#!/bin/bash\n#SBATCH --mem=64G\nsrun t\n",
        slurm("--mem", "128G"),
        "#!/bin/bash\n#SBATCH --mem=128G\nsrun t\n",
    ),
    (
        "#!/bin/bash\n#SBATCH --time 1:00:00 # c\nsrun t\n",
        slurm("--time", "2:00:00"),
        "#!/bin/bash\n#SBATCH --time 2:00:00 # c\nsrun t\n",
    ),
    (
        "#!/bin/bash\n#SBATCH -t1:00\nsrun t\n",
        slurm("--time", "2:00"),
        "#!/bin/bash\n#SBATCH -t2:00\nsrun t\n",
    ),
    (
        "#!/bin/bash\n#SBATCH -N 1 -c 4\n\nsrun t\n",
        slurm("--cpus-per-task", 8),
        "#!/bin/bash\n#SBATCH -N 1 -c 8\n\nsrun t\n",
    ),
    (
        "#!/bin/bash\n#SBATCH -J x\n\nsrun t\n",
        slurm("--mem", "64G"),
        "#!/bin/bash\n#SBATCH -J x\n#SBATCH --mem=64G\n\nsrun t\n",
    ),
    (
        "#!/bin/bash\n#SBATCH -J x\nsrun t\n#SBATCH --mem=1G\n",
        slurm("--mem", "64G"),
        "#!/bin/bash\n#SBATCH -J x\n#SBATCH --mem=64G\nsrun t\n#SBATCH --mem=1G\n",
    ),
    (
        "#!/bin/bash\n#SBATCH -J x\n#SBATCH --exclusive\nsrun t\n",
        slurm("--exclusive", to=False),
        "#!/bin/bash\n#SBATCH -J x\nsrun t\n",
    ),
    (
        "#!/bin/bash\n#SBATCH -J x --exclusive -N 1\nsrun t\n",
        slurm("--exclusive", to=False),
        "#!/bin/bash\n#SBATCH -J x -N 1\nsrun t\n",
    ),
    (
        "#!/bin/bash\n#SBATCH --no-requeue\nsrun t\n",
        slurm("--requeue", to=True),
        "#!/bin/bash\n#SBATCH --requeue\nsrun t\n",
    ),
    (
        "#!/bin/bash\n#SBATCH -J x\nsrun t\n",
        slurm("--kill-on-bad-exit", 1),
        "#!/bin/bash\n#SBATCH -J x\nsrun --kill-on-bad-exit=1 t\n",
    ),
    ("srun -t 1:00 python t.py\n", slurm("--time", "2:00"), "srun -t 2:00 python t.py\n"),
    # Lines that end in carriage returns.
    (
        f"export B=1\r\n{VERL} a.b=1 \\\r\n  c.d=2\r\n",
        hydra("c.d", 3),
        f"export B=1\r\n{VERL} a.b=1 \\\r\n  c.d=3\r\n",
    ),
    (
        f"export B=1\r\n{VERL} a.b=1 \\\r\n  c.d=2\r\n",
        hydra("c.e", 3),
        f"export B=1\r\n{VERL} a.b=1 \\\r\n  c.d=2 \\\r\n  c.e=3\r\n",
    ),
    (f"export B=1\r\n{VERL} a.b=1\r\n", env("A", 3), f"export B=1\r\nexport A=3\r\n{VERL} a.b=1\r\n"),
    # Folders before what a row makes a variable of, in the last one of several.
    (
        f'export P="/a:$P"\nexport P="/b:$P"\n{VERL} a.b=1\n',
        env("P", "/job/lib:/b:$P"),
        f'export P="/a:$P"\nexport P="/job/lib:/b:$P"\n{VERL} a.b=1\n',
    ),
    (f"export P=/a:${{P}}\n{VERL} a=1\n", env("P", "src:/a:${P}"), f"export P=src:/a:${{P}}\n{VERL} a=1\n"),
    # An option that takes several words loses all of them.
    (
        "swift sft --parts a b \\\n    c --lr 1\n",
        replace(flag("--parts", "all", "ms-swift"), is_list=True),
        "swift sft --parts all --lr 1\n",
    ),
    (
        "swift sft --lr 1 --parts all b\n",
        replace(flag("--parts", "all", "ms-swift"), is_list=True),
        "swift sft --lr 1 --parts all\n",
    ),
]


@each_row(("before", "target", "after"), CHANGED)
def test_that_a_setting_is_changed_where_it_stands(before: str, target: PatchTarget, after: str) -> None:
    """The text afterwards is the text before but for the value, and bash can still read it."""
    assert apply(before, target) == after
    assert parses(after) or not parses(before)


@each_row(("before", "target", "after"), CHANGED)
def test_that_a_changed_script_holds_the_value(before: str, target: PatchTarget, after: str) -> None:
    """The value is read back from the changed text, not from the one before, and no further change is
    made.
    """
    assert holds(after, target)
    assert not holds(before, target)
    assert apply(after, target) == after


DONE = [
    (f"{VERL} a.lr=1.0e-6\n", hydra("a.lr", 1e-6)),
    (f"{VERL} a.b=true\n", hydra("a.b", to=True)),
    (f"{ORLHF} --a 1\n", flag("bf16", to=False)),
    ("swift sft --no_bf16\n", flag("--bf16", to=False, framework="ms-swift")),
    (f"B=4\n{VERL} a.b=$B c.d=$B\n", hydra("a.b", 4)),
    (f"export A=true\n{VERL} a=1\n", env("A", to=True)),
    ("#!/bin/bash\n#SBATCH --time=1:00\nsrun --time=1:00 t\n", slurm("--time", "1:00")),
    (f"{VERL} a.b=3\n{VERL} a.b=3 c=1\n", hydra("a.b", 3)),
]


@each_row(("text", "target"), DONE)
def test_that_a_script_that_says_so_is_left_as_it_is(text: str, target: PatchTarget) -> None:
    """Another spelling of the same value is no change."""
    assert holds(text, target)
    assert apply(text, target) == text


REFUSED = [
    (f"{VERL} a.b=$((8 * 4))\n", hydra("a.b"), "line 1: its value is computed there ($((8 * 4)))"),
    (f"{VERL} a.b=`nproc`\n", hydra("a.b"), "line 1: its value is computed there (`nproc`)"),
    (f"{VERL} a.b=${{1:-$N}}\n", hydra("a.b"), "line 1: its value is computed there (${1:-$N})"),
    (f"{VERL} a.b=${{1:+8}}\n", hydra("a.b"), "line 1: its value is computed there (${1:+8})"),
    (f"{VERL} a.b={{1,2}}\n", hydra("a.b"), "computed"),
    (f"{VERL} a.b=$X\n", hydra("a.b"), "line 1: its value is $X, which the script does not assign"),
    (f"X=8 {VERL} a.b=$X\n", hydra("a.b"), "does not assign plainly"),
    (
        f"\nX=${{1:-$N}}\n{VERL} a.b=$X\n",
        hydra("a.b"),
        "line 3: its value is $X, which line 2 computes (${1:-$N})",
    ),
    (
        f"X=${{1:-8}}\n{VERL} a.b=$X\n",
        replace(hydra("a.b", 4), present="16"),
        "line 2: its value is computed there ($X)",
    ),
    (f"X=8\nX=9\n{VERL} a.b=$X\n", hydra("a.b"), "assigned more than once (lines 1, 2)"),
    (f"read X\nX=8\n{VERL} a.b=$X\n", hydra("a.b"), "which line 1 computes"),
    (f"for X in 1 2; do\n{VERL} a.b=$X\ndone\n", hydra("a.b"), "line 2: its value is $X"),
    (f"X=1\nfor X in 1 2; do\n{VERL} a.b=$X\ndone\n", hydra("a.b"), "which line 2 computes"),
    (f"if x; then X=8; fi\n{VERL} a.b=$X\n", hydra("a.b"), "does not assign plainly"),
    (f"{VERL} a.b=$X\nX=8\n", hydra("a.b"), "after it is used"),
    (f"{VERL} a.b=1\n{VERL} a.b=2\n", hydra("a.b"), "several commands set it (lines 1, 2)"),
    (f'A=(a.b=1)\nif x; then A+=(a.b=2); fi\n{VERL} "${{A[@]}}"\n', hydra("a.b"), "not always"),
    (f"{VERL} ~a.b\n", hydra("a.b"), "taken out with ~"),
    (f"{VERL} a.b=1\n{VERL} a.b=2\n", hydra("a.c"), "several commands could take it (lines 1, 2)"),
    ("vllm serve m\n", hydra("a.b"), "no command in it takes settings of verl"),
    ("python t.py x=1\n", hydra("a.b"), "does not set it"),
    ("python t.py --lr 1\n", yaml("transformers", "bf16", to=True), "does not set it"),
    ("echo my-a.b=4\n", hydra("a.b"), "does not set it"),
    ("", hydra("a.b"), "does not set it"),
    ("# python t.py a.b=1\n", hydra("a.b"), "does not set it"),
    (
        "cat > c.yaml <<EOF\nbf16: true\nEOF\ntrl sft --config c.yaml\n",
        yaml("trl", "bf16", to=False),
        "line 2: it stands in a here-document",
    ),
    ("trl sft --config c.yaml\n", yaml("trl", "bf16", to=False), "c.yaml"),
    (
        "deepspeed t.py --deepspeed ds.json\n",
        PatchTarget("deepspeed", "setting", ("zero_optimization.stage",), 2, "json"),
        "JSON",
    ),
    (
        "deepspeed t.py --zero_stage --bf16\n",
        flag("zero_stage", 2),
        "line 1: it stands there as a switch without a value",
    ),
    ("python t.py --gpus 0 1 2\n", flag("--gpus", 3, "x"), "several values"),
    (
        "vllm serve m --enable-chunked-prefill\n",
        flag("--enable-chunked-prefill", to=False, framework="vllm"),
        "depends on the version",
    ),
    ("A='--a 1 --b 2'\npython t.py $A\n", flag("--b", "x y", "x"), "cut at blanks"),
    (f"A=1 {VERL} a=1\n{VERL} b=1\n", env("A", 2), "only one of several commands"),
    (f"export A=1\n{VERL} a=1\nA=2 {VERL} b=1\n", env("A", 3), "in several ways (lines 1, 3)"),
    (f"export A=1\nunset A\n{VERL} a=1\n", env("A", 2), "line 2: the script unsets it"),
    (f"export A=$B:x\n{VERL} a=1\n", env("A", 2), "computed"),
    ("echo hello\n", env("A", 2), "no command of the script starts the job"),
    (f"B=1 A=1\n{VERL} a=1\n", env("A", 2), "for the script alone, behind another variable"),
    (
        "srun --mem=1G python t.py --a 1\n",
        PatchTarget("kubernetes", "setting", ("priorityClassName",), "x", "yaml"),
        "does not set it",
    ),
    (f"{SUBMIT} -- {VERL} a=1\n", env("RAY_x", 2, "ray"), "ray start"),
    (f"{SUBMIT} --runtime-env=e.yaml -- {VERL} a=1\n", env("A", 2), "stands in a file"),
    ("srun --export=NONE python t.py\n", env("A", 2), "keeps the script's variables"),
    ("ssh node2 'torchrun t.py'\n", env("A", 2), "ssh keeps the script's variables"),
    ("env -i torchrun t.py\n", env("A", 2), "env keeps the script's variables"),
    ("sudo -u x torchrun t.py\n", env("A", 2), "sudo keeps the script's variables"),
    (f"set -x\n{VERL} a=1\n", env("A", "a token with read access"), "described, not given"),
    (f"set -x\n{VERL} a=1\n", env("A", "$CONDA_PREFIX/lib"), "depends on the machine"),
    (f"{VERL} a=1\n", env("P", "/job:$P"), "depends on the machine"),
    (f"export P=/a:$P\n{VERL} a=1\n", env("P", "/job:$P"), "depends on the machine"),
    (f"export P=/a:$P\n{VERL} a=1\n", env("P", "/x;reboot:/a:$P"), "depends on the machine"),
    (
        "#!/bin/bash\n#SBATCH --mem-per-cpu=4G\nsrun t\n",
        slurm("--mem", "64G"),
        "line 2: --mem-per-cpu stands there",
    ),
    ("#!/bin/bash\n#SBATCH --time=1:00\nsrun --time=2:00 t\n", slurm("--time", "3:00"), "both set it"),
    ("python t.py 'a.b=1\n", hydra("a.b"), "line 1: cannot be read as bash"),
    ("python t.py a.b=1\0\n", hydra("a.b"), "NUL"),
    ("pip install vllm==0.6\n", PatchTarget("vllm", "package", ("vllm",), "0.8", "package"), "packages"),
    (
        "bash x.sh\n",
        PatchTarget("env", "command", ("ulimit -n 9",), "in the shell that starts the job", "command"),
        "by hand",
    ),
]


@each_row(("text", "target", "reason"), REFUSED)
def test_that_what_cannot_be_changed_safely_is_refused_with_its_reason(
    text: str, target: PatchTarget, reason: str
) -> None:
    """Computed, shared, doubled and missing settings stay as they are, and the line and expression are
    told.
    """
    with pytest.raises(NotPatchableError) as told:
        apply(text, target)
    assert reason in str(told.value)
    assert not holds(text, target)


def test_that_variables_which_repeat_each_other_are_not_followed_without_end() -> None:
    """A hostile script makes no endless command."""
    rows = [f'V{n}="' + f"$V{n + 1} " * 60 + '-x"' for n in range(8)]
    with pytest.raises(NotPatchableError):
        apply("\n".join([*rows, "python t.py $V0", ""]), flag("--b", 1, "x"))


def test_that_a_deeply_nested_script_is_refused() -> None:
    """Nesting without end is told, not run into."""
    with pytest.raises(NotPatchableError):
        apply("python t.py " + "$(a " * 3000 + ")" * 3000 + "\n", flag("--b", 1, "x"))


# Scripts that run whole, the setting, and the arguments that then differ: those that are gone, those that
# have come.
RUN = [
    (f"{VERL} a.b=1 \\\n  c.d='x y'\n", hydra("a.b", 4), ["a.b=1"], ["a.b=4"]),
    (
        f"{VERL} a.logger=['console']\n",
        hydra("a.logger", "['a','b']"),
        ["a.logger=[console]"],
        ["a.logger=['a','b']"],
    ),
    (f"torchrun --nnodes 1 t.py --lr 1 && {VERL} x.y=1\n", hydra("x.z", "p q"), [], ["x.z=p q"]),
    (
        f"read -r -d '' c <<EOF\nx/train_ppo.py \\\n   --zero_stage 3\nEOF\ndeepspeed $c\n{VERL} a.b=1\n",
        flag("zero_stage", 2),
        ["3"],
        ["2"],
    ),
    ('A="--zero_stage 3 \\\n --bf16"\ndeepspeed t.py $A\n', flag("bf16", to=False), ["--bf16"], []),
    ("B=8; torchrun t.py --b=$B\n", flag("--b", 4, "x"), ["--b=8"], ["--b=4"]),
    ("docker run --rm img python t.py\n", flag("--shm-size", "16g", "docker"), [], ["--shm-size", "16g"]),
    ("docker run --rm img python t.py\n", env("A", "x y"), [], ["-e", "A=x y"]),
    ("bash -c \"python t.py --b 'x y'\"\n", flag("--b", 'it "is"', "x"), ["x y"], ['it "is"']),
    (
        f'{SUBMIT} --runtime-env-json=\'{{"working_dir": "/w"}}\' -- {VERL} a=1\n',
        env("A", "it's"),
        ['--runtime-env-json={"working_dir": "/w"}'],
        ['--runtime-env-json={"working_dir": "/w", "env_vars": {"A": "it\'s"}}'],
    ),
]


@each_row(("text", "target", "gone", "come"), RUN)
def test_that_only_the_intended_argument_differs_when_it_is_run(
    text: str, target: PatchTarget, gone: list[str], come: list[str], programs: Path
) -> None:
    """Both scripts start the same programs with the same arguments and environment but for the one."""
    before, after = started(text, programs), started(apply(text, target), programs)
    assert before
    old, new = (Counter(word for each in one for word in each.argv) for one in (before, after))
    assert (sorted((old - new).elements()), sorted((new - old).elements())) == (sorted(gone), sorted(come))
    assert [each.env for each in before] == [each.env for each in after]


KEYS = ["data.size", "actor.optim.lr", "rollout.n", "trainer.name", "a.b_c", "x.y.z"]
PLAIN = st.one_of(
    st.integers(-100, 10**9),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.booleans(),
    st.text(st.sampled_from("ab1_-./=:,@%+~[]{}()*?!#&|;<>'\"\\` é^"), min_size=1, max_size=12),
)
OLD = st.text(st.sampled_from("abc0123456789._/:-"), min_size=1, max_size=8)
QUOTINGS = [
    "{key}={old}",
    "{key}='{old}'",
    '{key}="{old}"',
    "'{key}={old}'",
    '"{key}={old}"',
    "+{key}={old}",
    "++{key}='{old}'",
]
GAPS = [" ", "  ", " \\\n    ", "\t", " \\\n\t"]
HEADS = [
    "",
    "#!/bin/bash\n# data.size=7 was too small\nset -x\n\n",
    "set -e\ncd .\nexport A='b c' # x\n",
    "python prep.py --data.size 4\n",
]
TAILS = [
    "",
    "\n",
    " \\\n",
    " > out.log 2>&1\n",
    " | cat\n",
    "; echo done\n",
    " # data.size=9\n",
    "\n\n# the end",
]
# A heap of examples, each with two runs of bash, is kept small; the seeds are fixed so that a failure comes
# again.
PROPERTY = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def as_read(value: Scalar) -> str:
    """Write a value as the program gets it."""
    return str(value)


@st.composite
def scripts(draw: st.DrawFn) -> tuple[str, list[str], list[str]]:
    """Make a script that starts verl once; gives its text, its keys in order, and its old values."""
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=5, unique=True))
    old = [draw(OLD) for _ in keys]
    words = [
        draw(st.sampled_from(QUOTINGS)).format(key=key, old=value)
        for key, value in zip(keys, old, strict=True)
    ]
    form = draw(st.sampled_from(["words", "array", "mixed"]))
    gap = draw(st.sampled_from(GAPS))
    head, tail = draw(st.sampled_from(HEADS)), draw(st.sampled_from(TAILS))
    if form == "words":
        return f"{head}{VERL}{gap}{gap.join(words)}{tail}", keys, old
    array = "ARGS=(\n" + "".join(f"  {word} # note\n" for word in words[:-1]) + f"  {words[-1]}\n)\n"
    more = f'{gap}t.t=1{gap}"${{ARGS[@]}}"' if form == "mixed" else ' "${ARGS[@]}"'
    return f"{head}{array}{VERL}{more}{tail}", keys, old


def patched(text: str, target: PatchTarget) -> str:
    """Change a script; a value that only describes itself is no example."""
    try:
        return apply(text, target)
    except NotPatchableError as error:
        assume("described" not in str(error))
        raise


@pytest.mark.long
@PROPERTY
@given(made=scripts(), which=st.integers(0, 4), to=PLAIN)
def test_that_any_override_is_changed_and_nothing_else(
    made: tuple[str, list[str], list[str]], which: int, to: Scalar, programs: Path
) -> None:
    """Whatever the quoting and the layout, the program gets the value, and all else as before."""
    text, keys, old = made
    key, value = keys[which % len(keys)], old[which % len(keys)]
    target = hydra(key, to)
    after = patched(text, target)
    assert parses(after)
    assert holds(after, target)
    assert apply(after, target) == after
    lost, new = lost_and_new(text, after)
    assert len(lost) == len(new) <= 1
    before_runs, after_runs = started(text, programs), started(after, programs)
    assert before_runs
    wanted = as_read(to) if after != text else value
    expected = [
        tuple(_with(word, key, wanted) if "verl.trainer.main_ppo" in run.argv else word for word in run.argv)
        for run in before_runs
    ]
    assert [run.argv for run in after_runs] == expected
    assert [run.env for run in after_runs] == [run.env for run in before_runs]


def _with(word: str, key: str, value: str) -> str:
    return word.split("=")[0] + "=" + value if word.lstrip("+").startswith(f"{key}=") else word


@PROPERTY
@given(made=scripts(), to=PLAIN)
def test_that_an_absent_override_is_one_more_argument(
    made: tuple[str, list[str], list[str]], to: Scalar, programs: Path
) -> None:
    """The command gets the new argument, and no line is lost but the one that is continued."""
    text, _, _ = made
    target = hydra("new.key", to)
    after = patched(text, target)
    assert holds(after, target)
    assert apply(after, target) == after
    assert len(lost_and_new(text, after)[0]) <= 1
    before_runs, after_runs = started(text, programs), started(after, programs)
    assert before_runs
    come = Counter(word for run in after_runs for word in run.argv) - Counter(
        word for run in before_runs for word in run.argv
    )
    assert list(come.elements()) == [f"new.key={as_read(to)}"]
    assert sum(len(run.argv) for run in after_runs) == sum(len(run.argv) for run in before_runs) + 1


FLAGS = ["--lr", "--batch-size", "--save_path", "--n", "--warm-up"]
FLAG_FORMS = ["{key} {old}", "{key}={old}", "{key} '{old}'", '{key}="{old}"', '"{key}={old}"', "{key}\t{old}"]


@st.composite
def flag_scripts(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Make a script that starts a program with flags: as words, in an array, in a string.

    Gives text and keys.
    """
    keys = draw(st.lists(st.sampled_from(FLAGS), min_size=1, max_size=4, unique=True))
    form = draw(st.sampled_from(["words", "array", "string", "variable"]))
    forms = FLAG_FORMS[:2] if form == "string" else FLAG_FORMS
    words = [draw(st.sampled_from(forms)).format(key=key, old=f"v{index}") for index, key in enumerate(keys)]
    gap, head, tail = draw(st.sampled_from(GAPS)), draw(st.sampled_from(HEADS)), draw(st.sampled_from(TAILS))
    if form == "words":
        return f"{head}torchrun --nnodes 1 t.py{gap}{gap.join(words)}{tail}", keys
    if form == "array":
        return f'{head}A=({" ".join(words)})\ntorchrun t.py "${{A[@]}}" --bf16{tail}', keys
    if form == "string":
        return f'{head}A="{gap.join(words)}"\ntorchrun t.py $A{tail}', keys
    rows = "".join(f"V{index}=v{index}\n" for index, _ in enumerate(keys))
    return head + rows + "torchrun t.py " + gap.join(
        f'{key} "$V{index}"' for index, key in enumerate(keys)
    ) + tail, keys


@pytest.mark.long
@PROPERTY
@given(
    made=flag_scripts(),
    which=st.integers(0, 3),
    to=st.one_of(st.integers(0, 99), OLD.filter(lambda text: text[0] != "-")),
)
def test_that_any_flag_is_changed_and_nothing_else(
    made: tuple[str, list[str]], which: int, to: Scalar, programs: Path
) -> None:
    """The flag's value alone differs, in whatever way the script carries it."""
    text, keys = made
    index = which % len(keys)
    target = flag(keys[index], to, "job")
    after = patched(text, target)
    assert parses(after)
    assert holds(after, target)
    assert apply(after, target) == after
    before_runs, after_runs = started(text, programs), started(after, programs)
    assert before_runs
    old, new = (Counter(word for run in runs for word in run.argv) for runs in (before_runs, after_runs))
    assert [word.replace(f"v{index}", str(to)) for word in (old - new).elements()] == list(
        (new - old).elements()
    )
    assert sum((new - old).values()) == (str(to) != f"v{index}")


ENV_FORMS = [
    "export V=old\n{job}",
    "V=old {job}",
    "export U=1 V='old'\n{job}",
    'env V="old" {job}',
    "{job}",
    "export U=1\n{job}",
    "set -e\n\n{job}",
]


@PROPERTY
@given(form=st.sampled_from(ENV_FORMS), gap=st.sampled_from(GAPS), tail=st.sampled_from(TAILS), to=PLAIN)
def test_that_the_job_gets_the_variable_and_everything_else_as_before(
    form: str, gap: str, tail: str, to: Scalar, programs: Path
) -> None:
    """Changed or added, the variable reaches the program; its other variables and its arguments stay."""
    text = form.format(job=f"torchrun{gap}t.py{gap}--lr 1") + tail
    after = patched(text, env("V", to))
    assert parses(after)
    assert holds(after, env("V", to))
    assert apply(after, env("V", to)) == after
    (before_run,), (after_run,) = started(text, programs), started(after, programs)
    value = {True: "1", False: "0"}[to] if isinstance(to, bool) else str(to)
    assert after_run.argv == before_run.argv
    assert after_run.env == {**before_run.env, "V": value}


DIRECTIVES = [
    "--mem=64G",
    "--time 1:00:00",
    "-t 1:00:00",
    "-c 8",
    "-N2",
    "--exclusive",
    "--job-name='a b'",
    "-J x",
    "--gres=gpu:4",
    "--requeue",
]


@PROPERTY
@given(
    rows=st.lists(
        st.lists(st.sampled_from(DIRECTIVES), min_size=1, max_size=3).map(" ".join), min_size=1, max_size=4
    ),
    comment=st.sampled_from(["", " # why", "   "]),
    target=st.sampled_from(
        [
            slurm("--mem", "1T"),
            slurm("--time", "9:00:00"),
            slurm("--cpus-per-task", 3),
            slurm("--nodes", 7),
            slurm("--comment", "x"),
        ]
    ),
)
def test_that_slurm_reads_the_value_and_every_other_option_as_before(
    rows: list[str], comment: str, target: PatchTarget
) -> None:
    """One option differs; the lines below the first command are none of Slurm's."""
    text = (
        "#!/bin/bash\n" + "".join(f"#SBATCH {row}{comment}\n" for row in rows) + "\nsrun t\n#SBATCH --mem=1\n"
    )
    after = apply(text, target)
    assert holds(after, target)
    assert apply(after, target) == after
    old, new = sbatch(text), sbatch(after)
    name = target.names[0][2:]
    assert new == {**old, name: str(target.to)}
    assert len(lost_and_new(text, after)[1]) <= len(rows)


def sbatch(text: str) -> dict[str, str]:
    """Read directives as the last of them says, in a second way: by the table of this test's own
    spellings.
    """
    long = {"-t": "time", "-c": "cpus-per-task", "-N": "nodes", "-J": "job-name"}
    read: dict[str, str] = {}
    for row in text.split("\nsrun")[0].split("\n"):
        rest = row.removeprefix("#SBATCH ").split(" #")[0] if row.startswith("#SBATCH ") else ""
        words = rest.replace("'a b'", "a_b").split()
        for index, word in enumerate(words):
            if word.startswith("--"):
                key, _, value = word[2:].partition("=")
                read[key] = value or _following(words, index)
            elif word[:2] in long:
                read[long[word[:2]]] = word[2:] or _following(words, index)
    return read


def _following(words: list[str], index: int) -> str:
    return words[index + 1] if index + 1 < len(words) and not words[index + 1].startswith("-") else ""


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
@PROPERTY
@given(made=scripts(), which=st.integers(0, 4), to=st.integers(0, 999))
def test_that_line_ends_are_kept(
    made: tuple[str, list[str], list[str]], which: int, to: int, ending: str
) -> None:
    """A script of another system is changed as its twin with plain line ends is."""
    text, keys, _ = made
    target = hydra(keys[which % len(keys)], to)
    assert apply(text.replace("\n", ending), target) == apply(text, target).replace("\n", ending)


def test_of_several_commands_the_one_that_agrees_with_the_run_is_changed() -> None:
    """A sweep's commands give the same value; what else the run printed tells them apart."""
    script = "python t.py --size 8 --lag 1\npython t.py --size 8 --lag 2\n"
    target = PatchTarget("python", "flag", ("--size",), 4, "flag", present="8", run=(("lag", "2"),))
    after = apply(script, target)
    assert after == script.replace("8 --lag 2", "4 --lag 2")
    assert holds(after, target)


def test_that_the_value_which_failed_is_changed_in_all_commands_of_a_sweep() -> None:
    """One program that is started with it in each; not where one starts another program."""
    script = "python t.py --size 8 --fold 1\npython t.py --size 8 --fold 2\n"
    target = PatchTarget("python", "flag", ("--size",), 4, "flag", present="8")
    after = apply(script, target)
    assert after == script.replace("8", "4")
    assert holds(after, target)
    with pytest.raises(NotPatchableError, match="several commands"):
        apply(script.replace("t.py", "e.py", 1), target)


def test_that_a_package_is_installed_before_the_first_program_that_may_need_it() -> None:
    """A program of a package itself, not only the interpreter; tools that prepare the job need none."""
    script = "mkdir --parents out\ntool_eval --model a --out out\npython sum.py --in out\n"
    target = PatchTarget("pip", "package", ("langdetect",), "install", "package")
    made = apply(script, target)
    assert made == script.replace("tool_eval --model", "python3 -m pip install langdetect\ntool_eval --model")
