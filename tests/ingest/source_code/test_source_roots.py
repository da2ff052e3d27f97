"""Which files a traceback may have read: those below the folders that are given, and nothing else."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import pytest

from ingest.logs.stacks.stack import Frame
from ingest.redaction.redactor import Redactor
from ingest.source_code.failing_source import read_source
from ingest.source_code.source_roots import LARGEST, SourceRoots, given_roots, job_roots
from tests.tables import each_row

CODE = "raise ValueError('secret of another folder')\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages with one module, beside a folder that is nobody's business."""
    (tmp_path / "site-packages" / "pkg").mkdir(parents=True)
    (tmp_path / "site-packages" / "pkg" / "mod.py").write_text("raise ValueError('x')\n")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "keys.py").write_text(CODE)
    (tmp_path / "private" / "keys.txt").write_text(CODE)
    return tmp_path / "site-packages"


def texts(roots: SourceRoots, path: str) -> list[str]:
    """Give what is read for a path."""
    return [text for text, _ in roots.texts(path)]


@each_row(
    "path",
    [
        "/x/lib/python3.11/site-packages/pkg/mod.py",
        "pkg/mod.py",
        "mod.py/../pkg/mod.py",
        "C:\\py\\Lib\\site-packages\\pkg\\mod.py",
    ],
)
def test_a_path_is_found_by_its_end(path: str, tmp_path: Path) -> None:
    """The longest end of a path that lies below a given folder is the file, however it was installed."""
    (tmp_path / "pkg").mkdir(exist_ok=True)
    (tmp_path / "pkg" / "mod.py").write_text("x = 1\n")
    assert texts(given_roots([tmp_path]), path) == ["x = 1\n"]


def hostile(site: Path) -> list[str]:
    """Lay traps below a folder of packages, and name them and what lies beside it."""
    private = site.parent / "private"
    (site / "pkg" / "link.py").symlink_to(private / "keys.py")
    (site / "linked").symlink_to(private)
    os.mkfifo(site / "pkg" / "pipe.py")
    (site / "pkg" / "folder.py").mkdir()
    (site / "pkg" / "large.py").write_bytes(b"#" * (LARGEST + 1))
    (site / "pkg" / "bytes.py").write_bytes(b"\xff\xfe\x00")
    (site / "pkg" / "zero.py").symlink_to("/dev/zero")
    names = ("link.py", "pipe.py", "folder.py", "large.py", "bytes.py", "zero.py", "absent.py")
    return [
        "/etc/passwd",
        "/dev/zero",
        "/proc/self/environ",
        str(private / "keys.txt"),
        f"{site}/../private/keys.py",
        f"{site}/pkg/../../private/keys.py",
        "../private/keys.py",
        "../../private/keys.py",
        f"{site}/linked/keys.py",
        f"{site}/pkg/mod.py\0",
        f"{site}/{'pkg/' * 100}mod.txt",
        f"{site}/{'a' * 5000}.py",
        "",
        ".py",
        *(f"{site}/pkg/{name}" for name in names),
    ]


@pytest.mark.parametrize("by_tail", [True, False])
def test_no_name_of_a_traceback_leads_out_of_the_folders(site: Path, by_tail: bool) -> None:
    """Other files, ways up, links, pipes, devices and what is too large are not read or waited for."""
    roots = given_roots([site]) if by_tail else SourceRoots((str(site),), by_tail=False, folder=str(site))
    for path in hostile(site):
        assert texts(roots, path) == [], path
        read = read_source([Frame(path, 1, "f", CODE.strip())], roots)
        assert read.frames == (), path


def test_a_job_may_read_only_what_it_could_import(site: Path, tmp_path: Path) -> None:
    """After a run, a path counts as it is written: below the working folder or the job's own packages."""
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "train.py").write_text("x = 1\n")
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    program = tmp_path / "env" / "bin" / "python"
    packages = next((tmp_path / "env" / "lib").glob("python3*")) / "site-packages"
    (packages / "own.py").write_text("y = 2\n")
    roots = job_roots(str(program), str(tmp_path / "job"), {"PATH": "/nowhere"})
    assert texts(roots, "train.py") == texts(roots, str(tmp_path / "job" / "train.py")) == ["x = 1\n"]
    assert texts(roots, str(packages / "own.py")) == ["y = 2\n"]
    assert texts(roots, os.__file__) != []
    assert texts(roots, str(site / "pkg" / "mod.py")) == []
    assert texts(roots, "/elsewhere/site-packages/own.py") == []
    assert texts(roots, str(tmp_path / "private" / "keys.py")) == []


def test_a_root_of_everything_is_no_folder_of_sources() -> None:
    """A job that is started in the root folder may not have all of the disk read."""
    roots = job_roots(sys.executable, "/", {"PATH": "/usr/bin"})
    assert "/" not in roots.roots
    assert texts(roots, "/etc/python3/debian_config.py") == []
    assert texts(roots, "etc/hosts.py") == []


def test_another_version_is_told_and_not_used(site: Path) -> None:
    """Where the file says something else on the line than the traceback, it is not the one that ran."""
    roots = given_roots([site])
    path = "/x/site-packages/pkg/mod.py"
    (same,) = read_source([Frame(path, 1, "f", "raise ValueError('x')")], roots).frames
    assert (same.standing, same.statement and same.statement.raises) == ("read", True)
    (other,) = read_source([Frame(path, 1, "f", "raise ValueError('y')")], roots).frames
    assert (other.standing, other.statement) == ("other-version", None)
    (beyond,) = read_source([Frame(path, 90, "f", "raise ValueError('x')")], roots).frames
    assert beyond.standing == "other-version"
    assert read_source([Frame(path, 1, "f", "")], roots).frames == ()
    assert read_source(
        [Frame("/x/mod.py", 1, "f", "raise ValueError('y')")], given_roots([site / "pkg"])
    ) == (read_source([], roots))


def test_a_secret_of_the_code_is_masked(tmp_path: Path) -> None:
    """What the code on the machine holds goes out redacted, and a masked row still agrees with its file."""
    row = 'raise ValueError("no entry", "ghp_16C7e42F292c6912E7710c838347Ae178B4a")'
    (tmp_path / "a.py").write_text(f"{row}\n")
    shown = Redactor().clean(row)
    assert "[redacted:" in shown
    (read,) = read_source([Frame("/job/a.py", 1, "f", shown)], given_roots([tmp_path])).frames
    assert read.standing == "read"
    assert "ghp_" not in str(read)
    assert "ghp_" not in str(read_source([Frame("/job/a.py", 1, "f", shown)], given_roots([tmp_path])).files)


def test_a_row_that_says_something_else_by_now_is_no_check_of_the_message(tmp_path: Path) -> None:
    """`raise ValueError(` stands on many rows: of an edited file, the one of the message is read."""
    code = "def f(size):\n    if size > 8:\n        raise ValueError(\n            'beyond the cards')\n"
    code += "    if size > 1:\n        raise ValueError(\n            'wants a launcher')\n"
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "a.py").write_text(code)
    frame, roots = Frame("/job/a.py", 3, "f", "raise ValueError("), given_roots([tmp_path])

    def condition(message: str) -> str | None:
        raised = read_source([frame], roots, message).raised
        return raised.conditions[0].text if raised is not None else None

    assert condition("beyond the cards") == "size > 8"
    assert condition("wants a launcher") == "size > 1"
    assert condition("something else entirely") is None
