"""What an installer found that cannot be installed together, and which releases can."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from corpus.message import in_both
from corpus.releases import Release, releases_of, version_of
from corpus.schema import Text
from corpus.version_ranges import overlap
from ingest.logs.report import CrashReport
from service.remediation.rules.packages import distribution

_WANTED = r"(?P<wanted>(?:[=<>!~]=?=?\d[\w.*+]{0,30}(?:, ?)?){1,4})"
_NEEDS = rf"(?P<needs>[A-Za-z][\w.-]{{0,60}})(?:\[[\w,.-]{{1,80}}\])? ?{_WANTED}"
# What pip says below `The conflict is caused by:`, and uv within its reasons.
_DEPENDS = re.compile(
    rf"(?P<package>[A-Za-z][\w.-]{{0,60}})(?:\[[\w,.-]{{1,80}}\])?(?: |==)(?P<version>\d[\w.+]{{0,30}})"
    rf" depends on {_NEEDS}"
)
_REQUESTED = re.compile(rf"The user requested (?:\(constraint\) )?{_NEEDS}")


@dataclass(frozen=True)
class ResolvingMove:
    """Releases of a package, as a specifier, that can be installed with what the others want, and why."""

    package: str
    present: Version | None
    specifier: str
    why: Text


@dataclass(frozen=True)
class _Need:
    """What a package in one version, or the user where there is none, wants of another one."""

    package: str
    version: Version | None
    needs: str
    wanted: str


def resolving_moves(report: CrashReport) -> Iterator[ResolvingMove]:
    """Give what resolves a conflict that an installer tells of: own pins, and newer releases before older.

    Each package that wants what another one excludes may give way, in a release that wants what fits.
    """
    needs = list(dict.fromkeys(_needs(report)))
    found = [move for own in needs if (move := _move(own, needs)) is not None]
    yield from sorted(found, key=lambda move: move.present is not None and not move.specifier.startswith(">"))


def _needs(report: CrashReport) -> Iterator[_Need]:
    for _, text in sorted(report.texts.items()):
        for match in (*_DEPENDS.finditer(text), *_REQUESTED.finditer(text)):
            told = match.groupdict()
            wanted = told["wanted"].rstrip("., ")
            try:
                SpecifierSet(wanted)
            except InvalidSpecifier:
                continue
            package = canonicalize_name(distribution(told.get("package") or ""))
            version = version_of(told.get("version") or "")
            yield _Need(package, version, canonicalize_name(distribution(told["needs"])), wanted)


def _move(own: _Need, needs: list[_Need]) -> ResolvingMove | None:
    others = [one for one in needs if one.needs == own.needs and one.package != own.package]
    against = [one for one in others if not overlap(one.wanted, own.wanted)]
    if not against:
        return None
    pin, other = (own, against[0]) if own.version is None else (against[0], own)
    told = {"needs": own.needs, "wanted": pin.wanted, "excluding": other.wanted}
    told |= {"first": f"{pin.package} {pin.version}", "second": f"{other.package} {other.version}"}
    why = in_both("packages.unresolved-pin" if pin.version is None else "packages.unresolved", **told)
    if own.version is None:
        wanted = str(SpecifierSet(",".join(one.wanted for one in others)))
        return ResolvingMove(own.needs, None, wanted, why)
    table = releases_of(own.package)
    releases = table.releases if table is not None else ()
    fitting = [
        release
        for release in releases
        if all(overlap(one.wanted, release.requires.get(own.needs, "")) for one in others)
    ]
    specifier = _nearest(own.version, fitting, releases)
    return ResolvingMove(own.package, own.version, specifier, why) if specifier else None


def _nearest(present: Version, fitting: list[Release], releases: tuple[Release, ...]) -> str:
    newer = [release.version for release in fitting if release.version > present]
    older = [release.version for release in fitting if release.version < present]
    if newer:
        rest = [release.version for release in releases if release.version >= min(newer)]
        return f"{'>=' if rest == sorted(newer) else '=='}{min(newer)}"
    return f"=={max(older)}" if older else ""
