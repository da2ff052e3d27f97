"""Ray clusters that are gone, out of what KubeRay's history server keeps; one is a real Ray's."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from service.batches.sources import object_store, ray_layout
from service.batches.sources.found import FoundJobs
from service.batches.sources.grouping import group_files
from service.batches.sources.object_store import ObjectQuery
from service.batches.sources.spool import open_spool
from service.schemas.errors import InvalidRequestError
from service.settings import Settings
from tests.loopback import folder_server, http_server
from tests.machine import short_folder
from tests.service.batches.sources.handing import DIED, held
from tests.service.batches.sources.ray_head import TOKEN, jobs_waited_for, running_head, submitted
from tests.tables import each_row

NODES = ("a1" * 28, "b2" * 28)
CLUSTER = "cluster-history/raycluster/ml/shared"
SESSION = "session_2026-11-20_10-00-00_123456_1"
Store = Mapping[str, str | bytes]
Find = Callable[..., FoundJobs]


@pytest.fixture
def find(tmp_path: Path, make_settings: Callable[..., Settings]) -> Find:
    """Serve files as a store does, and take the jobs below one of its folders."""

    def of(store: Store, below: str = "", since: datetime | None = None) -> FoundJobs:
        for folder in ("store", "copies") if store else ():
            shutil.rmtree(tmp_path / folder, ignore_errors=True)
        for name, content in store.items():
            path = tmp_path / "store" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        made = make_settings()
        with folder_server(tmp_path / "store") as url:
            asked = ObjectQuery(f"{url}/{below}", since)
            return object_store.find_jobs(asked, open_spool(tmp_path / "copies", made), made)

    return of


def _rows(*rows: object) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _told(submission: str, message: str, at: int = 1_790_000_000) -> dict[str, object]:
    """Write what Ray's log of events says of a job."""
    return {
        "source_type": "JOBS",
        "message": message,
        "timestamp": str(at),
        "custom_fields": {"submission_id": submission},
    }


def _defined(submission: str) -> str:
    told = {"config": {"metadata": {"job_submission_id": submission}}}
    return _rows({"eventType": "DRIVER_JOB_DEFINITION_EVENT", "driverJobDefinitionEvent": told}, "no object")


def shared_session() -> dict[str, str | bytes]:
    """Give a session of two nodes that three jobs shared: two failed, one went well."""
    head, worker = (f"{CLUSTER}/{SESSION}/{node}" for node in NODES)
    store: dict[str, str | bytes] = {
        f"{head}/logs/raylet.out": "of all\n",
        f"{head}/logs/events/event_JOBS.log": _rows(
            _told("sft", "Started a ray job sft.", 1_790_000_000),
            _told(
                "sft",
                "Completed a ray job sft with a status FAILED. Job entrypoint command failed with "
                "exit code 1, last available logs (truncated to 20,000 chars):\nquokka",
                1_790_000_600,
            ),
            _told("rl", "Completed a ray job rl with a status FAILED. The driver was lost."),
            _told("eval", "Completed a ray job eval with a status SUCCEEDED."),
            [],
        )
        + "cut {",
        f"{CLUSTER}/{SESSION}/fetched_endpoints/restful__api__v0__cluster_metadata": "{}",
        f"{head}/node_events/x.jsonl.gz": gzip.compress(b'{"eventType": "NODE_DEFINITION_EVENT"}\n'),
        "cluster-metadata/raycluster/ml_shared/" + SESSION: "",
    }
    for number, name in enumerate(("sft", "rl", "eval"), 1):
        core = f"{number:02d}000000"
        store[f"{head}/logs/job-driver-{name}.log"] = DIED
        store[f"{head}/logs/jobs/supervisor-{name}.log"] = (
            f"INFO job_supervisor.py:437 -- Job {name} entrypoint command exited with code {number} job\n"
        )
        store[f"{worker}/logs/worker-{'c3' * 28}-{core}-77.out"] = f"step of {name}\n"
        store[f"{worker}/logs/worker-{'d4' * 28}-ffffffff-7{number}.err"] = (
            f":job_id:{core}\nearly of {name}\n"
        )
        store[f"{worker}/job_events/{core}/x-2026-11-20-10-1.jsonl.gz"] = gzip.compress(
            _defined(name).encode()
        )
    return store


