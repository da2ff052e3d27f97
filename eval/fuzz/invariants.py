"""Invariants of a CrashReport: line numbers exist, texts are printable, roles are consistent."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise

from ingest.logs.lines import printable
from ingest.logs.report import CrashReport


def violations(report: CrashReport) -> list[str]:
    """Give a sentence for each violated invariant; empty where all hold."""
    last = report.limits.lines
    found = [
        f"{what} is line {number} of {last}" for what, number in _numbers(report) if not 1 <= number <= last
    ]
    found += [f"not to be shown: {text!r}" for text in _texts(report) if printable(text) != text]
    return found + list(_roles(report)) + list(_order(report))


def _numbers(report: CrashReport) -> Iterator[tuple[str, int]]:
    for event in report.events:
        yield f"the first {event.pattern}", event.line
        yield f"the last {event.pattern}", event.last
        yield f"the traceback of {event.pattern}", event.traceback or 1
    yield from ((f"the fact {fact.kind}", fact.line or 1) for fact in report.facts)
    yield from ((f"the setting {setting.key}", setting.line or 1) for setting in report.settings)
    yield from ((f"the framework {framework.name}", framework.line or 1) for framework in report.frameworks)
    yield from (("a line around the root", number) for number, _ in report.surroundings)
    yield from (("a line of the tail", number) for number, _ in report.tail)


def _texts(report: CrashReport) -> Iterator[str]:
    for event in report.events:
        yield from (
            event.text,
            event.body,
            event.source,
            event.exception,
            event.remote,
            event.time,
            event.rank,
        )
        yield from chain.from_iterable((frame.file, frame.function, frame.code) for frame in event.frames)
    yield from chain.from_iterable((setting.key, setting.value) for setting in report.settings)
    yield from (value for fact in report.facts for value in fact.fields.values() if isinstance(value, str))
    yield from (text for _, text in (*report.surroundings, *report.tail, *report.novel))
    yield from (framework.version or "" for framework in report.frameworks)


def _roles(report: CrashReport) -> Iterator[str]:
    roots = [event for event in report.events if event.role == "root"]
    if roots != ([report.root] if report.root else []):
        yield f"{len(roots)} events are the root, and the report's is {report.root}"
    if report.root is None and report.standing:
        yield "failures stand, and none of them is the root"
    if report.root is not None and report.root not in report.standing:
        yield "the root does not stand"


def _order(report: CrashReport) -> Iterator[str]:
    if any(before.line > after.line for before, after in pairwise(report.events)):
        yield "events are not in the order of their lines"
    yield from (
        f"{event.pattern} has {event.count} lines up to {event.last}"
        for event in report.events
        if event.count < 1 or event.last < event.line
    )
