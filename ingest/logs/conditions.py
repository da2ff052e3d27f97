"""Evaluate conditions of signatures, changes and refinements against what a log holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property

from corpus import job_kinds
from corpus.condition_nodes import UNKNOWN, ConditionResult, EvaluationContext
from corpus.conditions import framework_range, parse
from corpus.expressions import compiled
from corpus.frameworks import cued_frameworks
from corpus.job_kinds import JobSigns
from corpus.keys import canonical, last_level
from corpus.library import fits
from corpus.version_ranges import overlap
from ingest.logs.configs.handed_keys import missing_keys, unknown_key
from ingest.logs.configs.launch import Setting
from ingest.logs.events import Event
from ingest.logs.facts import Fact
from ingest.logs.frameworks import Framework
from ingest.logs.stacks.own_calls import own_call
from ingest.logs.stacks.own_names import WHOSE
from ingest.source_code.guarded_statement import GuardedStatement
from ingest.source_code.refused_choice import is_option, refused_choices

# A file of code that a command names, or a statement that it has itself.
_FILE = re.compile(r"\.(?:py|sh|ipynb|sbatch|slurm)\b|\bpython[\d.]*\s+-c\b")
# A shorter text is a value of too much.
_LEAST_CHOICE = 3


@dataclass(frozen=True)
class ReportView(EvaluationContext):
    """What conditions may look at. `events` are the ones that were not recovered from.

    `launches` are the job's own files, `command` the one that started it; `dated` the versions that
    a framework's words leave open; `has_begun` tells that steps were counted, `has_saved` that
    a whole checkpoint is told of. With a `focus`, frames and exceptions are that event's alone, while
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
    command: str = ""
    dated: Mapping[str, str] = field(default_factory=dict)
    raised: GuardedStatement | None = None
    has_begun: bool = False
    has_saved: bool = False

    @cached_property
    def known(self) -> dict[str, bool]:
        """Which conditions hold, of those that were asked: hundreds of cases share theirs."""
        return {}

    @property
    def whole_job(self) -> ReportView:
        """The same without a focus."""
        return replace(self, focus=None) if self.focus else self

    @cached_property
    def job(self) -> frozenset[str]:
        """The kind of the job, or that it is unknown, and its traits (`corpus/job_kinds.yaml`)."""
        traits = (row.name for row in job_kinds.load().traits if _shows(row, self.whole_job))
        return frozenset({self.kind.name if self.kind else job_kinds.UNKNOWN, *traits})

    def can_run(self, text: str) -> bool:
        """Tell whether the job has a use for the commands, files, variables and settings of a text."""
        tools = (tool for tool in job_kinds.load().tools if not tool.serves(self.job))
        return not any(compiled(tool.expression).search(text) for tool in tools)

    def in_its_words(self, text: str) -> str:
        """Give a text without the parts that can go alone and speak of what this job has not."""
        for row in job_kinds.load().phrases:
            if row.instead is not None and not row.serves(self.job):
                text = compiled(row.expression).sub(row.instead, text)
        return text

    @cached_property
    def kind(self) -> JobSigns | None:
        """The first kind of job that the log shows; None where it shows none."""
        return next((row for row in job_kinds.load().kinds if _shows(row, self.whole_job)), None)

    @cached_property
    def names(self) -> frozenset[str]:
        """The patterns that any line matched."""
        return frozenset(name for event in self.events for name in _patterns(event)).union(self.seen)

    @property
    def focused(self) -> Sequence[Event]:
        """The events whose tracebacks count: the one in focus, else all."""
        return (self.focus,) if self.focus else self.events

    @cached_property
    def calls(self) -> Sequence[str]:
        """The calls of the events whose tracebacks count, each once; of an event without any, its message."""
        texts = (
            text
            for event in self.focused
            for text in ((*map(str, event.frames), event.remote) if event.frames else (event.body,))
        )
        return tuple(dict.fromkeys(texts))

    @cached_property
    def stacks(self) -> Sequence[str]:
        """All calls of each traceback of the job, the outermost first."""
        texts = (" ".join(map(str, event.frames)) for event in self.events if event.frames)
        return tuple(dict.fromkeys(texts))

    def look_up(self, name: str) -> ConditionResult:
        """Give the first fact's value of that `kind.field`."""
        kind, _, field = name.partition(".")
        return next(
            (
                ConditionResult(fact.fields[field])
                for fact in self._facts.get(kind, ())
                if field in fact.fields
            ),
            UNKNOWN,
        )

    def test(self, subject: str, argument: str) -> ConditionResult:
        """Tell whether the log shows what a test names."""
        return ConditionResult(_TESTS[subject](argument, self))

    def items(self, part: str) -> Sequence[EvaluationContext] | None:
        """Give a context for each fact of a kind, or for each setting that a `config:` test names."""
        subject, _, key = part.partition(":")
        if not key:
            return [_ItemView(self, part, fact.fields) for fact in self._facts.get(part, ())]
        if subject != "config":
            return None
        return [_ItemView(self, part, {"": setting.value}) for setting in _settings_named(key, self)]

    @cached_property
    def _facts(self) -> Mapping[str, Sequence[Fact]]:
        kinds: dict[str, list[Fact]] = {}
        for fact in self.facts:
            kinds.setdefault(fact.kind, []).append(fact)
        return kinds


