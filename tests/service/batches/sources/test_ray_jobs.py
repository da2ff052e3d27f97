"""The failed jobs of a real Ray cluster, by its dashboard; and what its answers may look like otherwise."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.batches.sources import ray_jobs
from service.batches.sources.found import FoundJobs
from service.batches.sources.ray_jobs import RayJobQuery, json_text
from service.batches.sources.spool import open_spool
from service.schemas.errors import ForbiddenError, InvalidRequestError, TooLargeError
from service.settings import Settings
from tests.loopback import http_server
from tests.machine import short_folder
from tests.ports import free_port
from tests.service.batches.jobs import home_at
from tests.service.batches.sources.handing import held
from tests.service.batches.sources.ray_head import TOKEN, jobs_waited_for, running_head, submitted
from tests.tables import each_row
from tests.ui.shell import whycrash

SECRET = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
DYING = """
import sys
print("epoch 1 of 3 \\N{PARTY POPPER} \\u4f60\\u597d")
sys.stdout.flush()
class OutOfMemoryError(RuntimeError):
    __module__ = "torch"
raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.25 GiB is free.")
"""


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster of this test: its dashboard, and when each of its jobs had ended."""

    url: str
    began: datetime
    ids: dict[str, str]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Start a real Ray with its job server, and let jobs of four kinds end."""
    if shutil.which("ray") is None and not (Path(sys.executable).parent / "ray").exists():
        pytest.skip("Ray is not installed")
    home = short_folder("wr-")
    (home / "dying.py").write_text(DYING)
    entries: dict[str, dict[str, object]] = {
        "dies": {
            "entrypoint": f"{sys.executable} {home}/dying.py --lr 1e-5",
            "metadata": {"name": "sft"},
            "runtime_env": {"env_vars": {"HF_TOKEN": SECRET, "NCCL_DEBUG": "INFO"}},
        },
        "killed": {"entrypoint": "echo begun; kill -9 $$"},
        "never": {"entrypoint": "echo begun", "runtime_env": {"working_dir": "/nowhere"}},
        "well": {"entrypoint": "echo all is well"},
    }
    try:
        with running_head(home) as url:
            jobs_waited_for(url, lambda jobs: not jobs)
            began = datetime.now(UTC)
            ids = {name: submitted(url, entry) for name, entry in entries.items()}
            jobs_waited_for(
                url,
                lambda jobs: sum(job["status"] in ("FAILED", "SUCCEEDED") for job in jobs) == len(entries),
            )
            yield Cluster(url, began, ids)
    finally:
        # What was killed may still be ending.
        for _ in range(50):
            shutil.rmtree(home, ignore_errors=True)
            if not home.exists():
                break
            time.sleep(0.1)


@pytest.fixture
def read(
    tmp_path: Path, make_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., FoundJobs]:
    """Fetch the failed jobs of a dashboard."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)

    def of(url: str, since: datetime | None = None, **given: int) -> FoundJobs:
        made = make_settings(**given)
        return ray_jobs.find_jobs(RayJobQuery(url, since), open_spool(tmp_path / "spool", made), made)

    return of


@pytest.mark.long
def test_that_the_failed_jobs_of_a_cluster_are_fetched(
    cluster: Cluster, read: Callable[..., FoundJobs]
) -> None:
    """Each failed job comes with its log, with what Ray says of its end, and with what it was submitted
    with.
    """
    found = read(cluster.url, cluster.began - timedelta(minutes=5))
    ids = cluster.ids
    jobs = {spec.place.ray_job: spec for spec in found.specs}
    assert set(jobs) == {ids["dies"], ids["killed"], ids["never"]}
    dies = jobs[ids["dies"]]
    assert dies.name == f"sft ({ids['dies']})"
    assert dies.place.spooled
    assert dies.place.ray_dashboard == cluster.url
    assert dies.started is not None
    assert dies.ended is not None
    assert dies.started >= cluster.began - timedelta(seconds=5)
    texts = held(found)
    assert "torch.OutOfMemoryError: CUDA out of memory" in texts[dies.name]["driver.log"]
    assert "epoch 1 of 3 🎉 你好\n" in texts[dies.name]["driver.log"]
    assert texts[dies.name]["ray-job-status.log"] == "Job entrypoint command failed with exit code 1\n"
    assert texts[dies.name]["entrypoint.sh"].endswith("dying.py --lr 1e-5\n")
    assert json.loads(texts[dies.name]["runtime_env.yaml"])["env_vars"]["NCCL_DEBUG"] == "INFO"
    assert "exit code -9" in texts[ids["killed"]]["ray-job-status.log"]
    assert "/nowhere is not a valid path" in texts[ids["never"]]["ray-job-status.log"]


