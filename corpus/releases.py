"""What each release of a package requires, and what the builds of PyTorch need of driver and card.

One file a package under `releases/`, read when it is first asked for. `python -m corpus.extract releases`
writes it.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from operator import attrgetter

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from pydantic import Field

from corpus.library import ROOT, pages, read_yaml, validated
from corpus.schema import Record, Specifier

FOLDER = "releases"
BUILDS = "builds.yaml"


@dataclass(frozen=True)
class Release:
    """One release: its day (empty where unknown), the Pythons that it runs on, and what it requires.

    `requires` gives specifiers by package, the empty one where any version will do.
    """

    version: Version
    date: str
    python: str
    requires: Mapping[str, str]


@dataclass(frozen=True)
class PackageReleases:
    """The releases of a package that are known, from old to new, and where that is said."""

    package: str
    source: str
    releases: tuple[Release, ...]

    def at(self, version: Version) -> Release | None:
        """Give the release of that version, or else the last known one before it.

        What the last known release is pinned to says nothing of a later one, but for its own patches.
        """
        place = bisect_right(self.releases, Version(version.public), key=attrgetter("version"))
        if not place:
            return None
        found = self.releases[place - 1]
        if place < len(self.releases) or version.release[:2] == found.version.release[:2]:
            return found
        unpinned = {name: wanted for name, wanted in found.requires.items() if not wanted.startswith("==")}
        return replace(found, requires=unpinned)


@cache
def known_packages() -> frozenset[str]:
    """Name the packages whose releases are known."""
    return frozenset(path.stem for path in pages(f"{FOLDER}/*.json"))


@cache
def releases_of(package: str) -> PackageReleases | None:
    """Give the releases of a package; None where it has no table."""
    name = canonicalize_name(package)
    path = next((path for path in pages(f"{FOLDER}/*.json") if path.stem == name), None)
    if path is None:
        return None
    table = json.loads(path.read_bytes())
    required: list[dict[str, str]] = [{} for _ in table["releases"]]
    for wanted, runs in table["requires"].items():
        for first, last, specifier in runs:
            for place in range(first, last + 1):
                required[place][wanted] = specifier
    releases = (
        Release(Version(version), date, python, requires)
        for (version, date, python), requires in zip(table["releases"], required, strict=True)
    )
    return PackageReleases(table["package"], table["source"], tuple(releases))


# Bounded, as some come out of logs.
@lru_cache(4096)
def allows(specifier: str, version: Version) -> bool:
    """Tell whether a specifier allows a version; a local part such as `+cu126` counts where it names one."""
    try:
        wanted = SpecifierSet(specifier)
    except InvalidSpecifier:
        return True
    return wanted.contains(version, prereleases=True) or wanted.contains(version.public, prereleases=True)


@lru_cache(4096)
def version_of(text: str) -> Version | None:
    """Read a version; None where the text is none."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


class DriverMinimum(Record):
    """The least driver that runs programs built with a major version of CUDA."""

    cuda: int
    driver: int


class TorchBuild(Record):
    """A build of PyTorch: its versions, its CUDA as `major * 10 + minor`, and the cards that it has code for.

    `least` and `most` are compute capabilities, `major * 10 + minor`. `default` tells that it is the one that
    the package index gives.
    """

    versions: Specifier
    cuda: int
    least: int
    most: int
    default: bool = False


class Builds(Record):
    """What NVIDIA and PyTorch publish of builds, drivers and cards."""

    sources: tuple[str, ...]
    drivers: tuple[DriverMinimum, ...]
    torch: tuple[TorchBuild, ...] = Field(min_length=1)


@cache
def known_builds() -> Builds:
    """Give the table of builds, read once."""
    path = ROOT / FOLDER / BUILDS
    return validated(Builds, read_yaml(path), str(path))
