"""A bucket, by moto's S3 in a process of its own and the store's usual driver.

Both are installed into a folder of the test's own, by their lock; where no package index is reached, they are
not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.service.batches.jobs import home_at
from tests.service.batches.sources.handing import DIED
from tests.ui.shell import COMMAND, surroundings
from tests.waiting import until
from tests.warm import ROOT

pytestmark = pytest.mark.long

_PUT = """
import json, os, sys
import boto3
store = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
store.create_bucket(Bucket="logs")
for name, text in json.load(sys.stdin).items():
    store.put_object(Bucket="logs", Key=name, Body=text.encode())
"""


@dataclass(frozen=True)
class Bucket:
    """A server of S3 with one bucket, and what programs need to know of it."""

    environment: Mapping[str, str]

    def put(self, objects: Mapping[str, str]) -> None:
        """Write objects."""
        command = [sys.executable, "-c", _PUT]
        subprocess.run(command, input=json.dumps(objects).encode(), env=self.environment, check=True)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of moto and s3fs; the test is skipped where they cannot be installed."""
    folder = tmp_path_factory.mktemp("s3")
    lock = Path(__file__).parent / "s3.lock"
    words = ["pip", "install", "--require-hashes", "--no-deps", "--target", folder, "--requirement", lock]
    command = [sys.executable, "-m", "uv", "--quiet", *words, "--python", sys.executable]
    ended = subprocess.run(command, capture_output=True, check=False, text=True)
    if ended.returncode:
        pytest.skip(f"moto could not be installed: {ended.stderr[-300:]}")
    return folder


@pytest.fixture
def bucket(packages: Path, tmp_path: Path) -> Iterator[Bucket]:
    port = free_port()
    made = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}:{packages}",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with (tmp_path / "moto.log").open("wb") as log:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, env=made, stdout=log, stderr=log)
    held = Bucket(made)

    def is_there() -> bool:
        assert process.poll() is None, (tmp_path / "moto.log").read_text()
        try:
            held.put({})
        except subprocess.CalledProcessError:
            return False
        return True

    try:
        until(is_there, "a bucket")
        yield held
    finally:
        process.terminate()
        process.wait()


def _said(bucket: Bucket, home: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**surroundings(home), **bucket.environment}
    return subprocess.run(
        [*COMMAND, *words], env=environment, cwd=folder, capture_output=True, check=False, text=True
    )


def test_that_a_watch_of_a_bucket_tells_each_job_once(bucket: Bucket, tmp_path: Path, warm: Path) -> None:
    """Also of more objects than a page of a listing holds; the next look tells what is new, and no more."""
    home = home_at(tmp_path / "home", warm)
    bucket.put({f"train/quiet/{number}.log": "step 1\n" for number in range(1100)})
    bucket.put({"train/two/rank0.log": DIED, "train/two/rank1.log": "step 1\n", "train/a.log": DIED})

    def look() -> list[str]:
        words = ("watch", "s3://logs/train", "--once", "--json", "--settle", "0", "--since-hours", "1")
        ended = _said(bucket, home, tmp_path, *words)
        assert (ended.returncode, "could not" in ended.stderr) == (0, False), ended.stderr
        return sorted(json.loads(row)["source"] for row in ended.stdout.splitlines())

    assert look() == ["a", "two"]
    assert look() == []
    bucket.put({"train/later/train.log": DIED})
    assert look() == ["later"]


def test_that_a_batch_of_a_bucket_leaves_out_what_an_earlier_one_answered(
    bucket: Bucket, tmp_path: Path, warm: Path
) -> None:
    """And takes a job again of which a log was written since."""
    home = home_at(tmp_path / "home", warm)
    bucket.put({"night/a.log": DIED, "night/b.log": DIED.replace("2.00", "3.00")})

    def answered(out: str) -> list[str]:
        words = ("batch", "--objects", "s3://logs/night", "--new", "--workers", "1", "--out", out)
        ended = _said(bucket, home, tmp_path, *words)
        rows = (tmp_path / out).read_text(encoding="utf-8") if (tmp_path / out).exists() else ""
        assert "Traceback" not in ended.stderr, ended.stderr
        return sorted(json.loads(row)["source"] for row in rows.splitlines())

    assert answered("1.jsonl") == ["a", "b"]
    assert answered("2.jsonl") == []
    bucket.put({"night/b.log": "step 2\n" + DIED.replace("2.00", "4.00")})
    assert answered("3.jsonl") == ["b"]
