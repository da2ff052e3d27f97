"""What each release of a package requires: out of the tags of its git directory, or asked of pip.

A tag holds what the package's metadata is built from. pip is asked for one release at a time, and for those
that are named alone, where a repository is too large to fetch.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from corpus.errors import InvalidCorpusError
from corpus.extract.checkouts import Revision
from corpus.extract.releases import files
from corpus.extract.releases.files import Declared, ReadFile
from corpus.extract.releases.origins import ReleaseOrigin
from corpus.releases import version_of

_PIP = (sys.executable, "-m", "pip")
_PLATFORM = "Linux"
# What pip looks at where most jobs run: Linux on x86-64.
_MACHINE = {
    "sys_platform": _PLATFORM.lower(),
    "platform_system": _PLATFORM,
    "platform_machine": "x86_64",
    "os_name": "posix",
    "python_version": "3.11",
    "python_full_version": "3.11.9",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
}
_PLATFORMS = ("manylinux1_x86_64", "manylinux2014_x86_64", "manylinux_2_28_x86_64", "manylinux_2_31_x86_64")


@dataclass
class ReadRelease:
    """One release: its day, the Pythons that it runs on, and the specifiers of what it requires."""

    version: str
    date: str = ""
    python: str = ""
    requires: dict[str, str] = field(default_factory=dict)
    extras: tuple[str, ...] = ("",)

    def add(self, declared: Declared) -> None:
        """Add what one file declares; of two that speak of the same package the first counts."""
        python, lines = declared
        with suppress(InvalidSpecifier):
            self.python = self.python or str(SpecifierSet(python))
        for line in lines:
            try:
                wanted = Requirement(line)
            except InvalidRequirement:
                continue
            if wanted.marker is None or any(
                wanted.marker.evaluate({**_MACHINE, "extra": extra}) for extra in self.extras
            ):
                self.requires.setdefault(canonicalize_name(wanted.name), str(wanted.specifier))


def read_tags(
    git: Path, package: str, origin: ReleaseOrigin, listed: Collection[Version] | None = None
) -> list[ReadRelease]:
    """Read the releases of a git directory from the origin's first version on, from old to new.

    A tag need not have become a release: with `listed`, the versions of the index, only those count.
    """
    found = {}
    for tag, date in _tags(git):
        match = re.fullmatch(origin.tag, tag)
        version = version_of(match["version"]) if match is not None else None
        if version is None or version.is_prerelease or version < Version(origin.since):
            continue
        if listed is None or version in listed:
            found[version] = (tag, date)
    releases = []
    for version, (tag, date) in sorted(found.items()):
        release = ReadRelease(str(version), date)
        for path in origin.files:
            release.add(_declared(path, package, str(version), _reader(git, tag), origin))
        if origin.newest:
            release.add(_declared(origin.newest, package, str(version), _reader(git, "HEAD"), origin))
        releases.append(release)
    return releases


def ask_versions(package: str) -> frozenset[Version]:
    """Ask pip which versions of a package the index lists; raises InvalidCorpusError with its words."""
    command = [*_PIP, "index", "versions", package]
    done = _run(command)
    found = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    if found is None:
        raise InvalidCorpusError(f"{package}: {done.stderr.strip()[-200:]}")
    return frozenset(Version(text) for text in found[1].split(", "))


def ask_installer(package: str, versions: Sequence[str], extras: Sequence[str] = ()) -> Iterator[ReadRelease]:
    """Ask pip for the metadata of releases, one after the other.

    What it does not give, such as a release without a wheel for this platform, is told and left out.
    """
    for version in sorted(versions, key=Version):
        command = [*_PIP, "install", "--dry-run", "--ignore-installed", "--no-deps"]
        command += ["--quiet", "--report", "-", "--only-binary=:all:", "--python-version", "3.11"]
        command += [word for platform in _PLATFORMS for word in ("--platform", platform)]
        command += ["--target", "unused", f"{package}=={version}"]
        done = _run(command)
        if done.returncode:
            sys.stderr.write(f"{package} {version}: {done.stderr.strip()[-200:]}\n")
            continue
        metadata = json.loads(done.stdout)["install"][0]["metadata"]
        release = ReadRelease(version, extras=("", *extras))
        release.add((metadata.get("requires_python", ""), metadata.get("requires_dist", [])))
        yield release


def write(releases: Sequence[ReadRelease], package: str, source: str, out: Path) -> None:
    """Write releases compactly: a requirement stands once, with the first and last release that has it."""
    ordered = sorted(releases, key=lambda release: Version(release.version))
    names = sorted({name for release in ordered for name in release.requires})
    required = {name: list(_runs([release.requires.get(name) for release in ordered])) for name in names}
    rows = ",\n".join(json.dumps([one.version, one.date, one.python]) for one in ordered)
    wanted = ",\n".join(f"{json.dumps(name)}: {json.dumps(runs)}" for name, runs in required.items())
    head = f'"package": {json.dumps(package)},\n"source": {json.dumps(source)}'
    out.write_text(f'{{{head},\n"releases": [\n{rows}],\n"requires": {{\n{wanted}}}}}\n', encoding="utf-8")


def _runs(values: Sequence[str | None]) -> Iterator[tuple[int, int, str]]:
    """Give runs of equal values, with the places of the first and the last."""
    start = 0
    for place in range(1, len(values) + 1):
        if place == len(values) or values[place] != values[start]:
            if (value := values[start]) is not None:
                yield start, place - 1, value
            start = place


def _declared(path: str, package: str, version: str, read: ReadFile, origin: ReleaseOrigin) -> Declared:
    text = read(path)
    if not text:
        return "", []
    if path.endswith(".toml"):
        return files.of_project(text, origin.extras)
    if path.endswith(".py"):
        return files.of_setup(text, origin.extras)
    if path.endswith(".cfg"):
        return files.of_options(text, origin.extras)
    if path.endswith("CHANGELOG.md"):
        return "", files.of_changelog(text, version)
    if path.endswith(".md"):
        return "", files.of_table(text, package, version)
    if path.endswith(".yml"):
        return "", files.of_workflow(text)
    return "", list(files.of_lines(path, text, read))


def _tags(git: Path) -> Iterator[tuple[str, str]]:
    command = ["git", f"--git-dir={git}", "for-each-ref", "refs/tags"]
    command.append("--format=%(refname:strip=2) %(creatordate:short)")
    done = _run(command)
    if done.returncode:
        raise InvalidCorpusError(f"{git}: {done.stderr.strip()}")
    for line in done.stdout.splitlines():
        tag, _, date = line.partition(" ")
        yield tag, date


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    # Fixed words and a package's name.
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell


def _reader(git: Path, revision: str) -> ReadFile:
    opened = Revision(git, revision)

    def read(path: str) -> str:
        try:
            return opened.read(path)
        except InvalidCorpusError:
            return ""

    return read
