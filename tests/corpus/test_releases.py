"""What each release of a package requires: read from its files and tags, written compactly, and looked up."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from corpus.extract.__main__ import main
from corpus.extract.releases import files
from corpus.extract.releases.origins import ReleaseOrigin, release_origins
from corpus.extract.releases.reading import ReadRelease, read_tags, write
from corpus.releases import PackageReleases, Release, allows, known_builds, known_packages, releases_of
from tests.tables import each_row

SETUP = """
from setuptools import setup
_deps = ["alpha>=1.2,<2", "beta"]
deps = {text.split(">")[0]: text for text in _deps}
BASE = ["gamma==3"]
setup(name="made", python_requires=">=3.9", install_requires=BASE + [deps["alpha"], "delta"],
      extras_require={"fast": ["epsilon<5"], "slow": ["zeta"]})
"""
PROJECT = """
[project]
requires-python = ">=3.10"
dependencies = ["alpha>=1", "beta; sys_platform == 'win32'"]
[project.optional-dependencies]
fast = ["epsilon<5"]
"""
OPTIONS = """
[options]
python_requires = >=3.8
install_requires =
    alpha>=1
    beta
[options.extras_require]
fast = epsilon<5
"""
README = """
| `made` | `torch` | Python |
| ------ | ------- | ------ |
| `0.5`  | `2.7`   | `>=3.9` |
| `0.6`  | `>=2.8` | `>=3.9` |
"""
CHANGELOG = """
## [0.3] - 2025-02-01
Pre-built binary wheels are available for PyTorch 2.8.0 (and later).
## [0.2.post1] - 2025-01-02
## [0.2] - 2025-01-01
Pre-built binary wheels require PyTorch 2.6.0
"""


def test_that_each_form_of_a_release_tells_its_requirements() -> None:
    """Scripts are parsed and never run; of extras only the named ones count."""
    assert files.of_setup(SETUP, ["fast"]) == (">=3.9", ["gamma==3", "alpha>=1.2,<2", "delta", "epsilon<5"])
    assert files.of_project(PROJECT, ["fast"])[1][-1] == "epsilon<5"
    assert files.of_options(OPTIONS, ["fast"]) == (">=3.8", ["alpha>=1", "beta", "epsilon<5"])
    held = {"requirements/common.txt": "alpha>=1  # why\n# a remark\n"}
    lines = files.of_lines("requirements/cuda.txt", "-r common.txt\ntorch==2.6.0\n", held.__getitem__)
    assert list(lines) == ["alpha>=1", "torch==2.6.0"]
    assert files.of_setup("setup(", []) == ("", [])


@each_row(
    "version, table, changelog",
    [
        ("0.5.0", ["torch==2.7.*"], []),
        ("0.6.1", ["torch>=2.8"], []),
        ("0.7", [], []),
        ("0.2", [], ["torch==2.6.0"]),
        ("0.2.post1", [], []),
        ("0.3", [], ["torch>=2.8.0"]),
    ],
)
def test_that_what_a_release_was_built_for_is_read(
    version: str, table: list[str], changelog: list[str]
) -> None:
    """From a README's table of pairs, and from the section of a changelog on this very version."""
    assert files.of_table(README, "made", version) == table
    assert files.of_changelog(CHANGELOG, version) == changelog


def test_that_a_matrix_of_wheels_gives_the_range_of_its_minor_releases() -> None:
    """Wheels for 2.4.0, 2.5.1 and 2.6.0 serve every patch release of them."""
    workflow = "    matrix:\n      torch-version: ['2.4.0', '2.5.1', '2.6.0']\n"
    assert files.of_workflow(workflow) == ["torch>=2.4,<2.7"]


