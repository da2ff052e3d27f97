"""What lines that are no failure tell of a job: its frameworks, settings and facts, and how far it came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

from corpus.frameworks import known_frameworks
from corpus.log_patterns import Pattern
from ingest.logs.configs import launch
from ingest.logs.configs.launch import LaunchReader, Setting, SettingLog
from ingest.logs.curves import CurveLog
from ingest.logs.facts import Fact, Value
from ingest.logs.frameworks import FrameworkLog
from ingest.logs.job_progress import JobProgress
from ingest.logs.lines import Line
from ingest.logs.masking import Masking
from ingest.logs.placed_line import PlacedLine
from ingest.logs.stacks.tracebacks import Frame
from ingest.logs.wording import is_statement

MAX_FACTS = 2000
# So many of one kind leave room for others: a thousand ranks begin their communicators before one fails.
MOST_ALIKE = 1200
# The fact that a reading of the host's memory is.
HOST_MEMORY = "host_memory"
# What only a progress line tells: how far the preparation of the data was.
TOLD_BY_PROGRESS = frozenset({"preprocess"})
# The names of facts that tell how many ranks a job has.
WORLD = ("world", "world_n", "nranks")
# How many characters of a launch command are searched for a framework's name.
MAX_COMMAND = 8000


class JobNotes:
    """What is known of a job besides its failures.

    `seen` holds the ids of the patterns that were seen, `streams` the line and the stream of facts that a
    failure's line tells, `world` how many ranks the log shows or speaks of.
    """

    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self._settings = SettingLog()
        self.progress = JobProgress()
        self.frameworks = FrameworkLog()
        self.launch = LaunchReader(masking.redactor)
        self.facts: list[Fact] = []
        self._told: Counter[str] = Counter()
        self.curves = CurveLog()
        self.streams: list[tuple[int, str]] = []
        self.seen: set[str] = set()
        self.world = 0

    @property
    def settings(self) -> Sequence[Setting]:
        """Give the settings that the log shows."""
        return self._settings.all()

    def see_line(self, line: Line) -> None:
        """Note the clock and the rank of a line."""
        self.progress.timeline.see(line.time)
        rank = line.rank or line.told
        if rank.isdecimal():
            self.world = max(self.world, int(rank) + 1)

    def see_frames(self, frames: Sequence[Frame], number: int) -> None:
        """Note the frameworks that the calls of a traceback are in."""
        for frame in frames:
            self.frameworks.see_text(frame.file, number)

    def see_shown(self, pattern: Pattern, line: Line) -> None:
        """Note the frameworks that a line of this pattern shows to be in the job."""
        for name in pattern.shows:
            # What one engine took over from another says of neither which of them runs.
            others = _engines_besides(name, pattern.frameworks)
            if others:
                self.frameworks.see_shared(name, line.number, others)
            else:
                self.frameworks.see(name, line.number)

    def add_fact(self, kind: str, number: int, fields: dict[str, Value], stream: str = "") -> None:
        """Note a fact that a line states."""
        if kind == "config_key" and "key" in fields:
            self.frameworks.see_text(str(fields["key"]), number)
        if kind == HOST_MEMORY and isinstance(used := fields.get("used_gib"), int | float):
            limit = fields.get("limit_gib")
            self.curves.see_memory(used, limit if isinstance(limit, int | float) else 0.0, number)
        self._told[kind] += 1
        if len(self.facts) < MAX_FACTS and self._told[kind] <= MOST_ALIKE:
            self.facts.append(Fact(kind, number, fields))
            if stream:
                self.streams.append((number, stream))

    def add_line(self, pattern: Pattern, at: PlacedLine) -> None:
        """Note what a line that is no failure says."""
        line = at.line
        self.seen.add(pattern.id)
        fields = self._masking.fields(pattern, line)
        told = (fields.get(name) for name in WORLD)
        self.world = max([self.world, *(int(value) for value in told if isinstance(value, int | float))])
        if pattern.kind == "version":
            for name in pattern.frameworks:
                self.frameworks.see(name, line.number, str(fields.get("version", "")))
        else:
            self.see_shown(pattern, line)
        is_amid = pattern.partial and self.progress.counts_on
        if pattern.kind in ("finish", "end") and not is_amid and not is_statement(line.body):
            self.progress.note_end(pattern, line)
        self.progress.note_survival(pattern, line)
        if pattern.kind == "progress":
            step = self.progress.note_step(pattern, line, fields)
            if step is not None:
                self.curves.see(pattern, line, step)
        if not is_statement(line.body):
            self.progress.note_work(pattern, line, fields)
        if pattern.phase or (pattern.fact == "phase" and "name" in fields):
            self.progress.note_phase(pattern.phase or str(fields["name"]), line.number)
        elif pattern.fact and fields and (pattern.kind != "progress" or pattern.fact in TOLD_BY_PROGRESS):
            self.add_fact(pattern.fact, line.number, fields)
        self._configure(pattern, at)

    def _configure(self, pattern: Pattern, at: PlacedLine) -> None:
        """Read the settings that begin in a line: a command, a print of them, the head of a script."""
        line = at.line
        if pattern.handler == "command":
            text, found = self.launch.command(launch.rows_below(at.block.data, at.offset, line), line.source)
            self.frameworks.see_text(text[:MAX_COMMAND], line.number)
            self._settings.add(self._masking.settings(found))
        elif pattern.handler == "settings":
            dumped = self.launch.dump(line, launch.rows_below(at.block.data, at.offset, line))
            self._settings.add(self._masking.settings(dumped))
        elif pattern.handler == "directives":
            self._settings.add(self._masking.settings(launch.from_directives(line.body, line.number)))


@cache
def _engines_besides(name: str, frameworks: tuple[str, ...]) -> frozenset[str]:
    """Give the other engines of a row that shows an engine, which print the same line."""
    engines = known_frameworks().engines
    return engines.intersection(frameworks) - {name} if name in engines else frozenset()
