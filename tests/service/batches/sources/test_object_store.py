"""Jobs out of an object store: a web server, S3 where moto is installed, a store that fails."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import pytest

from service.batches.sources import object_files, object_store
from service.batches.sources.found import FoundJobs
from service.batches.sources.object_store import ObjectQuery
from service.batches.sources.spool import open_spool
from service.schemas.errors import InvalidRequestError, TooLargeError
from service.settings import Settings
from tests.loopback import folder_server
from tests.service.batches.jobs import home_at
from tests.service.batches.sources.handing import DIED, SECRET, held
from tests.service.batches.sources.stores import UnreliableStore, unreliable
from tests.tables import each_row
from tests.ui.shell import EXPLAINED, whycrash

LONG = "step 1\n" * 500_000 + DIED
NIGHT: dict[str, bytes] = {
    "night/a.log": DIED.encode(),
    "night/two/rank0.log": LONG.encode(),
    "night/two/rank1.log.gz": gzip.compress(DIED.encode()),
    "night/two/train.sh": SECRET.encode(),
    "night/model.safetensors": b"x",
    "morning/b.log": b"another\n",
}

Find = Callable[..., FoundJobs]


@pytest.fixture
def find(tmp_path: Path, make_settings: Callable[..., Settings]) -> Find:
    """Take the jobs below an address."""

    def of(url: str, since: datetime | None = None, **settings: int) -> FoundJobs:
        made = make_settings(**settings)
        return object_store.find_jobs(ObjectQuery(url, since), open_spool(tmp_path / "copies", made), made)

    return of


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[UnreliableStore]]:
    """Serve NIGHT at unreliable://, asked again without a pause."""
    with unreliable(monkeypatch) as store:
        for name, content in NIGHT.items():
            store().pipe_file(f"/{name}", content)
        yield store


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    """Serve NIGHT by a web server that lists folders and knows no ranges."""
    for name, content in NIGHT.items():
        path = tmp_path / "served" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    with folder_server(tmp_path / "served") as address:
        yield address


def _is_night(found: FoundJobs) -> None:
    jobs = held(found)
    assert set(jobs) == {"a", "two"}
    assert jobs["a"] == {"a.log": DIED}
    assert jobs["two"]["rank0.log"] == LONG
    assert jobs["two"]["rank1.log.gz"] == DIED
    assert "hf_" not in jobs["two"]["train.sh"]
    assert all(spec.place.spooled for spec in found.specs)
    assert found.left_out == {"checkpoint": "1: model.safetensors"}


def test_that_the_folders_of_a_web_server_are_read(find: Find, web: str) -> None:
    _is_night(find(f"{web}/night/"))


def test_that_one_object_of_a_web_server_is_one_job(find: Find, web: str) -> None:
    assert held(find(f"{web}/morning/b.log")) == {"b": {"b.log": "another\n"}}


