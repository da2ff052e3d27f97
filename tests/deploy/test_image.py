"""The Dockerfile, built step by step where buildah and debootstrap are; no registry of images is asked.

In place of the published image of Python stands a Debian with Python that debootstrap makes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.machine import short_folder
from tests.ports import free_port
from tests.waiting import PATIENCE, until
from tests.warm import INCIDENTS, ROOT

WHEELS = sorted((ROOT / "out" / "dist").glob("whycrash-*.whl"))
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not all(map(shutil.which, ("buildah", "debootstrap"))) or os.geteuid() != 0 or not WHEELS,
        reason="needs root, buildah, debootstrap, and a wheel in out/dist (`make wheel`)",
    ),
]
BASE = "localhost/python:base"
LOG = INCIDENTS / "w-easyr1-offload-host-ram" / "log.txt"
CAUSE = "cpu-offload-pressure"
# How this machine reaches its package index is no matter of the image's.
HOSTS_OWN = ("/etc/pip.conf", "/etc/ssl")


class Buildah:
    """Images in a folder of their own, built and run without a daemon or a kernel's namespaces."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = os.environ | {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}

    def run(self, *words: str | Path) -> str:
        """Run a command of buildah's, and give what it prints."""
        ended = subprocess.run(
            self._command(words), env=self._environment, cwd=ROOT, capture_output=True, check=False, text=True
        )
        assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
        return ended.stdout.strip()

    def _command(self, words: Sequence[str | Path]) -> list[str]:
        places = ["--root", self.folder / "images", "--runroot", self.folder / "run"]
        return [str(word) for word in ("buildah", *places, *words)]

    def made(self, target: str) -> str:
        """Build a target of the Dockerfile, and give a container of it."""
        mounted = [f"--volume={path}:{path}:ro" for path in HOSTS_OWN if Path(path).exists()]
        mounted += [f"--volume={self.folder / 'uv.toml'}:/etc/uv/uv.toml:ro"]
        file = ("--file", ROOT / "deploy" / "docker" / "Dockerfile", "--target", target)
        tag = f"localhost/{target}"
        self.run(
            "build", "--pull-never", f"--build-arg=PYTHON_IMAGE={BASE}", *mounted, *file, "--tag", tag, "."
        )
        return self.run("from", "--pull-never", tag)

    @contextmanager
    def running(self, *words: str | Path) -> Iterator[None]:
        """Have a command of buildah's run meanwhile."""
        with (self.folder / "ran").open("wb") as out:
            process = subprocess.Popen(
                self._command(words), env=self._environment, stdout=out, stderr=out, start_new_session=True
            )
        try:
            yield
        except BaseException:
            sys.stderr.write((self.folder / "ran").read_text(errors="replace")[-3000:])
            raise
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(PATIENCE)


@pytest.fixture(scope="module")
def buildah() -> Iterator[Buildah]:
    """With the base image made."""
    folder = short_folder("whycrash-image-")
    made = Buildah(folder)
    packages = "--include=python3,python3-venv,ca-certificates"
    try:
        subprocess.run(
            ["debootstrap", "--variant=minbase", packages, "bookworm", folder / "debian"],
            check=True,
            capture_output=True,
        )
        container = made.run("from", "scratch")
        made.run("add", "--quiet", container, folder / "debian", "/")
        made.run("commit", "--quiet", container, BASE)
        (folder / "uv.toml").write_text("system-certs = true\n")
        yield made
    finally:
        _unmount(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _unmount(folder: Path) -> None:
    """Let go of what buildah leaves mounted below its folder: containers, and the folder of its layers."""
    mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    for place in sorted((row.split()[1] for row in mounts), reverse=True):
        if place.startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", place], check=True)


def test_that_the_image_of_the_command_explains_as_a_plain_user(buildah: Buildah) -> None:
    """Of the lock and the wheel alone: small, without tools to build with, writable only in its home."""
    container = buildah.made("cli")
    root = Path(buildah.run("mount", container))
    shutil.copy(LOG, root / "tmp" / "train.log")
    (root / "tmp" / "train.log").chmod(0o644)
    assert buildah.run("run", container, "--", "id", "-u") == "10001"
    assert CAUSE in buildah.run("run", container, "--", "whycrash", "explain", "/tmp/train.log")
    writable = 'find / -xdev -type d -writable -not -path "/proc*" -not -path "/dev*" -not -path "/sys*"'
    found = buildah.run("run", container, "--", "sh", "-c", f"{writable} 2>/dev/null || true").split()
    assert {path for path in found if not path.startswith("/var/lib/whycrash")} <= {
        "/run/lock",
        "/tmp",
        "/var/tmp",
    }
    tools = "command -v gcc cc make pip pip3 uv git || true"
    assert not buildah.run("run", container, "--", "sh", "-c", tools)
    # Sizes as a file system holds them; half a gigabyte is ours, the rest the system's.
    size = sum(path.lstat().st_size for path in (root / "opt" / "whycrash").rglob("*") if path.is_file())
    assert size < 600 << 20


def test_that_the_image_of_the_service_answers_over_http(buildah: Buildah) -> None:
    """As a plain user, with a key that a first container of the same home made."""
    container = buildah.made("service")
    key = buildah.run("run", container, "--", "whycrash", "keys", "add", "probe").split()[-1]
    url = f"http://127.0.0.1:{(port := free_port())}"
    served = ("run", f"--env=WHYCRASH_PORT={port}", "--env=WHYCRASH_WORKERS=1", container, "--")

    def is_ready() -> bool:
        try:
            return httpx.get(f"{url}/readyz", timeout=PATIENCE, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    with buildah.running(*served, "whycrash", "serve"):
        until(is_ready, "the server is ready")
        answer = httpx.post(
            f"{url}/v1/triage",
            json={"text": LOG.read_text(encoding="utf-8")},
            headers={"Authorization": f"Bearer {key}"},
            timeout=PATIENCE,
            trust_env=False,
        )
        assert answer.json()["cause"] == CAUSE
        assert httpx.get(f"{url}/v1/triages", timeout=PATIENCE, trust_env=False).status_code == 401
