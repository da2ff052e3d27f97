"""A row that ends a launch script's command too early is joined to it again."""

from __future__ import annotations

from ingest.logs.facts import Fact
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.script_edits import script_edit
from tests.service.factories import failed, report
from tests.tables import each_row


@each_row(
    ("script", "line", "expected"),
    [
        ("python a.py \\\n  --x 1\n  --y 2\n", 3, "python a.py \\\n  --x 1 \\\n  --y 2\n"),
        ("python a.py \\\n  --x 1 \\ \n  --y 2\n", 3, "python a.py \\\n  --x 1 \\\n  --y 2\n"),
        ("python a.py \\\n  --x 1 \\\n  # --z 3 \\\n  --y 2\n", 4, "python a.py \\\n  --x 1 \\\n  --y 2\n"),
        ("python a.py \\\n  --x 1 \\\n\n  --y 2\n", 4, "python a.py \\\n  --x 1 \\\n  --y 2\n"),
    ],
    ids=["no-backslash", "blank-behind", "comment-between", "empty-row-between"],
)
def test_that_an_option_run_as_a_command_joins_the_command_above(
    script: str, line: int, expected: str
) -> None:
    """Each way to end a command before its last option is undone, and nothing else of the script changes."""
    for said in (f"run.sh: line {line}: --y: command not found", f"run.sh: {line}: --y: not found"):
        found = script_edit(report(failed(body=said)), [JobFile("job/run.sh", script)])
        assert found is not None
        assert found.text == expected


@each_row(
    ("said", "script"),
    [
        ("run.sh: line 2: --y: command not found", "python a.py\n  --z 2\n"),
        ("run.sh: line 2: torchrun: command not found", "set -e\ntorchrun a.py\n"),
        ("other.sh: line 2: --y: command not found", "python a.py\n  --y 2\n"),
        ("run.sh: line 3: --y: command not found", "echo 1\n# options\n  --y 2\n"),
    ],
    ids=["another-row", "a-program", "another-script", "nothing-to-join"],
)
def test_that_no_other_row_is_joined(said: str, script: str) -> None:
    """The row named must begin with the option, and a command must stand above it."""
    assert script_edit(report(failed(body=said)), [JobFile("run.sh", script)]) is None


@each_row(
    ("script", "expected"),
    [
        ('#SBATCH --ntasks=4\nrun -n "$SLURM_NTASKS"\n', 'run -n "${SLURM_NTASKS:-4}"'),
        ("#SBATCH --ntasks 2\nrun -n ${SLURM_NTASKS}\n", "run -n ${SLURM_NTASKS:-2}"),
        ('#SBATCH --nodes=4\nrun -n "$SLURM_NTASKS"\n', None),
        ('#SBATCH --ntasks=4\nrun -n "$SLURM_NTASKS_PER_NODE"\n', None),
    ],
    ids=["quoted", "braced", "another-directive", "another-variable"],
)
def test_that_a_variable_of_slurm_falls_back_to_its_directive(script: str, expected: str | None) -> None:
    """Run by a shell, the script has the directive's value where Slurm set none, and no other one."""
    said = "job.slurm: line 2: SLURM_NTASKS: unbound variable"
    found = script_edit(report(failed(body=said)), [JobFile("job.slurm", script)])
    assert (found.after if found is not None else None) == expected


@each_row(
    ("row", "expected"),
    [
        ("export PYTHONPATH=/job:$PYTHONPATH", "export PYTHONPATH=/job:${PYTHONPATH:-}"),
        ('PYTHONPATH="${PYTHONPATH}:/job"', 'PYTHONPATH="${PYTHONPATH:-}:/job"'),
        # What such a row is to be without it nobody can tell.
        ("python train.py --path $PYTHONPATH", None),
        ("export OTHER=/job:$PYTHONPATH", None),
    ],
)
def test_that_a_variable_which_a_row_extends_may_be_unset(row: str, expected: str | None) -> None:
    """Under `set -u`; the row that is named is edited, and no other one."""
    said = "run.sh: line 2: PYTHONPATH: unbound variable"
    found = script_edit(report(failed(body=said)), [JobFile("run.sh", f"set -u\n{row}\n")])
    assert (found.after if found is not None else None) == expected


@each_row(
    ("script", "variables", "expected"),
    [
        (
            "export A=0 &\npython a.py &\nexport A=1 &\npython b.py\n",
            ["A"],
            "export A=0\npython a.py &\nexport A=1\npython b.py\n",
        ),
        ("export A=0 &\npython a.py\n", ["B"], None),
        ("export A=0\npython a.py &\n", ["A"], None),
    ],
    ids=["in-the-background", "another-variable", "in-the-script"],
)
def test_that_a_variable_is_set_where_the_commands_below_have_it(
    script: str, variables: list[str], expected: str | None
) -> None:
    """What ends with `&` sets it in a shell of its own, and only a variable that matters is touched."""
    found = script_edit(report(failed(body="CUDA out of memory")), [JobFile("run.sh", script)], variables)
    assert (found.text if found is not None else None) == expected