def test_that_each_failed_job_of_a_shared_session_comes_with_its_own_logs(find: Find) -> None:
    """By Ray's events: its driver's, its workers' of all nodes, its nodes', and nothing of the others."""
    found = find(shared_session(), "")
    name = f"raycluster/ml/shared/{SESSION}"
    jobs = held(found)
    assert set(jobs) == {f"{name}/sft", f"{name}/rl"}
    for job in ("sft", "rl"):
        text = "\n".join(jobs[f"{name}/{job}"].values())
        assert [f" of {other}\n" in text for other in ("sft", "rl", "eval")] == [
            job == "sft",
            job == "rl",
            False,
        ]
        assert "of all" in text
        assert DIED in text
        assert "eventType" not in text
    assert jobs[f"{name}/sft"]["ray-job-status.log"] == "Job entrypoint command failed with exit code 1\n"
    sft, rl = sorted(found.specs, key=lambda spec: spec.name, reverse=True)
    assert sft.outcome is not None
    assert (sft.outcome.exit_code, sft.outcome.state) == (1, "FAILED")
    assert sft.started is not None
    assert sft.ended is not None
    assert (sft.ended - sft.started).total_seconds() == 600
    assert (rl.outcome.exit_code if rl.outcome else 0, rl.started) == (2, None)
    assert found.left_out["not_failed"] == f"1: {name}/eval"


def test_that_workers_that_no_event_gives_to_a_job_are_of_each_that_has_none(find: Find) -> None:
    """The cluster was gone before all events were: no log is lost."""
    store = {
        name: content
        for name, content in shared_session().items()
        if "/job_events/02" not in name and "event_" not in name
    }
    jobs = held(find(store, ""))
    texts = {name.rpartition("/")[2]: "\n".join(files.values()) for name, files in jobs.items()}
    # Nothing tells that it went well.
    assert set(texts) == {"sft", "rl", "eval"}
    assert ["step of rl" in texts[name] for name in ("sft", "rl", "eval")] == [False, True, False]


@each_row(
    ("below", "names"),
    [
        ("cluster-history/", {f"raycluster/ml/shared/{SESSION}/{job}" for job in ("sft", "rl")}),
        (f"{CLUSTER}/", {f"{SESSION}/{job}" for job in ("sft", "rl")}),
        (f"{CLUSTER}/{SESSION}/", {f"{SESSION}/{job}" for job in ("sft", "rl")}),
    ],
)
def test_that_any_folder_down_to_a_session_may_be_named(below: str, names: set[str], find: Find) -> None:
    assert set(held(find(shared_session(), below))) == names


def test_that_a_session_of_one_job_is_that_job(find: Find) -> None:
    """A RayJob's own cluster; one that went well is none, and a service's has no driver's log."""
    store: dict[str, str] = {}
    for kind, owner, status in (
        ("rayjob", "a", "FAILED"),
        ("rayjob", "b", "SUCCEEDED"),
        ("rayservice", "c", ""),
    ):
        node = f"log/cluster-history/{kind}/ml/{owner}/{owner}-x/{SESSION}/{NODES[0]}"
        store[f"{node}/logs/worker-{'c3' * 28}-01000000-7.err"] = DIED
        if status:
            store[f"{node}/logs/job-driver-{owner}.log"] = DIED
            told = f"Completed a ray job {owner} with a status {status}."
            store[f"{node}/logs/events/event_JOBS.log"] = _rows(_told(owner, told))
    assert set(held(find(store, "log/"))) == {f"rayjob/ml/a/a-x/{SESSION}", f"rayservice/ml/c/c-x/{SESSION}"}


def test_that_only_jobs_of_a_session_that_ended_since_are_taken(find: Find) -> None:
    """By when Ray says that each ended; one of which nothing tells is taken."""
    ended = datetime.fromtimestamp(1_790_000_600, UTC)
    store = shared_session()
    for since, names in (
        (ended - timedelta(seconds=1), {"sft"}),
        (ended + timedelta(seconds=1), set()),
        (ended - timedelta(days=1), {"sft", "rl"}),
    ):
        found = [made for made in _names(find, store, since) if made]
        assert {name.rpartition("/")[2] for name in found} == names
    untold = {name: content for name, content in store.items() if "event_" not in name}
    assert {name.rpartition("/")[2] for name in _names(find, untold, ended)} == {"sft", "rl", "eval"}


def _names(find: Find, store: Store, since: datetime) -> list[str]:
    try:
        return [spec.name for spec in find(store, "", since).specs]
    except InvalidRequestError:
        return []  # no job at all


def _first_layout() -> dict[str, str | bytes]:
    """Give a session as the first releases kept it: arrays of events, the jobs' among the nodes'."""
    session = f"root/shared_0b1c/{SESSION}"
    store: dict[str, str | bytes] = {
        "root/shared_0b1c/meta/restful__nodes_view_summary": "{}",
        f"root/metadir/shared_0b1c/{SESSION}": "",
        f"{session}/node_events/{NODES[0]}-2026-11-20-10": json.dumps(
            [
                {"eventType": "NODE_DEFINITION_EVENT"},
                *(_driver(number, name) for number, name in enumerate(("sft", "rl"), 1)),
                _submission("sft", "FAILED", 1),
                _submission("rl", "SUCCEEDED", 0),
            ]
        ),
    }
    for number, name in enumerate(("sft", "rl"), 1):
        store[f"{session}/logs/{NODES[0]}/job-driver-{name}.log"] = DIED
        store[f"{session}/logs/{NODES[1]}/worker-{'c3' * 28}-0{number}000000-7.out"] = f"step of {name}\n"
        store[f"{session}/job_events/{_core(number)}/{NODES[1]}-2026-11-20-10"] = "[]"
    return store


