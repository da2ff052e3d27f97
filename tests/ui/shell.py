"""Run the `whycrash` command as a shell does: a process of its own, with its streams and exit code."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.ui import fork_server
from tests.waiting import PATIENCE
from tests.warm import ROOT

EXPLAINED, MISUSE, UNKNOWN, HEALTHY = 0, 2, 3, 4
COMMAND = (sys.executable, "-m", "ui.cli.main")
KILLED = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def surroundings(home: Path, **more: str) -> dict[str, str]:
    """Give an environment with nothing of the developer's own in it."""
    made = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "COLUMNS": "200",
        "PYTHONPATH": str(ROOT),
    }
    return {**made, "WHYCRASH_HOME": str(home), "WHYCRASH_EMBEDDING_MODEL": "hash", **more}


def whycrash(
    home: Path, *words: str | Path, given: bytes = b"", folder: Path = ROOT, **environment: str
) -> Ended:
    """Run one command to its end, in a process that is forked from one with the program imported."""
    return _checked(
        fork_server.server().run([*map(str, words)], surroundings(home, **environment), folder, given)
    )


def bash(home: Path, line: str, folder: Path = ROOT) -> Ended:
    """Run a line of shell in which `whycrash` is the command."""
    line = f'whycrash() {{ {shlex.join(COMMAND)} "$@"; }}; {line}'
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
        env=surroundings(home),
    )
    return _checked(ended)


def _checked(ended: subprocess.CompletedProcess[bytes]) -> Ended:
    err = ended.stderr.decode("utf-8", "replace")
    # Whatever the command was given, what went wrong inside is never the user's to read.
    assert "Traceback (most recent call last)" not in err, err
    assert "Exception ignored" not in err, err
    return Ended(ended.returncode, ended.stdout.decode("utf-8", "replace"), err)


def said(ended: Ended) -> str:
    """Give the one sentence that a refused command says."""
    assert ended.code == MISUSE, ended
    assert ended.out == ""
    sentence = ended.err.strip()
    assert sentence.startswith("whycrash: "), ended.err
    assert len(sentence.splitlines()) == 1
    return sentence
