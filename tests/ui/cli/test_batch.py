"""`whycrash batch`, run as a shell does."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.factories import OOM, traceback
from tests.service.batches.jobs import home_at
from tests.service.batches.sources.handing import zipped
from tests.service.batches.sources.test_slurm import ROW, SACCT
from tests.ui.cli.test_signals import children
from tests.ui.shell import COMMAND, EXPLAINED, HEALTHY, MISUSE, UNKNOWN, surroundings, whycrash
from tests.waiting import PATIENCE, until

ROOT = Path(__file__).parents[3]
STOPPED = 130


def _crash(word: str) -> str:
    return f"step:1 - loss:0.1\n{traceback(f'ValueError: the {word} is no such thing')}"


FILES = {
    "oom-a.log": f"{OOM}\n",
    "oom-b.log": f"{OOM}\n",
    "run/rank0.log": _crash("moon"),
    "run/rank1.log": "step:1\n",
    "well.out": "step:1 - loss:0.1\nTraining completed\n",
}


@pytest.fixture
def home(tmp_path: Path, warm: Path) -> Path:
    """A home that is ready."""
    return home_at(tmp_path / "home", warm)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder of four jobs."""
    for name, text in FILES.items():
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "logs"


def _results(path: Path) -> dict[str, dict[str, object]]:
    return {found["job"]["name"]: found for found in map(json.loads, path.read_text().splitlines())}


@pytest.mark.long
def test_that_a_folder_gives_results_tables_and_pages(home: Path, logs: Path, tmp_path: Path) -> None:
    """Each job has its line; the same crash is triaged once.

    The summary is on the terminal, in HTML and in CSV.
    """
    ended = whycrash(
        home,
        "batch",
        logs,
        "--out",
        "r.jsonl",
        "--html",
        "r.html",
        "--csv",
        "r.csv",
        "--workers",
        "1",
        "--name",
        "the night",
        folder=tmp_path,
    )
    assert ended.code == EXPLAINED, ended.err
    found = _results(tmp_path / "r.jsonl")
    assert set(found) == {"oom-a", "oom-b", "run", "well"}
    causes = {name: answer["cause"] for name, answer in found.items()}
    assert causes["oom-a"] == causes["oom-b"] is not None
    assert {found[name]["job"]["same_as"] is None for name in ("oom-a", "oom-b")} == {True, False}  # type: ignore[index]
    assert "jobs died" in ended.out
    assert "the night" in (tmp_path / "r.html").read_text()
    with (tmp_path / "r.csv").open(newline="") as file:
        assert {row["job"] for row in csv.DictReader(file)} == set(found)
    assert not (tmp_path / "r.jsonl.part").exists()


@pytest.mark.long
def test_that_an_archive_and_json_lines_are_batches(home: Path, tmp_path: Path) -> None:
    """What holds several jobs is taken apart, and its redacted copies go when the batch is over."""
    (tmp_path / "a.zip").write_bytes(zipped(FILES))
    (tmp_path / "b.jsonl").write_text(
        "".join(json.dumps({"name": name, "log": text}) + "\n" for name, text in FILES.items())
    )
    for name, jobs in (("a.zip", 4), ("b.jsonl", 5)):
        ended = whycrash(
            home, "batch", name, "--out", f"{name}.out", "--workers", "1", "--lang", "zh", folder=tmp_path
        )
        assert ended.code == EXPLAINED, ended.err
        assert len(_results(tmp_path / f"{name}.out")) == jobs
        assert "个作业" in ended.out
    assert not list(home.glob("batches/*/spool"))


@pytest.mark.long
def test_that_failed_jobs_of_slurm_are_a_batch(home: Path, logs: Path, tmp_path: Path) -> None:
    """What Slurm knows of a job stands in its result, and its GPU hours in the summary."""
    (tmp_path / "told.json").write_text(
        json.dumps(
            {"rows": [{**ROW, "WorkDir": str(logs), "StdOut": "oom-a.log"}], "unknown": [], "error": ""}
        )
    )
    (tmp_path / "bin").mkdir()
    sacct = tmp_path / "bin" / "sacct"
    sacct.write_text(
        SACCT.format(
            python=sys.executable, told=str(tmp_path / "told.json"), asked=str(tmp_path / "asked.json")
        )
    )
    sacct.chmod(0o755)
    path = f"{sacct.parent}:{os.environ['PATH']}"
    ended = whycrash(
        home,
        "batch",
        "--slurm",
        "--since",
        "2d",
        "--out",
        "r.jsonl",
        "--workers",
        "1",
        folder=tmp_path,
        PATH=path,
    )
    assert ended.code == EXPLAINED, ended.err
    (found,) = _results(tmp_path / "r.jsonl").values()
    assert found["job"]["gpu_hours"] == 24.0  # type: ignore[index]
    assert "24 GPU hours lost" in ended.out


