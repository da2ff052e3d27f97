"""What is gathered while one job's output goes by, block by block."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice

from corpus.log_patterns import Pattern, PatternTable
from ingest.logs import levels, lines
from ingest.logs.cascade import Progress, ProgressMark, arrange_worded, log_end
from ingest.logs.conditions import ReportView, all_hold
from ingest.logs.configs import launch
from ingest.logs.configs.launch import LaunchReader, SettingLog
from ingest.logs.context_lines import MAX_AROUND, SURROUNDINGS, TAIL, context_lines, last_rows, uncut
from ingest.logs.derived_facts import DERIVED, derive_facts
from ingest.logs.events import Event, EventLog, GroupKey
from ingest.logs.facts import Fact, Value, typed
from ingest.logs.frameworks import FrameworkLog, cued_framework
from ingest.logs.inputs.jobs import JobSource
from ingest.logs.inputs.sources import LogSource
from ingest.logs.lines import Line
from ingest.logs.phases import Phases
from ingest.logs.repeats import FULL, LINE_HEAD, STACKS, Repeats, Sighting, stack_wording
from ingest.logs.report import CrashReport, Limits
from ingest.logs.scanner import Block, Match, Tally, newlines
from ingest.logs.stacks import tracebacks
from ingest.logs.stacks.exception_classifier import classify_exception
from ingest.logs.stacks.open_tracebacks import Stacks
from ingest.logs.stacks.stack import above
from ingest.logs.stacks.tracebacks import Frame, Traceback
from ingest.logs.templates import Templates
from ingest.logs.timeline import Timeline
from ingest.logs.wording import counts_part, goes_on, shrugs, unquoted
from ingest.redaction.redactor import Redactor

# What loggers call a line that is no trouble; glog writes one letter.
REMARKS = frozenset({"INFO", "DEBUG", "TRACE", "I", "D"})
MAX_FACTS = 2000
# What only a progress line tells: how far the preparation of the data was.
TOLD_BY_PROGRESS = frozenset({"preprocess"})
# What is left out of a folder or an archive because it is no log at all.
HARMLESS = frozenset(
    {"empty", "code", "image", "configs", "checkpoint", "not_a_log", "link_out_of_the_folder"}
)
# The names of facts that tell how many ranks a job has.
WORLD = ("world", "world_n", "nranks")
NOVEL = 8
NOTHING = Templates(frozenset(), frozenset())
SHOWN, CODE, PATH = 2000, 200, 400
# How many lines above a traceback may tell when it was printed.
CLOCK_ABOVE = 60

_STRENGTH = {"states": 0, "suggests": 1, "hints": 2}
_WARNING = re.compile(r"\b[A-Z]\w*Warning: ")
# A variable of an environment that somebody prints is no message, whatever its value says.
_VARIABLE = re.compile(r"^_?[A-Z][A-Z0-9_]{2,60}=")
# Pydantic's list of what does not fit: a field a line, with what is wrong with it below.
_VALIDATION = re.compile(r"\d validation errors? for \w")
_FIELD = re.compile(r"[A-Za-z_][\w.]{0,120}\s*$")
_REPEATED = re.compile(r"\[repeated (\d{1,9})x across cluster\]")
# A progress bar: what it counts need not be training steps.
_BAR = re.compile(r"\d%\|")
_ROLE = {"origin": 0, "collateral": 1, "wrapper": 2, "none": 3}


class LogReading:
    """What is gathered while one log goes by."""

    def __init__(self, table: PatternTable, good: Templates, *, failed: bool = False) -> None:
        self._table = table
        self._good, self._failed = good, failed
        self._rows = table.rows
        self._redactor = Redactor()
        self._events = EventLog()
        self._facts: list[Fact] = []
        self._ranks: list[tuple[int, str]] = []
        self._frameworks = FrameworkLog()
        self._settings = SettingLog()
        self._launch = LaunchReader(self._redactor)
        self._timeline = Timeline()
        self._runs: list[Progress] = []
        self._size = 0
        self._ranks_seen = 0
        self._world = 0
        self._lines = 0
        self._phases = Phases()
        self._last: Block | None = None
        self._around: dict[int, tuple[tuple[int, bytes], ...]] = {}
        self._stacks = Stacks()
        self._repeats = Repeats()
        self._sight = Sighting()
        self._alike, self._starts = table.alike, table.starts
        self._seen: set[str] = set()
        self._ignored: dict[str, int] = {}
        self._parsed: dict[int, Line] = {}

    @property
    def groups(self) -> frozenset[GroupKey]:
        """What tells the events apart."""
        return self._events.groups

    def begin(self, name: str) -> int:
        """Begin a file of the job; give the number of its first line when all files are counted on."""
        self._timeline.begin(lines.printable(self._redactor.clean(name)), self._lines + 1)
        self._runs.append(Progress())
        self._events.begin(name)
        return self._lines + 1

    def end(self, tally: Tally) -> None:
        """End a file: what was open in it is."""
        self._flush()
        self._unannounced()
        self._stacks = Stacks()
        self._ignored.clear()
        self._timeline.end(tally.lines)
        if self._timeline.has_parts:
            self._runs[-1].trim(self._events.first_after(self._lines + 1))
        self._size += tally.size
        self._lines += tally.lines

    def feed(self, block: Block, matches: list[Match]) -> None:
        """Take in a block with its matches, which are ordered by place."""
        self._parsed = {}
        for (number, begin), group in groupby(matches, key=partial(_segment_of, block)):
            found = list(group)
            if not self._is_repeated(block, number, begin, tuple(match.row for match in found)):
                self._line(block, found)
            elif self._sight.group:
                self._stacks.settle(number)
        # A traceback that runs on beyond the block's own part meets its last line's patterns in the next.
        self._flush(before=block.line + newlines(block.data, 0, block.stop))
        self._last = block

    def _is_repeated(self, block: Block, number: int, begin: int, rows: tuple[int, ...]) -> bool:
        """Tell whether a line says what was read often enough; it is counted then."""
        if not self._alike.issuperset(rows):
            self._sight = Sighting()
            return False
        is_stack = not self._starts.isdisjoint(rows)
        wording = (
            stack_wording(block.data, begin)
            if is_stack
            else block.data[begin : min(block.line_bounds(begin)[1], begin + LINE_HEAD)]
        )
        self._sight = self._repeats.sight(rows, wording, number, STACKS if is_stack else FULL)
        return self._sight.is_known or self._repeats.is_spent(rows, counts=not is_stack)

    def _line(self, block: Block, matches: list[Match]) -> None:
        offset = matches[0].offset
        begin, end = block.line_bounds(offset)
        line = lines.parse_line(block.data[begin:end], matches[0].line, offset - begin)
        self._timeline.see(line.time)
        rank = line.rank or line.told
        if rank.isdecimal():
            self._ranks_seen = max(self._ranks_seen, int(rank) + 1)
        rows = [
            row for row in dict.fromkeys(self._rows[match.row] for match in matches) if _stands(row, line)
        ]
        if not rows:
            return
        if any(row.handler == "traceback" for row in rows):
            self._traceback(block, offset, line)
        if self._quoted_code(line):
            # What code a traceback quotes may tell what the job was doing; it never is a failure's message.
            self._seen.update(row.id for row in rows if row.kind == "fact")
            return
        said = not self._is_ignored(line) and not _VARIABLE.match(line.body)
        failing = [row for row in rows if row.fails or row.kind == "warning"] if said else []
        for row in rows:
            if not (row.fails or row.kind == "warning"):
                self._mark(row, line, block, offset)
        known = [row for row in failing if not row.last_resort]
        if failing and (known or self._counts_as_last_resort(line)):
            self._failure(known or failing, line, block, offset)

    def _counts_as_last_resort(self, line: Line) -> bool:
        """Tell whether general words of a failure are one: not in a traceback, whose last line tells, nor where the run goes on."""
        traceback = self._stacks.latest(line.source)
        is_inside = traceback is not None and traceback.start <= line.number <= traceback.end
        return not is_inside and line.level not in REMARKS and not goes_on(line.body)

    def _quoted_code(self, line: Line) -> bool:
        """Tell whether the line is source code that a traceback quotes, which only mentions a message."""
        traceback = self._stacks.latest(line.source)
        if traceback is None or not traceback.start < line.number < traceback.end:
            return False
        return self._stacks.ending(line.source, line.number) is None and tracebacks.quotes(line.body)

    def _is_ignored(self, line: Line) -> bool:
        """Tell whether a line ends an exception that Python itself says it ignores, as in a `__del__`."""
        stack = self._stacks.ending(line.source, line.number)
        begin = stack.traceback.start if stack else line.number
        return self._is_below_ignored(line.source, begin) and (
            stack is not None or line.number - self._ignored[line.source] <= 1
        )

    def _is_below_ignored(self, source: str, number: int) -> bool:
        said = self._ignored.get(source)
        return said is not None and 0 < number - said <= 1

    def _traceback(self, block: Block, offset: int, line: Line) -> None:
        if self._stacks.ending(line.source, line.number) or self._quoted_code(line):
            return  # the words stand in what another traceback says or shows
        found = tracebacks.at(block, offset, line.number, self._parsed)
        clock = line.time or self._clock_above(block, offset, line)
        if found or line.body.startswith("Traceback "):
            self._flush(line.source)
        for traceback in found:
            self._stacks.open(line.source, traceback, line.number, self._sight)
            self._timeline.event(traceback.end, clock)
            for frame in traceback.frames:
                self._frameworks.see_text(frame.file, line.number)

    def _headless(self, block: Block, offset: int, line: Line) -> Traceback | None:
        """Give the traceback that a line ends, where the text has no first line of it."""
        found = tracebacks.headless(block, offset, line, self._parsed)
        for frame in found.frames if found else ():
            self._frameworks.see_text(frame.file, line.number)
        return found

    def _unannounced(self) -> None:
        """Note what a file ends with where no pattern knew a failure: a stack without its first line, or what a logger calls errors."""
        block, first = self._last, self._lines + 1
        if block is None or block.line < first or self._events.fails_from(first, self._table.last_resort):
            return
        if found := tracebacks.last(block):
            self._stacks.open(found.source, found, found.start, Sighting())
            self._flush()
            for frame in found.frames:
                self._frameworks.see_text(frame.file, found.end)
        elif (row := self._table.by_handler.get("error-level")) and not (
            self._runs[-1].count or self._runs[-1].finished
        ):
            for line in levels.error_levels(block):
                called_error = Event(
                    row.id,
                    row.kind,
                    row.role,
                    line.number,
                    self._shown(line.text),
                    self._shown(line.body),
                    source=self._redactor.clean(line.source),
                    rank=line.rank or line.told,
                    time=line.time,
                    handler=row.handler,
                )
                self._events.add(called_error)

    def _clock_above(self, block: Block, offset: int, line: Line) -> str:
        """Give the time of the nearest line above that has one: Python prints none before a traceback."""
        rows = islice(above(block, offset, line.number, self._parsed), CLOCK_ABOVE)
        return next((row.time for row in rows if row.time), "")

    def _flush(self, source: str | None = None, before: int | None = None) -> None:
        """Turn tracebacks whose last line no pattern knew into events of their own."""
        for stack in self._stacks.close(source, before):
            row = self._table.by_handler.get(
                "unknown-exception" if stack.traceback.exception else "cut-traceback"
            )
            if row and not self._is_below_ignored(stack.traceback.source, stack.traceback.start):
                stack.sight.group = self._events.add(self._unknown(row, stack.traceback))

    def _unknown(self, row: Pattern, traceback: Traceback) -> Event:
        text = self._shown(traceback.text)
        said = f"{traceback.exception}: {traceback.message}" if traceback.message else traceback.exception
        return Event(
            row.id,
            row.kind,
            row.role,
            traceback.end,
            text,
            self._shown(said) if said else text.strip(),
            source=self._redactor.clean(traceback.source),
            exception=self._redactor.clean(traceback.exception),
            frames=self._frames(traceback),
            remote=traceback.remote,
            traceback=traceback.start,
            handler=row.handler,
        )

    def _frames(self, traceback: Traceback) -> tuple[Frame, ...]:
        clean = self._redactor.clean
        return tuple(
            replace(
                frame,
                file=clean(frame.file)[-PATH:],
                function=clean(frame.function)[:CODE],
                code=clean(frame.code)[:CODE],
            )
            for frame in traceback.frames
        )

    def _shown(self, text: str, at: int = 0) -> str:
        """Mask first, then cut: a secret that the cut would halve could no longer be told."""
        text = self._redactor.clean(text)
        begin = max(0, min(at - SHOWN // 2, len(text) - SHOWN))
        return text[begin : begin + SHOWN]

    def _mark(self, row: Pattern, line: Line, block: Block, offset: int) -> None:
        self._seen.add(row.id)
        fields = self._fields(row, line)
        self._world = max(
            [self._world, *(int(told) for name in WORLD if isinstance(told := fields.get(name), int | float))]
        )
        self._note(row, line, fields)
        if row.phase or (row.fact == "phase" and "name" in fields):
            self._phases.tell(line.number, row.phase or str(fields["name"]), self._lines + 1)
        elif row.fact and fields and (row.kind != "progress" or row.fact in TOLD_BY_PROGRESS):
            self._fact(row.fact, line.number, fields)
        if row.handler == "command":
            text, found = self._launch.command(launch.rows_below(block.data, offset, line), line.source)
            self._frameworks.see_text(text[:8000], line.number)
            self._set(found)
        elif row.handler == "settings":
            self._set(self._launch.dump(line, launch.rows_below(block.data, offset, line)))

    def _note(self, row: Pattern, line: Line, fields: dict[str, Value]) -> None:
        """Note what kind of line it is: progress, an end, a version, or only somebody's dialect."""
        if row.handler == "ignored-exception":
            self._ignored[line.source] = line.number
        if row.kind == "version":
            for name in row.frameworks:
                self._frameworks.see(name, line.number, str(fields.get("version", "")))
            return
        for name in row.shows:
            self._frameworks.see(name, line.number)
        if row.kind in ("finish", "end"):
            self._runs[-1].close(line.number, finished=row.kind == "finish")
        if row.kind == "progress":
            step = fields.get("step")
            counted = float(step) if isinstance(step, (int, float)) else -1.0
            is_bar = _BAR.search(line.body) is not None
            total = fields.get("total") if row.whole and not counts_part(line.body) else None
            self._runs[-1].add(
                ProgressMark(
                    line.number,
                    counted,
                    f"{row.id} {line.source}",
                    float(total) if isinstance(total, (int, float)) else 0.0,
                    is_bar,
                )
            )
            self._timeline.mark(counted, line.time)
            if counted >= 0 and not is_bar:
                self._runs[-1].step = counted
                self._phases.count(line.number, self._lines + 1, counted)

    def _cued(self, traceback: Traceback) -> set[str]:
        return {name for frame in traceback.frames for name in cued_framework(frame.file)}

    def _set(self, settings: list[launch.Setting]) -> None:
        clean = self._redactor
        self._settings.add(
            replace(item, key=clean.clean(item.key), value=clean.value(item.key, item.value))
            for item in settings
        )

    def _fields(self, row: Pattern, line: Line) -> dict[str, Value]:
        match = row.compiled.search(line.text) if row.compiled.groupindex else None
        fields = typed(match.groupdict()) if match else {}
        return {
            key: self._redactor.clean(value) if isinstance(value, str) else value
            for key, value in fields.items()
        }

    def _fact(self, kind: str, number: int, fields: dict[str, Value], stream: str = "") -> None:
        if kind == "config_key" and "key" in fields:
            self._frameworks.see_text(str(fields["key"]), number)
        if len(self._facts) < MAX_FACTS:
            self._facts.append(Fact(kind, number, fields))
            if stream:
                self._ranks.append((number, stream))

    def _failure(self, rows: list[Pattern], line: Line, block: Block, offset: int) -> None:
        rows = sorted(rows, key=_telling)
        best = rows[0]
        fields: dict[str, Value] = {}
        for row in rows:
            found = self._fields(row, line)
            fields = {**found, **fields}
            if row.fact and found:
                self._fact(row.fact, line.number, found, line.rank or line.source)
        traceback = self._stacks.of(line.source, line.number) or self._headless(block, offset, line)
        shrugged = _is_warned(line, best) or (traceback is None and shrugs(line.body))
        if _VALIDATION.search(line.body):
            self._misfit(block, offset, line)
        if best.kind == "error" and best.role == "origin" and shrugged:
            best = best.model_copy(
                update={"kind": "warning", "strength": "hints"}
            )  # whoever says so has gone on
        if traceback is None and _is_remark(line, best):
            # A remark that mentions a failure's words: it stands only where nothing else does.
            best = best.model_copy(update={"role": "wrapper", "strength": "hints"})
        elif traceback is None and _WARNING.search(line.body):
            best = best.model_copy(
                update={"role": "wrapper"}
            )  # a warning means what it says, and may be survived
        # How many lines Ray says that this one stands for.
        match = _REPEATED.search(line.body)
        folded = max(1, int(match[1])) if match else 1
        event = Event(
            best.id,
            best.kind,
            best.role,
            line.number,
            self._shown(line.text, _place(best, line.text)),
            self._shown(line.body, _place(best, line.body)),
            cause=best.cause,
            strength=best.strength,
            source=self._redactor.clean(line.source),
            rank=line.rank or line.told,
            time=line.time,
            exception=self._redactor.clean(traceback.exception) if traceback else "",
            frames=self._frames(traceback) if traceback else (),
            remote=traceback.remote if traceback else "",
            facts=fields,
            frameworks=best.frameworks,
            also=tuple(row.id for row in rows[1:]),
            traceback=traceback.start if traceback else 0,
            count=folded,
            handler=best.handler,
            tells=tuple(told for row in rows for told in row.tells),
        )
        self._sight.group = self._events.add(event)
        self._timeline.event(line.number, line.time)
        # Several frameworks share their checks' words: where the calls are shown, they say whose it is.
        if (
            len(best.frameworks) < 2
            or not (traceback and traceback.frames)
            or set(best.frameworks) & self._cued(traceback)
        ):
            for name in best.shows:
                self._frameworks.see(name, line.number)
        if line.number not in self._around and len(self._around) < EventLog.LIMIT:
            self._around[line.number] = context_lines(block, offset, line.number)

    def _misfit(self, block: Block, offset: int, line: Line) -> None:
        """Note the first setting that a validation error lists below its own line."""
        rows = tracebacks.under(block, offset, line, self._parsed, 2)
        if len(rows) == 2 and _FIELD.match(rows[0].body) and rows[1].body[:1].isspace():
            kind = "config_key" if "Extra inputs" in rows[1].body else "config_value"
            self._fact(
                kind, line.number, {"key": rows[0].body.strip(), "reason": rows[1].body.strip()[:CODE]}
            )

    def report(self, source: LogSource | JobSource) -> CrashReport:
        """Order what was gathered and give the report."""
        self._flush()
        for sight in self._repeats.counted():
            if sight.group:
                self._events.repeat(sight.group, sight.last, sight.count - sight.full)
        tail = self._cleaned(last_rows(self._last))[-TAIL:] if self._last else ()
        facts = derive_facts(self._facts, self._ranks)
        job = ReportView(
            self._events.all(max(self._world, self._ranks_seen), self._good.events),
            None,
            facts,
            self._frameworks.all(),
            self._settings.all(),
            seen=self._seen,
        )
        events = tuple(self._refined(event, job) for event in job.events)
        self._timeline.settle(events)
        cascade = arrange_worded(
            events, self._table.last_resort, self._runs, self._timeline, failed=self._failed
        )
        omitted = {
            reason: self._redactor.clean(told) if isinstance(told, str) else told
            for reason, told in source.omitted.items()
        }
        if self._events.omitted or self._repeats.omitted:
            omitted["events"] = self._events.omitted + self._repeats.omitted
        limits = Limits(self._size, self._lines, bool(omitted.keys() - HARMLESS), omitted)
        root_line = cascade.root.line if cascade.root else 0
        has_begun = self._phases.has_begun(root_line, self._timeline)
        # The root's surroundings as they may be shown.
        rows = self._cleaned(self._around.get(root_line, ()))
        shown_around = tuple(row for row in rows if abs(row[0] - root_line) <= SURROUNDINGS)
        return CrashReport(
            self._redactor.clean(lines.printable(source.name)),
            cascade.events,
            cascade.root,
            facts,
            tuple(job.frameworks),
            tuple(job.settings),
            limits,
            finished=max(run.finished for run in self._runs),
            log_end=log_end(self._runs, self._timeline),
            marks=sum(run.count for run in self._runs),
            last_step=max((run.step for run in self._runs if run.step is not None), default=None),
            has_begun=has_begun,
            marked_phase=self._phases.before(root_line or self._lines, has_begun=has_begun),
            surroundings=shown_around,
            tail=tail,
            redactions=self._redactor.count,
            seen=frozenset(self._seen),
            timeline=self._timeline,
            novel=self._novel(),
            command=(self._launch.shown.number, self._redactor.clean(self._launch.shown.body)),
        )

    def _novel(self) -> tuple[tuple[int, str], ...]:
        """Give the last lines that the healthy run has none like."""
        if not self._good.lines or self._last is None:
            return ()
        rows = self._last.data.split(b"\n")
        fresh = [
            (self._last.line + place, raw)
            for place, raw in enumerate(rows)
            if raw.strip() and not self._good.has(raw)
        ]
        return self._cleaned([(number, raw[:MAX_AROUND]) for number, raw in fresh[-NOVEL:]])

    def _cleaned(self, rows: Sequence[tuple[int, bytes]]) -> tuple[tuple[int, str], ...]:
        """Give numbered rows as they may be shown."""
        cleaned = self._redactor.rows(
            [lines.parse_line(uncut(raw, self._redactor.clean), number).text for number, raw in rows]
        )
        return tuple((number, text) for (number, _), text in zip(rows, cleaned, strict=True))

    def _refined(self, event: Event, job: ReportView) -> Event:
        """Give the event with the most exact cause that its pattern, or the code that failed, tells."""
        row = self._table.by_id.get(event.pattern)
        if row and row.refine:
            # Facts of other lines belong to other events; what was derived belongs to the whole log.
            facts = [fact for fact in job.facts if fact.line == event.line or fact.kind in DERIVED]
            view = replace(job, root=event, facts=facts, focus=event)
            exact = next((refinement for refinement in row.refine if all_hold(refinement.when, view)), None)
            if exact:
                event = replace(event, cause=exact.cause, strength=exact.strength or event.strength)
        return classify_exception(event, self._table.exceptions)


