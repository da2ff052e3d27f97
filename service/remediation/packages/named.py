"""Packages that the failing message itself says to install, by the command that it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from corpus.frameworks import known_frameworks
from corpus.library import Library
from corpus.message import in_both
from corpus.releases import known_packages
from corpus.schema import Change
from ingest.logs.report import CrashReport
from service.remediation.packages.changes import PackageChange

_VERSION = r"(?:[=<>!~]=|[<>])\s?[\w.*]{1,20}"
_INSTALL = re.compile(
    r"\bpip3? install\s+(?:-{1,2}[A-Za-z][\w-]*\s+)*[`'\"]?"
    rf"(?P<package>[A-Za-z][\w.-]{{0,60}}(?:\[[\w,-]{{1,60}}\])?(?:\s?{_VERSION}(?:,{_VERSION})?)?)"
)


def named_installs(cause: str, report: CrashReport, library: Library) -> list[PackageChange]:
    """Give the known packages that the messages of this cause say to install, each once.

    A name that is known nowhere may be anybody's on the index, so that none is proposed.
    """
    if "package-versions" not in library.causes[cause].turns_on:
        return []
    return list({change.change.key: change for change in _named(cause, report, library)}.values())


def _named(cause: str, report: CrashReport, library: Library) -> Iterator[PackageChange]:
    installer = min(known_frameworks().with_field("installs"))
    known = {canonicalize_name(name.split("[")[0]) for name in library.keys.get(installer, ())}
    for event in report.standing:
        if event.kind != "error" or event.cause != cause:
            continue
        for match in _INSTALL.finditer(event.body):
            try:
                asked = Requirement(match["package"].strip().rstrip("."))
            except InvalidRequirement:
                continue
            if canonicalize_name(asked.name) in known or canonicalize_name(asked.name) in known_packages():
                yield PackageChange(
                    Change(
                        framework=installer,
                        kind="package",
                        key=asked.name,
                        to=str(asked.specifier) or "install",
                        why=in_both("packages.message-installs"),
                    ),
                    None,
                )
