"""Packages of a `pyproject.toml`: changed in the project's own lists of requirements, or added to them."""

from __future__ import annotations

import tomllib
from pathlib import Path

from service.patching.patch import patch
from service.patching.patches import ConfigFile, patch_files
from service.patching.target import PatchTarget
from tests.service.patching.applying import goes_back_and_forth, target
from tests.tables import each_row

PROJECT = """[project]
name = "job"
dependencies = [
    "torch>=2.5",  # the newest
    'vllm[audio]>=0.6; python_version<"3.13"',
    "numpy",
]

[project.optional-dependencies]
eval = ["datasets>=2"]

[tool.other]
note = "torch is needed"
"""
SHORT = '[project]\nname = "job"\ndependencies = ["torch>=2.5", "numpy"]\n'


def package(name: str, to: str) -> PatchTarget:
    """Make a target."""
    return target(name, to, "package", "pip", "package")


@each_row(
    ("before", "wanted", "after"),
    [
        (PROJECT, package("torch", "2.6.0"), PROJECT.replace("torch>=2.5", "torch==2.6.0")),
        (PROJECT, package("Datasets", ">=3"), PROJECT.replace("datasets>=2", "datasets>=3")),
        (PROJECT, package("numpy", "<2"), PROJECT.replace('"numpy"', '"numpy<2"')),
        (PROJECT, package("numpy", "install"), PROJECT),
        (SHORT, package("einops", "install"), SHORT.replace('"numpy"]', '"numpy", "einops"]')),
        (
            SHORT.replace('["torch>=2.5", "numpy"]', '[\n  "torch",\n  "numpy",\n]'),
            package("einops", "0.8.0"),
            SHORT.replace('["torch>=2.5", "numpy"]', '[\n  "torch",\n  "numpy",\n  "einops==0.8.0",\n]'),
        ),
        # What stands elsewhere too, comes from an address, or is another tool's, is left alone.
        (SHORT.replace("numpy", "torch>=2.6"), package("torch", "2.7"), None),
        (SHORT.replace("torch>=2.5", "torch @ https://example.org/t.whl"), package("torch", "2.7"), None),
        ("[tool.poetry.dependencies]\ntorch = '^2.5'\n", package("torch", "2.7"), None),
        (SHORT, target("A", "1", "env", "env", "env"), None),
        ("[project\n", package("torch", "2.7"), None),
    ],
)
def test_that_a_requirement_is_changed_where_the_project_lists_it(
    before: str, wanted: PatchTarget, after: str | None, tmp_path: Path
) -> None:
    """All else of the file stays to the byte, and it says the same when it is patched again."""
    made = patch("pyproject.toml", before, [wanted])
    assert made.text == (before if after is None else after)
    assert bool(made.left_out) == (after is None)
    if after is not None:
        assert tomllib.loads(after)
        assert patch("pyproject.toml", after, [wanted]).diff == ""
        assert before == after or goes_back_and_forth(tmp_path, before, after, "pyproject.toml")


def test_that_one_patch_changes_several_files() -> None:
    """Each change goes where it belongs: a package to the project, a flag to the script."""
    files = [ConfigFile("jobs/run.sh", "vllm serve m\n"), ConfigFile("pyproject.toml", SHORT)]
    targets = [package("torch", "2.6.0"), target("--enforce-eager", True, "flag", "vllm", "flag")]
    made = patch_files(files, targets)
    assert [edit.file.name for edit in made.edits] == ["jobs/run.sh", "pyproject.toml"]
    assert "".join(edit.difference() for edit in made.edits).count("\n+++ b/") == 2
    assert made.left_out == ()
