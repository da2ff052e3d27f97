"""Where the frameworks' own sources tell of a job's failures: sites of the message atlas for its lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corpus.library import fits
from corpus.message_atlas import MessageMatch, Site, shipped
from ingest.logs.events import Event
from ingest.logs.report import CrashReport

# Failures that are looked up besides the root, and those of which the answer tells.
MAX_LOOKED_UP, MAX_TOLD = 6, 4


@dataclass(frozen=True, slots=True)
class LineSite:
    """The site that tells what a line of the log says; `version` is the one whose source is shown.

    `is_root` tells that it is the root's line, `is_sure` that this is the job's own source and no other
    release or package that words the same: its calls are in that file, or the log tells the release.
    """

    line: int
    site: Site
    version: str
    is_root: bool = False
    is_sure: bool = True


def find_sites(report: CrashReport) -> tuple[LineSite, ...]:
    """Give the sites of the failures that stand, the root's first."""
    others = [
        event
        for event in report.standing
        if event is not report.root and event.kind == "error" and event.pattern_role != "wrapper"
    ]
    root = [report.root] if report.root is not None else []
    found: dict[tuple[str, str, str], LineSite] = {}
    for event in (*root, *others[:MAX_LOOKED_UP]):
        site = site_of(event, report)
        if site is not None:
            version = version_of(site, report)
            if not version:
                # The newest one in which the site stands on the line that the traceback names.
                called = {frame.line for frame in event.frames if frame.file.endswith(f"/{site.file}")}
                newest_first = reversed(tuple(site.lines.items()))
                version = next((version for version, line in newest_first if line in called), None)
            shown = site.nearest(version)
            known = version_of(site, report)
            in_file = any(frame.file.replace("\\", "/").endswith(f"/{site.file}") for frame in event.frames)
            # Two versions of one minor release, such as `2.6.0` and `2.6.1+cu124`, have the same places.
            is_release = bool(known) and shown.split(".")[:2] == str(known).split(".")[:2]
            is_sure = in_file or is_release or not (known or event.frames)
            place = LineSite(event.line, site, shown, event is report.root, is_sure)
            found.setdefault((site.package, site.file, site.symbol), place)
    return tuple(found.values())[:MAX_TOLD]


def site_of(event: Event, report: CrashReport) -> Site | None:
    """Give the site that tells of an event, where one of this job does."""
    files = [frame.file.replace("\\", "/") for frame in event.frames]
    return next(
        (
            site
            for match in shipped().look_up(event.body, files)
            for site in _of_this_job(match, files, report)
        ),
        None,
    )


def version_of(site: Site, report: CrashReport) -> str | None:
    """Give the version of the site's package, where the log tells it."""
    return report.version(site.framework) if site.framework else None


def _of_this_job(match: MessageMatch, files: list[str], report: CrashReport) -> Iterator[Site]:
    """Give the sites that can have told it: of a version that fits, and where the calls led.

    What is told without its calls is a package's that the job shows, or nobody else's.
    """
    shown = {found.name for found in report.frameworks}
    is_only = len({site.package for site in match.sites}) == 1
    for site in match.sites:
        if not fits(version_of(site, report), site.versions):
            continue
        if not files or not site.file.endswith(".py") or site.kind == "log":
            if is_only or site.framework in shown:
                yield site
        elif site.symbol.startswith(f"{site.exception}.") or any(
            file == site.file or file.endswith(f"/{site.file}") for file in files
        ):
            yield site
