"""A patch is written into files and taken back to the byte, whatever happens in between."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from service.patching.application import RECORDS, apply_edits, name_in_repository, take_back
from service.patching.patches import ConfigFile, FileEdit
from service.schemas.errors import PatchError
from tests.tables import each_row
from tests.warm import ROOT

TEXTS = {
    "run.sh": ("#!/bin/bash\npython train.py --lr 1\n", "#!/bin/bash\npython train.py --lr 2\n"),
    "ds.json": ('{"a": 1,\r\n "b": "ß"}', '{"a": 1,\r\n "b": "ß", "c": 3}'),
    "c.yaml": ("a: 1\nb: 2\nc: 3\n", "x: 0\na: 1\nb: 2\n"),
}
# The process ends in the middle of the n-th replacement of a file: the first is the record's.
CRASH = """
import os, sys
from pathlib import Path
from tests.service.patching.test_application import edits
from service.patching.application import apply_edits, take_back
folder, step, left = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
made = edits(folder) if step == "apply" else []
real = os.replace
def replace(*paths):
    global left
    left -= 1
    if left < 0:
        os._exit(9)
    real(*paths)
os.replace = replace
apply_edits(made, folder / "home") if step == "apply" else take_back(folder / "home")
"""


def edits(folder: Path) -> list[FileEdit]:
    """Write the files as they are before, and give what is to become of them."""
    found = []
    for name, (before, after) in TEXTS.items():
        (folder / name).write_bytes(before.encode())
        found.append(FileEdit(ConfigFile(name, before, path=folder / name), after))
    return found


def held(folder: Path) -> list[str]:
    """Read the files."""
    return [(folder / name).read_bytes().decode() for name in TEXTS]


BEFORE, AFTER = ([pair[at] for pair in TEXTS.values()] for at in (0, 1))


def test_that_a_patch_is_applied_and_taken_back_to_the_byte_with_the_modes_of_the_files(
    tmp_path: Path,
) -> None:
    made = edits(tmp_path)
    (tmp_path / "run.sh").chmod(0o750)
    apply_edits(made, tmp_path / "home")
    assert held(tmp_path) == AFTER
    assert (tmp_path / "run.sh").stat().st_mode & 0o777 == 0o750
    assert set(take_back(tmp_path / "home")) == {tmp_path / name for name in TEXTS}
    assert held(tmp_path) == BEFORE
    assert (tmp_path / "run.sh").stat().st_mode & 0o777 == 0o750
    with pytest.raises(PatchError, match="no applied patch"):
        take_back(tmp_path / "home")
    assert {path.name for path in tmp_path.iterdir()} == {*TEXTS, "home"}


@pytest.mark.long
@each_row(
    "step, left", [*(("apply", left) for left in range(4)), *(("undo", left) for left in range(3))], quick=3
)
def test_that_a_crash_at_any_point_can_be_taken_back(step: str, left: int, tmp_path: Path) -> None:
    """After it each file is whole, the old or the new one, and undoing gives the old ones."""
    made = edits(tmp_path)
    if step == "undo":
        apply_edits(made, tmp_path / "home")
    ended = subprocess.run(
        [sys.executable, "-c", CRASH, str(tmp_path), step, str(left)],
        check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
    )
    assert ended.returncode == 9
    now = zip(held(tmp_path), BEFORE, AFTER, strict=True)
    assert [text == after for text, _, after in now] == [
        (place < left - 1) if step == "apply" else (place >= left) for place in range(3)
    ]
    if (step, left) == ("apply", 0):
        with pytest.raises(PatchError, match="no applied patch"):
            take_back(tmp_path / "home")
    else:
        take_back(tmp_path / "home")
    assert held(tmp_path) == BEFORE


def test_that_patches_are_taken_back_from_the_latest_on_or_by_their_file(tmp_path: Path) -> None:
    first, second, third = edits(tmp_path)
    apply_edits([first], tmp_path / "home")
    apply_edits([second, third], tmp_path / "home")
    assert take_back(tmp_path / "home", tmp_path / "run.sh") == (tmp_path / "run.sh",)
    assert held(tmp_path) == [BEFORE[0], *AFTER[1:]]
    take_back(tmp_path / "home")
    assert held(tmp_path) == BEFORE


def test_that_a_file_that_changed_meanwhile_is_left_alone_with_all_others(tmp_path: Path) -> None:
    """Neither applying nor taking back overwrites what somebody else wrote."""
    made = edits(tmp_path)
    (tmp_path / "c.yaml").write_text("mine: 1\n")
    with pytest.raises(PatchError, match=r"c\.yaml is not as it was read"):
        apply_edits(made, tmp_path / "home")
    assert held(tmp_path) == [*BEFORE[:2], "mine: 1\n"]
    apply_edits(edits(tmp_path), tmp_path / "home")
    (tmp_path / "c.yaml").write_text("mine: 2\n")
    with pytest.raises(PatchError, match=r"c\.yaml has been changed since"):
        take_back(tmp_path / "home")
    assert held(tmp_path) == [*AFTER[:2], "mine: 2\n"]


def test_that_a_file_that_cannot_be_written_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    """A folder in a file's place cannot be replaced by one, whoever runs the test."""
    made = edits(tmp_path)
    with pytest.raises(PatchError, match="no file of this machine"):
        apply_edits([made[0], FileEdit(ConfigFile("command-at-line-3.sh", "a"), "b")], tmp_path / "home")
    (tmp_path / "c.yaml").unlink()
    with pytest.raises(PatchError, match=r"c\.yaml cannot be read"):
        apply_edits(made, tmp_path / "home")
    (tmp_path / "file").write_text("")
    with pytest.raises(PatchError, match="cannot be written"):
        apply_edits(edits(tmp_path), tmp_path / "file")
    assert held(tmp_path) == BEFORE


def test_that_a_record_keeps_nothing_of_rows_that_do_not_change_and_is_its_owners_alone(
    tmp_path: Path,
) -> None:
    """Rows beside the change may hold keys."""
    secret = "export HF_TOKEN=hf_" + "a" * 34
    before = f"{secret}\npython a.py\n"
    (tmp_path / "run.sh").write_text(before)
    edit = FileEdit(ConfigFile("run.sh", before, path=tmp_path / "run.sh"), f"{secret}\npython a.py --b 1\n")
    apply_edits([edit], tmp_path / "home")
    (record,) = (tmp_path / "home" / RECORDS).iterdir()
    assert record.stat().st_mode & 0o777 == 0o600
    assert "hf_" not in record.read_text()
    assert "aGZf" not in record.read_text()
    take_back(tmp_path / "home")
    assert (tmp_path / "run.sh").read_text() == before


def test_that_a_file_goes_by_its_place_in_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else by its place below the current folder, else by its name."""
    inner = tmp_path / "repository" / "scripts"
    inner.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    monkeypatch.chdir(inner)
    assert name_in_repository(Path("serve.sh")) == "scripts/serve.sh"
    assert name_in_repository(inner.parent / "run.sh") == "run.sh"
    monkeypatch.chdir(tmp_path)
    assert name_in_repository(Path("jobs/a/run.sh")) == "jobs/a/run.sh"
    monkeypatch.chdir(inner)
    assert name_in_repository(tmp_path / "run.sh") == "run.sh"
