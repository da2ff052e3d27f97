"""Patches of launch scripts: what is changed where, what is left alone, and that the diff applies."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from corpus.schema import Scalar
from service.patching.script import patch
from tests.service.factories import proposal


def git(folder: Path, *words: str, given: str = "") -> bool:
    """Run git in a folder of the test's own; gives whether it went well."""
    ended = subprocess.run(["git", *words], cwd=folder, input=given.encode(), capture_output=True, check=False)
    return ended.returncode == 0


def applied(folder: Path, before: str, diff: str, name: str = "run.sh") -> str:
    """Apply a diff to a script in a repository of its own, and give the script."""
    assert git(folder, "init", "-q")
    (folder / name).write_bytes(before.encode())
    if diff:
        assert git(folder, "apply", "--check", "-", given=diff), diff
        assert git(folder, "apply", "-", given=diff)
    return (folder / name).read_bytes().decode()


def is_bash(text: str) -> bool:
    """Tell whether bash can parse a script."""
    return subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True, check=False).returncode == 0


# Before, after, key, value.
SPELLINGS = [
    ("python t.py data.size=1024 \\\n  x=1\n", "python t.py data.size=128 \\\n  x=1\n", "data.size", 128),
    ("python t.py data.size=1024\\\n  x=1\n", "python t.py data.size=128\\\n  x=1\n", "data.size", 128),
    ("python t.py +data.size=1024\n", "python t.py +data.size=128\n", "data.size", 128),
    ("python t.py ++data.size=1024\n", "python t.py ++data.size=128\n", "data.size", 128),
    ('python t.py data.size="1024"\n', 'python t.py data.size="128"\n', "data.size", 128),
    ("python t.py data.size='1024'\n", "python t.py data.size='128'\n", "data.size", 128),
    ("python t.py 'data.size=1024'\n", "python t.py 'data.size=128'\n", "data.size", 128),
    ('python t.py "data.size=1024" x=1\n', 'python t.py "data.size=128" x=1\n', "data.size", 128),
    ("args=(x=1 data.size=1024)\n", "args=(x=1 data.size=128)\n", "data.size", 128),
    ("(cd /job && python t.py data.size=1024)\n", "(cd /job && python t.py data.size=128)\n", "data.size", 128),
    ("python t.py data.size=1024; echo done\n", "python t.py data.size=128; echo done\n", "data.size", 128),
    ("python t.py data.size=1024&\n", "python t.py data.size=128&\n", "data.size", 128),
    ("deepspeed t.py --zero_stage 3 --bf16\n", "deepspeed t.py --zero_stage 2 --bf16\n", "zero_stage", 2),
    ("deepspeed t.py --zero_stage=3\n", "deepspeed t.py --zero_stage=2\n", "zero_stage", 2),
    ("deepspeed t.py --zero-stage 3\n", "deepspeed t.py --zero-stage 2\n", "zero_stage", 2),
    ("deepspeed t.py --zero_stage\t3\n", "deepspeed t.py --zero_stage\t2\n", "zero_stage", 2),
    ("deepspeed t.py --lr -1.5\n", "deepspeed t.py --lr 0.5\n", "lr", 0.5),
    ("export NCCL_DEBUG=WARN\n", "export NCCL_DEBUG=INFO\n", "NCCL_DEBUG", "INFO"),
    ("NCCL_DEBUG=WARN python t.py\n", "NCCL_DEBUG=INFO python t.py\n", "NCCL_DEBUG", "INFO"),
    ("#!/bin/bash\n#SBATCH --mem=64G\nsrun t\n", "#!/bin/bash\n#SBATCH --mem=128G\nsrun t\n", "mem", "128G"),
    ("read -r -d '' a <<E\n  --zero_stage 3 \\\n  --bf16\nE\nx $a\n", "read -r -d '' a <<E\n  --zero_stage 2 \\\n  --bf16\nE\nx $a\n", "zero_stage", 2),
    ("python t.py data.offload=True\n", "python t.py data.offload=False\n", "data.offload", False),
    ("python t.py data.size=1024", "python t.py data.size=128", "data.size", 128),
    ("# 批大小\r\npython t.py data.size=1024\r\n", "# 批大小\r\npython t.py data.size=128\r\n", "data.size", 128),
    ("# page\x0cbreak\u2028and more\npython t.py data.size=1024\n", "# page\x0cbreak\u2028and more\npython t.py data.size=128\n", "data.size", 128),
    ("python t.py data.size=\n", "python t.py data.size=128\n", "data.size", 128),
]


@pytest.mark.parametrize(("before", "after", "key", "to"), SPELLINGS)
def test_a_setting_is_changed_where_it_stands(before: str, after: str, key: str, to: Scalar, tmp_path: Path) -> None:
    """Whatever the spelling, the diff applies with git, changes that value only, and leaves a script that parses."""
    made = patch(before, "run.sh", [proposal(key, to)])
    assert applied(tmp_path, before, made.diff) == after
    assert made.left_out == ()
    assert is_bash(after) or not is_bash(before)


