"""`--source` and `run`: the code on the machine beside a traceback, and what it must not have read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.ui.shell import EXPLAINED, MISUSE, UNKNOWN, whycrash
from tests.waiting import PATIENCE
from tests.warm import ROOT

CHECK = """\
def start(config):
    if config["train_batch_size"] % config["ranks"] != 0:
        raise ValueError(
            f"Invalid configuration: {config['train_batch_size']} rows for {config['ranks']} ranks"
        )
"""
SCRIPT = "from mylib.checks import start\n\nstart({'train_batch_size': 100, 'ranks': 8})\n"


def laid(folder: Path) -> Path:
    """Lay a job and the package that it trips in down; gives the job's folder."""
    (folder / "lib" / "mylib").mkdir(parents=True)
    (folder / "lib" / "mylib" / "__init__.py").write_text("")
    (folder / "lib" / "mylib" / "checks.py").write_text(CHECK)
    (folder / "job").mkdir()
    (folder / "job" / "train.py").write_text(SCRIPT)
    return folder / "job"


def test_explain_reads_the_code_of_given_folders(warm: Path, tmp_path: Path) -> None:
    """The full answer shows statement and guard; JSON has them; without the option nothing is opened."""
    job = laid(tmp_path)
    ended = subprocess.run(
        [sys.executable, "train.py"],
        cwd=job,
        env={"PYTHONPATH": str(tmp_path / "lib")},
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    (tmp_path / "log.txt").write_bytes(ended.stderr)
    log = str(tmp_path / "log.txt")
    given = ("--source", tmp_path / "lib", "--source", job)
    shown = whycrash(warm, "explain", log, *given, "--full")
    assert shown.code == EXPLAINED
    assert "only if: config['train_batch_size'] % config['ranks'] != 0" in shown.out
    answer = json.loads(whycrash(warm, "explain", log, *given, "--json").out)
    assert [read["standing"] for read in answer["statements"]] == ["read"]
    assert json.loads(whycrash(warm, "explain", log, "--json").out)["statements"] == []


def test_a_source_that_is_no_folder_is_refused(warm: Path, tmp_path: Path) -> None:
    """A file or a name of nothing is told before the log is read."""
    (tmp_path / "log.txt").write_text("ValueError: x\n")
    ended = whycrash(warm, "explain", tmp_path / "log.txt", "--source", tmp_path / "log.txt")
    assert ended.code == MISUSE
    assert "--source takes a folder" in ended.err


def test_run_reads_the_jobs_own_code(warm: Path, tmp_path: Path) -> None:
    """After a failed job, what it ran is on the machine: the working folder, and what it imports from."""
    job = laid(tmp_path)
    line = 'PYTHONPATH=$PYTHONPATH:$LIB exec "$PY" train.py 2>&1'
    answer = tmp_path / "answer.json"
    words = ("run", "--out", answer, "--telemetry-every", "0", "--", "bash", "-c", line)
    ended = whycrash(warm, *words, folder=job, LIB=str(tmp_path / "lib"), PY=sys.executable)
    assert ended.code == 1, ended.err
    read = json.loads(answer.read_text())["statements"]
    # The shell alone added the package's folder: of what the job was started with, only its script is read.
    assert [Path(each["path"]).name for each in read] == ["train.py"]
    more = {"PYTHONPATH": f"{ROOT}:{tmp_path / 'lib'}", "PY": sys.executable, "LIB": "/none"}
    whycrash(warm, *words, folder=job, **more)
    read = json.loads(answer.read_text())["statements"]
    assert [each["standing"] for each in read][:1] == ["read"]
    assert read[0]["conditions"] == ["config['train_batch_size'] % config['ranks'] != 0"]


def test_a_hostile_traceback_of_a_run_reads_nothing(warm: Path, tmp_path: Path) -> None:
    """Paths that a job prints and could not import from stay closed, whatever row they are said to quote."""
    (tmp_path / "job").mkdir()
    (tmp_path / "private.py").write_text("raise ValueError('private words')\n")
    (tmp_path / "job" / "link.py").symlink_to(tmp_path / "private.py")
    os.mkfifo(tmp_path / "job" / "pipe.py")
    for path in ("../private.py", f"{tmp_path}/private.py", "link.py", "pipe.py", "/etc/passwd", "/dev/zero"):
        log = tmp_path / "log.txt"
        log.write_text(
            "Traceback (most recent call last):\n"
            f'  File "{path}", line 1, in <module>\n'
            "    raise ValueError('other words')\n"
            "ValueError: Invalid configuration: other words\n"
        )
        answer = tmp_path / "answer.json"
        line = f"cat {log}; exit 1"
        whycrash(
            warm, "run", "--quiet", "--out", answer, "--telemetry-every", "0", "--", "bash", "-c", line,
            folder=tmp_path / "job",
        )  # fmt: skip
        assert json.loads(answer.read_text())["statements"] == [], path
        given = whycrash(warm, "explain", log, "--source", tmp_path / "job", "--json")
        assert given.code in (EXPLAINED, UNKNOWN)
        assert json.loads(given.out)["statements"] == [], path