@pytest.mark.long
def test_that_one_command_triages_them(web: str, tmp_path: Path, warm: Path) -> None:
    """From the address to an answer for each job, and a page that says where they were."""
    home = home_at(tmp_path / "home", warm)
    words = ["batch", "--objects", f"{web}/night/", "--out", "r.jsonl", "--html", "r.html", "--workers", "1"]
    ended = whycrash(home, *words, folder=tmp_path)
    assert ended.code == EXPLAINED, ended.err
    rows = [json.loads(row) for row in (tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["source"]: row["cause"] for row in rows} == {
        "a": "gpu-oom-training",
        "two": "gpu-oom-training",
    }
    assert "logs in an object store" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.long
def test_that_a_bucket_is_read(find: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against moto's S3, with more objects than one page of a listing holds."""
    pytest.importorskip("s3fs")
    served = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    served.start()
    host, port = served.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    try:
        bucket = fsspec.filesystem("s3", skip_instance_cache=True)
        bucket.mkdir("logs")
        for name, content in NIGHT.items():
            bucket.pipe_file(f"logs/{name}", content)
        _is_night(find("s3://logs/night"))
        bucket.pipe({f"logs/many/job-{number}.log": b"%d\n" % number for number in range(1100)})
        assert find("s3://logs/many").count == 1100
        with pytest.raises(InvalidRequestError, match="cannot be read"):
            find("s3://nothing-here/night")
    finally:
        served.stop()


def test_that_requests_that_fail_are_made_again(find: Find, store: type[UnreliableStore]) -> None:
    """Three failures in a row cost nothing, wherever they fall."""
    store.left = 3
    _is_night(find("unreliable://night"))


def test_that_a_store_that_is_gone_is_told(find: Find, store: type[UnreliableStore], tmp_path: Path) -> None:
    """And no copy stays."""
    store.left = 10_000
    with pytest.raises(InvalidRequestError, match="unreliable://night cannot be read: reset by peer"):
        find("unreliable://night")
    assert not (tmp_path / "copies").exists()


def test_that_a_log_that_breaks_off_is_kept_as_far_as_it_went(
    find: Find, store: type[UnreliableStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read of it stays, and the answer says that the rest was not given."""
    monkeypatch.setattr(store, "_open", lambda *_words, **_named: _Breaking())
    found = find("unreliable://night/two/rank0.log")
    (job,) = held(found).values()
    assert job["rank0.log"].count("step 1") in range(1000, 1200)
    assert any(
        "did not give all of it (ConnectionResetError)" in str(told) for told in found.left_out.values()
    )


class _Breaking:
    """An object whose connection breaks after the first thousand lines, each time it is opened."""

    size = 1 << 20

    def __init__(self) -> None:
        self._at = 0

    def seek(self, at: int) -> None:
        self._at = at

    def read(self, _size: int) -> bytes:
        if self._at:
            raise ConnectionResetError("reset by peer")
        self._at = 1
        return b"step 1\n" * 1100

    def close(self) -> None:
        """Nothing is open."""


def test_that_jobs_of_before_are_left_out(find: Find, store: type[UnreliableStore]) -> None:
    """By the newest of a job's logs, where the store says when each was written."""
    old = datetime.now(UTC) - timedelta(days=9)
    for name in ("/night/two/rank0.log", "/night/a.log"):
        UnreliableStore.store[name].created = UnreliableStore.store[name].modified = old
    found = find("unreliable://night", since=datetime.now(UTC) - timedelta(days=1))
    assert [job.name for job in found.specs] == ["two"]
    assert found.left_out["older"] == "1: a"


@each_row(
    ("row", "told"),
    [
        ({"LastModified": datetime(2026, 11, 20, tzinfo=UTC)}, datetime(2026, 11, 20, tzinfo=UTC)),
        ({"last_modified": datetime(2026, 11, 20)}, datetime(2026, 11, 20, tzinfo=UTC)),
        ({"updated": "2026-11-20T00:00:00Z"}, datetime(2026, 11, 20, tzinfo=UTC)),
        ({"mtime": 1_700_000_000}, datetime.fromtimestamp(1_700_000_000, UTC)),
        ({"mtime": 1e300}, None),
        ({"updated": "yesterday"}, None),
        ({}, None),
    ],
)
def test_that_each_drivers_time_is_read(row: dict[str, Any], told: datetime | None) -> None:
    assert object_files.time_written(row) == told


def test_that_more_jobs_than_a_batch_holds_are_refused(find: Find, store: type[UnreliableStore]) -> None:
    with pytest.raises(TooLargeError):
        find("unreliable://night", max_jobs=1)


@each_row(
    "url",
    [
        "/var/log",
        "file:///etc/passwd",
        "local:///etc",
        "s3://",
        "simplecache::s3://logs/night",
        "s3://logs::file:///etc",
        "github://someone:something@main/",
        "memory://night",
        "",
    ],
)
def test_that_no_other_place_is_read(find: Find, url: str) -> None:
    """Neither files of this machine, nor addresses that wrap others."""
    with pytest.raises(InvalidRequestError, match="no address of an object store"):
        find(url)


def test_that_a_missing_driver_is_named(find: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that adds it."""

    def missing(*_words: object, **_named: object) -> None:
        raise ImportError("Install ossfs to access OSS")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(InvalidRequestError, match=r"needs ossfs, .*`pip install ossfs`"):
        find("oss://logs/night")
