"""The Dockerfile, built step by step where buildah and debootstrap are; no registry of images is asked.

In place of the published image of Python stands a Debian with Python that debootstrap makes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine import short_folder
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
        places = ["--root", self.folder / "images", "--runroot", self.folder / "run"]
        command = [str(word) for word in ("buildah", *places, *words)]
        ended = subprocess.run(
            command, env=self._environment, cwd=ROOT, capture_output=True, check=False, text=True
        )
        assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
        return ended.stdout.strip()


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
        shutil.rmtree(folder, ignore_errors=True)


def test_that_the_image_of_the_command_explains_as_a_plain_user(buildah: Buildah) -> None:
    """Of the lock and the wheel alone: small, without tools to build with, writable only in its home."""
    mounted = [f"--volume={path}:{path}:ro" for path in HOSTS_OWN if Path(path).exists()]
    mounted += [f"--volume={buildah.folder / 'uv.toml'}:/etc/uv/uv.toml:ro"]
    file = ("--file", ROOT / "deploy" / "docker" / "Dockerfile", "--target", "cli", "--tag", "localhost/made")
    buildah.run("build", "--pull-never", f"--build-arg=PYTHON_IMAGE={BASE}", *mounted, *file, ".")
    container = buildah.run("from", "--pull-never", "localhost/made")
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
