"""The lines of the log that an answer shows: what it rests on, and the events in their order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice, takewhile

from corpus.library import Library
from corpus.schema import Language
from ingest.logs.events import Event
from ingest.logs.lines import parse_line
from ingest.logs.report import CrashReport
from ingest.logs.stacks.stack import EXCEPTION
from service.composition.phrases import phrase
from service.schemas.diagnosis import CascadeEntry, Evidence, EvidenceRole
from service.scoring.assessment import Assessment

MAX_EVIDENCE = 8
MAX_CASCADE = 12
MAX_RANKS = 64
# Rows of a message that are shown below its first.
MAX_BELOW = 3
# A row that belongs to a line above it: indented, or an item of a list.
ANNOUNCED = re.compile(r"(?:\s+(?:[-*•] )?|[-*•] )(?P<row>\S.*)")


def kindred_events(assessment: Assessment, library: Library) -> list[Event]:
    """Give the standing events besides the root that speak of the named cause or of what it explains."""
    if not assessment.candidates:
        return []
    named = assessment.candidates[0].cause
    causes = {named, *library.causes[named].explains}
    standing = assessment.report.standing
    return [event for event in standing if event.role != "root" and event.cause in causes]


def evidence_of(assessment: Assessment, library: Library, language: Language) -> tuple[Evidence, ...]:
    """Give the root's line, those of the same cause, then what followed; the most telling first."""
    report = assessment.report
    root = report.root
    if root is None:
        return ()
    same = [event for event in kindred_events(assessment, library) if event.line != root.line]
    others = [event for event in report.standing if event.line != root.line and event not in same]
    origins = [event for event in others if event.pattern_role == "origin"]
    rest = [event for event in others if event.pattern_role != "origin"]

    def line(event: Event, role: EvidenceRole, why: str) -> Evidence:
        place = report.place(event.line)
        said = phrase(why, language)
        return Evidence(line=place.line, text=event.text, role=role, why=said, file=place.file or None)

    found = [line(root, "root", "root").model_copy(update={"below": announced_rows(root, report, MAX_BELOW)})]
    found += [line(event, "context", "same") for event in same[:3]]
    found += [line(event, "collateral", "after") for event in (*origins[:3], *rest)]
    return tuple(found[:MAX_EVIDENCE])


def announced_rows(root: Event, report: CrashReport, most: int) -> tuple[str, ...]:
    """Give so many of the rows below a failing line that ends in a colon, without their bullets.

    They are further in than it, but for those of an exception whose message begins with an empty row.
    """
    said = root.body.rstrip()
    if not said.endswith((":", "：")):
        return ()
    if (bare := EXCEPTION.fullmatch(said)) is not None and not bare["message"]:
        return tuple(islice(filter(None, map(str.strip, root.rest.split("\n"))), most))
    below = range(root.line + 1, root.line + 1 + most)
    rows = (parse_line(report.texts.get(line, "").encode(), line).body for line in below)
    found = takewhile(bool, map(ANNOUNCED.match, rows))
    return tuple(match["row"].strip() for match in found if match is not None)


def cascade_of(report: CrashReport) -> tuple[CascadeEntry, ...]:
    """Give the events in the order of their first lines; of too many, those that weigh most."""
    events: Sequence[Event] = report.events
    if len(events) > MAX_CASCADE:
        ranked = sorted(
            events,
            key=lambda event: (event.role != "root", tuple(-part for part in event.weight), event.line),
        )
        chosen = {id(event) for event in ranked[:MAX_CASCADE]}
        events = [event for event in events if id(event) in chosen]
    return tuple(_entry(event, report) for event in events)


def _entry(event: Event, report: CrashReport) -> CascadeEntry:
    place = report.place(event.line)
    return CascadeEntry(
        line=place.line,
        time=event.time or None,
        source=event.source,
        event=event.body[:300],
        role=event.role,
        count=event.count,
        file=place.file or None,
        missing_ranks=event.missing[:MAX_RANKS],
        silent_ranks=event.silent[:MAX_RANKS],
        earlier_run=event.earlier_run,
    )