@each_row(
    ("command", "option", "expected"),
    [
        (
            "python -m torch.distributed.launch --nproc_per_node=2",
            "--local-rank=0",
            "python -m torch.distributed.run --nproc_per_node=2",
        ),
        # The interpreter is the one of the job's environment.
        (
            "/env/bin/python3.10 -u -m torch.distributed.launch",
            "--local_rank=1",
            "/env/bin/python3.10 -u -m torch.distributed.run",
        ),
        ("deepspeed --num_gpus 2", "--local_rank=0", "deepspeed --no_local_rank --num_gpus 2"),
        (
            "pip install deepspeed rich\n/env/bin/deepspeed",
            "--local_rank=0",
            "pip install deepspeed rich\n/env/bin/deepspeed --no_local_rank",
        ),
        ("deepspeed \\\n ", "--local_rank=0", "deepspeed --no_local_rank \\\n "),
        ("python train.py --deepspeed ds.json --with", "--local_rank=0", None),
        ("pip install -U deepspeed -q && python", "--local_rank=0", None),
        ("python -m torch.distributed.launch", "--locale=0", None),
        ("torchrun --nproc_per_node=2", "--local_rank=0", None),
        ("# deepspeed --num_gpus 2", "--local_rank=0", None),
        ("deepspeed --no_local_rank --num_gpus 2", "--local_rank=0", None),
    ],
)
def test_that_a_launcher_keeps_an_option_to_itself_that_the_program_does_not_take(
    command: str, option: str, expected: str | None
) -> None:
    """The program has the same number in its environment; nothing that the job gives is touched."""
    script = f"set -e\n{command} train.py --lr 1e-3\n"
    said = f"train.py: error: unrecognized arguments: {option}"
    found = script_edit(report(failed(body=said, kind="error"), launches=(f"{script}\ngo.sh",)))
    wanted = f"set -e\n{expected} train.py --lr 1e-3\n" if expected else None
    assert (found.text if found is not None else None) == wanted


_DEFINED = """\
name: vqa
dependencies:
  - python=3.10
  - conda-forge::einops
  - pip:
    - torch==2.2.0
"""


@each_row(
    ("script", "missing", "row"),
    [
        ("#!/bin/bash\nmodule load cuda\nsrun --gres=gpu:1 python train.py\n", "torch", 3),
        ("#!/bin/bash\ntorchrun train.py\n", "einops", 2),
        ("#!/bin/bash\nsrun -n 4 \\\n  python train.py \\\n  --lr 1\n", "einops", 2),
        ("#!/bin/bash\nif true; then\n  python train.py\nfi\n", "einops", 2),
        ("#!/bin/bash\ncat > x.py <<EOF\npython a.py\nEOF\npython x.py\n", "einops", 5),
        ('#!/bin/bash\nsrun bash -c "\n  python train.py\n"\n', "einops", None),
        ("#!/bin/bash\npip install -r more.txt\npython train.py\n", "einops", None),
        ("#!/bin/bash\nsource activate vqa\npython train.py\n", "torch", None),
        ("#!/bin/bash\nuv run python train.py\n", "torch", None),
        ("#!/bin/bash\n/opt/vqa/bin/python train.py\n", "torch", None),
        ("#!/bin/bash\npython train.py\n", "timm", None),
    ],
    ids=[
        "below-srun",
        "a-launcher",
        "over-rows",
        "in-a-branch",
        "below-a-document",
        "a-text-to-a-shell",
        "installs-itself",
        "entered",
        "run-in-one",
        "an-interpreter-named",
        "not-listed",
    ],
)
def test_that_a_script_enters_the_environment_that_has_the_package(
    script: str, missing: str, row: int | None
) -> None:
    """Where a file defines an environment with the missing package and no row enters any, the script does."""
    root = failed(body=f"No module named '{missing}'")
    fact = Fact("package", root.line, {"name": missing})
    files = [JobFile("job.sh", script), JobFile("environment.yml", _DEFINED)]
    found = script_edit(report(root, facts=[fact]), files)
    assert (found.place if found is not None else None) == (row and f"job.sh:{row}")
    if found is not None:
        assert found.text.split("\n")[found.text.split("\n").index(found.before) - 1] == found.after


