"""Failed jobs by Slurm's REST API, whose answers differ from version to version.

The forms are those that Slurm's own data parsers write: v0.0.39 a state as a word and plain numbers, v0.0.40
lists and numbers that say whether they are set, v0.0.41 and later the paths of output too. From there on
they are held against a client that was made of the published API.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from service.batches.sources import slurmrestd
from service.batches.sources.found import FoundJobs
from service.batches.sources.slurm import SlurmQuery
from service.monitoring import ended_jobs
from service.schemas.errors import InvalidRequestError
from service.settings import Settings
from tests import pypi
from tests.service.batches.jobs import home_at
from tests.service.batches.sources.handing import DIED
from tests.service.batches.sources.serving import Asked, serving
from tests.tables import each_row
from tests.ui.shell import EXPLAINED, whycrash

ENDED = datetime(2026, 11, 20, 10, tzinfo=UTC)
SINCE = ENDED - timedelta(hours=1)

Find = Callable[..., FoundJobs]


def number(value: int | None, version: int) -> Any:
    """Write a number that may be unset."""
    if version < 40:
        return value or 0
    return {"set": value is not None, "infinite": False, "number": value or 0}


def job(
    version: int, folder: Path, ident: int, state: str, code: int = 1, signal: int = 0, **more: Any
) -> dict[str, Any]:
    """Make a job as a version of the API writes it."""
    old = version < 40
    if old:
        # Whatever the code was.
        status: Any = "SIGNALED" if signal else "SUCCESS"
        end: dict[str, Any] = {"status": status, "return_code": -127 if signal else 0}
        if signal:
            end["signal"] = {"signal_id": signal, "name": "Killed"}
    else:
        status = ["SIGNALED"] if signal else ["ERROR"] if code else ["SUCCESS"]
        told = {"id": number(signal or None, version), "name": "KILL" if signal else ""}
        end = {"status": status, "return_code": number(code, version), "signal": told}
    row = {
        "job_id": ident,
        "name": "sft",
        "user": "me",
        "association": {"account": "x", "cluster": "c", "partition": "p", "user": "me"},
        "state": {"current": state if old else [state], "reason": "None"},
        "exit_code": end,
        "time": {
            "elapsed": 3600,
            "start": int((ENDED - timedelta(hours=1)).timestamp()),
            "end": int(ENDED.timestamp()),
        },
        "nodes": "gpu[1-2]",
        "allocation_nodes": 2,
        "tres": {
            "allocated": [
                {"type": "cpu", "name": "", "id": 1, "count": 64},
                {"type": "gres", "name": "gpu", "id": 1001, "count": 16},
                {"type": "gres", "name": "gpu:h100", "id": 1002, "count": 16},
            ]
        },
        "array": {"job_id": 0, "task_id": number(None, version)},
        "working_directory": str(folder),
    }
    if version >= 41:
        row |= {"stdout": f"{folder}/out-%j.log", "stderr": ""}
    return row | more


class StandIn:
    """A server with accounting of some versions."""

    def __init__(self, *versions: int) -> None:
        self.versions = versions
        self.jobs: list[dict[str, Any]] = []
        self.errors: list[dict[str, Any]] = []
        self.asked: list[Asked] = []

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """Answer a request."""
        self.asked.append(asked)
        if asked.path == "/openapi/v3":
            paths = [
                f"/slurmdb/v0.0.{version}/{kind}/" for version in self.versions for kind in ("jobs", "qos")
            ]
            return 200, {"openapi": "3.0.3", "paths": {path: {"get": {}} for path in paths}}
        assert asked.path == f"/slurmdb/v0.0.{min(max(self.versions), slurmrestd.NEWEST)}/jobs/"
        if self.errors:
            return 401, {"jobs": [], "errors": self.errors}
        return 200, {"meta": {}, "jobs": self.jobs, "errors": [], "warnings": []}


@pytest.fixture
def server() -> StandIn:
    return StandIn(40, 41)


@pytest.fixture
def url(server: StandIn) -> Iterator[str]:
    with serving(server.answer) as address:
        yield address


@pytest.fixture
def find(make_settings: Callable[..., Settings]) -> Find:
    """Take the failed jobs of an address."""

    def of(url: str, users: str = "") -> FoundJobs:
        return slurmrestd.find_jobs(url, SlurmQuery(SINCE, users=users), make_settings())

    return of


def output(folder: Path, version: int, ident: int) -> Path:
    """Write the output of a job; where its version of the API cannot say where, by Slurm's default."""
    path = folder / (f"out-{ident}.log" if version >= 41 else f"slurm-{ident}.out")
    path.write_text(DIED, encoding="utf-8")
    return path


@each_row("version", [39, 40, 41, 42, 44])
def test_that_failed_jobs_are_read_in_the_form_of_each_version(
    version: int, url: str, find: Find, server: StandIn, tmp_path: Path
) -> None:
    """With their ends, their nodes and GPUs, and their output; those that ended well or before are left."""
    server.versions = (version,)
    folder = tmp_path / str(version)
    folder.mkdir()
    failed, killed = output(folder, version, 7), output(folder, version, 8)
    before = int((SINCE - timedelta(hours=1)).timestamp())
    server.jobs = [
        job(version, folder, 8, "OUT_OF_MEMORY", 0, 9),
        job(version, folder, 7, "FAILED", 3),
        job(version, folder, 9, "COMPLETED", 0),
        job(version, folder, 10, "FAILED", 1, time={"elapsed": 1, "start": before, "end": before}),
        job(version, folder, 11, "FAILED", 1),
    ]
    found = find(url)
    one, two = found.specs
    assert (one.name, one.place.paths, one.ended) == ("sft (7)", (str(failed),), ENDED)
    assert (one.gpus, one.gpu_hours, one.nodes, one.node_names) == (16, 16.0, 2, ("gpu1", "gpu2"))
    # The oldest form does not tell the code.
    assert one.outcome
    assert one.outcome.exit_code == (None if version == 39 else 3)
    assert (two.name, two.place.paths) == ("sft (8)", (str(killed),))
    assert two.outcome
    assert two.outcome.signal in ("SIGKILL", 9, "9")
    assert "11" in str(found.left_out["no_output_found"])


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a client that was made of Slurm's published API; skipped where it cannot be installed."""
    return pypi.installed(Path(__file__).parent / "slurm_api.lock", tmp_path_factory.mktemp("slurm"))


