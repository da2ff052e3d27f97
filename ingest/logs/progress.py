"""How far a job came and how its text ends: marks of progress, signs of a good end, runs that begin again."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from ingest.logs.bars import Bars, BarState
from ingest.logs.events import Event
from ingest.logs.rounds import FAREWELL, Closings, EpochCount, Epochs
from ingest.logs.timeline import Timeline

# How many lines may follow the last sign of work in a text that is said to go on until its end, and how
# many a good end.
LAST_WORDS = 100
# Behind the end of a part, such as an evaluation's, so few lines are left where the part was the last one.
LAST_OF_PART = 12
# How near each other lines are that several processes print of one signal.
TOGETHER = 10
# Exit codes of a process that SIGINT or SIGTERM ended, as Python and as a shell write them.
BY_REQUEST = (-2, -15, 130, 143)
# Lines without a count that other processes may still print after one has failed.
IN_FLIGHT = 2


@dataclass(frozen=True, slots=True)
class ProgressMark:
    """A line that tells of progress; `step` is -1 where it counts nothing.

    Marks of one `series` (one kind of line of one process, and of bars one length) count the same thing.
    `total` is where the count ends, 0 where the line does not say it; a bar's count may be of anything.
    """

    line: int
    step: float
    series: str = ""
    total: float = 0.0
    is_bar: bool = False


class SurvivalSign(NamedTuple):
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
    `finished` is where it said that it was done, `closed` the latest sign of any kind of a good end
    and `closed_time` the time of that line, `whole_closed` the latest of all of the work, `own_closed` the
    latest that a framework gives, `ended` the first one of a run that is done behind which
    nothing counts any more, `last` the latest mark, and `whole` the latest one
    that counts all of the run's steps, whose greatest total is `total`. `settling` are lines that show
    failures to have been survived. `asked` is where the job was told to end, and `obeyed` where it showed
    that it had; `died` is where its main program said that it dies of an exception, `part_ended` where a
    part of its work ended well, `worked` where it last printed a result of its work without counting,
    `set_out` where a program last said that its work begins. 0 where there is none. `part` is the furthest
    of several runs, `parts`, that one file says it holds, and `part_begun` its heading. `announced` is how
    many steps the run says first that it will take. `counts_from_zero` tells that the steps of the
    whole begin with 0, so that the last one is one less than their number; `stride` how many of them lie
    between two lines;
    `is_left_open` that the last rows break off what they tell, `is_uncounted` that they count what is far
    from its last.
    """

    LATEST = 4096

    count: int = 0
    step: float | None = None
    latest: deque[ProgressMark] = field(default_factory=lambda: deque(maxlen=Progress.LATEST))
    finished: int = 0
    closed: int = 0
    closed_time: str = ""
    whole_closed: int = 0
    own_closed: int = 0
    ended: int = 0
    last: ProgressMark | None = None
    whole: ProgressMark | None = None
    total: float = 0.0
    settling: deque[SurvivalSign] = field(default_factory=lambda: deque(maxlen=Progress.LATEST))
    asked: int = 0
    obeyed: int = 0
    died: int = 0
    part_ended: int = 0
    worked: int = 0
    set_out: int = 0
    part: int = 0
    parts: int = 0
    part_begun: int = 0
    is_counting: bool = False
    bars: Bars = field(default_factory=Bars)
    epochs: Epochs = field(default_factory=Epochs)
    sweep: Epochs = field(default_factory=lambda: Epochs(Closings(is_strict=True)))
    announced: int = 0
    counts_from_zero: bool = False
    stride: float = 1.0
    is_left_open: bool = False
    is_uncounted: bool = False
    _last: dict[str, float] = field(default_factory=dict)
    _since: Counter[str] = field(default_factory=Counter)
    _again: dict[str, float] = field(default_factory=dict)
    _is_restarted: bool = False
    _counted: ProgressMark | None = None
    _heading: int = -1
    _said: dict[str, int] = field(default_factory=dict)

    def add(self, mark: ProgressMark) -> None:
        """Note a mark; a bar redrawn at the same step is no new progress."""
        self.last = mark
        if mark.total > 1:
            self.whole, self.total = mark, max(self.total, mark.total)
            self.stride = max(1.0, mark.step - self._last.get(mark.series, mark.step))
            self.counts_from_zero = self.counts_from_zero or mark.step == 0
        if mark.step >= 0 and not mark.is_bar:
            self._counted = mark
        self.is_counting = self.is_counting or mark.total > 1 or (mark.step >= 0 and not mark.is_bar)
        # Whoever has ended may still evaluate, which bars show; steps of more than the last moment are work.
        if self.closed and not mark.is_bar and len(self._since) < self.LATEST:
            self._since[mark.series] += 1
            self._see_restart(mark)
        if mark.step < 0 or self._last.get(mark.series) != mark.step:
            if len(self._last) < self.LATEST:
                self._last[mark.series] = mark.step
            self.count += 1
            self.latest.append(mark)

    def _see_restart(self, mark: ProgressMark) -> None:
        """See a count that fell behind the good end and rises again: another run works on."""
        again = self._again.get(mark.series)
        if again is not None and mark.step > again:
            self._is_restarted = True
        elif self._last.get(mark.series, mark.step) > mark.step >= 0:
            self._again[mark.series] = mark.step

    def begin_again(self) -> None:
        """Note that another run of the program begins in the file.

        What an earlier one counted, and how it ended, tells nothing of the end of this one. Bars stay: one
        that stands amid its work may be of a run that goes on beside this one.
        """
        self.whole, self.total, self.counts_from_zero, self.is_counting = None, 0.0, False, False
        self.closed = self.part_ended = 0
        self.epochs = Epochs()
        self.announced, self._counted = 0, None
        for told in (self._said, self._since, self._again):
            told.clear()
        self._is_restarted = False

    def close(
        self, line: int, time: str = "", *, finished: bool, is_part: bool = False, is_own: bool = False
    ) -> None:
        """Note a sign of a good end; `finished` where the run itself says that it is done.

        `is_part` tells that it may be that of a part of the work, `is_own` that a framework says so, and no
        script around it.
        """
        self.closed, self.closed_time = line, time
        self.own_closed = line if is_own else self.own_closed
        self.part_ended = line if is_part else 0
        self.whole_closed = self.whole_closed if is_part else line
        if finished and (not self.ended or self._since):
            self.ended = line
        self._since.clear()
        self._again.clear()
        self._is_restarted = False
        if finished:
            self.finished = line
        # What stands far below belongs to another run of the same file.
        if self.asked and not self.obeyed and line - self.asked < LAST_WORDS:
            self.obeyed = line

    def says_first(self, words: str, line: int) -> bool:
        """Tell whether words that end a run were not said before; if they were, they ended nothing then."""
        before = self._said.get(words)
        if before == line:
            return True
        if len(self._said) < self.LATEST:
            self._said[words] = line
        if before is not None and self.closed == before:
            self.closed = self.part_ended = 0
        return before is None

    def ask(self, line: int) -> None:
        """Note that the job was told to end, by the first line that says so."""
        if not self.asked or self.obeyed or line - self.asked >= LAST_WORDS:
            self.asked, self.obeyed = line, 0

    def obey(self, event: Event) -> None:
        """Note a process that ended by the very signal that asked: no word of a good end need follow."""
        asked = 0 < self.asked <= event.line < self.asked + LAST_WORDS
        if asked and not self.obeyed and event.facts.get("code") in BY_REQUEST:
            self.obeyed = event.line

    def ends_as_asked(self, event: Event) -> bool:
        """Tell whether an event is of the end that the job was asked for and came to in good order.

        A signal to all processes of a group reaches them in any order.
        """
        first = self.asked - (TOGETHER if event.kind == "kill" else 0)
        return self.obeyed > 0 and first <= event.line < self.obeyed + TOGETHER

    @property
    def counted(self) -> Mapping[str, float]:
        """Give how far each series of marks has counted."""
        return {series: step for series, step in self._last.items() if step >= 0}

    def goes_beyond(self, counted: Mapping[str, float]) -> bool:
        """Tell whether something counted on from there; of nothing, whether anything counts."""
        if not counted:
            return bool(self._last)
        return any(self._last.get(series, step) > step for series, step in counted.items())

    def steps_between(self, first: int, last: int) -> int:
        """Count the steps, of the latest ones, that the run told of between two lines."""
        return sum(1 for mark in self.latest if first < mark.line < last and not mark.is_bar)

    @property
    def well_ended(self) -> int:
        """The line of the latest sign of a good end; 0 where there is none, or work went on behind it."""
        is_last = not self._is_restarted and max(self._since.values(), default=0) <= IN_FLIGHT
        return self.closed if is_last else 0

    def went_on(self, last_line: int) -> bool:
        """Tell whether another stage has begun behind the good end: rows far below it, or a bar left amid.

        A program that has ended says little more; who goes on for pages does other work, and whether that
        ended well nobody said.
        """
        begun = max(self.set_out, self.part_begun)
        if self.is_left_open or begun > self.closed or self.bars.is_amid(self.closed, last_line):
            return True
        if self.has_parts_left or self.epochs.begun_behind(self.closed):
            return True
        if self.part_ended and self.epochs.told_behind(self.part_ended):
            return True
        # What ended was a part of what is counted around it, or steps of the whole are counted behind it.
        if self.part_ended and self.is_uncounted:
            return True
        if self.part_ended and self._is_before_last and self.whole and self.whole.line > self.part_ended:
            return True
        return last_line - self.closed > LAST_WORDS

    def reached(self, last_line: int) -> ProgressMark | None:
        """Give the mark of the last of all steps, if the text ends behind it."""
        whole, within = self.whole, LAST_WORDS
        if whole is None and self._is_at_announced:
            whole, within = self._counted, FAREWELL
        elif whole is None or not whole.step + self.counts_from_zero >= whole.total == self.total:
            return None
        is_last = (
            whole is not None
            and last_line - whole.line < within
            and not self.is_left_open
            and not self.has_parts_left
            and max(self.set_out, self.part_begun) < whole.line
            and not self.bars.is_amid(whole.line, last_line)
        )
        return whole if is_last else None

    @property
    def is_short(self) -> bool:
        """Tell whether a count of all steps, or of all epochs, stands before the last one."""
        return self._is_before_last or self.epochs.is_short

    def tell_part(self, line: int, part: int, parts: int) -> None:
        """Note the heading of one of several runs; another number of them begins a count of its own.

        Headings in rows that follow each other are a list of what was.
        """
        self.part = max(part, self.part) if parts == self.parts else part
        self.parts = parts
        self.part_begun = 0 if 0 <= line - self._heading <= 1 else line
        self._heading = line
        self.sweep.tell("", EpochCount(line, part, parts), is_through=None)

    @property
    def has_parts_left(self) -> bool:
        """Tell whether one of several runs is the furthest that was begun, and not the last of them."""
        return self.part < self.parts

    @property
    def is_at_last(self) -> bool:
        """Tell whether a count of all steps, or of all epochs, stands at the last one."""
        return self.is_through or self.epochs.is_at_last or (self.whole is None and self._is_at_announced)

    @property
    def _is_at_announced(self) -> bool:
        return self._counted is not None and self._counted.step == self.announced > 1

    @property
    def is_through(self) -> bool:
        """Tell whether the count of all steps has come to the last one that is told, also in strides."""
        whole, untold = self.whole, max(self.stride - 1, float(self.counts_from_zero))
        return whole is not None and whole.step + untold >= self.total

    @property
    def _is_before_last(self) -> bool:
        return self.whole is not None and self.whole.step < self.total - max(1.0, self.stride - 1)

    def last_round(self, last_line: int) -> EpochCount | None:
        """Give the last of all epochs, or of all runs, if the text ends with what closes it."""
        last = self.epochs.reached(last_line)
        if last is not None and max(self.set_out, self.part_begun) < last.line:
            return last
        last = None if self.is_short else self.sweep.reached(last_line)
        return last if last is not None and self.set_out < last.line else None

    def worked_through(self, last_line: int) -> BarState | None:
        """Give the bar of the main work if the text ends behind it, and no count of all steps is short."""
        if self._is_before_last or self.is_left_open or self.has_parts_left:
            return None
        return self.bars.worked_through(last_line)

    def trim(self, line: int | None) -> None:
        """Keep only the marks that can tell whether work went on after a line.

        All go where nothing failed.
        """
        kept = [] if line is None else [mark for mark in self.latest if mark.line > line]
        self.latest = deque(kept, maxlen=self.LATEST)
        self._last.clear()

    def goes_on_after(self, line: int, end_counts: bool = True, bars_count: bool = True) -> bool:
        """Tell whether work went on after a line.

        The run ended well, or a count rose, or more than a few marks.

        One mark may have been in flight when the failure came, so a single one proves nothing; of a main
        program that has died, the processes that it left still draw their bars. The good end counts where
        `end_counts`: a script may praise itself whatever became of its job. Without `bars_count` bars count
        for nothing where one goes on as if nothing had happened: then other processes write into this log.
        """
        if end_counts and self.finished > line:
            return True
        bars_count = bars_count or not self._bar_continued(line)
        first: dict[str, float] = {}
        plain = 0
        for mark in reversed(self.latest):
            if mark.line <= line:
                break
            if mark.is_bar and (line <= self.died < mark.line or not bars_count):
                continue
            plain += mark.step < 0
            if plain > IN_FLIGHT or 0 <= mark.step < first.setdefault(mark.series, mark.step):
                return True
        return False

    def works_after(self, line: int) -> bool:
        """Tell whether lines behind this one show work of two kinds: loading, mapping, a bar, a step."""
        later = [mark for mark in self.latest if mark.line > line]
        return min(len({mark.series for mark in later}), len({mark.line for mark in later})) > 1

    def _bar_continued(self, line: int) -> bool:
        """Tell whether a bar past its start above a line is first drawn below it at no smaller step."""
        above: dict[str, float] = {}
        below: dict[str, float] = {}
        for mark in self.latest:
            if mark.is_bar and mark.line <= line:
                above[mark.series] = mark.step
            elif mark.is_bar:
                below.setdefault(mark.series, mark.step)
        return any(0 < step <= below.get(series, 0.0) for series, step in above.items())