def _core(number: int) -> str:
    """Write a core id as Ray's events do."""
    return b64encode(bytes([number, 0, 0, 0])).decode()


def _driver(number: int, submission: str = "") -> dict[str, object]:
    metadata = {"job_submission_id": submission} if submission else {}
    told = {"jobId": _core(number), "entrypoint": "python train.py", "config": {"metadata": metadata}}
    return {"eventType": "DRIVER_JOB_DEFINITION_EVENT", "driverJobDefinitionEvent": told}


def _submission(name: str, state: str, code: int) -> dict[str, object]:
    rows = [
        {"state": "RUNNING", "timestamp": "2026-11-20T10:00:00.123456789Z"},
        {
            "state": state,
            "timestamp": "2026-11-20T10:10:00.123456789Z",
            "message": "It ended, last available logs (truncated to 20,000 chars):\nquokka",
            "driverExitCode": code,
        },
    ]
    return {"submissionJobLifecycleEvent": {"submissionId": name, "stateTransitions": rows}}


def test_that_the_layout_of_the_first_releases_is_read(find: Find) -> None:
    """Core ids as the events have them, ends where Ray's own log of events is not there; no note is a log."""
    found = find(_first_layout())
    jobs = held(found)
    (name,) = jobs
    assert name.endswith(f"shared_0b1c/{SESSION}/sft")
    assert [f"step of {each}\n" in jobs[name].values() for each in ("sft", "rl")] == [True, False]
    assert jobs[name]["ray-job-status.log"] == "It ended\n"
    (spec,) = found.specs
    assert spec.outcome is not None
    assert (spec.outcome.exit_code, spec.outcome.state) == (1, "FAILED")
    assert spec.started is not None
    assert spec.ended is not None
    assert (spec.ended - spec.started).total_seconds() == 600


@each_row("is_told", [True, False])
def test_that_programs_that_nobody_submitted_are_jobs_by_rays_own_number(is_told: bool, find: Find) -> None:
    """A notebook beside a submission; with no events at all each driver is one, and what starts jobs none."""
    session = f"{CLUSTER}/{SESSION}/{NODES[0]}"
    rows = [_driver(2, "sft"), _driver(3)]
    heads = {1: ":actor_name:JobSupervisor\n", 2: "", 3: "", 4: ":actor_name:Learner\n"}
    store: dict[str, str | bytes] = {
        f"{session}/logs/worker-{'c3' * 28}-0{number}000000-7.err": f":job_id:0{number}000000\n{head}"
        f"{DIED}of {number}\n"
        for number, head in heads.items()
    }
    store |= {f"{session}/logs/raylet.out": "of all\n"}
    if is_told:
        store |= {f"{session}/node_events/x": _rows(*rows), f"{session}/logs/job-driver-sft.log": DIED}
    jobs = held(find(store))
    texts = {name.rpartition("/")[2]: "\n".join(files.values()) for name, files in jobs.items()}
    numbers = {
        name: [number for number in range(1, 5) if f"of {number}" in text] for name, text in texts.items()
    }
    told = {"sft": [2], "03000000": [3], "04000000": [4]}
    untold = {f"0{number}000000": [number] for number in range(2, 5)}
    assert numbers == (told if is_told else untold)
    assert all("of all" in text for text in texts.values())


def test_that_names_alone_make_a_job_of_each_session() -> None:
    """As of a folder or an archive; also with a folder a node below the logs, and beside other jobs."""
    names = [
        *(name for name in shared_session() if "metadata" not in name),
        f"{CLUSTER}/session_2026-11-21_10-00-00_123456_1/{NODES[0]}/logs/job-driver-x.log",
        f"shared_ml/{SESSION}/logs/{NODES[0]}/job-driver-x.log",
        f"shared_ml/{SESSION}/job_events/01000000/x.jsonl",
        "night/a.log",
        "night/b.log",
    ]
    found = {job.name: len(job.logs) for job in group_files(names, [], "given")}
    assert found == {
        f"raycluster/ml/shared/{SESSION}": 13,
        "raycluster/ml/shared/session_2026-11-21_10-00-00_123456_1": 1,
        f"shared_ml/{SESSION}": 1,
        "night/a": 1,
        "night/b": 1,
    }


