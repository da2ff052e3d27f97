"""Where the frameworks' own sources tell what the log's failures say: the link behind a line."""

from __future__ import annotations

from corpus.keys import last_level
from corpus.library import Library
from service.composition.message_forms import FormedMessage
from service.schemas.source_places import ReadStatement, SourcePlace
from service.scoring.assessment import Assessment

MAX_SETTINGS = 4


def source_places(
    assessment: Assessment, library: Library, message: FormedMessage | None = None
) -> tuple[SourcePlace, ...]:
    """Give the places of the root and of the other failures, the root's first.

    Where the root's message is of a form that any program has, its place in a source tells nothing; nor does
    that of another release, or of a package whose words it may share by chance.
    """
    found = []
    for item in assessment.sites:
        if not item.is_sure or (item.is_root and message is not None and not message.form.linked):
            continue
        place, site = assessment.report.place(item.line), item.site
        # What no framework knows as a setting is a variable of its function, which tells a reader nothing.
        settings = [name for name in site.names if library.is_setting(name.rpartition(".")[2])]
        found.append(
            SourcePlace(
                line=place.line,
                file=place.file or None,
                package=site.package,
                versions=site.versions,
                version=item.version,
                path=site.file,
                source_line=site.lines[item.version],
                symbol=site.symbol,
                exception=site.exception,
                settings=tuple(settings[:MAX_SETTINGS]),
                url=site.address(item.version) or None,
            )
        )
    return tuple(found)


def read_statements(assessment: Assessment, library: Library) -> tuple[ReadStatement, ...]:
    """Give what the code on the machine says of the root's calls, the failing one first."""
    root = assessment.report.root
    place = assessment.report.place(root.line) if root is not None else None
    if place is None:
        return ()
    given = {last_level(item.key) for item in assessment.settings}
    found = []
    for item in assessment.report.failing_source.frames:
        read, frame = item.statement, item.frame
        named = (name.rpartition(".")[2] for name in read.names) if read is not None else ()
        settings = dict.fromkeys(name for name in named if name in given or library.is_setting(name))
        found.append(
            ReadStatement(
                line=place.line,
                file=place.file or None,
                path=frame.file,
                source_line=frame.line,
                symbol=frame.function,
                standing=item.standing,
                statement=read.statement if read is not None else "",
                conditions=tuple(each.text for each in read.conditions) if read is not None else (),
                settings=tuple(settings)[:MAX_SETTINGS],
            )
        )
    return tuple(found)