@dataclass(frozen=True, slots=True)
class LogEnd:
    """How a text ends, as far as no failure says it.

    `closed`: it shows a good end, at `line`. `open`: the job works on until the last lines, the last sign of
    it at `line`. `unseen`: neither. `step` and `total` are those of the last step, where the text counts
    them. `asked` is the line that told the job to end, where it did; 0 where nobody asked.
    """

    kind: Literal["closed", "open", "unseen"] = "unseen"
    line: int = 0
    step: float | None = None
    total: float | None = None
    asked: int = 0


UNSEEN = LogEnd()


def log_end(runs: Sequence[Progress], timeline: Timeline, doubtful: Iterable[int] = ()) -> LogEnd:
    """Tell how the job's text ends: one part's good end is the job's, as one rank speaks for all.

    Behind a `doubtful` line a bar went on, whose process need not be the one that failed there: what says
    that something ended may be the farewell of the dead one, unless that bar came to its end.
    """
    doubts = {timeline.number(line) for line in doubtful}
    last_lines = [part.first + part.lines - 1 for part in timeline.parts]
    told = [
        run.well_ended
        for number, (run, line) in enumerate(zip(runs, last_lines, strict=True))
        if run.well_ended
        and (number not in doubts or run.bars.is_whole)
        and not run.went_on(line)
        and not (run.part_ended and line - run.part_ended > LAST_OF_PART)
    ]
    steps = [run.step for run in runs if run.step is not None]
    step = max(steps, default=None)
    whole = max((run.total for run in runs if run.total), default=None)
    if told:
        return LogEnd("closed", max(told), step, whole)
    reached = [mark for run, line in zip(runs, last_lines, strict=True) if (mark := run.reached(line))]
    if reached:
        return LogEnd("closed", reached[-1].line, reached[-1].step, reached[-1].total)
    through = [bar for run, line in zip(runs, last_lines, strict=True) if (bar := run.worked_through(line))]
    if through:
        return LogEnd("closed", through[-1].line, step if step is not None else through[-1].step, whole)
    last = [
        epoch
        for run, line in zip(runs, last_lines, strict=True)
        if (epoch := run.last_round(line))
        and not (run.is_left_open or run.has_parts_left or run.bars.is_amid(epoch.line, line))
    ]
    if last:
        return LogEnd("closed", last[-1].line, step, whole)
    counted = max((run.whole for run in runs if run.whole), key=lambda mark: mark.step, default=None)
    step = max(
        (value for value in (step, counted.step if counted else None) if value is not None), default=None
    )
    marks = [
        (line - run.last.line, run.last.line) for run, line in zip(runs, last_lines, strict=True) if run.last
    ]
    # Results show only that a program was at work: they count where no line tells how far it came.
    marks = marks or [
        (line - run.worked, run.worked) for run, line in zip(runs, last_lines, strict=True) if run.worked
    ]
    # A good end behind which work goes on is the latest sign of it.
    marks += [
        (line - run.well_ended, run.well_ended)
        for run, line in zip(runs, last_lines, strict=True)
        if run.well_ended
    ]
    if not marks:
        return UNSEEN
    away, line = min(marks)
    asked = max(run.asked if run.obeyed else 0 for run in runs)
    # Who ended well and goes on for pages is at work, though no row of it is known.
    is_open = away < LAST_WORDS or any(run.well_ended for run in runs)
    return LogEnd("open" if is_open else "unseen", line, step, whole, asked)
