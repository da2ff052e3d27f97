"""Evaluate conditions of signatures and refinements against what a log holds."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from corpus.keys import canonical
from corpus.library import fits
from corpus.predicates import Predicate, compare, parse
from ingest.logs.configs.launch import Setting
from ingest.logs.events import Event
from ingest.logs.facts import Fact
from ingest.logs.frameworks import Framework


@dataclass(frozen=True)
class ReportView:
    """What conditions may look at. `events` are the ones that were not recovered from.

    `launches` are the job's own files. With a `focus`, frames and exceptions are that event's alone, while
    patterns are still the whole log's.
    """

    events: Sequence[Event]
    root: Event | None
    facts: Sequence[Fact]
    frameworks: Sequence[Framework]
    settings: Sequence[Setting]
    phase: str = ""
    seen: Collection[str] = ()
    focus: Event | None = None
    launches: Sequence[str] = ()

    @cached_property
    def names(self) -> frozenset[str]:
        """The patterns that any line matched."""
        return frozenset(name for event in self.events for name in _patterns(event)).union(self.seen)

    @property
    def focused(self) -> Sequence[Event]:
        """The events whose tracebacks count: the one in focus, else all."""
        return (self.focus,) if self.focus else self.events


def holds(condition: str, view: ReportView) -> bool:
    """Tell whether one condition holds."""
    predicate = parse(condition)
    return _CHECKS[predicate.subject](predicate, view)


def all_hold(conditions: Sequence[str], view: ReportView) -> bool:
    """Tell whether every condition holds."""
    return all(holds(condition, view) for condition in conditions)


def _patterns(event: Event) -> tuple[str, ...]:
    return (event.pattern, *event.also)


def _pattern(predicate: Predicate, view: ReportView) -> bool:
    if predicate.name in view.names:
        return True
    # Most conditions name a pattern as it is called; only the others need to be matched against each.
    return any(sign in predicate.name for sign in "*?[") and any(
        fnmatchcase(name, predicate.name) for name in view.names
    )


def _root(predicate: Predicate, view: ReportView) -> bool:
    return view.root is not None and any(fnmatchcase(name, predicate.name) for name in _patterns(view.root))


def _cause(predicate: Predicate, view: ReportView) -> bool:
    return view.root is not None and view.root.cause == predicate.name


def _frame(predicate: Predicate, view: ReportView) -> bool:
    expression = re.compile(predicate.name)
    return any(_in_frames(expression, event) for event in view.focused)


def _in_frames(expression: re.Pattern[str], event: Event) -> bool:
    if event.frames:
        return any(expression.search(str(frame)) for frame in event.frames) or bool(
            expression.search(event.remote)
        )
    return bool(expression.search(event.body))


def _exception(predicate: Predicate, view: ReportView) -> bool:
    return any(re.search(predicate.name, event.exception) for event in view.focused if event.exception)


def _framework(predicate: Predicate, view: ReportView) -> bool:
    names = predicate.name.split("|")
    return any(
        found.name in names and fits(found.version or None, predicate.value) for found in view.frameworks
    )


def _phase(predicate: Predicate, view: ReportView) -> bool:
    return view.phase == predicate.name


def _config(predicate: Predicate, view: ReportView) -> bool:
    wanted = canonical(predicate.name)
    for setting in view.settings:
        key = canonical(setting.key)
        if (key == wanted or key.endswith("." + wanted)) and (
            predicate.op is None or compare(setting.value, predicate.op, predicate.value)
        ):
            return True
    return False


def _fact(predicate: Predicate, view: ReportView) -> bool:
    kind, field = predicate.name.split(".", 1)
    assert predicate.op is not None  # noqa: S101 - the grammar has no fact without a comparison
    return any(
        fact.kind == kind
        and field in fact.fields
        and compare(fact.fields[field], predicate.op, predicate.value)
        for fact in view.facts
    )


def _launch(predicate: Predicate, view: ReportView) -> bool:
    expression = re.compile(predicate.name)
    return any(expression.search(text) for text in view.launches)


_CHECKS = {
    "pattern": _pattern,
    "root": _root,
    "cause": _cause,
    "frame": _frame,
    "exception": _exception,
    "framework": _framework,
    "phase": _phase,
    "config": _config,
    "fact": _fact,
    "launch": _launch,
}
