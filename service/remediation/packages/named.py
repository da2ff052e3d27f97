"""Packages that the failing message itself says to install or to be missing, by its command or its words."""

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
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from service.remediation.packages.changes import PackageChange
from service.remediation.packages.seen import seen_versions
from service.remediation.rules.packages import distribution

_VERSION = r"(?:[=<>!~]=|[<>])\s?[\w.*]{1,20}"
_INSTALL = re.compile(
    r"\bpip3? install\s+(?:-{1,2}[A-Za-z][\w-]*\s+)*[`'\"]?"
    rf"(?P<package>[A-Za-z][\w.-]{{0,60}}(?:\[[\w,-]{{1,60}}\])?(?:\s?{_VERSION}(?:,{_VERSION})?)?)"
)
# What libraries and people say of a package that is not there, in their own words.
_NAMED = (
    r"[`'\"]?(?P<package>[A-Za-z][\w.-]{1,60}(?:\[[\w,-]{1,60}\])?)[`'\"]?(?: (?:package|library|module))?"
)
_ABSENT = (
    r"(?i:(?:is|are|was|seems to be) (?:not|n't) (?:installed|available|importable)\b"
    r"|(?:must|needs to|has to|should) be installed\b|could not be imported\b"
    r"|is required\b[^\n]{0,80}\bnot (?:installed|found|available))"
)
_TO_INSTALL = (
    r"(?i:\binstall(?:ing)? (?:the )?(?:latest |required |missing )?(?:python )?(?:package |library )?)"
)
_ASKED = r"(?i:\b(?:requires?|needs?) (?:the )?)"
_BUT = r"(?=,? (?:but (?:it )?(?:is|was)|which (?:is|was)|to be installed|and (?:it )?is))"
_WORDED = (
    re.compile(_TO_INSTALL + _NAMED + r"(?=[\s.,;:!)]|$)"),
    re.compile(_ASKED + _NAMED + _BUT),
    re.compile(rf"(?:^|[\s:]){_NAMED} {_ABSENT}"),
    re.compile(rf"(?i:\boptional dependency ){_NAMED}"),
    re.compile(rf"(?i:\bhav(?:e|ing) (?:the )?){_NAMED}(?i:(?: \w+)? installed\b)"),
)


# What a package says of another that it finds too old or too new: peft/import_utils.py, and its like.
_BOUNDED = re.compile(
    r"(?i:\b(?:incompatible|unsupported) version of )[`'\"]?(?P<package>[A-Za-z][\w.-]{1,60}?)[`'\"]?[.,:; ]"
    r"[^\n]{0,120}?(?i:\bonly versions? )(?P<side>above|below|from|>=|<=|>|<|==)\s?"
    r"(?P<version>\d[\w.]{0,20}?)(?=[\s,;]|\.?$|\.\s)"
)
# Further ones of a list: `install tqdm and rich`.
_FURTHER = re.compile(rf"(?:,? and|,) {_NAMED}(?=[\s.,;:!)]|$)")
_MOST_LISTED = 4
_SIDES = {"above": ">=", "from": ">=", "below": "<"}


def named_installs(cause: str, report: CrashReport, library: Library) -> list[PackageChange]:
    """Give the known packages that the messages of this cause say to install, each once.

    A name that is known nowhere may be anybody's on the index, so that none is proposed.
    """
    if "package-versions" not in library.causes[cause].turns_on:
        return []
    found = {change.change.key: change for change in _named(cause, report, library)}
    # What lacks is nearer than the extra of a package that is there.
    return sorted(found.values(), key=lambda change: "[" in change.change.key)


def _named(cause: str, report: CrashReport, library: Library) -> Iterator[PackageChange]:
    installer = min(known_frameworks().with_field("installs"))
    listed = (name.split("[")[0] for name in library.keys.get(installer, ()))
    known = {canonicalize_name(name): name for name in listed}
    seen = seen_versions(report)
    for event in report.standing:
        if event.kind != "error" or (event.cause != cause and event is not report.root):
            continue
        told = [match for expression in (_INSTALL, *_WORDED) for match in expression.finditer(event.body)]
        asks = [name for match in told for name in _listed(match)]
        for match in _BOUNDED.finditer(event.body):
            side = _SIDES.get(match["side"].lower(), match["side"])
            asks.append(f"{match['package']}{side}{match['version']}")
        for text in asks:
            try:
                asked = Requirement(text)
            except InvalidRequirement:
                continue
            package = distribution(asked.name)
            # As the index has it, however a message writes it.
            package = known.get(canonicalize_name(package), package)
            is_known = canonicalize_name(package) in known or canonicalize_name(package) in known_packages()
            if not asked.specifier and _is_running(package, event):
                # It is what the extra brings that lacks.
                package, is_known = f"{package}[{','.join(sorted(asked.extras))}]", bool(asked.extras)
            present = seen.get(canonicalize_name(asked.name))
            # The job may have what the message asks for.
            is_met = present is not None and bool(asked.specifier) and present in asked.specifier
            if is_known and not is_met:
                # What the job shows to be there is not missing: whoever asks for it wants a newer one.
                is_there = present is not None and not asked.specifier and "[" not in package
                to, why = str(asked.specifier) or "install", in_both("packages.message-installs")
                if is_there:
                    to = f">{present}"
                    why = in_both("packages.is-there", package=package, version=present)
                change = Change(framework=installer, kind="package", key=package, to=to, why=why)
                yield PackageChange(change, str(present) if is_there else None)


def _listed(first: re.Match[str]) -> Iterator[str]:
    """Give the package that a message names, and those that it lists behind it."""
    match: re.Match[str] | None = first
    for _ in range(_MOST_LISTED):
        if match is None:
            return
        yield match["package"].strip().rstrip(".")
        match = _FURTHER.match(first.string, match.end())


def _is_running(package: str, event: Event) -> bool:
    """Tell whether calls of a failure are the package's own, so that it is there."""
    module = re.escape(package.replace("-", "_"))
    inside = re.compile(rf"(?:^|[/\\](?:site|dist)-packages[/\\]){module}[/\\]")
    return any(inside.search(frame.file) for frame in event.frames)
