"""Evaluate conditions of signatures and refinements against what a log holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
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


def _frame(predicate: Predicate, view: ReportView) -> bool:
    """Hold the expression against the calls; of an event without any, against its message."""
    expression = re.compile(predicate.name)
    for event in view.focused:
        called = (*map(str, event.frames), event.remote) if event.frames else (event.body,)
        if any(expression.search(text) for text in called):
            return True
    return False


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


# Each subject of the grammar, with what tells whether a condition on it holds.
_CHECKS: Mapping[str, Callable[[Predicate, ReportView], bool]] = {
    "pattern": _pattern,
    "root": lambda asked, view: (
        view.root is not None and any(fnmatchcase(name, asked.name) for name in _patterns(view.root))
    ),
    "cause": lambda asked, view: view.root is not None and view.root.cause == asked.name,
    "frame": _frame,
    "exception": lambda asked, view: any(
        re.search(asked.name, event.exception) for event in view.focused if event.exception
    ),
    "framework": lambda asked, view: any(
        found.name in asked.name.split("|") and fits(found.version or None, asked.value)
        for found in view.frameworks
    ),
    "phase": lambda asked, view: view.phase == asked.name,
    "config": _config,
    "fact": _fact,
    "launch": lambda asked, view: any(re.search(asked.name, text) for text in view.launches),
}
