"""A closed loop makes a job fail, makes the first change proposed for it, and runs the job again."""

from __future__ import annotations

import ast
import os
import shutil
from pathlib import Path

import pytest

from eval.lab.loops import closed_loop, jobs, run
from eval.lab.loops.closed_loop import Ending, LoopResult
from eval.lab.loops.jobs import LoopJob
from eval.lab.run import SCRIPTS
from service.pipeline.triage import Triage

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="the lab's sandbox needs root and unshare"
)
_BY_ID = {job.id: job for job in jobs.load()}


def test_jobs_are_sound() -> None:
    """Each has a name of its own, its code parses, and what it prints at a good end stands in its code."""
    ids = [job.id for job in jobs.load()]
    assert len(ids) == len(set(ids)) >= 40
    for job in _BY_ID.values():
        shared = {name: (SCRIPTS / source).read_text() for name, source in job.shared.items()}
        texts = shared | dict(job.files)
        for name, text in texts.items():
            if name.endswith(".py"):
                ast.parse(text, name)
        told = [text for text in texts.values() if job.done in text]
        assert told or job.id == "server-port-taken", f"{job.id}: nothing prints {job.done!r}"


def test_jobs_of_another_folder_are_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tables of a folder that is named take the place of the project's own."""
    row = """
- id: other
  mechanism: an option's name
  files: {run.sh: echo one}
  launch: bash run.sh
  shows: [one]
  done: two
  cures: [{settings: {--n: 2}, edits: [{file: run.sh, line: echo one, becomes: echo two}]}]
"""
    (tmp_path / "table.yaml").write_text(row)
    assert run.main(["--jobs", str(tmp_path), "--list"]) == 0
    assert capsys.readouterr().out == "other  an option's name\n"
    assert jobs.load(tmp_path)[0].cures[0].settings == {"--n": 2}


@needs_root
def test_a_change_of_the_launch_script_cures_and_is_taken_back(triage: Triage, tmp_path: Path) -> None:
    """A job whose option its own parser refuses runs once the first change is in its launch script."""
    job = _BY_ID["argparse-choice"]
    found = closed_loop.close(job, triage, keep=tmp_path)
    if found.ending == "skipped":
        pytest.skip(found.why)
    assert (found.ending, found.way) == ("cured", "patch"), found
    assert "invalid choice" in (tmp_path / f"{job.id}.failed.log").read_text()
    assert "precision bf16" in (tmp_path / f"{job.id}.again.log").read_text()


@needs_root
def test_a_job_that_does_not_fail_as_it_should_is_not_counted(triage: Triage) -> None:
    """A job that ends well closes no loop, nor one whose log lacks what it must show."""
    sound = LoopJob(
        id="sound",
        mechanism="none",
        files={"run.sh": "echo done"},
        launch="bash run.sh",
        shows=("done",),
        done="done",
    )
    other = sound.model_copy(update={"launch": "echo other; exit 3"})
    found = [closed_loop.close(job, triage) for job in (sound, other)]
    if found[0].ending == "skipped":
        pytest.skip(found[0].why)
    assert [(item.ending, item.why) for item in found] == [
        ("not shown", "exit status 0"),
        ("not shown", "the log lacks 'done'"),
    ]


def test_results_of_jobs_that_were_not_run_again_are_kept(tmp_path: Path) -> None:
    """A run of a few jobs writes their rows anew and leaves others, without those of jobs that are gone."""
    first, second = list(_BY_ID.values())[:2]
    path = tmp_path / "results.yaml"
    run.record([LoopResult(first.id, "not cured"), LoopResult(second.id, "cured")], [first, second], path)
    run.record([LoopResult(first.id, "cured"), LoopResult("gone", "cured")], [first, second], path)
    assert [(row.id, row.ending) for row in run.recorded(path).values()] == [
        (first.id, "cured"),
        (second.id, "cured"),
    ]


def test_only_what_was_tried_counts() -> None:
    """The share is of jobs with a change that was tried, or with none that could be."""
    endings: tuple[Ending, ...] = ("cured", "not cured", "no change", "in words", "not tried", "skipped")
    assert run.summary([LoopResult(ending, ending) for ending in endings])["of"] == 4