@dataclass(frozen=True, slots=True)
class _ItemView(EvaluationContext):
    """A log, with one fact or setting of those that a comparison names."""

    view: EvaluationContext
    part: str
    fields: Mapping[str, object]

    def look_up(self, name: str) -> ConditionResult:
        part, _, field = name.partition(".")
        return ConditionResult(self.fields.get(field)) if part == self.part else self.view.look_up(name)

    def test(self, subject: str, argument: str) -> ConditionResult:
        if f"{subject}:{argument}" == self.part:
            return ConditionResult(self.fields[""])
        return self.view.test(subject, argument)

    def items(self, part: str) -> Sequence[EvaluationContext] | None:
        return None if part == self.part else self.view.items(part)


def holds(condition: str, view: ReportView) -> bool:
    """Tell whether one condition holds; what the log does not tell does not."""
    known = view.known
    found = known.get(condition)
    if found is None:
        found = known[condition] = parse(condition).evaluate(view).holds is True
    return found


def all_hold(conditions: Sequence[str], view: ReportView) -> bool:
    """Tell whether every condition holds."""
    return all(holds(condition, view) for condition in conditions)


def applies(when: Sequence[str], unless: Sequence[str], view: ReportView) -> bool:
    """Tell whether every condition of `when` holds and none of `unless`."""
    return all_hold(when, view) and not any(holds(condition, view) for condition in unless)


def _shows(row: JobSigns, view: ReportView) -> bool:
    return any(holds(sign, view) for sign in row.any) and not any(holds(sign, view) for sign in row.unless)


def _patterns(event: Event) -> tuple[str, ...]:
    return (event.pattern, *event.also)


def _finds(expression: str, texts: Iterable[str]) -> bool:
    search = compiled(expression).search
    return any(search(text) for text in texts)


def _framework(argument: str, view: ReportView) -> bool:
    names, versions = framework_range(argument)
    return any(
        found.name in names
        and fits(found.version or None, versions)
        and (found.version != "" or overlap(versions, view.dated.get(found.name, "")))
        for found in view.frameworks
    )


def _settings_named(name: str, view: ReportView) -> Iterator[Setting]:
    wanted = canonical(name)
    for setting in view.settings:
        key = canonical(setting.key)
        if key == wanted or key.endswith("." + wanted):
            yield setting


