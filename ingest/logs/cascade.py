"""Who failed first: give every event its role, and name the root.

The rules in their order: what progress followed was recovered from; what as a rule follows another failure is
collateral while an earlier candidate stands; the specific beats the generic.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Literal, NamedTuple

from ingest.logs.events import CascadeRole, Event
from ingest.logs.stacks.stack import EXCEPTION
from ingest.logs.survival import is_survived, names_in
from ingest.logs.timeline import Timeline


@dataclass(frozen=True, slots=True)
class ProgressMark:
    """A line that tells of progress; `step` is -1 where it counts nothing.

    Marks of one `series` (one kind of line of one process) count the same thing. `total` is where the count
    ends, 0 where the line does not say it; a bar's count may be of anything.
    """

    line: int
    step: float
    series: str = ""
    total: float = 0.0
    is_bar: bool = False


class Settling(NamedTuple):
    """A line that only who survived failures of these `patterns` (with `*`) prints.

    It tells of those that its own stream said within so many lines above it; of any where `within` is 0.
    """

    line: int
    source: str
    patterns: tuple[str, ...]
    within: int = 0

    def tells_of(self, event: Event) -> bool:
        """Tell whether the failure is one of those."""
        away = self.line - event.last
        return (
            0 < away <= (self.within or away)
            and event.source == self.source
            and event.kind == "error"
            and any(fnmatchcase(event.pattern, name) for name in self.patterns)
        )


@dataclass
class Progress:
    """Marks of progress: how many, the latest ones, and where the run said that it was done.

    `step` is the last training step that the run itself counted; a progress bar may count anything.
    `finished` is where it said that it was done, `closed` the latest sign of any kind of a good end, `last`
    the latest mark, and `whole` the latest one that counts all of the run's steps, whose greatest total is
    `total`. `settling` are lines that show failures to have been survived. `asked` is where the job was told
    to end, and `obeyed` where it showed that it had; 0 where there is none.
    """

    LATEST = 4096

    count: int = 0
    step: float | None = None
    latest: deque[ProgressMark] = field(default_factory=lambda: deque(maxlen=Progress.LATEST))
    finished: int = 0
    closed: int = 0
    last: ProgressMark | None = None
    whole: ProgressMark | None = None
    total: float = 0.0
    settling: deque[Settling] = field(default_factory=lambda: deque(maxlen=Progress.LATEST))
    asked: int = 0
    obeyed: int = 0
    _last: dict[str, float] = field(default_factory=dict)
    _since: Counter[str] = field(default_factory=Counter)

    def add(self, mark: ProgressMark) -> None:
        """Note a mark; a bar redrawn at the same step is no new progress."""
        self.last = mark
        if mark.total > 1:
            self.whole, self.total = mark, max(self.total, mark.total)
        # Whoever has ended may still evaluate, which bars show; steps of more than the last moment are work.
        if self.closed and not mark.is_bar and len(self._since) < self.LATEST:
            self._since[mark.series] += 1
        if mark.step < 0 or self._last.get(mark.series) != mark.step:
            if len(self._last) < self.LATEST:
                self._last[mark.series] = mark.step
            self.count += 1
            self.latest.append(mark)

    def close(self, line: int, *, finished: bool) -> None:
        """Note a sign of a good end; `finished` where the run itself says that it is done."""
        self.closed = line
        self._since.clear()
        if finished:
            self.finished = line
        # What stands far below belongs to another run of the same file.
        if self.asked and not self.obeyed and line - self.asked < LAST_WORDS:
            self.obeyed = line

    def ask(self, line: int) -> None:
        """Note that the job was told to end, by the first line that says so."""
        if not self.asked or self.obeyed or line - self.asked >= LAST_WORDS:
            self.asked, self.obeyed = line, 0

    def ends_as_asked(self, event: Event) -> bool:
        """Tell whether an event is of the end that the job was asked for and came to in good order.

        A signal to all processes of a group reaches them in any order.
        """
        first = self.asked - (TOGETHER if event.kind == "kill" else 0)
        return self.obeyed > 0 and first < event.line < self.obeyed + TOGETHER

    @property
    def well_ended(self) -> int:
        """The line of the latest sign of a good end; 0 where there is none, or work went on behind it."""
        return self.closed if max(self._since.values(), default=0) <= IN_FLIGHT else 0

    def reached(self, last_line: int) -> ProgressMark | None:
        """Give the mark of the last of all steps, if the text ends behind it."""
        whole = self.whole
        is_last = (
            whole is not None
            and whole.step >= whole.total == self.total
            and last_line - whole.line < LAST_WORDS
        )
        return whole if is_last else None

    def trim(self, line: int | None) -> None:
        """Keep only the marks that can tell whether work went on after a line.

        All go where nothing failed.
        """
        kept = [] if line is None else [mark for mark in self.latest if mark.line > line]
        self.latest = deque(kept, maxlen=self.LATEST)
        self._last.clear()

    def goes_on_after(self, line: int, end_counts: bool = True) -> bool:
        """Tell whether work went on after a line.

        The run ended well, or a count rose, or more than a few marks.

        One mark may have been in flight when the failure came, so a single one proves nothing. The good end
        counts where `end_counts`: a script may praise itself whatever became of its job.
        """
        if end_counts and self.finished > line:
            return True
        first: dict[str, float] = {}
        plain = 0
        for mark in reversed(self.latest):
            if mark.line <= line:
                break
            plain += mark.step < 0
            if plain > IN_FLIGHT or 0 <= mark.step < first.setdefault(mark.series, mark.step):
                return True
        return False


@dataclass(frozen=True, slots=True)
class LogEnd:
    """How a text ends, as far as no failure says it.

    `closed`: it shows a good end, at `line`. `open`: the job works on until the last lines, the last sign of
    it at `line`. `unseen`: neither. `step` and `total` are those of the last step, where the text counts
    them.
    """

    kind: Literal["closed", "open", "unseen"] = "unseen"
    line: int = 0
    step: float | None = None
    total: float | None = None


UNSEEN = LogEnd()


def log_end(runs: Sequence[Progress], timeline: Timeline) -> LogEnd:
    """Tell how the job's text ends: one part's good end is the job's, as one rank speaks for all."""
    last_lines = [part.first + part.lines - 1 for part in timeline.parts]
    told = [run.well_ended for run in runs if run.well_ended]
    steps = [run.step for run in runs if run.step is not None]
    step = max(steps, default=None)
    whole = max((run.total for run in runs if run.total), default=None)
    if told:
        return LogEnd("closed", max(told), step, whole)
    reached = [mark for run, line in zip(runs, last_lines, strict=True) if (mark := run.reached(line))]
    if reached:
        return LogEnd("closed", reached[-1].line, reached[-1].step, reached[-1].total)
    counted = max((run.whole for run in runs if run.whole), key=lambda mark: mark.step, default=None)
    step = max(
        (value for value in (step, counted.step if counted else None) if value is not None), default=None
    )
    marks = [
        (line - run.last.line, run.last.line) for run, line in zip(runs, last_lines, strict=True) if run.last
    ]
    if not marks:
        return UNSEEN
    away, line = min(marks)
    return LogEnd("open" if away < LAST_WORDS else "unseen", line, step, whole)