@pytest.mark.long
def test_that_pods_are_a_batch(home: Path, tmp_path: Path) -> None:
    """A node's folder of pods' logs gives a job for each."""
    path = tmp_path / "pods" / "ml_train-worker-0_1" / "main" / "0.log"
    path.parent.mkdir(parents=True)
    path.write_text(f"2026-11-20T10:00:00.123456789Z stderr F {OOM}\n")
    ended = whycrash(
        home, "batch", "--kubernetes", "pods", "--out", "r.jsonl", "--workers", "1", folder=tmp_path
    )
    assert (ended.code, list(_results(tmp_path / "r.jsonl"))) == (EXPLAINED, ["ml/train"])


CODES = {
    "no failure": ({"well.out": FILES["well.out"]}, HEALTHY),
    "no answer": ({"a.log": FILES["oom-a.log"], "b.log": ""}, UNKNOWN),
}


@pytest.mark.parametrize(("files", "code"), CODES.values(), ids=CODES)
def test_that_the_exit_code_tells_what_came_of_it(
    home: Path, tmp_path: Path, files: dict[str, str], code: int
) -> None:
    """A script can tell apart what was answered, what was not, and what did not fail."""
    (tmp_path / "logs").mkdir()
    for name, text in files.items():
        (tmp_path / "logs" / name).write_text(text)
    assert whycrash(home, "batch", "logs", "--out", "r.jsonl", "--workers", "1", folder=tmp_path).code == code


MISUSES = {
    "nothing": ([], "Give files or folders"),
    "two sources": (["logs", "--slurm"], "one of them"),
    "no such file": (["none"], "There is no file none"),
    "no such time": (["logs", "--since", "yesterday"], "--since"),
    "no such folder": (["logs", "--out", "x/r.jsonl"], "There is no folder"),
    "no cluster": (["--ray", "127.0.0.1:1"], "could not be asked"),
    "results that are there": (["logs", "--out", "told.jsonl"], "is there already"),
    "another batch's": (["logs", "--out", "other.jsonl"], "of another batch"),
    "language": (["logs", "--lang", "fr"], "en or zh"),
}


@pytest.mark.long
@pytest.mark.parametrize(("words", "told"), MISUSES.values(), ids=MISUSES)
def test_that_misuse_is_told_and_leaves_nothing(
    home: Path, logs: Path, tmp_path: Path, words: list[str], told: str
) -> None:
    """One sentence says what is wrong; no file is left of it."""
    (tmp_path / "told.jsonl").write_text("{}\n")
    if "other.jsonl" in words:
        assert _begun(home, tmp_path, "other.jsonl", str(tmp_path / "logs" / "run")) != 0
    before = set(tmp_path.iterdir())
    ended = whycrash(home, "batch", *words, folder=tmp_path)
    assert (ended.code, told in ended.err) == (MISUSE, True), ended.err
    assert set(tmp_path.iterdir()) == before


def _begun(home: Path, folder: Path, out: str, *words: str) -> int:
    """Begin a batch and stop it as soon as it is accepted; gives the exit code."""
    with subprocess.Popen(
        [*COMMAND, "batch", *words, "--out", out, "--workers", "1"],
        cwd=folder,
        env=surroundings(home),
        stderr=subprocess.PIPE,
    ) as process:
        # Workers start once the batch is accepted, and load for a second.
        until(lambda: process.poll() is not None or children(process.pid), "workers start")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        return process.returncode


@pytest.mark.long
@pytest.mark.parametrize(
    "kill", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGKILL], ids=["ctrl-C", "kill -9"]
)
def test_that_a_stopped_batch_goes_on(home: Path, tmp_path: Path, kill: signal.Signals) -> None:
    """Called again with the same --out, it says what is done, does the rest, and has each job once."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for place in range(150):
        (folder / f"{place:03d}x.log").write_text(
            _crash("".join("abcdefghij"[int(digit)] for digit in str(place)))
        )
    command = [*COMMAND, "batch", "logs", "--out", "r.jsonl", "--workers", "1"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=surroundings(home), stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        _wait_for(home, jobs=20)
        # A terminal's Ctrl-C reaches the workers too.
        os.killpg(process.pid, kill) if kill == signal.SIGINT else process.kill()
        _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == (STOPPED if kill == signal.SIGINT else -kill)
    assert kill == signal.SIGKILL or b"goes on from here" in told
    assert not (tmp_path / "r.jsonl").exists()
    ended = whycrash(home, "batch", "logs", "--out", "r.jsonl", "--workers", "1", folder=tmp_path)
    assert ended.code == EXPLAINED, ended.err
    done = int(ended.err.split(" of 150 jobs are done")[0].rsplit(" ", 1)[-1])
    assert 15 <= done < 150
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == len(_results(tmp_path / "r.jsonl")) == 150


def _wait_for(home: Path, jobs: int) -> None:
    """Wait until so many jobs have ended, by the batch's journal."""
    until(
        lambda: (
            jobs
            <= sum(
                path.read_bytes().count(b'"state":"done"') for path in home.glob("batches/*/journal.jsonl")
            )
        ),
        f"{jobs} jobs have ended",
    )
