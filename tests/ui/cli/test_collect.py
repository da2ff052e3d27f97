"""`whycrash collect`: an archive that `explain` reads, and the text of an issue."""

from __future__ import annotations

import tarfile
from pathlib import Path

from tests.ui.shell import EXPLAINED, MISUSE, said, whycrash
from tests.warm import ROOT

HANG = ROOT / "eval/incidents/lab-barite"


def test_the_bundle_is_read_as_the_job_itself(warm: Path, tmp_path: Path) -> None:
    """What was gathered of a hang decides as the files beside its log do; the scheduler's word is in it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sacct").write_text("#!/bin/sh\necho 'JobID State ExitCode'\necho '4711 FAILED 1:0'\n")
    # What else died on this machine in the last hours is none of the job's.
    for name in ("dmesg", "journalctl"):
        (programs / name).write_text("#!/bin/sh\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    out = tmp_path / "bundle.tar.gz"
    path = f"{programs}:/usr/bin:/bin"
    ended = whycrash(
        warm,
        "collect",
        HANG / "log.txt",
        HANG / "beside",
        "--job",
        "4711",
        "--out",
        out,
        "--lang",
        "en",
        PATH=path,
    )
    assert ended.code == EXPLAINED
    assert "scontrol is not installed" in ended.out
    with tarfile.open(out) as tar:
        names = {member.name for member in tar}
    assert {"logs/log.txt", "logs/stack_rank0.txt", "job/sacct.txt", "manifest.json"} <= names
    explained = whycrash(warm, "explain", out)
    assert explained.code == EXPLAINED
    assert "collective-desync" in explained.out


def test_an_issue_holds_what_maintainers_ask_for(warm: Path) -> None:
    """The error, versions, where each rank stands, equal stacks once and the odd one first."""
    text = whycrash(warm, "collect", "--issue", HANG).out
    assert text.startswith("## ")
    assert text.index("rank 0:") < text.index("rank 1, rank 2, rank 3:")
    assert "train.py:74 publish" in text
    assert "whycrash " in text


def test_misuse_is_told(warm: Path) -> None:
    """Nothing named, no log for an issue, and what is no id of a job."""
    assert whycrash(warm, "collect").code == MISUSE
    assert "--job" in said(whycrash(warm, "collect"))
    assert "log" in said(whycrash(warm, "collect", "--issue", "--job", "4711"))
    assert "raysubmit_" in said(whycrash(warm, "collect", "--job", "--kubeconfig=x"))
