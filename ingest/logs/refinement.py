"""What a whole log adds to its events: causes that are more exact than their patterns' own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from corpus.log_patterns import PatternTable
from corpus.outcomes import load as load_endings
from corpus.outcomes import told_signal
from corpus.schema import Strength
from ingest.logs.conditions import ReportView, all_hold
from ingest.logs.configs.launch import Setting
from ingest.logs.derived_facts import DERIVED
from ingest.logs.events import Event
from ingest.logs.facts import Fact
from ingest.logs.report import CrashReport
from ingest.logs.stacks.exception_classifier import classify_exception
from ingest.logs.stacks.own_calls import own_call
from ingest.logs.stacks.stack import Frame

# How long a message is that two failures hardly have in common by chance.
TELLING = 24
# How much of a message makes it the same as one that a line above quotes.
LEAST_ECHO = 40
# What a condition on the job's own files begins with.
_OF_FILES = re.compile("launch:|guard:|handed:|started:")
# The kind of fact that tells how a process ended: its exit code, its signal.
EXIT = "exit"


def refine_events(events: Sequence[Event], job: ReportView, table: PatternTable) -> tuple[Event, ...]:
    """Give the events with the most exact causes that their patterns, or the code that failed, tell."""
    events = _with_calls(events)
    outer = _outer_calls(events)
    # Facts of other lines belong to other events; what was derived belongs to the whole log.
    stated: dict[int, dict[int, Fact]] = {}
    for place, fact in enumerate(job.facts):
        stated.setdefault(0 if fact.kind in DERIVED else fact.line, {})[place] = fact
    refined = []
    for event in events:
        told = {**stated.get(event.line, {}), **stated.get(0, {})}
        facts = [told[place] for place in sorted(told)]
        refined.append(refine_event(event, job, facts, table, outer.get(id(event), ())))
    refined = [_as_told_above(event, refined) for event in refined]
    return tuple(
        replace(exact, handled=True) if id(event) in outer else exact
        for event, exact in zip(events, refined, strict=True)
    )


def _as_told_above(event: Event, events: Sequence[Event]) -> Event:
    """Give an exception that says in a program's own words no more than a line above as that line means it.

    So it is where the line only reports that something else failed, such as an engine that says it is dead.
    """
    message = event.body.partition(": ")[2][:LEAST_ECHO]
    if event.handler != "unknown-exception" or len(message) < LEAST_ECHO:
        return event
    above = (other for other in events if other.line < event.line and message in other.body)
    told = next((other for other in above if other.handler is None and other.pattern_role == "wrapper"), None)
    if told is None or told.cause is None:
        return event
    return replace(
        event, cause=told.cause, strength=told.strength, pattern_role="wrapper", default_cause=None
    )


def refine_by_files(
    report: CrashReport, table: PatternTable, settings: Sequence[Setting] = ()
) -> CrashReport:
    """Give the report with the cause of its root that the job's own files tell, which are read behind it.

    `settings` are those of the files.
    """
    root = report.root
    row = table.by_id.get(root.pattern) if root is not None else None
    asked = [item for item in row.refine if any(map(_OF_FILES.search, item.when))] if row else []
    if root is None or not asked:
        return report
    shown = report.view()
    view = replace(shown, root=root, focus=root, settings=(*settings, *shown.settings))
    exact = next((item for item in asked if all_hold(item.when, view)), None)
    if exact is None:
        return report
    told = replace(root, cause=exact.cause, strength=exact.strength or root.strength, outright=False)
    return replace(
        report, root=told, events=tuple(told if event is root else event for event in report.events)
    )


def _with_calls(events: Sequence[Event]) -> Sequence[Event]:
    """Give a logger's line about an exception the calls that the exception's own traceback shows below.

    A script's handler logs what it caught and prints or raises it again, so that the first line of a failure
    is one without its calls. Calls of packages alone add nothing to what their message says.
    """
    shown = [event for event in events if event.exception and own_call(event.frames)]
    return [
        event if event.frames or event.pattern_role != "origin" else _called(event, shown) for event in events
    ]


def _called(event: Event, shown: Sequence[Event]) -> Event:
    for other in shown:
        message = other.body.partition(": ")[2]
        is_same = other.pattern == event.pattern and other.source == event.source
        if (
            is_same
            and other.traceback > event.line
            and len(message) >= TELLING
            and event.body.endswith(message)
        ):
            return replace(event, frames=other.frames, exception=other.exception)
    return event


def refine_event(
    event: Event, job: ReportView, facts: Sequence[Fact], table: PatternTable, outer: Sequence[Frame] = ()
) -> Event:
    """Refine one event.

    `facts` are those that belong to it; `outer` are the calls of the exceptions that came of its own.
    """
    row = table.by_id.get(event.pattern)
    if row and row.refine:
        # Whom a handled exception's call was made for shows in the calls of what came of it.
        whole = replace(event, frames=(*outer, *event.frames)) if event.frames else event
        view = replace(job, root=event, facts=facts, focus=whole)
        exact = next((refinement for refinement in row.refine if all_hold(refinement.when, view)), None)
        if exact:
            event = replace(
                event,
                cause=exact.cause,
                strength=exact.strength or event.strength,
                pattern_role=exact.role or event.pattern_role,
                outright=event.outright and exact.cause == row.cause,
            )
    if row and row.fact == EXIT:
        event = _from_outside(event)
    in_plain_words = event.pattern in table.last_resort
    told = classify_exception(event, table.exceptions, outer, in_plain_words=in_plain_words)
    if in_plain_words and told.cause != event.cause:
        # What only said that something failed says what: it is no mere echo.
        return replace(told, pattern_role="origin")
    return told


def _from_outside(event: Event) -> Event:
    """Let a signal that no process of a job sends to another stand by itself: it follows no failure.

    A launcher sends SIGTERM to the others once one has failed; a terminal's SIGHUP comes of nothing here.
    """
    name = told_signal(event.facts)
    row = load_endings().of_signal(name) if name else None
    if row is None or not row.outside or row.cause is None:
        return event
    strength: Strength = "states" if row.proof == "established" else "suggests"
    return replace(event, cause=row.cause, strength=strength, pattern_role="origin")


def _outer_calls(events: Sequence[Event]) -> dict[int, tuple[Frame, ...]]:
    """Give for each event whose exception was handled the calls of those that came of it, by its identity.

    Python shows of an exception that was handled only the calls down from where that was done: the calls up
    to there stand in the last one of the chain.
    """
    found: dict[int, tuple[Frame, ...]] = {}
    latest: dict[str, Event] = {}
    for event in sorted(events, key=lambda event: event.traceback, reverse=True):
        after = latest.get(event.source) if event.traceback else None
        if after is not None and after.linked and event.line < after.traceback:
            found[id(event)] = (*found.get(id(after), ()), *after.frames)
        if event.traceback:
            latest[event.source] = event
    return found