def _refuses_choice(view: ReportView) -> bool:
    """Tell whether the root's code refused a choice that the job made: by a setting's name, or its value."""
    raised, root = view.raised, view.root
    names = [refused.name for refused in refused_choices(raised)] if raised is not None else []
    if raised is None or root is None or not names:
        return False
    given = {last_level(item.key): item.value.strip("'\"") for item in view.settings}
    told = {value for value in raised.told(root.body).values() if len(value) >= _LEAST_CHOICE}
    # Where the message tells the value, that decides; a plain word alone may be a field of the data.
    plain = [name for name in names if is_option(name)] if not told else []
    if any(last_level(name) in given for name in plain) or not told.isdisjoint(given.values()):
        return True
    options = "|".join(rf"--{re.escape(last_level(name)).replace('_', '[_-]')}\b" for name in plain)
    values = "|".join(rf"[=\s'\":]{re.escape(value)}(?:['\"\s]|$)" for value in told)
    asked = "|".join(filter(None, (options, values)))
    return bool(asked) and _finds(asked, (*view.launches, view.command))


def _refuses_handed(what: str, view: ReportView) -> bool:
    """Tell whether the root's call refuses a key that a file hands on, or lacks one."""
    root = view.root
    if root is None:
        return False
    message = f"{root.exception}: {root.body}" if root.exception not in root.body else root.body
    found = missing_keys if what == "missing" else unknown_key
    return bool(found(message, root.frames, view.settings))


def _runs_package(_whose: str, view: ReportView) -> bool:
    """Tell whether a known package's own program was started, and nothing of the user's own shows."""
    is_own = any(own_call(event.frames) for event in view.events)
    is_own = is_own or bool(view.launches or _FILE.search(view.command))
    return not is_own and bool(view.command) and bool(cued_frameworks(view.command))


# What tells whether a test by name holds.
_TESTS: Mapping[str, Callable[[str, ReportView], bool]] = {
    # Most conditions name a pattern as it is called; only the others need to be matched against each.
    "pattern": lambda name, view: (
        name in view.names
        or (any(sign in name for sign in "*?[") and any(fnmatchcase(each, name) for each in view.names))
    ),
    "root": lambda name, view: (
        view.root is not None and any(fnmatchcase(each, name) for each in _patterns(view.root))
    ),
    "cause": lambda name, view: view.root is not None and view.root.cause == name,
    "frame": lambda expression, view: _finds(expression, view.calls),
    # The line of source that the innermost call stands in.
    "code": lambda expression, view: _finds(
        expression, (event.frames[-1].code for event in view.focused if event.frames)
    ),
    # Any line of source that the calls of a traceback stand in.
    "source": lambda expression, view: _finds(
        expression, (frame.code for event in view.focused for frame in event.frames)
    ),
    # What the failing lines say: of the one in focus, else of all.
    "message": lambda expression, view: _finds(expression, (event.text for event in view.focused)),
    # Whose is what the failing line misses.
    "missing": lambda whose, view: any(WHOSE[whose](event.body, event.frames) for event in view.focused),
    # What led to the root's raising statement, where its file is at hand.
    "guard": lambda _choice, view: _refuses_choice(view),
    # What the root's call refuses of the keys that a file hands on to it.
    "handed": lambda what, view: _refuses_handed(what, view),
    # Whose program was started, where no code of the user's own shows.
    "started": _runs_package,
    # Whether steps were counted before the failure, and since the last start.
    "counted": lambda _steps, view: view.has_begun,
    # Whether the log tells of a checkpoint that is whole.
    "saved": lambda _checkpoint, view: view.has_saved,
    "stack": lambda expression, view: _finds(expression, view.stacks),
    "exception": lambda expression, view: _finds(
        expression, (event.exception for event in view.focused if event.exception)
    ),
    "framework": _framework,
    "phase": lambda name, view: view.phase == name,
    "config": lambda name, view: any(True for _ in _settings_named(name, view)),
    "job": lambda names, view: not view.job.isdisjoint(names.split("|")),
    "command": lambda expression, view: bool(compiled(expression).search(view.command)),
    "launch": lambda expression, view: _finds(expression, view.launches),
}
