"""Another release of the package whose own code failed, where nothing else is known to mend it."""

from __future__ import annotations

from packaging.utils import canonicalize_name
from packaging.version import Version

from corpus.frameworks import cued_frameworks, known_frameworks
from corpus.library import Library
from corpus.message import in_both
from corpus.package_classes import everybodys_modules, modules_with
from corpus.package_names import is_on_index
from corpus.releases import releases_of
from corpus.schema import Change
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import STANDARD, raised_for
from ingest.logs.stacks.stack import Frame
from service.remediation.packages.changes import PackageChange
from service.remediation.packages.seen import seen_versions
from service.remediation.rules.packages import distribution

_NEWER, _MENDED = "newer than what is installed", "a release that names this fault as mended, or newer"
# Where two packages do not fit, by who called the one that failed.
_OF_CALLER = "the release that belongs to the package which calls it there"
_OF_SCRIPT = "the release the script was written for"


def raising_package(cause: str, report: CrashReport, library: Library) -> list[PackageChange]:
    """Offer another release of the package whose code raised the root, for causes that turn on it.

    What is called by others as a tool is meant only where nothing but it is below the job's own code. Where
    the package itself is at fault a newer release is offered, unless none is known.
    """
    root = report.root
    turns_on = library.causes[cause].turns_on
    if root is None or "raising-package" not in turns_on or _is_of_called(root, report):
        return []
    inner = [frame for frame in raised_for(root.frames) if not STANDARD.search(frame.file)]
    packages = [name for frame in inner if (name := package_of(frame))]
    if not inner or not packages or not package_of(inner[-1]):
        return []
    tools = {canonicalize_name(distribution(module)) for module in everybodys_modules()}
    package = next((name for name in reversed(packages) if name not in tools), packages[-1])
    present = seen_versions(report).get(package)
    is_called_by_job = not any(name not in (package, *tools) for name in packages)
    if "package-versions" in turns_on:
        wanted = _OF_SCRIPT if is_called_by_job else _OF_CALLER
    else:
        wanted = _MENDED if _is_newest(package, present) else _NEWER
    why = in_both("packages.raised", package=package, call=inner[-1].function)
    change = Change(
        framework=min(known_frameworks().with_field("installs")),
        kind="package",
        key=package,
        to=wanted,
        why=why,
    )
    return [PackageChange(change, str(present) if present is not None else None)]


def _is_of_called(root: Event, report: CrashReport) -> bool:
    """Tell whether what may be the job's was called with other arguments than it takes.

    A plain function may be anybody's, and so is a method of a class that no package is known to have.
    """
    called = next(
        (fact.fields for fact in report.facts if fact.kind == "call" and fact.line == root.line), {}
    )
    name = str(called.get("name", ""))
    return bool(name) and "key" not in called and not modules_with(name.rpartition(".")[0])


def package_of(frame: Frame) -> str:
    """Name the package whose file a call is in; empty for the job's own code."""
    if match := known_frameworks().package_file.search(frame.file):
        name = canonicalize_name(distribution(match["module"]))
        return name if is_on_index(name) or releases_of(name) is not None else ""
    rows = [known_frameworks().row(name) for name in cued_frameworks(frame.file)]
    return canonicalize_name(rows[0].package) if len(rows) == 1 and rows[0].package else ""


def _is_newest(package: str, present: Version | None) -> bool:
    table = releases_of(package)
    return present is not None and table is not None and present >= table.releases[-1].version
