"""A variable is set in a program's own first rows, before it imports what reads it."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.configfiles.errors import NotPatchableError
from ingest.logs.stacks.stack import Frame
from service.patching.diagnosis_patch import suggested_edits
from service.patching.patches import ConfigFile
from service.patching.python_environment import with_variable
from service.patching.target import PatchTarget
from tests.factories import whole_corpus
from tests.service.factories import failed, proposal, report
from tests.service.patching.applying import goes_back_and_forth, target
from tests.tables import each_row

LOCKING = replace(target("HDF5_USE_FILE_LOCKING", "FALSE", "env", "env", "env"), in_code=True)
SET = 'os.environ["HDF5_USE_FILE_LOCKING"] = "FALSE"\n'


@each_row(
    ("before", "after"),
    [
        ("import os\nimport h5py\n", f"import os\n\n{SET}\nimport h5py\n"),
        ("import os, sys\n\nimport h5py\n", f"import os, sys\n\n{SET}\nimport h5py\n"),
        ("import h5py\nimport os\n", f"import os\n\n{SET}\nimport h5py\nimport os\n"),
        (
            '"""A."""\nfrom __future__ import annotations\nimport re\nfrom a import x\n',
            f'"""A."""\nfrom __future__ import annotations\nimport re\nimport os\n\n{SET}\nfrom a import x\n',
        ),
        ('"""Train."""\nimport h5py\n', f'"""Train."""\n\nimport os\n\n{SET}\nimport h5py\n'),
        (
            "#!/usr/bin/env python\nfrom . import é\n",
            f"#!/usr/bin/env python\n\nimport os\n\n{SET}\nfrom . import é\n",
        ),
        (
            "import os\nos.makedirs('x')\nimport h5py\n",
            f"import os\n\n{SET}\nos.makedirs('x')\nimport h5py\n",
        ),
        (
            "from os import environ\nRUN = 1\nimport h5py\n",
            f"from os import environ\nimport os\n\n{SET}\nRUN = 1\nimport h5py\n",
        ),
    ],
)
def test_that_a_variable_is_set_before_what_may_read_it_is_imported(
    before: str, after: str, tmp_path: Path
) -> None:
    made = with_variable(before, LOCKING)
    assert made == after
    ast.parse(made)
    assert with_variable(made, LOCKING) == made
    assert goes_back_and_forth(tmp_path, before, made, "train.py")


def test_that_a_value_which_the_code_sets_is_changed_where_it_stands() -> None:
    """Where the run had it: what the code has otherwise was written since."""
    code = "import os\n\nos.environ['HDF5_USE_FILE_LOCKING'] = 'TRUE'\nimport h5py\n"
    assert with_variable(code, replace(LOCKING, present="TRUE")) == code.replace("'TRUE'", '"FALSE"')
    for present in ("", "BEST_EFFORT"):
        with pytest.raises(NotPatchableError):
            with_variable(code, replace(LOCKING, present=present))


@each_row(
    ("code", "wanted"),
    [
        # It is set elsewhere, by a value that is worked out, in a function, or behind an import.
        ("import os\nos.environ.setdefault('HDF5_USE_FILE_LOCKING', 'TRUE')\n", LOCKING),
        ("import os\nos.environ['HDF5_USE_FILE_LOCKING'] = str(x)\nimport h5py\n", LOCKING),
        ("import os, h5py\nos.environ['HDF5_USE_FILE_LOCKING'] = 'TRUE'\n", LOCKING),
        ("import os; import h5py\n", LOCKING),
        ("import os\n", LOCKING),
        ("print 1\n", LOCKING),
        # The loader has read it before the first row.
        ("import os\nimport h5py\n", target("LD_PRELOAD", "x.so", "env", "env", "env")),
        ("import os\nimport h5py\n", replace(LOCKING, to="unset")),
        ("import os\nimport h5py\n", replace(LOCKING, to="$HOME/x")),
    ],
)
def test_that_code_which_treats_the_variable_otherwise_is_left_alone(code: str, wanted: PatchTarget) -> None:
    with pytest.raises(NotPatchableError):
        with_variable(code, wanted)


@each_row(
    ("frames", "command", "names"),
    [
        ((Frame("/job/train.py", 9, "<module>"), Frame("/job/data.py", 3, "read")), "", ["train.py"]),
        ((Frame("/job/data.py", 3, "read"),), "", []),
        ((Frame("/job/data.py", 3, "read"),), "torchrun --nproc_per_node 2 train.py", ["train.py"]),
        ((Frame("/job/main.py", 9, "<module>"), Frame("/job/train.py", 3, "<module>")), "", []),
    ],
)
def test_that_a_variable_is_set_in_the_program_that_ran_alone(
    frames: tuple[Frame, ...], command: str, names: list[str]
) -> None:
    """It is the outermost row of the traceback, or what the command starts; never a module of it."""
    files = [ConfigFile("data.py", "import os\nimport h5py\n"), ConfigFile("train.py", "import data\n")]
    told = replace(report(failed(frames=frames)), command=(1, command))
    change = proposal("HDF5_USE_FILE_LOCKING", "FALSE", kind="env", framework="env")
    made = suggested_edits([change], files, told, whole_corpus())
    assert [edit.file.name for edit in made] == names