@dataclass(frozen=True)
class Cascade:
    """The events with their roles, by line; `root` is None where nothing failed."""

    events: tuple[Event, ...]
    root: Event | None


# Of lines that follow a failure, one that tells a cause is worth looking this many lines further for.
CLUE_WORTH = 5
# Functions that keep what a run has made; what a tracker could not take is no result.
_KEEPING = re.compile(r"^_?(?:save|export|upload|push)(?:_\w+)?$|^(?:as|to)_directory$")
_TRACKING = re.compile(r"/(?:wandb|swanlab|mlflow|tensorboard\w*|comet_ml|clearml|trackio)/")
# What came so often while work went on is a remark that comes with each step.
ROUTINE = 10
# How many lines may follow the last sign of work in a text that is said to go on until its end.
LAST_WORDS = 100
# How near each other lines are that several processes print of one signal.
TOGETHER = 10
# Lines without a count that other processes may still print after one has failed.
IN_FLIGHT = 2

# What an event is worth as the root, best first. The same worth goes by place in the log.
_CLEAR, _PLAIN, _HINTED, _FOLLOWED, _PASSED, _REPEATED = range(6)


def arrange_cascade(
    events: Sequence[Event],
    runs: Sequence[Progress],
    timeline: Timeline,
    warnings: Sequence[Event] = (),
    *,
    failed: bool = False,
) -> Cascade:
    """Give each event its role and name the root among the failures that stand; `runs` tells of each part.

    Where the job is known to have `failed`, its own word that it is done undoes no failure; work that went on
    does.
    """
    if failed:
        runs = [replace(run, finished=0, obeyed=0) for run in runs]
    recovered = {
        id(event)
        for event in events
        if _is_recovered(event, runs, timeline)
        or (event.passing and _is_caught(event, events))
        or is_survived(event, events)
    }
    # Once a run has said that it is done, or ends because it was told to, what falls over while it closes is
    # no failure of it.
    closing = {
        id(event)
        for event in events
        if event.pattern_role != "origin" and _is_closing(event, runs[timeline.number(event.line)])
    }
    standing = [event for event in events if id(event) not in recovered | closing]
    root = min(standing, key=partial(_worth, timeline), default=None)
    if root is not None and (
        told := _told_before(root, [event for event in events if id(event) in recovered])
    ):
        recovered.remove(id(told))
        root = told
    root = _killed_after(root, standing) or root
    if root is not None and (missed := _warned_of(root, warnings)):
        root = missed
        events = sorted([*events, root], key=lambda event: event.line)
    if root is None and not any(run.count or run.finished for run in runs):
        # A few pasted lines without any sign of a run: what warns is what was asked about, where it tells a
        # cause or its logger calls it an error.
        telling = (
            event
            for event in warnings
            if event.handler == "error-level" or (event.cause is not None and event.strength != "hints")
        )
        root = min(telling, key=partial(_worth, timeline), default=None)
        events = [*events, root] if root else events
    return _placed(events, root, closing, recovered)