@pytest.mark.parametrize(("before", "after", "key", "to"), SPELLINGS)
def test_patching_twice_changes_nothing(before: str, after: str, key: str, to: Scalar) -> None:
    """A script that has the value gives an empty diff."""
    assert patch(after, "run.sh", [proposal(key, to)]).diff == ""


@pytest.mark.parametrize(("before", "after", "key", "to"), SPELLINGS)
def test_the_reverse_restores_every_byte(before: str, after: str, key: str, to: Scalar, tmp_path: Path) -> None:
    """The diff taken back gives the script as it was."""
    diff = patch(before, "run.sh", [proposal(key, to)]).diff
    assert applied(tmp_path, before, diff) != before
    assert git(tmp_path, "apply", "-R", "-", given=diff)
    assert (tmp_path / "run.sh").read_bytes() == before.encode()


@pytest.mark.parametrize(
    ("text", "fields", "reason"),
    [
        ("python t.py data.size=$SIZE\n", {}, "computed"),
        ("python t.py data.size=${SIZE:-4}\n", {}, "computed"),
        ('python t.py data.size="$SIZE"\n', {}, "computed"),
        ("python t.py data.size=$((8 * 4))\n", {}, "computed"),
        ("python t.py data.size=`nproc`\n", {}, "computed"),
        ("deepspeed t.py --zero_stage $STAGE\n", {"key": "zero_stage", "to": 2}, "computed"),
        ("python t.py x=1\n", {}, "does not set it"),
        ("python t.py data.size=1\npython t.py data.size=2\n", {}, "more than once"),
        ("# python t.py data.size=1024\n", {}, "does not set it"),
        ("  #data.size=1024 \\\n", {}, "does not set it"),
        ("python t.py x=1 # was data.size=1024\n", {}, "does not set it"),
        ("python t.py xdata.size=4 data.size_max=4 other.data.size=4 --data.size_max 3\n", {}, "does not set it"),
        ("echo my-data.size=4\n", {}, "does not set it"),
        ("", {}, "does not set it"),
    ],
)
def test_what_cannot_be_changed_safely_is_left_alone(text: str, fields: dict[str, Any], reason: str) -> None:
    """Computed, missing, doubled, commented-out and other settings stay as they are, and the reason is told."""
    made = patch(text, "run.sh", [proposal(**fields)])
    assert made.diff == ""
    assert [reason in item.why for item in made.left_out] == [True]


def test_the_live_setting_is_changed_beside_its_comment(tmp_path: Path) -> None:
    """A commented-out copy is no second place."""
    before = "# data.size=4 was too small\npython t.py data.size=1024\n"
    made = patch(before, "run.sh", [proposal()])
    assert applied(tmp_path, before, made.diff) == before.replace("1024", "128")


@pytest.mark.parametrize("following", [" \\\n  --flash_attn\n", "\n", " --flash_attn\n"])
def test_a_bare_switch_gets_no_value(following: str, tmp_path: Path) -> None:
    """`--adam_offload` alone is on by standing there: it is taken out or left with a reason, never given a value."""
    before = f"deepspeed t.py --bf16 --adam_offload{following}"
    made = patch(before, "run.sh", [proposal("adam_offload", to=False)])
    after = applied(tmp_path, before, made.diff)
    assert "False" not in after
    assert is_bash(after)
    assert ("--adam_offload" not in after) or made.left_out


@pytest.mark.parametrize("kind", ["package", "command"])
def test_packages_and_commands_are_no_settings_of_a_script(kind: str) -> None:
    """Only settings, flags and variables are written."""
    assert patch("python t.py data.size=1024\n", "run.sh", [proposal(kind=kind)]).diff == ""


def test_several_changes_make_one_diff(tmp_path: Path) -> None:
    """All that can be changed is; one that cannot does not hold up the rest."""
    before = "python t.py \\\n" + "".join(f"  k{number}={number} \\\n" for number in range(30)) + "  last=1\n"
    made = patch(before, "run.sh", [proposal("k2", 99), proposal("none", 1), proposal("k28", 98)])
    after = applied(tmp_path, before, made.diff)
    assert after == before.replace("k2=2 ", "k2=99 ").replace("k28=28 ", "k28=98 ")
    assert made.diff.count("--- a/") == 1
    assert len(made.left_out) == 1


@pytest.mark.parametrize("name", ["run.sh", "my run.sh", "脚本.sh", "/jobs/7/run.sh"])
def test_the_diff_names_the_file_itself(name: str, tmp_path: Path) -> None:
    """The diff applies in the script's own folder, whatever the file is called and wherever it lay."""
    before = "python t.py data.size=1024\n"
    diff = patch(before, name, [proposal()]).diff
    assert applied(tmp_path, before, diff, Path(name).name) == "python t.py data.size=128\n"