def _tagged(folder: Path, releases: dict[str, str]) -> Path:
    """Make a repository with a tag for each release."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True)
    for tag, text in releases.items():
        (folder / "requirements.txt").write_text(text, encoding="utf-8")
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", tag, "--allow-empty"], check=True)
        subprocess.run([*git, "tag", tag], check=True)
    return folder / ".git"


def test_that_tags_become_releases(tmp_path: Path) -> None:
    """Candidates and what is too old are no releases, nor is a tag that the index does not list."""
    git = _tagged(
        tmp_path,
        {"v0.9": "old", "v1.0": "alpha>=1", "v1.1rc1": "alpha>=2", "v1.1": "alpha>=2", "v1.2": "alpha>=2"},
    )
    origin = ReleaseOrigin(repository="made/made", since="1.0", files=("requirements.txt",))
    found = read_tags(git, "made", origin)
    assert [(release.version, release.requires) for release in found] == [
        ("1.0", {"alpha": ">=1"}),
        ("1.1", {"alpha": ">=2"}),
        ("1.2", {"alpha": ">=2"}),
    ]
    assert [one.version for one in read_tags(git, "made", origin, {Version("1.1")})] == ["1.1"]


def test_that_what_was_written_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A requirement that holds for several releases in a row stands once, and belongs to each of them."""
    rows = [
        ReadRelease("1.10", "2025-02-01", ">=3.9", {"alpha": ">=2"}),
        ReadRelease("1.2", "", "", {"alpha": ">=2", "beta": ""}),
        ReadRelease("1.9", "", "", {}),
    ]
    (tmp_path / "releases").mkdir()
    write(rows, "made-up", "https://example.org", tmp_path / "releases" / "made-up.json")
    monkeypatch.setenv("WHYCRASH_KNOWLEDGE", str(tmp_path))
    known_packages.cache_clear()
    releases_of.cache_clear()
    try:
        table = releases_of("made_up")
        assert table is not None
        told = [(str(one.version), dict(one.requires)) for one in table.releases]
        assert told == [("1.2", {"alpha": ">=2", "beta": ""}), ("1.9", {}), ("1.10", {"alpha": ">=2"})]
        nearest, before = table.at(Version("1.9.5+cu126")), table.at(Version("1.0"))
        assert nearest is not None
        assert (str(nearest.version), before) == ("1.9", None)
    finally:
        known_packages.cache_clear()
        releases_of.cache_clear()


def test_that_a_release_newer_than_the_table_is_pinned_to_nothing() -> None:
    """Ranges of the last known release hold on, its exact pins only for its patches."""
    last = Release(Version("0.26.0"), "", "", {"torch": "==2.11.0", "numpy": ">=1.2"})
    table = PackageReleases("made-up", "", (replace(last, version=Version("0.25.0")), last))
    asked = {
        text: dict(found.requires)
        for text in ("0.25.1", "0.26.0+cpu", "0.26.1", "0.28.0")
        if (found := table.at(Version(text)))
    }
    assert asked == {
        "0.25.1": last.requires,
        "0.26.0+cpu": last.requires,
        "0.26.1": last.requires,
        "0.28.0": {"numpy": ">=1.2"},
    }


def test_that_every_table_of_releases_holds_what_it_should() -> None:
    """Versions ascend, specifiers are specifiers, and every origin has its table."""
    assert set(release_origins()) <= known_packages()
    wrong = []
    for package in sorted(known_packages()):
        table = releases_of(package)
        assert table is not None
        versions = [release.version for release in table.releases]
        wrong += [package] if not versions or versions != sorted(set(versions)) else []
        for release in table.releases:
            for specifier in (release.python, *release.requires.values()):
                SpecifierSet(specifier)
    assert wrong == []


def test_that_a_local_version_counts_as_its_release() -> None:
    """`2.6.0+cu124` is 2.6.0, unless a specifier names a build."""
    assert allows("==2.6.0", Version("2.6.0+cu124"))
    assert allows("==2.6.0+cu124", Version("2.6.0+cu124"))
    assert not allows("==2.6.0+cu118", Version("2.6.0+cu124"))
    assert not allows("<2.6", Version("2.6.0+cu124"))


def test_that_each_torch_has_one_build_on_the_package_index() -> None:
    """As the metadata of its releases has it: they require the runtime of that very CUDA."""
    table = releases_of("torch")
    assert table is not None
    wrong = {}
    for release in table.releases:
        cuda = [
            build.cuda
            for build in known_builds().torch
            if build.default and allows(build.versions, release.version)
        ]
        runtimes = {
            name: wanted
            for name, wanted in release.requires.items()
            if name.startswith(("nvidia-cuda-runtime", "cuda-toolkit"))
        }
        told = [int("".join(wanted.removeprefix("==").split(".")[:2])) for wanted in runtimes.values()]
        if cuda != told:
            wrong[str(release.version)] = (cuda, told)
    assert wrong == {}


def test_that_the_command_refuses_a_package_without_an_origin(tmp_path: Path) -> None:
    """What is read of a repository is named in a table first."""
    with pytest.raises(SystemExit):
        main(["releases", "unheard-of", str(tmp_path)])