@each_row(
    "name",
    [
        f"node0/{SESSION}/logs/raylet.out",
        f"{SESSION}/logs/worker-{'c3' * 28}-01000000-7.err",
        f"runs/{NODES[0]}/train.log",
        "session_x/logs/a.log",
    ],
)
def test_that_other_folders_of_ray_are_no_such_session(name: str) -> None:
    assert ray_layout.session_of(name) is None


_JOB = """
import sys, ray
ray.init()

@ray.remote(max_retries=0)
def step(name):
    print("step of", name, flush=True)
    if name != "well":
        raise RuntimeError("the quokka of " + name)

ray.get(step.remote(sys.argv[1]))
"""


class _Collector(BaseHTTPRequestHandler):
    """Takes the events of a Ray that exports them, and files them as the collector does."""

    def __init__(self, *given: Any, folder: Path, lock: threading.Lock) -> None:
        self._folder, self._lock = folder, lock
        super().__init__(*given)

    def do_POST(self) -> None:
        """Keep what has a job with that job."""
        events = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for event in events:
            told = next(
                (part for part in event.values() if isinstance(part, dict) and part.get("jobId")), None
            )
            kind = f"job_events/{b64decode(told['jobId']).hex()}" if told else "node_events"
            path = self._folder / kind / "events.jsonl"
            with self._lock:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("a") as file:
                    file.write(f"{json.dumps(event)}\n")
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_said: object) -> None:
        """Print nothing."""


def _run_alone(home: Path) -> None:
    """Run a driver that nobody submits, as a notebook is."""
    environment = {
        **os.environ,
        "RAY_ADDRESS": (home / "ray_current_cluster").read_text(encoding="utf-8").strip(),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": TOKEN,
        "RAY_enable_ray_event": "true",
        "RAY_enable_core_worker_ray_event_to_aggregator": "true",
    }
    command = [sys.executable, home / "job.py", "alone"]
    ended = subprocess.run(command, env=environment, check=False, capture_output=True)
    assert b"the quokka of alone" in ended.stderr


@pytest.mark.long
def test_that_the_jobs_of_a_real_cluster_that_is_gone_are_found(find: Find, tmp_path: Path) -> None:
    """Ray's own names and events, kept in the store's layout: of three jobs two failed, each in a worker.

    One more was submitted by nobody: it is known by Ray's number.
    """
    home = short_folder("wr-")
    (home / "job.py").write_text(_JOB)
    node = tmp_path / "node"
    names = ("one", "two", "well")
    try:
        with (
            http_server(partial(_Collector, folder=node, lock=threading.Lock())) as collector,
            running_head(
                home,
                RAY_enable_ray_event="true",
                RAY_enable_core_worker_ray_event_to_aggregator="true",
                RAY_DASHBOARD_AGGREGATOR_AGENT_EVENTS_EXPORT_ADDR=f"{collector}/v1/events",
                RAY_DASHBOARD_AGGREGATOR_AGENT_EXPOSABLE_EVENT_TYPES="ALL",
            ) as url,
        ):
            jobs_waited_for(url, lambda jobs: not jobs)
            ids = {}
            for name in names:
                ids[name] = submitted(url, {"entrypoint": f"{sys.executable} {home}/job.py {name}"})
            ended = ("FAILED", "SUCCEEDED")
            jobs_waited_for(url, lambda jobs: sum(job["status"] in ended for job in jobs) == len(names))
            _run_alone(home)
            session = (home / "session_latest").resolve()
            # Ray sends and writes its events a moment later.
            told = session / "logs" / "events" / "event_JOBS.log"
            jobs_waited_for(
                url,
                lambda _jobs: (
                    len([*node.glob("job_events/*")]) == len(names) + len(("alone", "Ray's own"))
                    and told.read_text().count("Completed a ray job") == len(names)
                ),
            )
            shutil.copytree(session / "logs", node / "logs")
        shutil.copytree(node, tmp_path / "store" / CLUSTER / session.name / NODES[0])
        found = find({})
    finally:
        shutil.rmtree(home, ignore_errors=True)
    jobs = {name.rpartition("/")[2]: "\n".join(files.values()) for name, files in held(found).items()}
    (alone,) = set(jobs) - {ids["one"], ids["two"]}
    # What it raised went to its driver, whose output nobody keeps.
    assert "step of alone" in jobs.pop(alone)
    assert set(jobs) == {ids["one"], ids["two"]}
    for name, other in (("one", "two"), ("two", "one")):
        assert f"the quokka of {name}" in jobs[ids[name]]
        assert f"step of {name}" in jobs[ids[name]]
        assert f"quokka of {other}" not in jobs[ids[name]]
        assert f"step of {other}" not in jobs[ids[name]]
        assert "step of alone" not in jobs[ids[name]]
    assert {spec.outcome.state for spec in found.specs if spec.outcome} == {"FAILED"}
    assert {spec.outcome.exit_code for spec in found.specs if spec.outcome} == {1}
