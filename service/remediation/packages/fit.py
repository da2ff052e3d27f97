"""Releases as a job can have them: those that its Python runs, in the source copy that it imports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from corpus.frameworks import known_frameworks
from corpus.message import joined, words
from corpus.releases import allows, releases_of, version_of
from corpus.schema import Language, Scalar
from corpus.symbols import PYTHON
from ingest.logs.report import CrashReport
from service.remediation.rules.packages import distribution
from service.schemas.diagnosis import ProposedChange

# The Python that calls ran under, by the folder of its library.
_LIBRARY = re.compile(r"/lib(?:64)?/python(?P<version>3\.\d{1,2})/")
# What the job's own files say that they were made with: wandb-metadata.json, environment.yml.
_STATED = re.compile(
    r"\"python\": ?\"(?:CPython )?(?P<told>3\.\d{1,2})[.\"]|^\s*-\s*python=+(?P<asked>3\.\d{1,2})\b", re.M
)
# A later patch of a minor version than any: `>=3.9.1` is fulfilled by a Python 3.9 whose patch is not told.
_LATEST = 99
# A path as one writes it in a command: a log may hold any.
_PLAIN_PATH = re.compile(r"(?!.*\.\.)/[\w./@+-]{1,300}")


@dataclass(frozen=True)
class Misfit:
    """The Python that a job has, what the releases that a change asks for want of it, and what it can have.

    `newest` is the newest release that runs on it.
    """

    python: str
    wanted: str
    newest: Version | None


def python_version(report: CrashReport) -> Version | None:
    """Give the Python that the job ran under: as it says, by the paths of its calls, by its own files."""
    said = next((version_of(found.version) for found in report.frameworks if found.name == PYTHON), None)
    if said is not None:
        return said
    files = [frame.file for event in report.standing for frame in event.frames]
    told = {match["version"] for file in files for match in _LIBRARY.finditer(file)}
    if not told:
        found = (match for text in report.launches for match in _STATED.finditer(text))
        told = {match["told"] or match["asked"] for match in found}
    return Version(f"{told.pop()}.{_LATEST}") if len(told) == 1 else None


def misfit_of(package: str, wanted: str, report: CrashReport) -> Misfit | None:
    """Say that none of the releases which a specifier allows runs on the job's Python."""
    python, table = python_version(report), releases_of(distribution(package))
    try:
        asked = SpecifierSet(wanted)
    except InvalidSpecifier:
        return None
    if python is None or table is None or not str(asked):
        return None
    allowed = [release for release in table.releases if allows(wanted, release.version)]
    if not allowed or any(allows(release.python, python) for release in allowed):
        return None
    shown = str(python).removesuffix(f".{_LATEST}")
    running = [release.version for release in table.releases if allows(release.python, python)]
    return Misfit(shown, allowed[0].python, max(running, default=None))


def source_copy(package: str, report: CrashReport) -> str:
    """Give the folder of a source copy that the job imports a package from; empty where it is installed.

    Its module lies in a folder that is called as the package, as a clone of its repository is: another
    project may have a module of that name.
    """
    name = canonicalize_name(package.split("[")[0])
    roots = set(_roots(name, report))
    return roots.pop() if len(roots) == 1 else ""


def fitting_installs(
    changes: Sequence[ProposedChange], report: CrashReport, language: Language
) -> list[ProposedChange]:
    """Give the changes with those of packages as this job can have them.

    Releases that its Python does not run give way to the newest that it does; what it imports from a source
    copy is changed there: what pip installs beside it stays unused.
    """
    return [
        _installable(change, report, language) if change.kind == "package" else change for change in changes
    ]


def _installable(change: ProposedChange, report: CrashReport, language: Language) -> ProposedChange:
    if at := source_copy(change.key, report):
        told = words("packages.source-copy", language, wanted=_in_words(change.to, language), at=at)
        return change.model_copy(update={"to": told, "status": "unverified"})
    misfit = misfit_of(change.key, str(change.to), report)
    if misfit is None:
        return change
    asked = f"{change.key}{change.to}"
    # What a case tells of a release is in none before it.
    is_needed = bool(change.from_case) or (
        change.from_ is not None and misfit.newest is not None and not _is_newer(misfit.newest, change.from_)
    )
    if misfit.newest is None or is_needed:
        to = words("packages.newer-python", language, asked=asked, python=misfit.python, wanted=misfit.wanted)
        return change.model_copy(update={"to": to, "status": "unverified"})
    told = words(
        "packages.on-python",
        language,
        asked=asked,
        python=misfit.python,
        wanted=misfit.wanted,
        newest=misfit.newest,
        package=change.key,
    )
    why = joined(change.why, told, language)
    return change.model_copy(update={"to": f"=={misfit.newest}", "why": why, "status": "unverified"})


def _is_newer(version: Version, present: str) -> bool:
    """Tell whether a version is newer than the job's, or the job's is not told as one."""
    known = version_of(present.removeprefix("=="))
    return known is None or version > known


def _in_words(to: Scalar, language: Language) -> str:
    """Say which release is wanted, as a specifier or any newer one."""
    return str(to) if re.match(r"[=<>!~]", str(to)) else words("packages.newer", language)


def _roots(name: str, report: CrashReport) -> Iterator[str]:
    root = report.root
    for frame in root.frames if root is not None else ():
        parts = PurePosixPath(frame.file.replace("\\", "/")).parts
        if known_frameworks().package_file.search(frame.file) or not _PLAIN_PATH.fullmatch(frame.file):
            continue
        yield from (
            str(PurePosixPath(*parts[:place]))
            for place in range(2, len(parts) - 1)
            if canonicalize_name(distribution(parts[place])) == name and _is_clone(parts[place - 1], name)
        )


def _is_clone(folder: str, name: str) -> bool:
    """Tell whether a folder is called as a repository of the package: its name, with a branch or a fork's."""
    told = canonicalize_name(folder)
    return told == name or told.startswith(f"{name}-") or told.endswith(f"-{name}")