def _segment_of(block: Block, match: Match) -> tuple[int, int]:
    """Tell the part of a redrawn line that a match is in; parts of one line are lines of their own."""
    begin, _ = block.line_bounds(match.offset)
    return match.line, max(begin, block.data.rfind(b"\r", begin, match.offset) + 1)


def _stands(row: Pattern, line: Line) -> bool:
    """Hold an anchored expression against the line without its prefixes; the scanner only proposes those."""
    if not row.is_anchored:
        return True
    # Who quotes a message may end it as a sentence, or close what it opened.
    return any(row.compiled.search(text) for text in (line.body, line.text, unquoted(line.body)))


def _place(row: Pattern, text: str) -> int:
    match = row.compiled.search(text) if len(text) > SHOWN else None
    return match.start() if match else 0


def _telling(row: Pattern) -> tuple[bool, int, bool, int]:
    return row.generic, _ROLE[row.role], not row.cause, _STRENGTH[row.strength]


def _is_remark(line: Line, row: Pattern) -> bool:
    """Tell whether a line is of a level that is no trouble.

    What NCCL says so of its own failures counts by its row.
    """
    return line.level in REMARKS or (line.body.startswith("NCCL INFO ") and not row.said_at_info)


def _is_warned(line: Line, row: Pattern) -> bool:
    """Tell whether a line is of the level of a warning."""
    return line.level.startswith("WARN") or (line.level == "W" and row.survivable)
