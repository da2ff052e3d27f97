"""Where the sources of a job's packages say what a line says, in words for a model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corpus.message import Message
from corpus.message_atlas import Site, shipped
from ingest.logs.lines import message_of
from ingest.logs.report import CrashReport
from service.remediation.framework_relations import shown_frameworks

# Messages of a line, and places that say the same.
SOURCES = 3
_PACKAGE = re.compile(r"/(?:site|dist)-packages/(\w+)")


def source_places(number: int, row: str, report: CrashReport) -> tuple[int, tuple[Message, ...]]:
    """Give how many places say a line, and each with its package, versions and settings.

    Packages that the job shows come alone where one of them says it; which were searched is told first.
    """
    event = next((event for event in report.events if number in (event.line, event.last)), None)
    said = event.body if event is not None else message_of(row)
    files = [frame.file.replace("\\", "/") for frame in event.frames] if event is not None else []
    shown = {*shown_frameworks(report), *(_normal(name) for name in _packages(report))}
    every = [site for match in shipped().look_up(said, files)[:SOURCES] for site in match.sites]
    own = [site for site in every if {site.framework, _normal(site.package)} & shown]
    told = [_site(site) for site in (own or every)[:SOURCES]]
    searched = Message("tools.searched", names=", ".join(sorted(shown)) or Message("tools.no-framework"))
    others = (Message("tools.said-by-others"),) if told and not own else ()
    return len(told), (searched, *others, *(told or (Message("tools.no-source"),)))


def _site(site: Site) -> Message:
    return Message(
        "tools.site",
        package=site.package,
        versions=site.versions or Message("tools.every-version"),
        file=site.file,
        symbol=site.symbol,
        raised=site.exception or Message("tools.logged"),
        names=", ".join(site.names) or Message("tools.no-setting"),
    )


def _packages(report: CrashReport) -> Iterator[str]:
    """Yield the packages that the stacks of what failed went through."""
    for frame in (frame for event in report.standing for frame in event.frames):
        if found := _PACKAGE.search(frame.file.replace("\\", "/")):
            yield found[1]


def _normal(package: str) -> str:
    return package.lower().replace("_", "-")
