"""`whycrash explain --patch`, `--apply` and `--undo`, from the shell and in a repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.service.patching.applying import git
from tests.tables import each_row
from tests.ui.shell import EXPLAINED, MISUSE, said, whycrash
from tests.warm import INCIDENTS, WRITE_UPS, script

LOG = INCIDENTS / WRITE_UPS[0] / "log.txt"
# A key stands in the row beside the change: what is printed never shows it.
KEY = "export WANDB_API_KEY=" + "0123456789abcdef" * 2 + "01234567\n"


def repository(folder: Path, more: str = "") -> Path:
    """Make a repository with the launch script of a write-up in `scripts/`."""
    (folder / "scripts").mkdir()
    assert git(folder, "init", "-q")
    text = script(WRITE_UPS[0]).read_text(encoding="utf-8")
    path = folder / "scripts" / "run.sh"
    path.write_text(text.replace("python3 -m", f"{more}python3 -m", 1))
    return path


def test_that_a_patch_written_to_a_file_applies_in_the_repository(warm: Path, tmp_path: Path) -> None:
    """It names the file from the repository's root, from whichever folder it was asked for."""
    path = repository(tmp_path, KEY)
    before = path.read_text()
    ended = whycrash(
        warm, "explain", LOG, "--config", "run.sh", "--patch", "../fix.patch", folder=path.parent
    )
    assert ended.code == EXPLAINED
    diff = (tmp_path / "fix.patch").read_text()
    assert "--- a/scripts/run.sh\n+++ b/scripts/run.sh\n" in diff
    # The screen shows what fits it, from the first row on.
    assert diff[: diff.index("@@")] in ended.out
    assert "-    --adam_offload" in ended.out
    assert "0123456789abcdef" not in diff
    assert "fix.patch" in ended.err
    for folder in (tmp_path, path.parent):
        assert git(folder, "apply", str(tmp_path / "fix.patch"))
        assert path.read_text() != before
        assert git(folder, "apply", "-R", str(tmp_path / "fix.patch"))
        assert path.read_text() == before
    patched = subprocess.run(["patch", "-p1", "-s", "-i", "fix.patch"], cwd=tmp_path, check=False)
    assert patched.returncode == 0
    assert path.read_text() != before


@pytest.mark.long
@each_row(
    ("answer", "applied"), [(b"y\n", True), (b"YES\n", True), (b"n\n", False), (b"\n", False), (b"", False)]
)
def test_that_a_patch_is_applied_only_by_a_clear_yes(
    answer: bytes, applied: bool, warm: Path, tmp_path: Path
) -> None:
    """And `--undo` takes back what was."""
    path = repository(tmp_path)
    before = path.read_bytes()
    ended = whycrash(warm, "explain", LOG, "--config", path, "--apply", given=answer)
    assert ended.code == EXPLAINED
    assert "scripts/run.sh" in ended.err
    assert (path.read_bytes() != before) == applied
    if applied:
        undone = whycrash(warm, "explain", "--undo", "--config", path)
        assert undone.code == EXPLAINED
        assert str(path) in undone.err
    else:
        assert "Nothing was changed" in ended.err
    assert path.read_bytes() == before


@each_row(
    ("words", "why"),
    [
        (["--undo"], "no applied patch"),
        (["--undo", str(LOG)], "reads no log"),
        ([], "Name the log"),
        (["-", "--apply"], "standard input"),
    ],
)
def test_that_what_cannot_be_done_is_one_sentence(words: list[str], why: str, warm: Path) -> None:
    ended = whycrash(warm, "explain", *words, given=b"RuntimeError: x\n")
    assert ended.code == MISUSE
    assert why in said(ended)


def test_that_without_a_patch_nothing_is_asked_or_written(warm: Path, tmp_path: Path) -> None:
    """A file that a patch was to be written to keeps what it holds."""
    (tmp_path / "job.log").write_text("hello\n")
    (tmp_path / "fix.patch").write_text("old")
    ended = whycrash(
        warm, "explain", tmp_path / "job.log", "--apply", "--patch", tmp_path / "fix.patch", given=b"y\n"
    )
    assert "There is no patch" in ended.err
    assert "[y/N]" not in ended.err
    assert (tmp_path / "fix.patch").read_text() == "old"


def test_that_a_suggested_change_of_the_code_is_written_and_called_one(warm: Path, tmp_path: Path) -> None:
    """The screen shows some rows of it and promises that `--patch` writes all; it applies."""
    code = "import torch\n\nlogits = model(batch)\nscores = logits.numpy()\nprint(scores.mean())\n"
    (tmp_path / "train.py").write_text(code)
    (tmp_path / "job.log").write_text(
        'Traceback (most recent call last):\n  File "train.py", line 4, in <module>\n'
        "    scores = logits.numpy()\n"
        "RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead\n"
    )
    ended = whycrash(
        warm, "explain", "job.log", "--config", "train.py", "--patch", "fix.patch", folder=tmp_path
    )
    assert ended.code == EXPLAINED
    assert "hypothesis" in ended.err
    patched = subprocess.run(["patch", "-p1", "-s", "-i", "fix.patch"], cwd=tmp_path, check=False)
    assert patched.returncode == 0
    assert (tmp_path / "train.py").read_text() == code.replace(".numpy()", ".detach().numpy()")
