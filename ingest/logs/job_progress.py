"""How far a job came: its files, its clocks, the steps that it counted and the phases that it told."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from corpus.frameworks import known_frameworks
from corpus.log_patterns import Pattern
from ingest.logs.checkpoints import Checkpoint, checkpoint_of
from ingest.logs.facts import Value
from ingest.logs.last_rows import leave_open, leave_uncounted
from ingest.logs.lines import Line
from ingest.logs.phases import Phases
from ingest.logs.progress import Progress, ProgressMark, SurvivalSign
from ingest.logs.rounds import EpochCount
from ingest.logs.scanner import Tally
from ingest.logs.timeline import Timeline
from ingest.logs.wording import counts_part

# So many of the latest checkpoints are remembered, with the part that told of each.
CHECKPOINTS = 16
# A progress bar: what it counts need not be training steps.
_BAR = re.compile(r"\d%\|")
_KERAS_BAR = re.compile(r"^\s*\d{1,9}/\d{1,9} (?:\[[=>.]{4,}\]|━{4,}|- )")
# The groups of a line that says how much work there will be.
_ANNOUNCED = frozenset({"all_epochs", "all_steps"})
_NUMBER = re.compile(r"\d[\d.,:]*")


class Saving(NamedTuple):
    """A checkpoint, the part that told of it, and how far that had counted by then."""

    made: Checkpoint
    part: int
    counted: Mapping[str, float]


class JobProgress:
    """What the lines of a job tell of how far it came, file by file.

    `size` counts bytes and `lines` lines of the files that were read to their end.
    """

    def __init__(self) -> None:
        self.timeline = Timeline()
        self.runs: list[Progress] = []
        self.phases = Phases()
        self._checkpoints: deque[Saving] = deque(maxlen=CHECKPOINTS)
        self.size = 0
        self.lines = 0

    @property
    def first(self) -> int:
        """Give the number of the first line of the file that is read, when all files are counted on."""
        return self.lines + 1

    def begin(self, name: str) -> None:
        """Begin a file."""
        self.timeline.begin(name, self.first)
        self.runs.append(Progress())

    def end(self, tally: Tally, first_failure: int | None, last: Iterable[tuple[int, bytes]] = ()) -> None:
        """End a file with its `last` rows; `first_failure` is the number of its first line that fails."""
        rows = list(last)
        self.runs[-1].bars.draw_last(rows)
        self.runs[-1].is_left_open = leave_open(rows)
        self.runs[-1].is_uncounted = leave_uncounted(rows)
        self.timeline.end(tally.lines)
        if self.timeline.has_parts:
            self.runs[-1].trim(first_failure)
        self.size += tally.size
        self.lines += tally.lines

    def note_end(self, pattern: Pattern, line: Line) -> None:
        """Note a line that tells of an end, good or not said, of the run or of a part of its work."""
        run = self.runs[-1]
        is_last = not pattern.once or (
            run.says_first(_NUMBER.sub("#", line.body), line.number)
            and not run.is_short
            # What comes behind the first epoch may come behind each.
            and not (pattern.partial and run.epochs.is_first)
        )
        if is_last and (run.is_at_last or not pattern.counted):
            run.close(
                line.number,
                line.time,
                finished=pattern.kind == "finish",
                is_part=pattern.partial or pattern.once,
                is_own=pattern.kind == "finish"
                and not known_frameworks().generic.issuperset(pattern.frameworks),
            )

    def note_survival(self, pattern: Pattern, line: Line) -> None:
        """Note a line that only who survived a failure prints, was told to end, died of one, or sets out."""
        if pattern.settles:
            settling = SurvivalSign(line.number, line.source, pattern.settles, pattern.settles_within)
            self.runs[-1].settling.append(settling)
        if pattern.asked:
            self.runs[-1].ask(line.number)
        if pattern.dies:
            self.runs[-1].died = line.number
        if pattern.sets_out:
            self.runs[-1].set_out = line.number

    def note_work(self, pattern: Pattern, line: Line, fields: Mapping[str, Value]) -> None:
        """Note a line that a program at work prints, such as a result or a checkpoint, which ends nothing.

        Or one that says before the work how much there is of it.
        """
        run, number = self.runs[-1], line.number
        if pattern.kind == "work" or pattern.saves:
            run.worked = number
        part, parts = fields.get("part"), fields.get("parts")
        epoch, epochs = fields.get("epoch"), fields.get("epochs")
        if isinstance(part, int) and isinstance(parts, int):
            run.tell_part(number, part, parts)
        elif pattern.kind == "work" and isinstance(epoch, int) and isinstance(epochs, int):
            # A heading tells of its epoch what it is, and closes it by nothing.
            run.epochs.tell(pattern.id, EpochCount(number, epoch, epochs), is_through=None)
        elif pattern.kind == "work" and not (run.last and run.last.line == number):
            run.epochs.closings.see(number, line.body)
            run.sweep.closings.see(number, line.body)
        for told in pattern.compiled.finditer(line.text) if _ANNOUNCED & fields.keys() else ():
            count = told.groupdict()
            run.epochs.announce(int(count.get("all_epochs") or 0))
            if run.step is None:
                run.announced = max(run.announced, int(count.get("all_steps") or 0))
        if pattern.saves and (made := checkpoint_of(pattern, number, fields)) is not None:
            self._checkpoints.append(Saving(made, len(self.runs) - 1, self.runs[-1].counted))

    @property
    def checkpoint(self) -> Checkpoint | None:
        """Give the last checkpoint that is whole: it was told so, or steps followed that were counted.

        What one library says that it wrote may be a part of what another began, and then that is the whole.
        """
        cut: set[str | int | None] = set()
        for made, part, counted in reversed(self._checkpoints):
            if not made.is_done and not self.runs[part].goes_beyond(counted):
                # What stood there before is written over, and what is of the same step lacks this part.
                cut |= {made.path, made.step} - {"", None}
            elif not {made.path, made.step} & cut:
                begun = (item.made for item in self._checkpoints if not item.made.is_done)
                whole = next((item for item in begun if item.step == made.step), made)
                return made if made.step is None else whole
        return None

    @property
    def saved_n(self) -> int:
        """Count the steps of whose checkpoints the last part tells that they are whole, the latest ones."""
        last = len(self.runs) - 1
        done = (item.made for item in self._checkpoints if item.made.is_done and item.part == last)
        return len({made.step for made in done if made.step is not None})

    def note_phase(self, phase: str, number: int) -> None:
        """Note a line that tells a phase."""
        self.phases.tell(number, phase, self.first)

    def note_step(self, pattern: Pattern, line: Line, fields: Mapping[str, Value]) -> float | None:
        """Note a line that counts steps, or only shows that the job is at work.

        Gives the step, -1 where it tells none; None for a bar, which may count anything.
        """
        step = fields.get("step")
        counted = float(step) if isinstance(step, (int, float)) else -1.0
        is_bar = _BAR.search(line.text) is not None or _KERAS_BAR.search(line.text) is not None
        if is_bar:
            self.runs[-1].bars.draw(line)
        total = fields.get("total") if pattern.whole and not counts_part(line.body) else None
        # Bars of different lengths count different things: as a program dies it draws each once more.
        length = fields.get("total") if is_bar else None
        self.runs[-1].add(
            ProgressMark(
                line.number,
                counted,
                f"{pattern.id} {line.source} {length or ''}".rstrip(),
                float(total) if isinstance(total, (int, float)) else 0.0,
                is_bar,
            )
        )
        epoch, epochs, batches = (fields.get(name) for name in ("epoch", "epochs", "total"))
        rounds = self.runs[-1].epochs
        if isinstance(epoch, int) or (isinstance(epoch, float) and epochs is not None):
            series = f"{pattern.id} {line.source}"
            if counted == 0:
                rounds.from_batch_zero.add(series)
            done = counted + (series in rounds.from_batch_zero)
            is_through = done >= batches if isinstance(batches, int | float) else None
            told = EpochCount(line.number, int(epoch), int(epochs) if isinstance(epochs, int | float) else 0)
            rounds.tell(series, told, is_through=is_through)
            rounds.closings.see(line.number, line.body, is_round=True)
        elif is_bar and isinstance(length, int | float) and not _BAR.search(line.text):
            rounds.closings.see_batch(line.number, line.body, is_through=counted >= length)
        self.timeline.mark(counted, line.time)
        if counted >= 0 and not is_bar:
            self.runs[-1].step = counted
            self.timeline.count(line.number, counted)
            self.phases.count(line.number, self.first, counted)
        return None if is_bar else counted

    @property
    def finished(self) -> int:
        """Give the number of the line that tells of a good end; 0 without one."""
        return max(run.finished for run in self.runs)

    @property
    def marks(self) -> int:
        """Give how many lines tell that the job was at work."""
        return sum(run.count for run in self.runs)

    @property
    def counts_on(self) -> bool:
        """Tell whether the steps of a training are counted, and have not come to their last one."""
        return any(run.is_counting and not run.is_through for run in self.runs)

    @property
    def last_step(self) -> float | None:
        """Give the greatest step that any file ends with."""
        return max((run.step for run in self.runs if run.step is not None), default=None)
