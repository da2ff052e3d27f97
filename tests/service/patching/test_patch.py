"""Patches of a job's own files: the format, what is left out, and diffs that git applies."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.schema import Scalar
from ingest.configfiles.errors import NotPatchableError
from service.patching.patch import accepts, carries, difference, format_of, patch
from tests.service.patching.applying import applied, git, target
from tests.tables import each_row

VERL = "actor_rollout_ref:\n  rollout:\n    n: 4  # samples\ntrainer: {nnodes: 1}\n"
N = "actor_rollout_ref.rollout.n"


@each_row(
    ("name", "text", "form"),
    [
        ("config.yaml", "a: 1\n", "yaml"),
        ("CONFIG.YML", "a: 1\n", "yaml"),
        ("environment.yml", "name: x\ndependencies:\n- python\n", "conda"),
        ("ds_config.json", "{}", "json"),
        ("requirements.txt", "", "requirements"),
        ("requirements-gpu.txt", "", "requirements"),
        ("dev_requirements.in", "", "requirements"),
        ("constraints.txt", "", "requirements"),
        (".env", "", "dotenv"),
        (".env.local", "", "dotenv"),
        ("train.env", "", "dotenv"),
        ("Dockerfile", "", "dockerfile"),
        ("Dockerfile.gpu", "", "dockerfile"),
        ("job.sbatch", "", "shell"),
        ("run.sh", "a: 1\n", "shell"),
        ("run", "#!/bin/bash\nx\n", "shell"),
        ("job.txt", "#SBATCH --mem=1G\nsrun x\n", "shell"),
        ("command.txt", "python train.py data.size=1\n", "shell"),
        ("x.txt", '{"a": 1}\n', "json"),
        ("x.txt", "# c\na: 1\nb:\n  c: 2\n", "yaml"),
        ("x", "---\na: 1\n", "yaml"),
        ("x", "FROM a\nENV B=1\n", "dockerfile"),
        ("x", "A=1\nB='2'\n", "dotenv"),
        ("x.txt", "torch==2.6  # c\nvllm>=0.8; python_version<'4'\n-r b.txt\n", "requirements"),
        ("", "", "shell"),
        ("x", "{\n", "shell"),
    ],
)
def test_a_format_is_known_by_its_name_else_by_its_content(name: str, text: str, form: str) -> None:
    assert format_of(name, text).name == form


@each_row(
    ("name", "text"),
    [
        ("poetry.toml", ""),
        ("uv.lock", ""),
        ("train.py", "x = 1\n"),
        ("train", "#!/usr/bin/env python3\nx = 1\n"),
        ("hosts.ini", ""),
    ],
)
def test_a_file_that_is_never_changed_is_left_out_with_the_reason(name: str, text: str) -> None:
    made = patch(name, text, [target(N, 1), target("x", 1)])
    assert made.diff == ""
    assert [item.what for item in made.left_out] == [f"patch of {name}"]
    assert not carries(name, text, target(N, 1))
    assert not accepts(name, text, target(N, 1))
    with pytest.raises(NotPatchableError):
        format_of(name, text)


def test_all_that_can_be_changed_makes_one_diff_and_the_rest_is_told(tmp_path: Path) -> None:
    targets = [
        target(N, 8),
        target("trainer.nnodes", 2),
        target("critic.x", 1, framework="openrlhf"),
        target("NCCL_DEBUG", "INFO", kind="env"),
    ]
    made = patch("/job/conf/ppo.yaml", VERL, targets)
    assert applied(tmp_path, VERL, made.diff, "ppo.yaml") == VERL.replace("4", "8").replace("1}", "2}")
    assert made.diff.count("--- a/ppo.yaml\n") == 1
    assert [item.what for item in made.left_out] == ["critic.x=1", "NCCL_DEBUG=INFO"]
    assert all(item.why for item in made.left_out)


# File, text, target that it carries, target that it takes in, target that it refuses.
FILES = [
    ("c.yaml", VERL, target(N, 8), target("trainer.x", 8), target("other.x", 8, framework="deepspeed")),
    ("ds.json", '{"zero_optimization": {"stage": 3}}\n', target("zero_optimization.stage", 2), target("zero_optimization.x", 1), target("fp16.enabled", to=True)),
    ("requirements.txt", "torch==2.5\n", target("torch", ">=2.6", "package", "pip"), target("vllm", "<0.9", "package", "pip"), target(N, 8)),
    (".env", "A=1\n", target("A", 8, "env"), target("B", 8, "env"), target(N, 8)),
    ("Dockerfile", "FROM x\nENV A=1\n", target("A", 8, "env"), target("B", 8, "env"), target("torch", ">=2.6", "package", "pip")),
    ("run.sh", f"python3 -m verl.trainer.main_ppo {N}=4\n", target(N, 8, spelled="hydra"), target("trainer.nnodes", 2, spelled="hydra"), target("fp16.enabled", to=True, spelled="json")),
]  # fmt: skip


@each_row(("name", "text", "carried", "accepted", "refused"), FILES, ids=[row[0] for row in FILES])
def test_a_file_tells_what_it_carries_and_what_it_takes_in(
    name: str, text: str, carried: object, accepted: object, refused: object, tmp_path: Path
) -> None:
    """The one that says a setting already gets the change; one that could take it in comes after."""
    told = [
        (carries(name, text, wanted), accepts(name, text, wanted)) for wanted in (carried, accepted, refused)
    ]  # type: ignore[arg-type]
    assert told == [(True, True), (False, True), (False, False)]
    made = patch(name, text, [carried, accepted, refused])  # type: ignore[list-item]
    after = applied(tmp_path, text, made.diff, name)
    assert [item.what for item in made.left_out] == [str(refused)]
    assert patch(name, after, [carried, accepted]).diff == ""  # type: ignore[list-item]
    assert git(tmp_path, "apply", "-R", "-", given=made.diff)
    assert (tmp_path / name).read_bytes() == text.encode()


def test_a_change_that_another_undoes_is_told() -> None:
    """Two values for one setting cannot both stand."""
    made = patch("c.yaml", VERL, [target(N, 8), target(N, 2)])
    assert "+    n: 2" in made.diff
    assert [item.what for item in made.left_out] == [f"{N}=8"]


@each_row("name", ["my config.yaml", "配置.yaml", 'a"b.yaml', "a\tb.yaml", "a\\b.yaml", "-x.yaml"])
def test_the_diff_names_the_file_as_git_reads_it(name: str, tmp_path: Path) -> None:
    diff = patch(name, VERL, [target(N, 8)]).diff
    assert applied(tmp_path, VERL, diff, name) == VERL.replace("4", "8")


ROWS = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            "",
            "-x",
            "+x",
            "--- a/x",
            "\\ No newline",
            "@@ -1 +1 @@",
            "量",
            "t\t",
            "page\x0cbreak",
            "u\u2028v",
            "c\r",
        ]
    ),
    max_size=8,
)


@settings(max_examples=40, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(before=ROWS, after=ROWS, ends=st.tuples(st.booleans(), st.booleans()))
def test_the_difference_of_any_two_texts_applies_to_the_byte(
    before: list[str], after: list[str], ends: tuple[bool, bool], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever the lines look like, with or without an end of the last one."""
    old, new = ("\n".join(rows) + "\n" * end for rows, end in zip((before, after), ends, strict=True))
    if not old or not new:
        return  # git takes an emptied file for a deleted one
    folder = tmp_path_factory.mktemp("git")
    assert subprocess.run(["git", "init", "-q"], cwd=folder, check=False).returncode == 0
    diff = difference("x.txt", old, new)
    assert applied(folder, old, diff, "x.txt") == new
    assert not diff or git(folder, "apply", "-R", "-", given=diff)
    assert (folder / "x.txt").read_bytes() == old.encode()


@each_row("to", [8, 0.5, True, "auto"])
def test_a_second_patch_is_empty(to: Scalar, tmp_path: Path) -> None:
    after = applied(tmp_path, VERL, patch("c.yaml", VERL, [target(N, to)]).diff, "c.yaml")
    assert patch("c.yaml", after, [target(N, to)]).diff == ""


@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    row=st.sampled_from(FILES),
    cuts=st.tuples(st.integers(0, 80), st.integers(0, 80)),
    junk=st.text(alphabet="\n\r\t {}[]:,#&*!|>'\"\\$-=x1\ufeff\x00", max_size=5),
    name=st.booleans(),
)
def test_damaged_files_are_refused_and_never_break_anything(
    row: tuple[str, str, object, object, object], cuts: tuple[int, int], junk: str, name: bool
) -> None:
    """Whatever stands in a file, the answer is a diff or a reason."""
    known, text, *targets = row
    damaged = text[: min(cuts)] + junk + text[max(cuts) :]
    made = patch(known if name else "x", damaged, targets)  # type: ignore[arg-type]
    assert made.diff or len(made.left_out) > 0 or patch(known, damaged, targets).diff == ""  # type: ignore[arg-type]
