"""The CrashReport: all that is known of one job's failure from its own output, redacted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from corpus.frameworks import known_frameworks
from ingest.logs import phases
from ingest.logs.checkpoints import Checkpoint
from ingest.logs.conditions import ReportView
from ingest.logs.configs.launch import Setting
from ingest.logs.curves import LoggedCurve
from ingest.logs.events import Event, masked
from ingest.logs.facts import Fact
from ingest.logs.frameworks import Framework, dated_versions
from ingest.logs.progress import UNSEEN, LogEnd
from ingest.logs.timeline import Place, Timeline
from ingest.source_code.failing_source import FailingSource

# Reasons in `omitted` for which a log was not read to its end.
_ENDLESS = frozenset(
    {"damaged_archive", "hole_at_end", "unread", "read_error", "beyond_limit", "still_growing"}
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much was read, and what was left out and why."""

    bytes: int
    lines: int
    truncated: bool = False
    omitted: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def cut(self) -> bool:
        """Tell whether the end of a log was not seen.

        Its archive is cut, its disk failed, or it is larger than is read.

        What such a log does not say proves nothing.
        """
        return not _ENDLESS.isdisjoint(self.omitted)


@dataclass(frozen=True)
class CrashReport:
    """What a job's output tells. All texts in it are redacted.

    Lines are 1-based numbers of the source; of several files they count on, and `place` leads back.
    `surroundings` are the rows around the root's line, `nearby` those around the other failures. `seen`
    holds the ids of the patterns that matched and speak of no failure; `novel` the last lines that a healthy
    run, where one was given, has none like; `has_begun` tells that steps were counted before the failure and
    since the last start; `run_starts` are the lines that further runs begin with in a file whose earlier ones
    failed; `checkpoint` is the last one that is known to be whole; `command` the line and text of the command
    that started the job, where the log shows it; `launches` the job's own files, each with its name in the
    last line; `is_whole` tells that every line that is not blank is held; `failing_source` is what the code
    on the machine says of the root's calls, where it was to be read; `curves` are the numbers
    that were printed or logged over steps, those that went wrong first; `last_words` are the rows that the
    root's silent ranks printed last.
    """

    source: str
    events: tuple[Event, ...]
    root: Event | None
    facts: tuple[Fact, ...]
    frameworks: tuple[Framework, ...]
    settings: tuple[Setting, ...]
    limits: Limits
    finished: int = 0
    log_end: LogEnd = UNSEEN
    marks: int = 0
    last_step: float | None = None
    checkpoint: Checkpoint | None = None
    saved_n: int = 0
    has_begun: bool = False
    marked_phase: str = ""
    surroundings: tuple[tuple[int, str], ...] = ()
    tail: tuple[tuple[int, str], ...] = ()
    redactions: int = 0
    seen: frozenset[str] = frozenset()
    timeline: Timeline = field(default_factory=Timeline)
    novel: tuple[tuple[int, str], ...] = ()
    command: tuple[int, str] = (0, "")
    launches: tuple[str, ...] = ()
    nearby: tuple[tuple[int, str], ...] = ()
    is_whole: bool = False
    failing_source: FailingSource = field(default_factory=FailingSource)
    curves: tuple[LoggedCurve, ...] = ()
    run_starts: tuple[int, ...] = ()
    last_words: tuple[tuple[int, str], ...] = ()

    @property
    def standing(self) -> tuple[Event, ...]:
        """Events that were not recovered from."""
        return tuple(event for event in self.events if event.role in ("root", "collateral"))

    @cached_property
    def survived(self) -> tuple[Event, ...]:
        """Errors that the run seems to have gone on after."""
        return tuple(event for event in self.events if event.role == "recovered" and event.kind == "error")

    @cached_property
    def texts(self) -> Mapping[int, str]:
        """Every line that the report holds, by its number."""
        texts = dict([*self.nearby, *self.surroundings, *self.tail, *self.novel])
        return texts | {event.line: event.text for event in reversed(self.events)}

    def blank_between(self, above: int, below: int) -> bool:
        """Tell whether all lines between two are known to be blank."""
        return self.is_whole and not any(number in self.texts for number in range(above + 1, below))

    def led_by(self, lines: Sequence[int]) -> CrashReport:
        """Give the report with the first standing failure that one of these lines tells of as the root.

        Where they tell of none, one that the run seemed to have survived. Without any of them it stays as it
        is.
        """
        told = (
            event
            for failed in (self.standing, self.survived)
            for line in lines
            for event in failed
            if line in (event.line, event.last, event.traceback)
        )
        first = next(told, None)
        if first is None or first is self.root:
            return self
        root = replace(first, role="root")
        rest = [replace(event, role="collateral") if event.role == "root" else event for event in self.events]
        others = [event for event in rest if event is not first]
        return replace(self, root=root, events=tuple(sorted([root, *others], key=lambda event: event.line)))

    def place(self, line: int) -> Place:
        """Give the file and the line in it."""
        return self.timeline.place(line)

    @cached_property
    def phase(self) -> str:
        """Name what the job was doing when it failed, or give the empty string."""
        # A line without a traceback (a killed worker's, say) is told by the caller's, which follows.
        events = [self.root, *self.standing] if self.root else []
        frames = next((event.frames for event in events if event.frames), ())
        return phases.of_frames(frames, has_begun=self.has_begun) or self.marked_phase

    @cached_property
    def fingerprint(self) -> str:
        """Give a hash that is equal for crashes of the same kind, whatever ids, numbers and paths differ."""
        if self.root is None:
            return ""
        calls = [frame.function for frame in self.root.frames[-3:]]
        parts = [self.root.pattern, self.root.exception, masked(self.root.body), *calls]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def view(self) -> ReportView:
        """Give what signatures are evaluated against: one that remembers which conditions hold."""
        return self._view

    def view_with(self, settings: Sequence[Setting]) -> ReportView:
        """Give what conditions are held against that ask for the settings of the job's files as well.

        What code says of itself is left out: nobody knows whether the run has read it.
        """
        given = tuple(item for item in settings if not item.line and item.spelled != "dump")
        return replace(self._view, settings=(*self.settings, *given)) if given else self._view

    @cached_property
    def _view(self) -> ReportView:
        return ReportView(
            self.standing,
            self.root,
            self.facts,
            self.frameworks,
            self.settings,
            self.phase,
            self.seen,
            launches=self.launches,
            command=self.command[1],
            dated=self._dated,
            raised=self.failing_source.raised,
            has_begun=self.has_begun,
            has_saved=self.checkpoint is not None,
        )

    def version(self, framework: str) -> str | None:
        """Give the version of a framework as the log prints it."""
        return next(
            (found.version for found in self.frameworks if found.name == framework and found.version), None
        )

    def dated(self, framework: str) -> str:
        """Give the versions of a framework that its own words leave open; the empty string where all.

        Of one that another of the job's frameworks was made from, the release that was taken.
        """
        if self.version(framework) is not None:
            return ""
        rows = (known_frameworks().row(found.name) for found in self.frameworks)
        taken = next((row.at_release for row in rows if row.at_release and framework in row.extends), "")
        return f"=={taken}" if taken else self._dated.get(framework, "")

    @cached_property
    def _dated(self) -> Mapping[str, str]:
        frames = dict.fromkeys(frame for event in self.events for frame in event.frames)
        return dated_versions(tuple(dict.fromkeys(self.texts.values())), frames)