@each_row(
    ("said", "listing"),
    [
        ("module 'torch' has no attribute 'xpu'", _DEFINED),
        ("No module named 'torch.xpu'", _DEFINED),
        ("No module named 'torch'", "name: base\nlayers:\n  - torch\n"),
    ],
    ids=["a-name-lacks", "a-module-lacks", "no-environment"],
)
def test_that_an_environment_is_entered_for_a_package_that_is_not_there(said: str, listing: str) -> None:
    """What lacks a part is there; and a list of a configuration under a name is no environment."""
    root = failed(body=said)
    fact = Fact("package", root.line, {"name": "torch"})
    files = [JobFile("job.sh", "python train.py\n"), JobFile("environment.yml", listing)]
    assert script_edit(report(root, facts=[fact]), files) is None


EXTENSION = (
    "RuntimeError: The detected CUDA version (11.7) mismatches the version that was used to compile\n"
    "PyTorch (12.6). Please make sure to use the same CUDA versions."
)
OPTIMIZER = (
    "CUDAMismatchException: >- Op Builder: Installed CUDA version 12.1 does not match the version "
    "torch was compiled with 11.8, unable to compile"
)


@each_row(
    ("said", "script", "expected"),
    [
        (
            EXTENSION,
            "# cuda/11.7 is usual\nmodule load gcc/12 cuda/11.7.1\nexport CUDA_HOME=/usr/local/cuda-11.7\n",
            "# cuda/11.7 is usual\nmodule load gcc/12 cuda/12.6\nexport CUDA_HOME=/usr/local/cuda-12.6\n",
        ),
        (OPTIMIZER, "module load CUDA/12.1\npython train.py\n", "module load CUDA/11.8\npython train.py\n"),
        (OPTIMIZER, "module load cuda/12.10\npython train.py\n", None),
    ],
    ids=["of-a-package", "of-an-optimizer", "another-toolkit"],
)
def test_that_a_script_loads_the_toolkit_of_pytorch(said: str, script: str, expected: str | None) -> None:
    """Of the two versions that a build names, the script's own row is exchanged for PyTorch's."""
    found = script_edit(report(failed(body=said)), [JobFile("job/node.sbatch", script)])
    assert (found.text if found is not None else None) == expected


CUT_OFF = "python a.py \\\n  --x 1 \\ \n  --y 2 \\\t\n  --out o\n"


@each_row(
    ("said", "script", "launched", "expected"),
    [
        ("a.py: error: the following arguments are required: --y, --out", CUT_OFF, "", True),
        ("a.py: error: unrecognized arguments:  ", CUT_OFF, "", True),
        # Another option is lacking than those below the blank; the launcher's list shows the blank itself.
        ("a.py: error: the following arguments are required: --z", CUT_OFF, "", False),
        (
            "a.py: error: the following arguments are required: --z",
            CUT_OFF,
            "['a.py', '--x', '1', ' ']",
            True,
        ),
        ("a.py: error: unrecognized arguments: --q", CUT_OFF, "", False),
        (
            "a.py: error: unrecognized arguments:  ",
            CUT_OFF.replace("\\ \n", "\\\n").replace("\t", ""),
            "",
            False,
        ),
        ("a.py: error: unrecognized arguments:  ", "# a \\ \n# --x\necho 'a \\ '\n", "", False),
    ],
)
def test_that_blanks_behind_backslashes_go_where_a_command_was_cut_off(
    said: str, script: str, launched: str, *, expected: bool
) -> None:
    """All blanks of the script go at once: the next one would cut the command off again."""
    told = report(failed(body=said, kind="error"), surroundings=((9, launched),))
    found = script_edit(told, [JobFile("job/run.sh", script)])
    assert (found.text if found is not None else None) == (
        "python a.py \\\n  --x 1 \\\n  --y 2 \\\n  --out o\n" if expected else None
    )


@each_row(
    ("first", "second", "wanted"),
    [
        ("0,1", "1,2,3 accelerate launch --num_processes 3", "2,3 accelerate launch --num_processes 2"),
        ("'0,1'", "1,2 torchrun \\\\\n  --nproc_per_node=2", "2 torchrun \\\\\n  --nproc_per_node=1"),
        ("0,1", "2,3 torchrun --nproc_per_node=2", None),
        ("0,1", "0,1 torchrun --nproc_per_node=2", None),
    ],
)
def test_that_two_commands_share_no_card(first: str, second: str, wanted: str | None) -> None:
    """The second command keeps the cards that the first one does not have, with as many processes."""
    said = "RuntimeError: Attempting to use the same CUDA device for multiple distinct roles/ranks"
    script = "CUDA_VISIBLE_DEVICES={} serve &\nCUDA_VISIBLE_DEVICES={} train.py\n"
    edit = script_edit(
        report(failed(text=said, body=said)), [JobFile("job.sh", script.format(first, second))]
    )
    assert (edit.text if edit is not None else None) == (wanted and script.format(first, wanted))
