"""A key that its program does not know is taken out of the job's files, with its value and nothing else."""

from __future__ import annotations

from pathlib import Path

from service.patching.patch import patch
from service.patching.target import PatchTarget
from tests.service.patching.applying import applied
from tests.tables import each_row


def gone(key: str, told: str = "", program: str = "", framework: str = "python") -> PatchTarget:
    """Make a target of a key that is to go; `told` is the value that the program's message puts behind it."""
    return PatchTarget(framework, "flag", (key,), told, removes=True, program=program)


TREE = "a: 1\nloss_scale: 2  # why\nmodel:\n  dim: 1\n  tags:\n  - x\n  - y\n  # heads\n  heads: 4\n"


@each_row(
    ("name", "before", "target", "after"),
    [
        ("run.sh", "python t.py --a 1 --tag x --b 2\n", gone("--tag", "x"), "python t.py --a 1 --b 2\n"),
        (
            "run.sh",
            "python t.py \\\n  --a 1 \\\n  --tag x \\\n  --b 2\n",
            gone("--tag", "x"),
            "python t.py \\\n  --a 1 \\\n  --b 2\n",
        ),
        ("run.sh", "python t.py \\\n  --a 1 \\\n  --tag=x\n", gone("--tag"), "python t.py \\\n  --a 1\n"),
        ("run.sh", "python t.py --quick --b 2\n", gone("--quick"), "python t.py --b 2\n"),
        (
            "run.sh",
            'ARGS=(\n  --a 1\n  --tag x\n)\npython t.py "${ARGS[@]}"\n',
            gone("--tag", "x"),
            'ARGS=(\n  --a 1\n)\npython t.py "${ARGS[@]}"\n',
        ),
        ("run.sh", "python -m train +a.tag=3 b=4\n", gone("a.tag"), "python -m train b=4\n"),
        ("run.sh", "bash -c 'python t.py --tag x'\n", gone("--tag", "x"), "bash -c 'python t.py'\n"),
        (
            "run.sh",
            "vllm serve m --seed 4 &\npython t.py --seed 4 --lr 1\n",
            gone("--seed", "4", "t.py"),
            "vllm serve m --seed 4 &\npython t.py --lr 1\n",
        ),
        (
            "job.sh",
            "#!/bin/bash\n#SBATCH --gpu-per-node=8\n#SBATCH -N 1\nsrun python t.py\n",
            gone("--gpu-per-node", "8", framework="slurm"),
            "#!/bin/bash\n#SBATCH -N 1\nsrun python t.py\n",
        ),
        ("c.yaml", TREE, gone("loss_scale"), TREE.replace("loss_scale: 2  # why\n", "")),
        ("c.yaml", TREE, gone("model.tags"), TREE.replace("  tags:\n  - x\n  - y\n", "")),
        ("c.yaml", "a: 1\ntag:\nb: 2\n", gone("tag"), "a: 1\nb: 2\n"),
        ("c.yaml", "a: 1\ntag: |\n  x\n\n  y\n\nb: 2\n", gone("tag"), "a: 1\n\nb: 2\n"),
        ("c.yaml", "a: {dim: 1, tag: 2}\n", gone("a.tag"), "a: {dim: 1}\n"),
        ("c.yaml", "a: {tag: 2, dim: 1}\n", gone("a.tag"), "a: {dim: 1}\n"),
        ("c.json", '{\n  "a": 1,\n  "tag": 2\n}\n', gone("tag"), '{\n  "a": 1\n}\n'),
        ("c.json", '{"z": {"tag": 1, "x": 2}, "tag": 2}\n', gone("z.tag"), '{"z": {"x": 2}, "tag": 2}\n'),
    ],
)
def test_that_the_key_goes_with_its_value(
    name: str, before: str, target: PatchTarget, after: str, tmp_path: Path
) -> None:
    made = patch(name, before, [target])
    assert made.left_out == ()
    assert applied(tmp_path, before, made.diff, name) == after


@each_row(
    ("name", "before", "target", "why"),
    [
        ("run.sh", "python t.py --tag x --b 2\n", gone("--tag"), "may be its value or the program's own"),
        ("run.sh", "python t.py --tag $X --b 2\n", gone("--tag", "x"), "may be its value"),
        ("run.sh", "python t.py --b 2\n", gone("--tag"), "does not set --tag"),
        ("run.sh", "vllm serve m --seed 4\npython t.py\n", gone("--seed", "4", "t.py"), "does not set"),
        ("c.yaml", "a:\n  tag: 1\nb: 2\n", gone("a.tag"), "only key of its group"),
        ("c.yaml", "a: 1\nb: 2\n", gone("tag"), "does not set it"),
        ("c.yaml", "a:\n- tag: 1\n  b: 2\n", gone("tag"), "does not set it"),
        ("c.json", '{"a": {"tag": 1}, "b": 2}\n', gone("a.tag"), "only key of its group"),
    ],
)
def test_that_what_may_be_more_than_the_key_is_left_with_the_reason(
    name: str, before: str, target: PatchTarget, why: str
) -> None:
    made = patch(name, before, [target])
    assert made.diff == ""
    assert why in made.left_out[0].why