@pytest.mark.long
def test_that_the_failed_jobs_of_a_cluster_are_triaged(cluster: Cluster, tmp_path: Path, warm: Path) -> None:
    """From the dashboard to an answer for each job, by one command."""
    home = home_at(tmp_path / "home", warm)
    ended = whycrash(
        home,
        "batch",
        "--ray",
        cluster.url,
        "--since",
        "1d",
        "--out",
        "r.jsonl",
        "--workers",
        "1",
        folder=tmp_path,
        RAY_AUTH_TOKEN=TOKEN,
    )
    found = {
        answer["job"]["name"]: answer
        for answer in map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines())
    }
    assert set(found) == {f"sft ({cluster.ids['dies']})", cluster.ids["killed"], cluster.ids["never"]}, (
        ended.err
    )
    assert {answer["job"]["state"] for answer in found.values()} == {"done"}
    assert "gpu-oom" in found[f"sft ({cluster.ids['dies']})"]["cause"]
    assert SECRET not in (tmp_path / "r.jsonl").read_text()


@pytest.mark.long
def test_that_a_job_s_secrets_stay_with_ray(
    cluster: Cluster, read: Callable[..., FoundJobs], tmp_path: Path
) -> None:
    """The environment that a job was given is redacted like its log."""
    found = read(cluster.url)
    assert SECRET not in json.dumps(held(found))
    assert not any(SECRET.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.long
def test_that_jobs_before_the_time_are_not_asked_for(
    cluster: Cluster, read: Callable[..., FoundJobs], tmp_path: Path
) -> None:
    """Nothing failed after now; nothing is left on the disk."""
    with pytest.raises(InvalidRequestError, match="no job"):
        read(cluster.url, datetime.now(UTC) + timedelta(hours=1))
    assert not (tmp_path / "spool").exists()


@pytest.mark.long
def test_that_too_many_jobs_are_refused_before_any_is_fetched(
    cluster: Cluster, read: Callable[..., FoundJobs], tmp_path: Path
) -> None:
    """A cluster with more failed jobs than a batch takes is to be asked for a shorter time."""
    with pytest.raises(TooLargeError):
        read(cluster.url, max_jobs=2)
    assert not (tmp_path / "spool").exists()


@pytest.mark.long
def test_that_a_missing_token_is_told(
    cluster: Cluster, read: Callable[..., FoundJobs], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that asks for a token says which variable takes it."""
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    with pytest.raises(InvalidRequestError, match="RAY_AUTH_TOKEN"):
        read(cluster.url)


class _Answers(BaseHTTPRequestHandler):
    """Answers like a dashboard that is none, or whose connection breaks; `asked` are the paths it was asked."""

    asked: ClassVar[list[str]] = []
    jobs = json.dumps(
        [
            {"status": "FAILED", "submission_id": "../x", "message": "died", "type": "SUBMISSION"},
            {"status": "FAILED", "job_id": "02", "type": "DRIVER"},
        ]
    )

    def do_GET(self) -> None:
        """Answer by the first part of the path."""
        kind = self.path.split("/")[1]
        self.asked.append(self.path)
        if kind == "moved":
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            return
        logs = self.path.endswith("/logs")
        body = '{"logs": "first line\\nsecond li' if logs else self.jobs if kind == "cut" else "<html>"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def no_ray() -> Iterator[str]:
    """Start a server that is no Ray."""
    _Answers.asked.clear()
    with http_server(_Answers) as address:
        yield address


def test_that_what_came_of_a_cut_log_counts(no_ray: str, read: Callable[..., FoundJobs]) -> None:
    """A log that breaks off is kept as far as it came, and what has no log at all is told of.

    An id is never a path.
    """
    found = read(f"{no_ray}/cut")
    texts = held(found)
    assert texts["../x"]["driver.log"] == "first line\nsecond li"
    assert texts["../x"]["ray-job-status.log"] == "died\n"
    assert found.left_out["no_logs"] == "1: 02"
    assert "damaged_archive" in found.left_out
    assert "/cut/api/jobs/..%2Fx/logs" in _Answers.asked


@pytest.mark.parametrize("path", ["moved", "page"])
def test_that_no_other_server_is_asked(no_ray: str, read: Callable[..., FoundJobs], path: str) -> None:
    """A redirect is not followed, and a page is no list of jobs."""
    with pytest.raises(InvalidRequestError, match="could not be asked"):
        read(f"{no_ray}/{path}")


def test_that_an_absent_dashboard_is_told(read: Callable[..., FoundJobs]) -> None:
    """Nobody answers there."""
    with pytest.raises(InvalidRequestError, match="could not be asked"):
        read(f"127.0.0.1:{free_port()}")


ALLOWED = [
    ("http://127.0.0.1:8265", True),
    ("127.0.0.1:8265/", True),
    ("http://ray.example:8265", True),
    ("http://127.0.0.1:8266", False),
    ("https://127.0.0.1:8265", False),
    ("http://127.0.0.1:8265/other", False),
    ("http://169.254.169.254", False),
]


@pytest.mark.parametrize(("address", "allowed"), ALLOWED)
def test_that_a_request_names_listed_dashboards_alone(
    make_settings: Callable[..., Settings], address: str, allowed: bool
) -> None:
    """A server asks no address that its settings do not list."""
    made = make_settings(ray_dashboards="http://127.0.0.1:8265/, ray.example:8265")
    if allowed:
        assert ray_jobs.allowed(address, made) == ray_jobs.base(address)
    else:
        with pytest.raises(ForbiddenError):
            ray_jobs.allowed(address, made)


@each_row("address", ["ftp://x", "http://", "http://u:p@x", "http://x:99999", "http://x?y=z", "http://[::1"])
def test_that_what_is_no_address_is_refused(address: str) -> None:
    """An address is a scheme, a host, a port, a path."""
    with pytest.raises(InvalidRequestError):
        ray_jobs.base(address)


@pytest.mark.long
@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.text(), st.integers(1, 7), st.booleans())
def test_that_a_text_comes_out_of_json_however_it_is_cut(text: str, size: int, ascii_only: bool) -> None:
    """The pieces of a JSON text give that text, wherever the connection cuts them."""
    try:
        raw = json.dumps({"before": "x", "logs": text}, ensure_ascii=ascii_only).encode()
        expected = text.encode()
    except UnicodeEncodeError:
        return  # half a pair of surrogates alone
    pieces = (raw[at : at + size] for at in range(0, len(raw), size))
    assert b"".join(json_text(pieces, "logs")) == expected


@each_row("raw", [b"", b"{}", b'{"logs": null}', b'{"logs": "x', b'{"logs": "x\\'])
def test_that_a_text_that_is_cut_or_not_there_is_an_error(raw: bytes) -> None:
    """What was cut is not taken for whole."""
    with pytest.raises(ValueError, match=re.compile("cut|no logs")):
        list(json_text([raw], "logs"))


@each_row("milliseconds", [10**15, 10**20, -(10**20)])
def test_that_a_time_beyond_all_times_is_none(milliseconds: int) -> None:
    assert ray_jobs.read_time(milliseconds) is None


@each_row(
    ("message", "said"),
    [
        ("Job entrypoint command failed with exit code 1, last available logs (cut):\nx", "exit code 1"),
        ("Job entrypoint command failed with exit code 1.\nThe last 20 lines of it:\nx", "exit code 1"),
        ("The driver was lost.", "The driver was lost."),
        # What a runtime environment's setup printed may be of any length, and of blanks.
        ("a" + " " * (1 << 21) + "b", "b"),
    ],
)
def test_that_rays_own_words_stand_before_the_end_of_the_log(message: str, said: str) -> None:
    """However long they are: in time that grows with their length."""
    assert ray_jobs.own_words(message).endswith(said)