@pytest.mark.long
@each_row("version", [41, 42, 43, 44])
def test_that_the_published_api_gives_what_is_read_and_takes_what_is_asked(
    version: int, published: Path, url: str, find: Find, server: StandIn, tmp_path: Path
) -> None:
    """Written by its models, an answer is the stand-in's own, and is read; each parameter is one of its."""
    folder = tmp_path / str(version)
    folder.mkdir()
    output(folder, version, 7)
    jobs = [job(version, folder, 7, "FAILED", 3), job(version, folder, 8, "COMPLETED", 0)]
    program = Path(__file__).parent / "slurm_api.py"
    ended = subprocess.run(
        [sys.executable, program, published],
        input=json.dumps({"version": version, "jobs": jobs}),
        capture_output=True,
        check=True,
        text=True,
    )
    told = json.loads(ended.stdout)
    assert not [*_missing(jobs, told["answer"]["jobs"])]
    server.versions, server.jobs = (version,), told["answer"]["jobs"]
    (spec,) = find(url, "me").specs
    assert (spec.name, spec.gpus, spec.ended) == ("sft (7)", 16, ENDED)
    assert set(server.asked[-1].given) <= set(told["takes"])


def _missing(given: Any, made: Any, path: str = "") -> Iterator[str]:
    """Name the fields of an answer that the published models lost or changed."""
    if isinstance(given, dict):
        for key, value in given.items():
            yield from _missing(value, made.get(key, "nothing"), f"{path}.{key}")
    elif isinstance(given, list):
        for number, value in enumerate(given):
            yield from _missing(value, made[number], f"{path}.{number}")
    elif given != made:
        yield f"{path}: {given} is {made}"


def test_that_a_task_of_an_array_has_its_own_name_and_output(
    url: str, find: Find, server: StandIn, tmp_path: Path
) -> None:
    server.versions = (41,)
    (tmp_path / "run-5_3.log").write_text(DIED, encoding="utf-8")
    array = {"job_id": 5, "task_id": number(3, 41)}
    server.jobs = [job(41, tmp_path, 8, "FAILED", array=array, stdout=f"{tmp_path}/run-%A_%a.log")]
    (spec,) = find(url).specs
    assert (spec.name, spec.place.paths) == ("sft (5_3)", (str(tmp_path / "run-5_3.log"),))


def test_that_it_is_asked_by_time_and_user_with_the_token_of_slurms_own_variable(
    url: str, find: Find, server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time is written so that each version reads it, whatever zone the server is in."""
    monkeypatch.setenv("SLURM_JWT", "token-of-mine")
    monkeypatch.setenv("USER", "me")
    output(tmp_path, 41, 7)
    server.jobs = [job(41, tmp_path, 7, "FAILED")]
    assert find(url, "me,you").count == 1
    assert {asked.headers["x-slurm-user-token"] for asked in server.asked} == {"token-of-mine"}
    assert {asked.headers["x-slurm-user-name"] for asked in server.asked} == {"me"}
    assert dict(server.asked[-1].given) == {
        "start_time": f"uts{int(SINCE.timestamp())}",
        "skip_steps": "true",
        "users": "me,you",
    }


def test_that_a_refusal_and_a_server_without_accounting_are_told(
    url: str, find: Find, server: StandIn
) -> None:
    server.errors = [{"error_number": 1007, "error": "x", "description": "Protocol authentication error"}]
    with pytest.raises(InvalidRequestError, match="could not be asked: Protocol authentication error"):
        find(url)
    server.versions = ()
    with pytest.raises(InvalidRequestError, match="no accounting"):
        find(url)


def test_that_a_watch_gives_each_end_one_key(
    url: str, server: StandIn, tmp_path: Path, make_settings: Callable[..., Settings]
) -> None:
    """A job that was put in again and failed again has another."""
    output(tmp_path, 41, 7)
    server.jobs = [job(41, tmp_path, 7, "FAILED")]
    place = ended_jobs.find_in_slurm("", make_settings(), url)

    def keys() -> list[str]:
        return [ended.key for ended in place.find(SINCE)]

    first, second = keys(), keys()
    later = int((ENDED + timedelta(hours=1)).timestamp())
    server.jobs[0]["time"]["end"] = later
    assert (len(first), first == second, keys() == first) == (1, True, False)


@pytest.mark.long
def test_that_one_command_triages_them(url: str, server: StandIn, tmp_path: Path, warm: Path) -> None:
    output(tmp_path, 41, 7)
    server.jobs = [job(41, tmp_path, 7, "FAILED")]
    home = home_at(tmp_path / "home", warm)
    words = ["batch", "--slurmrestd", url, "--since", "2026-11-20", "--out", "r.jsonl", "--workers", "1"]
    ended = whycrash(home, *words, folder=tmp_path)
    assert ended.code == EXPLAINED, ended.err
    (row,) = map(json.loads, (tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines())
    assert (row["source"], row["cause"]) == ("sft (7)", "gpu-oom-training")