def _placed(
    events: Iterable[Event], root: Event | None, closing: Container[int], recovered: Container[int]
) -> Cascade:
    """Give each event its role; `closing` and `recovered` hold identities."""
    placed: list[Event] = []
    chosen: Event | None = None
    for event in events:
        role: CascadeRole = "collateral"
        if id(event) in closing:
            role = "teardown"
        elif id(event) in recovered:
            role = "recovered"
        placed.append(replace(event, role="root" if event is root else role))
        chosen = placed[-1] if event is root else chosen
    return Cascade(tuple(placed), chosen)


def arrange_worded(
    events: Sequence[Event],
    last_resort: Container[str],
    runs: Sequence[Progress],
    timeline: Timeline,
    *,
    failed: bool = False,
) -> Cascade:
    """Arrange a job's events; patterns of `last_resort` count only where no other failure stands."""
    warnings = [event for event in events if event.kind == "warning"]
    failures = [event for event in events if event.kind != "warning" and event.pattern not in last_resort]
    known = arrange_cascade(failures, runs, timeline, warnings, failed=failed)
    all_failures = [event for event in events if event.kind != "warning"]
    if len(all_failures) == len(failures):
        return known
    worded = arrange_cascade(all_failures, runs, timeline, failed=failed)
    if known.root is None or known.root.handler == "error-level":
        return worded if worded.root else known
    return worded if _tells_why(worded.root, known.root) else known


def _tells_why(worded: Event | None, known: Event) -> bool:
    """Tell whether what a program said in its own words is why it ended, of which `known` only reports.

    A launcher's or scheduler's report of an exit status says nothing of the cause, and stands below it.
    """
    is_report = known.pattern_role != "origin" and known.cause is None and not known.traceback
    return (
        is_report
        and worded is not None
        and worded.line < known.line
        and worded.cause is not None
        and worded.strength != "hints"
    )


def _told_before(root: Event, recovered: Sequence[Event]) -> Event | None:
    """Give what names a failure that itself has no words, though work stands between the two in the text.

    Whoever pastes a log puts the message above it, as a title, or an earlier run that ended alike.
    """
    named = [event for event in recovered if event.cause and event.strength == "states" and not event.usual]
    if root.kind == "kill" and root.strength != "states":
        return next((event for event in named if event.kind == "kill"), None)
    if root.pattern_role == "wrapper" and root.frames and not root.exception:
        return next((event for event in named if event.traceback == 0 and EXCEPTION.match(event.body)), None)
    return None


