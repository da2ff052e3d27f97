"""`whycrash explain` of more than one file: folders, archives, several names, a healthy run beside."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from ingest.logs.inputs import jobs
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis
from tests.factories import OOM, steps, traceback
from tests.service.pipeline.test_several_files import REFUSED, folder, watchdog
from tests.service.pipeline.test_triage import OFFLOAD
from tests.tables import each_row
from tests.ui.cli.test_explain import printed
from tests.ui.shell import EXPLAINED, HEALTHY, KILLED, MISUSE, UNKNOWN, Ended, said, whycrash
from tests.warm import diagnosed, script

LOADING = "loading\n"
CRASH = {"rank0.log": LOADING * 4, "rank1.log": LOADING + traceback(OOM)}


def answered(ended: Ended) -> Diagnosis:
    """Read the answer that a command printed."""
    return Diagnosis.model_validate_json(ended.out)


def as_tar(files: dict[str, str]) -> bytes:
    """Pack files."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return raw.getvalue()


def as_zip(files: dict[str, str]) -> bytes:
    """Pack files."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return raw.getvalue()


@pytest.mark.long
@each_row("form", ["folder", "files", "tar", "zip"])
def test_one_job_in_any_form_gives_one_answer(form: str, warm: Path, tmp_path: Path) -> None:
    """Named one by one, as a folder or packed: cause, file and line are the same, and both files were
    read.
    """
    folder(tmp_path / "job", CRASH)
    (tmp_path / "job.tar.gz").write_bytes(as_tar(CRASH))
    (tmp_path / "job.zip").write_bytes(as_zip(CRASH))
    words = {
        "folder": ["job"],
        "files": ["job/rank0.log", "job/rank1.log"],
        "tar": ["job.tar.gz"],
        "zip": ["job.zip"],
    }[form]
    ended = whycrash(warm, "explain", *words, "--json", "--lang", "en", folder=tmp_path)
    answer = answered(ended)
    assert (ended.code, answer.cause, answer.limits.lines) == (EXPLAINED, "gpu-oom-training", 11)
    assert [(item.file, item.line) for item in answer.evidence] == [("rank1.log", 7)]


def test_a_tar_may_come_through_a_pipe(warm: Path) -> None:
    """`kubectl cp` writes one."""
    ended = whycrash(warm, "explain", "-", "--json", given=as_tar(CRASH))
    assert (ended.code, [(item.file, item.line) for item in answered(ended).evidence]) == (
        EXPLAINED,
        [("rank1.log", 7)],
    )


@each_row(
    ("files", "code"),
    [
        (CRASH, EXPLAINED),
        ({"a.log": LOADING + steps(1, 2, 3), "b.log": LOADING}, HEALTHY),
        ({"a.log": LOADING, "b.log": traceback("odd.WorkerLostError: of trouble")}, UNKNOWN),
        (
            {"slurm-1.out": "Training script finished successfully\n", "slurm-1.err": REFUSED + LOADING * 60},
            HEALTHY,
        ),
    ],
    ids=["crash", "healthy", "unknown", "finished-beside-its-errors"],
)
def test_the_exit_code_is_of_all_files(files: dict[str, str], code: int, warm: Path, tmp_path: Path) -> None:
    """One of them may hold the crash."""
    assert whycrash(warm, "explain", folder(tmp_path / "job", files)).code == code


@each_row(
    ("words", "told"),
    [
        (["-", "crash.log"], "alone"),
        (["crash.log", "-"], "alone"),
        (["-", "-"], "alone"),
        (["crash.log", "gone.log"], "gone.log"),
        (["crash.log", "gone"], "gone"),
        (["empty"], "holds nothing"),
        (["empty", "empty"], "holds nothing"),
        (["pictures"], "loss.png"),
        (["crash.log", "--good", "gone.log"], "gone.log"),
        (["crash.log", "--good", "empty"], "holds nothing"),
        (["crash.log", "--good", "broken.json"], "no templates of a healthy run"),
        (["crash.log", "--good", "newer.json"], "this version reads"),
        (["crash.log", "--config", "empty"], "is a folder; give a file"),
        ([], "Name the log"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_one_job_is_refused_with_a_sentence(
    words: list[str], told: str, warm: Path, tmp_path: Path
) -> None:
    """It is named, standard output stays empty, and the exit code is 2."""
    folder(
        tmp_path,
        {
            "crash.log": KILLED,
            "pictures/loss.png": b"\x89PNG\r\n\x1a\n",
            "broken.json": '{"format": "whycrash.templates/1"',
            "newer.json": json.dumps({"format": "whycrash.templates/9", "lines": [], "events": []}),
        },
    )
    (tmp_path / "empty").mkdir()
    ended = whycrash(warm, "explain", *words, folder=tmp_path)
    assert (ended.code, ended.out) == (MISUSE, "")
    assert told in (said(ended) if words else ended.err)


def test_a_part_that_cannot_be_read_does_not_hide_the_rest(warm: Path, tmp_path: Path) -> None:
    """It is left out, and the answer says so."""
    ended = whycrash(
        warm,
        "explain",
        folder(tmp_path / "job", {**CRASH, "core.log": b"\x7fELF" + bytes(4000), "rank2.log": ""}),
        "--json",
    )
    answer = answered(ended)
    assert (ended.code, answer.cause, answer.limits.truncated) == (EXPLAINED, "gpu-oom-training", True)
    assert {
        name: "core.log" in str(told) or "rank2.log" in str(told)
        for name, told in answer.limits.omitted.items()
    } == {"binary": True, "empty": True}


def test_a_config_beside_the_logs_gives_a_patch(warm: Path, tmp_path: Path) -> None:
    """Without `--config`, and printed whole."""
    job = folder(
        tmp_path / "job", {"driver.log": OFFLOAD, "run.sh": script("w-easyr1-offload-host-ram").read_bytes()}
    )
    ended = whycrash(warm, "explain", job)
    assert ended.code == EXPLAINED
    assert "+++ b/run.sh" in ended.out


@each_row("good", ["good.log", "good", "good.json"])
@pytest.mark.long
def test_a_healthy_run_clears_what_it_says_too(good: str, triage: Triage, warm: Path, tmp_path: Path) -> None:
    """As a log, a folder, or the templates of one; and what it does not say stands."""
    folder(
        tmp_path,
        {
            "good.log": REFUSED + steps(1, 2, 3),
            "good/rank0.log": LOADING,
            "good/rank1.log": REFUSED,
            "bad.log": steps(1, 2, 3) + REFUSED,
        },
    )
    triage.healthy_templates(tmp_path / "good.log").save(tmp_path / "good.json")
    folder(tmp_path, {"worse.log": REFUSED + KILLED})
    ended = whycrash(warm, "explain", "bad.log", "--good", good, folder=tmp_path)
    worse = whycrash(warm, "explain", "worse.log", "--good", good, "--json", folder=tmp_path)
    assert (ended.code, whycrash(warm, "explain", "bad.log", folder=tmp_path).code) == (HEALTHY, UNKNOWN)
    assert (worse.code, answered(worse).cause) == (EXPLAINED, "ray-memory-monitor-kill")


@each_row("width", [60, 200])
def test_the_page_names_file_and_line(width: int, triage: Triage, tmp_path: Path) -> None:
    """Where there are several files a line number alone would lead nowhere."""
    text = printed(diagnosed(triage, jobs.open_job(folder(tmp_path, CRASH)), "en"), width)
    assert "rank1.log:L7" in text


@each_row(("lang", "told"), [("en", "rank 3 does not"), ("zh", "rank 3 没有")])
def test_the_page_names_the_missing_rank(lang: str, told: str, warm: Path, tmp_path: Path) -> None:
    """Fifteen files report the timeout; the sixteenth is the one to look at."""
    job = folder(
        tmp_path / "job",
        {f"rank{rank}.log": LOADING + (watchdog(rank) if rank != 3 else "") for rank in range(16)},
    )
    ended = whycrash(warm, "explain", job, "--lang", lang)
    assert told in ended.out


def test_a_name_that_drives_a_terminal_is_shown_as_text(warm: Path, tmp_path: Path) -> None:
    """A file's name is as hostile as its content."""
    job = folder(tmp_path / "job", {"rank0.log": LOADING, "\x1b[31mred\x1b]0;owned\x07.log": traceback(OOM)})
    ended = whycrash(warm, "explain", job)
    assert ended.code == EXPLAINED
    assert [char for char in ended.out + ended.err if not char.isprintable() and char != "\n"] == []
