"""What is gathered while one job's output goes by, block by block."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from corpus.frameworks import known_frameworks
from corpus.log_patterns import PatternTable
from ingest.logs import lines
from ingest.logs.cascade import arrange_worded, undone_by_bars
from ingest.logs.conditions import ReportView
from ingest.logs.context_lines import MAX_AROUND, TAIL, last_rows
from ingest.logs.derived_facts import derive_facts, ranks_apart
from ingest.logs.events import Event, EventLog, GroupKey
from ingest.logs.facts import Fact
from ingest.logs.failure_log import FailureLog
from ingest.logs.inputs.jobs import JobSource
from ingest.logs.inputs.members import is_helper
from ingest.logs.inputs.sources import LogSource
from ingest.logs.job_notes import JobNotes
from ingest.logs.judgements import Judgements, LineJudgement
from ingest.logs.last_words import LastWords
from ingest.logs.loops import rounds_below
from ingest.logs.masking import Masking
from ingest.logs.matches import Found, Match
from ingest.logs.placed_line import PlacedLine
from ingest.logs.progress import log_end
from ingest.logs.refinement import refine_events
from ingest.logs.repeats import (
    FULL,
    LINE_HEAD,
    STACKS,
    Repeats,
    Sighting,
    StackExtent,
    stack_extent,
    stack_wording,
)
from ingest.logs.report import CrashReport, Limits
from ingest.logs.run_starts import RunStarts, runs_after_failures, with_runs
from ingest.logs.samples import SampleMarks
from ingest.logs.scanner import Block, Tally
from ingest.logs.split_messages import with_calls_of_chain, with_messages_below, with_outer_calls
from ingest.logs.stacks.stack import parsed_at
from ingest.logs.templates import Templates
from ingest.logs.traceback_log import TracebackLog

# What is left out of a folder or an archive because it is no log at all.
HARMLESS = frozenset(
    {"empty", "code", "image", "configs", "checkpoint", "not_a_log", "link_out_of_the_folder"}
)
# A log of so many lines is kept whole.
SHORT = 120
NOVEL = 8
# So many of a file's last bytes are read for the progress bars that it ends with.
LAST_BYTES = 8192
# So many of its first rows are looked at for when it began.
FIRST_ROWS, FIRST_BYTES = 40, 8192
# Of a wide line so much is read around the first of some matches that the others stand in it, too.
_REACH = lines.MAX_TEXT // 3
NOTHING = Templates(frozenset(), frozenset())


class LogReading:
    """One job's output while it goes by: each line to what it tells of, and the report at the end.

    `good` is what a healthy run of the same job prints; `failed` tells that the job is known to have failed.
    """

    def __init__(self, table: PatternTable, good: Templates, *, failed: bool = False) -> None:
        self._table = table
        self._good, self._failed = good, failed
        self._masking = Masking()
        self._events = EventLog()
        self._notes = JobNotes(self._masking)
        self._tracebacks = TracebackLog(table, self._masking, self._notes, self._events)
        self._failures = FailureLog(self._masking, self._notes, self._events, self._tracebacks)
        self._repeats = Repeats()
        self._last: Block | None = None
        self._samples: SampleMarks | None = None
        self._starts = RunStarts()
        self._judgements = Judgements(table)
        self._last_words = LastWords()

    @property
    def groups(self) -> frozenset[GroupKey]:
        """What tells the events apart."""
        return self._events.groups

    def begin(self, name: str) -> int:
        """Begin a file of the job; give the number of its first line when all files are counted on."""
        self._notes.progress.begin(lines.printable(self._masking.clean(name)))
        self._starts.begin()
        self._events.begin(name)
        return self._notes.progress.first

    def end(self, tally: Tally) -> None:
        """End a file: what was open in it is."""
        progress, block = self._notes.progress, self._last
        self._tracebacks.flush()
        is_unannounced = (
            block is not None
            and block.line >= progress.first
            and not self._events.fails_from(progress.first, self._table.last_resort)
        )
        # Where no pattern knew a failure: a stack without its first line, or what a logger calls errors.
        if block is not None and is_unannounced and not self._tracebacks.note_last(block, self._samples):
            row = self._table.by_handler.get("error-level")
            if row and not (progress.runs[-1].count or progress.runs[-1].finished):
                self._failures.note_error_levels(block, row)
        self._tracebacks.end_file()
        if block is not None:
            self._failures.let_numbers_return(block)
        last: Iterable[tuple[int, bytes]] = ()
        if block is not None and block.line >= progress.first:
            # The first of these rows may be a part of one.
            begin = max(0, len(block.data) - LAST_BYTES)
            last = enumerate(block.data[begin:].split(b"\n"), block.number(begin))
            self._last_words.end_file(self._events.file, block)
        progress.end(tally, self._events.first_after(progress.first), last)

    def feed(self, block: Block, scanned: Found) -> None:
        """Take in a block with what the scanner found in it."""
        starts = deque(self._starts.see(block))
        if block.line == self._notes.progress.first:
            # What a launcher prints first tells of nothing, and yet when the job began.
            self._note_times(block.data[:FIRST_BYTES].split(b"\n")[:FIRST_ROWS])
        parsed: dict[int, lines.Line] = {}
        samples = self._samples = SampleMarks(self._table, block, scanned.headings, parsed)
        for number, begin, found in _pieces(block, scanned.matches):
            rows = tuple([match.row for match in found])
            is_stack = not self._table.starts.isdisjoint(rows)
            extent = stack_extent(block.data, begin) if is_stack else None
            offset = found[0].offset
            # Not further than a line of a known shape is long.
            end = block.data.find(b"\n", offset, begin + lines.SHAPED + 1)
            raw = block.data[begin:end] if end >= 0 else b""
            judged = self._judgements.known(rows, raw)
            sight = self._sighting(block, number, begin, rows, extent, judged)
            if sight is None:
                continue
            if judged is not None and judged.layout is not None:
                line = parsed.get(begin) or lines.line_like(judged.layout, raw, number)
                parsed[begin] = line
            else:
                line = parsed_at(block, offset, number, parsed)
                judged = self._judgements.of(rows if len(rows) == 1 else tuple(dict.fromkeys(rows)), line)
                judged.layout = lines.printed_layout(raw) if parsed.get(begin) is line else judged.layout
            if judged.is_entered:
                continue
            while starts and starts[0] <= number:
                starts.popleft()
                self._notes.progress.runs[-1].begin_again()
            self._notes.see_line(line)
            if not samples.enclose(line.number, line.source) and judged.rows:
                self._line(judged, PlacedLine(line, block, offset, parsed), sight, extent)
            self._tracebacks.see_line(line, is_whole=parsed.get(begin) is line)
        if starts:
            self._notes.progress.runs[-1].begin_again()
        self._notes.curves.sample(block)
        # A traceback that runs on beyond the block's own part meets its last line's patterns in the next.
        self._tracebacks.flush(before=block.number(block.stop))
        self._last = block

    def _note_times(self, rows: Iterable[bytes]) -> None:
        for raw in rows:
            if time := lines.parse_line(raw, 0).time:
                self._notes.progress.timeline.note(time)

    def _sighting(
        self,
        block: Block,
        number: int,
        begin: int,
        rows: tuple[int, ...],
        extent: StackExtent | None,
        judged: LineJudgement | None,
    ) -> Sighting | None:
        """Count the line; give None where it says what was read often enough."""
        if judged is not None and judged.sight is not None and not extent:
            sight = self._repeats.again(judged.sight, number)
        elif not self._table.alike.issuperset(rows):
            return Sighting()
        else:
            if extent:
                wording = stack_wording(block.data, extent)
            else:
                end = block.data.find(b"\n", begin, begin + LINE_HEAD)
                wording = block.data[begin : end if end >= 0 else begin + LINE_HEAD]
            sight = self._repeats.sight(rows, wording, number, STACKS if extent else FULL)
            # Lines of one judgement have one wording.
            if judged is not None and not extent and not self._repeats.is_full:
                judged.sight = sight
        if not (sight.is_known or self._repeats.is_spent(rows, counts=not extent)):
            return sight
        if sight.group:
            self._tracebacks.settle(number)
        return None

    def _line(
        self, judged: LineJudgement, at: PlacedLine, sight: Sighting, extent: StackExtent | None
    ) -> None:
        line = at.line
        if judged.only_failures is not None and self._failures.count(judged.only_failures, at, sight):
            return
        if judged.begins_traceback:
            self._tracebacks.begin(at, sight, extent)
        if self._tracebacks.is_quoted_code(line):
            # What code a traceback quotes may tell what the job was doing; it never is a failure's message.
            self._notes.seen.update(row.id for row in judged.rows if row.kind == "fact")
            return
        ignored = self._tracebacks.is_ignored(line)
        for row in judged.calm_rows:
            if row.handler == "ignored-exception":
                self._tracebacks.ignore_below(line)
            self._notes.add_line(row, at)
        for row in judged.deaths:
            self._notes.progress.note_survival(row, line)
        failures = judged.failures(ignored=ignored)
        if failures is not None:
            self._failures.add(failures, at, sight, ignored=ignored)

    def report(self, source: LogSource | JobSource) -> CrashReport:
        """Order what was gathered and give the report."""
        self._tracebacks.flush()
        for sight in self._repeats.counted():
            if sight.group:
                self._events.repeat(sight.group, sight.last, sight.count - sight.full)
        notes, progress = self._notes, self._notes.progress
        tail = self._masking.rows(last_rows(self._last))[-TAIL:] if self._last else ()
        facts = self._facts()
        events = with_calls_of_chain(with_messages_below(self._events.all(notes.world, self._good.events)))
        facts = (*facts, *ranks_apart(events, facts))
        job = ReportView(events, None, facts, notes.frameworks.all(), notes.settings, seen=notes.seen)
        events = refine_events(events, job, self._table)
        progress.timeline.settle(events)
        starts = self._starts.lines()
        events = self._lived_on(with_runs(events, starts, progress.runs, progress.timeline))
        cascade = arrange_worded(
            events,
            self._table.last_resort,
            progress.runs,
            progress.timeline,
            self._table.at_end,
            failed=self._failed,
            helpers=[number for number, part in enumerate(progress.timeline.parts) if is_helper(part.name)],
        )
        cascade = with_outer_calls(cascade)
        doubtful = undone_by_bars(cascade.events, progress.runs, progress.timeline)
        root_line = cascade.root.line if cascade.root else 0
        has_begun = progress.phases.has_begun(root_line, progress.timeline)
        command, short = notes.launch.shown, self._short()
        return CrashReport(
            self._masking.clean(lines.printable(source.name)),
            cascade.events,
            cascade.root,
            facts,
            tuple(job.frameworks),
            tuple(job.settings),
            self._limits(source),
            finished=progress.finished,
            log_end=log_end(progress.runs, progress.timeline, doubtful),
            marks=progress.marks,
            last_step=progress.last_step,
            checkpoint=progress.checkpoint,
            saved_n=progress.saved_n,
            has_begun=has_begun,
            marked_phase=progress.phases.before(root_line or progress.lines, has_begun=has_begun),
            surroundings=self._failures.surroundings(root_line),
            tail=tail,
            # Lines that are shown a second time below count once.
            redactions=self._masking.count,
            nearby=short or self._failures.rows_near_origins(cascade.events),
            is_whole=bool(short),
            seen=frozenset(notes.seen),
            timeline=progress.timeline,
            novel=self._novel(),
            last_words=self._masking.rows(self._last_words.of(cascade.root, self._last)),
            run_starts=runs_after_failures(events, starts, progress.timeline),
            command=(command.number, self._masking.clean(command.body)),
            curves=notes.curves.curves(source.series if isinstance(source, JobSource) else {}),
        )

    def _facts(self) -> tuple[Fact, ...]:
        """Give the facts that the lines told, with what follows from several of them."""
        notes = self._notes
        shown = {found.name for found in notes.frameworks.all()}
        serves = bool(shown & known_frameworks().engines) and not shown & known_frameworks().trainers
        counted_from = notes.progress.phases.counted_from
        if notes.progress.timeline.has_parts and counted_from:
            counted_from = 0  # a file of its own has lines of its own
        return derive_facts(
            notes.facts,
            notes.streams,
            notes.settings,
            serves=serves,
            world=notes.world,
            counted_from=counted_from,
        )

    def _lived_on(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Mark the exceptions below which their program's loop goes on, and note that as work."""
        progress, rounds = self._notes.progress, rounds_below(events, self._last)
        for line in rounds.values():
            run = progress.runs[progress.timeline.number(line)]
            run.worked = max(run.worked, line)
        return tuple(replace(event, lived_on=event.line in rounds) for event in events) if rounds else events

    def _limits(self, source: LogSource | JobSource) -> Limits:
        omitted = {
            reason: self._masking.clean(told) if isinstance(told, str) else told
            for reason, told in source.omitted.items()
        }
        if self._events.omitted or self._repeats.omitted:
            omitted["events"] = self._events.omitted + self._repeats.omitted
        is_truncated = bool(omitted.keys() - HARMLESS)
        return Limits(self._notes.progress.size, self._notes.progress.lines, is_truncated, omitted)

    def _short(self) -> tuple[tuple[int, str], ...]:
        """Give all rows of a log that is short; none of a longer one."""
        if self._last is None or self._last.line > 1 or self._notes.progress.lines > SHORT:
            return ()
        rows = enumerate(self._last.data.split(b"\n"), 1)
        return self._masking.rows(
            [
                (number, raw.rstrip(b"\r").rsplit(b"\r", 1)[-1][:MAX_AROUND])
                for number, raw in rows
                if raw.strip()
            ]
        )

    def _novel(self) -> tuple[tuple[int, str], ...]:
        """Give the last lines that the healthy run has none like."""
        if not self._good.lines or self._last is None:
            return ()
        fresh = [
            (self._last.line + place, raw)
            for place, raw in enumerate(self._last.data.split(b"\n"))
            if raw.strip() and not self._good.has(raw)
        ]
        return self._masking.rows([(number, raw[:MAX_AROUND]) for number, raw in fresh[-NOVEL:]])


def _pieces(block: Block, matches: list[Match]) -> Iterator[tuple[int, int, list[Match]]]:
    """Yield the number of each line, or part of a redrawn one, its place, and the matches in it.

    Of one that is wider than what is read of it at a time, matches further apart are given apart: a failure
    far behind the step that it follows would else be looked for where it does not stand.
    """
    found: list[Match] = []
    line = begin = -1
    for match in matches:
        if found and match.line == line:
            # Parts of a redrawn line are lines of their own.
            redrawn = block.data.rfind(b"\r", found[-1].offset, match.offset)
            is_wide = match.offset - begin > lines.MAX_TEXT and match.offset - found[0].offset > _REACH
            if redrawn < 0 and not is_wide:
                found.append(match)
                continue
        if found:
            yield line, begin, found
        found, line = [match], match.line
        newline = block.data.rfind(b"\n", 0, match.offset) + 1
        begin = max(newline, block.data.rfind(b"\r", newline, match.offset) + 1)
    if found:
        yield line, begin, found