def _killed_after(root: Event | None, standing: Sequence[Event]) -> Event | None:
    """Give the kill that a job ended by, where the first error is one that its processes said repeatedly.

    Whoever says the same again has lived through it: a task that failed, say, and the next one.
    """
    if (
        root is None
        or root.kind != "error"
        or root.strength == "states"
        or root.count <= max(1, len(root.sources))
    ):
        return None
    kills = (event for event in standing if event.kind == "kill" and event.pattern_role == "origin")
    return next(
        (kill for kill in kills if kill.strength == "states" and kill.cause and root.last < kill.last), None
    )


def _warned_of(root: Event, warnings: Sequence[Event]) -> Event | None:
    """Give the warning above an exception that tells why what it misses is not there.

    They are tied by a name that both have (a module, a library, a file), not by their order alone.
    """
    if not root.traceback or root.strength == "states":
        return None
    names = names_in(root.body)
    told = (
        event
        for event in warnings
        if event.cause and event.last < root.traceback and not names.isdisjoint(names_in(event.body))
    )
    first = next((event for event in told if event.source in ("", root.source)), None)
    return replace(first, kind="error", strength="suggests", pattern_role="origin") if first else None


def _is_closing(event: Event, run: Progress) -> bool:
    return 0 < run.finished < event.line or run.ends_as_asked(event)


def _is_recovered(event: Event, runs: Sequence[Progress], timeline: Timeline) -> bool:
    progress = runs[timeline.number(event.last)]
    # A traceback that states its cause, with no work after it, is not undone by a line that says "done".
    fatal = (
        event.traceback > 0
        and event.cause is not None
        and event.strength != "hints"
        and event.pattern_role == "origin"
    )
    # Nor is what was lost while a model or checkpoint was written, fetched back or sent away: a script that
    # logs it and goes on has none.
    is_writing = any(_KEEPING.match(frame.function) for frame in event.frames)
    loses_results = is_writing and not any(_TRACKING.search(frame.file) for frame in event.frames)
    end_counts = not fatal or (progress.count > 0 and not loses_results)
    if event.usual or event.earlier_run or progress.goes_on_after(event.last, end_counts):
        return True
    if any(line.tells_of(event) for line in progress.settling):
        return True
    # Another file of the job may be the one that says how it ended: a job's output beside its errors.
    if any(run.finished for run in runs if run is not progress) and not timeline.is_last_word(event):
        return True
    # What came again and again, with work going on between, needs only one sign of life after its last time,
    # and none where nothing but a common word speaks of a failure.
    latest = progress.latest[-1].line if progress.latest else 0
    is_routine = event.pattern_role == "wrapper" and event.cause is None and event.count >= ROUTINE
    return event.count > 1 and (latest > event.last or is_routine) and progress.goes_on_after(event.line)


def _is_caught(event: Event, events: Sequence[Event]) -> bool:
    """Tell whether a later traceback of the same process went on from where this one's exception was caught.

    Of an exception that is caught and logged Python shows the calls only from there.
    """
    if not event.traceback or not event.frames or event.handled:
        return False
    began = (event.frames[0].file, event.frames[0].function)
    return any(
        later.source == event.source
        and later.traceback > event.line
        and began in [(frame.file, frame.function) for frame in later.frames[1:]]
        for later in events
    )


def _worth(timeline: Timeline, event: Event) -> tuple[int, float, int]:
    rank, time, line = _ranked(timeline, event)
    # What came of an exception without words of its own has some.
    is_mute = event.handled and event.body == event.exception
    return max(rank, _HINTED) if is_mute else rank, time, line


def _ranked(timeline: Timeline, event: Event) -> tuple[int, float, int]:
    time, line = timeline.order(event)
    if event.pattern_role == "wrapper":
        return _REPEATED, time, line
    if event.passing and not event.traceback and not EXCEPTION.match(event.body):
        return _PASSED, time, line
    if event.pattern_role == "collateral":
        if event.cause and event.strength == "states":
            return _HINTED, time, line
        return _FOLLOWED, time, line + (0 if event.cause else CLUE_WORTH)
    if event.cause and event.strength != "hints":
        return _CLEAR, time, line
    return (_HINTED if event.kind == "warning" else _PLAIN), time, line
