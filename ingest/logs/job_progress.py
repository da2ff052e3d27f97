"""How far a job came: its files, its clocks, the steps that it counted and the phases that it told."""

from __future__ import annotations

import re
from collections.abc import Mapping

from corpus.log_patterns import Pattern
from ingest.logs.cascade import Progress, ProgressMark, Settling
from ingest.logs.facts import Value
from ingest.logs.lines import Line
from ingest.logs.phases import Phases
from ingest.logs.scanner import Tally
from ingest.logs.timeline import Timeline
from ingest.logs.wording import counts_part

# A progress bar: what it counts need not be training steps.
_BAR = re.compile(r"\d%\|")


class JobProgress:
    """What the lines of a job tell of how far it came, file by file.

    `size` counts bytes and `lines` lines of the files that were read to their end.
    """

    def __init__(self) -> None:
        self.timeline = Timeline()
        self.runs: list[Progress] = []
        self.phases = Phases()
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

    def end(self, tally: Tally, first_failure: int | None) -> None:
        """End a file; `first_failure` is the number of the first line in it that fails."""
        self.timeline.end(tally.lines)
        if self.timeline.has_parts:
            self.runs[-1].trim(first_failure)
        self.size += tally.size
        self.lines += tally.lines

    def close(self, number: int, *, finished: bool) -> None:
        """Note a line that tells of an end, good or not said."""
        self.runs[-1].close(number, finished=finished)

    def excuse(self, row: Pattern, line: Line) -> None:
        """Note a line that only who survived a failure prints, or who was told to end."""
        if row.settles:
            settling = Settling(line.number, line.source, row.settles, row.settles_within)
            self.runs[-1].settling.append(settling)
        if row.asked:
            self.runs[-1].ask(line.number)

    def enter(self, phase: str, number: int) -> None:
        """Note a line that tells a phase."""
        self.phases.tell(number, phase, self.first)

    def count(self, row: Pattern, line: Line, fields: Mapping[str, Value]) -> None:
        """Note a line that counts steps, or only shows that the job is at work."""
        step = fields.get("step")
        counted = float(step) if isinstance(step, (int, float)) else -1.0
        is_bar = _BAR.search(line.body) is not None
        total = fields.get("total") if row.whole and not counts_part(line.body) else None
        self.runs[-1].add(
            ProgressMark(
                line.number,
                counted,
                f"{row.id} {line.source}",
                float(total) if isinstance(total, (int, float)) else 0.0,
                is_bar,
            )
        )
        self.timeline.mark(counted, line.time)
        if counted >= 0 and not is_bar:
            self.runs[-1].step = counted
            self.timeline.count(line.number, counted)
            self.phases.count(line.number, self.first, counted)

    @property
    def finished(self) -> int:
        """Give the number of the line that tells of a good end; 0 without one."""
        return max(run.finished for run in self.runs)

    @property
    def marks(self) -> int:
        """Give how many lines tell that the job was at work."""
        return sum(run.count for run in self.runs)

    @property
    def counts_steps(self) -> bool:
        """Tell whether any line counted the steps of a training."""
        return any(run.step is not None or run.whole for run in self.runs)

    @property
    def last_step(self) -> float | None:
        """Give the greatest step that any file ends with."""
        return max((run.step for run in self.runs if run.step is not None), default=None)
