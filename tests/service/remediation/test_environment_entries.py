"""One reading of how a script enters an environment serves all that ask for it."""

from __future__ import annotations

from service.remediation.code_edits.failing_code import JobFile
from service.remediation.environment_entries import DefinedEnvironment, defined_environments, enters_one
from tests.tables import each_row


@each_row(
    ("text", "enters"),
    [
        ("source venv/bin/activate\npython train.py", True),
        (". env/bin/activate", True),
        ("srun --container-image=x.sqsh python train.py", True),
        ("module load cuda/12.1 python/3.11", True),
        ("module load cuda/12.1", False),
        ("singularity exec box.sif python train.py", True),
        ("/opt/conda/envs/a/bin/python train.py", True),
        ("uv run train.py", True),
        ("export PATH=/opt/a/bin:$PATH", True),
        ("export PATH=/usr/local/cuda/bin:$PATH", False),
        ("# conda activate a\npython train.py", False),
        ("python train.py", False),
    ],
)
def test_that_a_script_that_enters_an_environment_is_known(text: str, enters: bool) -> None:
    assert enters_one(text) is enters


def test_that_only_a_list_of_packages_under_a_name_defines_one() -> None:
    listed = "name: vqa\ndependencies:\n  - python=3.10\n  - conda-forge::PyTorch\n"
    files = [JobFile("env.yml", listed), JobFile("model.yml", "name: big\nlayers: 3\n")]
    packages = frozenset({"python", "pytorch"})
    assert list(defined_environments(files)) == [DefinedEnvironment("vqa", "env.yml", packages)]
