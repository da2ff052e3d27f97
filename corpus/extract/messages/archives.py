"""Releases of a package: downloaded one at a time with the registry's own client, read, and deleted."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath

from corpus.errors import InvalidCorpusError
from corpus.extract.messages.packages import AtlasPackage

# Headers of a wheel hold checks as well.
PYTHON, NATIVE = (".py",), (".cpp", ".cc", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".c")
_LARGEST = 2 << 20
# Where a wheel keeps modules that are not pure (binary distribution format, "The .data directory").
_DATA = re.compile(r"^[^/]+\.data/(?:purelib|platlib)/")
_LEFT_OUT = frozenset(
    [
        "test",
        "tests",
        "examples",
        "example",
        "benchmarks",
        "benchmark",
        "docs",
        "doc",
        "third_party",
        "_vendor",
        "vendor",
        "tutorials",
    ]
)


def downloaded(package: AtlasPackage, version: str, folder: Path) -> Path:
    """Download one release into an empty folder; raises InvalidCorpusError with what the client said."""
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    if package.archive == "sdist":
        words += ["--no-binary", package.name, "--no-build-isolation"]
    else:
        words += ["--only-binary", ":all:"]
        words += [word for platform in package.platforms for word in ("--platform", platform)]
        words += ["--python-version", package.python, "--implementation", "cp"] if package.python else []
    words.append(f"{package.name}=={version}")
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
    found = sorted(folder.iterdir())
    if done.returncode or len(found) != 1:
        raise InvalidCorpusError(f"{package.name} {version}: {done.stderr.strip()[-300:]}")
    return found[0]


def listed_versions(package: str) -> list[str]:
    """Give the releases of a package that its registry lists; raises InvalidCorpusError where it has none."""
    words = [sys.executable, "-m", "pip", "index", "versions", "--ignore-requires-python", package]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
    match = re.search(r"^Available versions: (?P<versions>.+)$", done.stdout, re.MULTILINE)
    if match is None:
        raise InvalidCorpusError(f"{package}: {done.stderr.strip()[-300:]}")
    return match["versions"].split(", ")


def released(package: AtlasPackage, version: str) -> Iterator[tuple[str, str]]:
    """Give path and text of each source file of one release; its archive is deleted behind it."""
    with tempfile.TemporaryDirectory() as folder:
        yield from sources(downloaded(package, version, Path(folder)), package)


def sources(archive: Path, package: AtlasPackage) -> Iterator[tuple[str, str]]:
    """Give path and text of each source file in an archive or a folder; paths are as they are installed."""
    for name, size, read in _members(archive):
        path = _installed(name, package, is_wheel=archive.suffix == ".whl")
        if path and size <= _LARGEST:
            yield path, read().decode("utf-8", "replace")


def _members(archive: Path) -> Iterator[tuple[str, int, Callable[[], bytes]]]:
    """Give name, size and reader of each file, in the order in which they lie there."""
    if archive.is_dir():
        for path in sorted(path for path in archive.rglob("*") if path.is_file()):
            name = f"{archive.name}/{path.relative_to(archive).as_posix()}"
            yield name, path.stat().st_size, path.read_bytes
        return
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as wheel:
            for item in wheel.infolist():
                yield item.filename, item.file_size, partial(wheel.read, item)
        return
    with tarfile.open(archive) as opened:
        for member in opened:
            stream = opened.extractfile(member) if member.isfile() else None
            if stream is not None:
                yield member.name, member.size, stream.read


def _installed(name: str, package: AtlasPackage, *, is_wheel: bool) -> str:
    """Give the path as it is installed; empty for what is not read."""
    path = PurePosixPath(name)
    if path.suffix not in (*PYTHON, *NATIVE) or _LEFT_OUT & {part.lower() for part in path.parts[:-1]}:
        return ""
    if path.stem.startswith(("test_", "conftest")) or path.stem.endswith("_test"):
        return ""
    inside = _DATA.sub("", name) if is_wheel else "/".join(path.parts[1:])
    inside = inside.removeprefix(package.inside)
    is_own = inside.startswith(package.modules or "") and not inside.startswith(package.copies or "/")
    return inside if is_own else ""
