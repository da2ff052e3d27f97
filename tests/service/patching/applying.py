"""Apply diffs with git, in a repository of the test's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from corpus.schema import ChangeKind, Scalar
from service.patching.patch import difference
from service.patching.target import PatchTarget


def target(
    key: str, to: Scalar, kind: ChangeKind = "setting", framework: str = "verl", spelled: str = ""
) -> PatchTarget:
    """Make a target of one spelling, or of several with a bar between."""
    return PatchTarget(framework, kind, tuple(key.split("|")), to, spelled)


def git(folder: Path, *words: str, given: str = "") -> bool:
    """Run git in a folder of the test's own; gives whether it went well."""
    ended = subprocess.run(
        ["git", *words], cwd=folder, input=given.encode(), capture_output=True, check=False
    )
    return ended.returncode == 0


def is_bash(text: str) -> bool:
    """Tell whether bash can parse a script."""
    return (
        subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True, check=False).returncode == 0
    )


def applied(folder: Path, before: str, diff: str, name: str = "run.sh") -> str:
    """Apply a diff to a file in a repository of its own, and give the file."""
    assert git(folder, "init", "-q")
    (folder / name).write_bytes(before.encode())
    if diff:
        assert git(folder, "apply", "--check", "-", given=diff), diff
        assert git(folder, "apply", "-", given=diff), diff
    return (folder / name).read_bytes().decode()


def goes_back_and_forth(folder: Path, before: str, after: str, name: str) -> bool:
    """Tell whether the diff of two texts applies to the byte, and so does its reverse."""
    diff = difference(name, before, after)
    there = applied(folder, before, diff, name) == after
    return (
        there
        and git(folder, "apply", "-R", "-", given=diff)
        and (folder / name).read_bytes() == before.encode()
    )


def changed_lines(before: str, after: str) -> tuple[int, int]:
    """Count the lines that went and those that came."""
    rows = difference("x", before, after).split("\n")[2:]
    return sum(row.startswith("-") for row in rows), sum(row.startswith("+") for row in rows)
