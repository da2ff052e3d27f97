"""Packages that the failing message itself says to install or to be missing, by its command or its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from corpus.frameworks import known_frameworks
from corpus.library import Library
from corpus.message import in_both
from corpus.package_names import is_on_index
from corpus.releases import known_packages
from corpus.schema import Change
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from service.remediation.packages.changes import PackageChange
from service.remediation.packages.seen import seen_versions
from service.remediation.packages.wordings import AskedPackage, asked_packages
from service.remediation.rules.packages import distribution
from service.remediation.stated_rows import stated_rows

_NEWER = "newer than what is installed"


def named_installs(cause: str, report: CrashReport, library: Library) -> list[PackageChange]:
    """Give the known packages that the messages of this cause say to install, each once.

    A name that is known nowhere may be anybody's on the index, so that none is proposed. Of a cause that does
    not turn on packages, only what the failing message gives a command for, or says to upgrade.
    """
    turns_on = library.causes[cause].turns_on
    if not {"package-versions", "named-packages"} & {*turns_on}:
        return []
    is_own = "package-versions" in turns_on
    found: dict[str, PackageChange] = {}
    seen = seen_versions(report)
    for text in _messages(cause, report, is_own=is_own):
        for asked in asked_packages(text, commands_only=not is_own):
            if asked.way == "either" and not is_own:
                # What fails of something else runs, so that the package is there.
                asked = replace(asked, way="newer")
            if (made := _change(asked, report, seen, library)) is not None:
                before = found.get(made.change.key)
                # The first form that tells of releases is the most exact one.
                if before is None or before.change.to in ("install", _NEWER):
                    found[made.change.key] = made if before is None or made.change.to != "install" else before
    # What lacks is nearer than the extra of a package that is there.
    return sorted(found.values(), key=lambda change: "[" in change.change.key)


def _messages(cause: str, report: CrashReport, *, is_own: bool) -> Iterator[str]:
    """Give the texts that may ask for a package: all of the cause, else the failing message alone."""
    if is_own:
        yield from (
            event.body
            for event in report.standing
            if event.kind == "error" and (event.cause == cause or event is report.root)
        )
    root = report.root
    yield from (row.text for row in stated_rows(cause, report) if root is not None and row.line >= root.line)


def _change(
    asked: AskedPackage, report: CrashReport, seen: Mapping[str, Version], library: Library
) -> PackageChange | None:
    """Make a change of what a message asks for; None where no known package is meant, or the job has it."""
    try:
        wanted = Requirement(asked.requirement)
    except InvalidRequirement:
        return None
    installer = min(known_frameworks().with_field("installs"))
    listed = {
        canonicalize_name(key): key for key in (k.split("[")[0] for k in library.keys.get(installer, ()))
    }
    package = distribution(wanted.name)
    # As the index has it, however a message writes it.
    name = canonicalize_name(package)
    package = listed.get(name, name)
    is_known = name in listed or name in known_packages() or (asked.is_firm and is_on_index(name))
    present = seen.get(canonicalize_name(wanted.name))
    to = str(wanted.specifier) or (_NEWER if asked.way == "newer" else "install")
    if not wanted.specifier and report.root is not None and _is_running(package, report.root):
        if wanted.extras:
            # It is what the extra brings that lacks.
            package, to = f"{package}[{','.join(sorted(wanted.extras))}]", "install"
        elif asked.way == "install":
            return None
        else:
            to = _NEWER
    # The job may have what the message asks for.
    if not is_known or (present is not None and wanted.specifier and present in wanted.specifier):
        return None
    because = in_both("packages.message-installs")
    # What the job shows to be there is not missing: whoever asks for it wants a newer one.
    is_there = present is not None and not wanted.specifier and "[" not in package
    if is_there:
        to, because = f">{present}", in_both("packages.is-there", package=package, version=present)
    change = Change(framework=installer, kind="package", key=package, to=to, why=because)
    return PackageChange(change, str(present) if is_there else None)


def _is_running(package: str, event: Event) -> bool:
    """Tell whether calls of a failure are the package's own, so that it is there."""
    module = re.escape(package.replace("-", "_"))
    inside = re.compile(rf"(?:^|[/\\](?:site|dist)-packages[/\\]){module}[/\\]")
    return any(inside.search(frame.file) for frame in event.frames)
