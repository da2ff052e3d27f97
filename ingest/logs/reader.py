"""Read one job's output into a CrashReport, in one pass and bounded memory."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path

from ingest.logs import launch, lines, tracebacks
from ingest.logs.blame import judged
from ingest.logs.cascade import Mark, Progress, arrange
from ingest.logs.conditions import View, all_hold
from ingest.logs.derived import DERIVED, derive
from ingest.logs.events import Event, EventLog
from ingest.logs.facts import Fact, Value, typed
from ingest.logs.frameworks import FrameworkLog
from ingest.logs.launch import SettingLog
from ingest.logs.lines import Line
from ingest.logs.patterns import Pattern, PatternTable
from ingest.logs.report import CrashReport, Limits
from ingest.logs.scanner import Block, Match, Scanner, Tally, blocks
from ingest.logs.sources import LogSource
from ingest.logs.tracebacks import Frame, Traceback
from ingest.redact import Redactor

UNKNOWN_EXCEPTION = "python.exception"
# Rows for any exception's line, which give way to every row that knows the message.
GENERIC = frozenset({UNKNOWN_EXCEPTION, "python.assertion-bare"})
# Dialects whose failures are worded like anybody's: a key that is missing says nothing of the trainer.
SHARED = frozenset({"python", "verl", "openrlhf", "trl", "megatron", "llamafactory", "ms-swift", "axolotl", "lightning", "hydra"})
CUT_TRACEBACK = "python.cut-traceback"
IGNORED_EXCEPTION = "python.exception-ignored"
MAX_FACTS = 2000
# A message may run over some lines after the one that names the exception.
MESSAGE_LINES = 6
SURROUNDINGS = 8
SHOWN = 2000
CODE = 200
TAIL = 12

_STRENGTH = {"states": 0, "suggests": 1, "hints": 2}
_WARNING = re.compile(r"\b[A-Z]\w*Warning: ")
_REPEATED = re.compile(r"\[repeated (\d{1,9})x across cluster\]")
# A progress bar: what it counts need not be training steps.
_BAR = re.compile(r"\d+%\|")
_ROLE = {"origin": 0, "collateral": 1, "wrapper": 2, "none": 3}


class Reader:
    """Reads logs with one table of patterns; not to be shared between threads."""

    def __init__(self, table: PatternTable, cache: Path | None = None) -> None:
        self._table = table
        self._scanner = Scanner(table.rows, cache)

    def read(self, source: LogSource) -> CrashReport:
        """Read a log to its end; raises InputError where it cannot be read at all."""
        self._scanner.fresh()
        reading = _Reading(self._table)
        tally = Tally()
        for block in blocks(source.chunks(), tally):
            reading.take(block, self._scanner.matches(block))
        return reading.report(source, tally)


class _Reading:
    """What is gathered while one log goes by."""

    def __init__(self, table: PatternTable) -> None:
        self._table = table
        self._rows = table.rows
        self._redactor = Redactor()
        self._events = EventLog()
        self._facts: list[Fact] = []
        self._ranks: list[tuple[int, str]] = []
        self._frameworks = FrameworkLog()
        self._settings = SettingLog()
        self._progress = Progress()
        self._phases: deque[tuple[int, str]] = deque(maxlen=200)
        self._tail: list[tuple[int, str]] = []
        self._around: dict[int, tuple[tuple[int, str], ...]] = {}
        self._open: dict[str, Traceback] = {}
        self._ends: dict[tuple[str, int], Traceback] = {}
        self._matched: set[tuple[str, int]] = set()
        self._seen: set[str] = set()
        self._ignored: dict[str, int] = {}
        self._parsed: dict[int, Line] = {}

    def take(self, block: Block, matches: list[Match]) -> None:
        self._parsed = {}
        for _, group in groupby(matches, key=partial(_segment_of, block)):
            self._line(block, list(group))
        # A traceback that runs on beyond the block's own part meets its last line's patterns in the next.
        self._flush(before=block.line + block.data.count(b"\n", 0, block.stop))
        self._tail = _last_lines(block, self._redactor)

    def _line(self, block: Block, matches: list[Match]) -> None:
        offset = matches[0].offset
        begin, end = block.line_bounds(offset)
        line = lines.parse(block.data[begin:end], matches[0].line, offset - begin)
        rows = [row for row in dict.fromkeys(self._rows[match.row] for match in matches) if _stands(row, line)]
        if not rows:
            return
        if any(row.id == "structure.traceback" for row in rows):
            self._traceback(block, offset, line)
        if self._quoted_code(line):
            # What code a traceback quotes may tell what the job was doing; it never is a failure's message.
            self._seen.update(row.id for row in rows if row.kind == "fact")
            return
        failing = [] if self._is_ignored(line) else [row for row in rows if row.fails or row.kind == "warning"]
        for row in rows:
            if not (row.fails or row.kind == "warning"):
                self._mark(row, line, block, offset)
        if failing:
            self._failure(failing, line, block, offset)

    def _quoted_code(self, line: Line) -> bool:
        """Tell whether the line is source code that a traceback quotes, which only mentions a message."""
        traceback = self._open.get(line.source)
        if traceback is None or not traceback.start < line.number < traceback.end:
            return False
        return (line.source, line.number) not in self._ends and line.body[:1].isspace()

    def _is_ignored(self, line: Line) -> bool:
        """Tell whether a line ends an exception that Python itself says it ignores, as in a `__del__`."""
        traceback = self._ends.get((line.source, line.number))
        begin = traceback.start if traceback else line.number
        return self._is_below_ignored(line.source, begin) and (traceback is not None or line.number - self._ignored[line.source] <= 1)

    def _is_below_ignored(self, source: str, number: int) -> bool:
        said = self._ignored.get(source)
        return said is not None and 0 < number - said <= 1

    def _traceback(self, block: Block, offset: int, line: Line) -> None:
        self._flush(line.source)
        for traceback in tracebacks.at(block, offset, line.number, self._parsed):
            self._open[line.source] = replace(traceback, start=line.number)
            self._ends[(line.source, traceback.end)] = traceback
            for frame in traceback.frames:
                self._frameworks.see_text(frame.file, line.number)

    def _flush(self, source: str | None = None, before: int | None = None) -> None:
        """Turn tracebacks whose last line no pattern knew into events of their own."""
        chosen = [key for key in self._ends if source in (None, key[0]) and (before is None or key[1] < before)]
        for key in chosen:
            traceback = self._ends.pop(key)
            if key not in self._matched and not self._is_below_ignored(traceback.source, traceback.start):
                self._events.add(self._unknown(traceback))
            self._matched.discard(key)
        if source is not None:
            self._open.pop(source, None)

    def _unknown(self, traceback: Traceback) -> Event:
        text = self._shown(traceback.text)
        frames = self._frames(traceback)
        if not traceback.exception:
            return Event(
                CUT_TRACEBACK, "error", "wrapper", traceback.end, text, text.strip(), source=self._redactor.clean(traceback.source),
                frames=frames, traceback=traceback.start,
            )
        body = self._shown(f"{traceback.exception}: {traceback.message}" if traceback.message else traceback.exception)
        return Event(
            UNKNOWN_EXCEPTION, "error", "origin", traceback.end, text, body, source=self._redactor.clean(traceback.source),
            exception=self._redactor.clean(traceback.exception), frames=frames, remote=traceback.remote, traceback=traceback.start,
        )

    def _frames(self, traceback: Traceback) -> tuple[Frame, ...]:
        clean = self._redactor.clean
        return tuple(
            replace(frame, file=clean(frame.file), function=clean(frame.function), code=clean(frame.code)[:CODE])
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
        self._note(row, line, fields)
        if row.phase or (row.fact == "phase" and "name" in fields):
            self._phases.append((line.number, row.phase or str(fields["name"])))
        elif row.fact and fields and row.kind != "progress":
            self._fact(row.fact, line.number, fields)
        if row.id == "structure.command":
            self._command(block, offset, line)
        elif row.id == "structure.dump":
            self._set(launch.from_dump(line.body, line.number))

    def _note(self, row: Pattern, line: Line, fields: dict[str, Value]) -> None:
        """Note what kind of line it is: progress, an end, a version, or only somebody's dialect."""
        if row.id == IGNORED_EXCEPTION:
            self._ignored[line.source] = line.number
        if row.kind == "version":
            for name in row.frameworks:
                self._frameworks.see(name, line.number, str(fields.get("version", "")))
            return
        self._see(row, line)
        if row.kind == "finish":
            self._progress.finished = line.number
        if row.kind == "progress":
            step = fields.get("step")
            counted = float(step) if isinstance(step, (int, float)) else -1.0
            self._progress.add(Mark(line.number, counted, f"{row.id} {line.source}"))
            if counted >= 0 and not _BAR.search(line.body):
                self._progress.step = counted

    def _see(self, row: Pattern, line: Line) -> None:
        """Note the framework whose dialect a line is in; what forks share says nothing of the fork."""
        dialect = row.id.split(".", 1)[0]
        if dialect in row.frameworks and not (dialect in SHARED and (row.fails or row.kind == "warning")):
            self._frameworks.see(dialect, line.number)

    def _command(self, block: Block, offset: int, line: Line) -> None:
        begin, _ = block.line_bounds(offset)
        text = lines.printable(block.data[begin : begin + 32768].decode("utf-8", "replace"), keep="\t\n")
        _, joined = next(iter(launch.logical_lines(text)), (0, line.body))
        self._frameworks.see_text(joined[:8000], line.number)
        self._set(launch.from_command(joined, line.number))

    def _set(self, settings: list[launch.Setting]) -> None:
        clean = self._redactor
        self._settings.add(replace(item, key=clean.clean(item.key), value=clean.value(item.key, item.value)) for item in settings)

    def _fields(self, row: Pattern, line: Line) -> dict[str, Value]:
        match = row.compiled.search(line.text) if row.compiled.groupindex else None
        fields = typed(match.groupdict()) if match else {}
        return {key: self._redactor.clean(value) if isinstance(value, str) else value for key, value in fields.items()}

    def _fact(self, kind: str, number: int, fields: dict[str, Value], stream: str = "") -> None:
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
        traceback = self._of(line)
        if traceback is None and line.level in ("INFO", "DEBUG"):
            # A remark that mentions a failure's words: it stands only where nothing else does.
            best = best.model_copy(update={"role": "wrapper", "strength": "hints"})
        elif traceback is None and _WARNING.search(line.body):
            best = best.model_copy(update={"role": "wrapper"})  # a warning means what it says, and may be survived
        event = Event(
            best.id, best.kind, best.role, line.number, self._shown(line.text, _place(best, line.text)),
            self._shown(line.body, _place(best, line.body)),
            cause=best.cause, strength=best.strength, source=self._redactor.clean(line.source), rank=line.rank, time=line.time,
            exception=self._redactor.clean(traceback.exception) if traceback else "", frames=self._frames(traceback) if traceback else (),
            remote=traceback.remote if traceback else "", facts=fields, frameworks=best.frameworks,
            also=tuple(row.id for row in rows[1:]), traceback=traceback.start if traceback else 0,
            count=_folded(line.body),
        )
        self._events.add(event)
        self._see(best, line)
        if len(self._around) < EventLog.LIMIT:
            self._around.setdefault(line.number, _surroundings(block, offset, line.number, self._redactor))

    def _of(self, line: Line) -> Traceback | None:
        """Give the traceback that a line ends, or whose message it goes on with."""
        exact = self._ends.get((line.source, line.number))
        if exact is not None:
            self._matched.add((line.source, line.number))
            return exact
        near = [
            traceback for (source, end), traceback in self._ends.items()
            if source == line.source and end < line.number <= end + MESSAGE_LINES
        ]
        return near[-1] if near else None

    def report(self, source: LogSource, tally: Tally) -> CrashReport:
        """Order what was gathered and give the report."""
        self._flush()
        facts = derive(self._facts, self._ranks)
        job = View(self._events.all(), None, facts, self._frameworks.all(), self._settings.all(), seen=self._seen)
        events = tuple(self._refined(event, job) for event in job.events)
        cascade = arrange([event for event in events if event.kind != "warning"], self._progress)
        omitted: dict[str, int | str] = dict(source.omitted)
        if self._events.omitted:
            omitted["events"] = self._events.omitted
        limits = Limits(tally.size, tally.lines, bool(omitted), omitted)
        root_line = cascade.root.line if cascade.root else 0
        phases = [name for number, name in self._phases if number <= (root_line or tally.lines)]
        return CrashReport(
            self._redactor.clean(lines.printable(source.name)), cascade.events, cascade.root, facts, tuple(job.frameworks), tuple(job.settings), limits,
            finished=self._progress.finished, marks=self._progress.count, last_step=self._progress.step,
            marked_phase=phases[-1] if phases else "", surroundings=self._around.get(root_line, ()),
            tail=tuple(self._tail), redactions=self._redactor.count,
            seen=frozenset(self._seen),
        )

    def _refined(self, event: Event, job: View) -> Event:
        row = self._table.by_id.get(event.pattern)
        # Facts of other lines belong to other events; what was derived belongs to the whole log.
        facts = [fact for fact in job.facts if fact.line == event.line or fact.kind in DERIVED]
        view = replace(job, root=event, facts=facts, focus=event)
        for refinement in row.refine if row else ():
            if all_hold(refinement.when, view):
                return replace(event, cause=refinement.cause, strength=refinement.strength or event.strength)
        return judged(event)


def _segment_of(block: Block, match: Match) -> tuple[int, int]:
    """Tell the part of a redrawn line that a match is in; parts of one line are lines of their own."""
    begin, _ = block.line_bounds(match.offset)
    return match.line, max(begin, block.data.rfind(b"\r", begin, match.offset) + 1)


def _stands(row: Pattern, line: Line) -> bool:
    """Hold an anchored expression against the line without its prefixes; the scanner only proposes those."""
    return not row.is_anchored or bool(row.compiled.search(line.body) or row.compiled.search(line.text))


def _place(row: Pattern, text: str) -> int:
    match = row.compiled.search(text) if len(text) > SHOWN else None
    return match.start() if match else 0


def _folded(body: str) -> int:
    """Give how many lines Ray says that this one stands for."""
    match = _REPEATED.search(body)
    return max(1, int(match[1])) if match else 1


def _telling(row: Pattern) -> tuple[bool, int, bool, int]:
    return row.id in GENERIC, _ROLE[row.role], not row.cause, _STRENGTH[row.strength]


def _surroundings(block: Block, offset: int, number: int, redactor: Redactor) -> tuple[tuple[int, str], ...]:
    begin, end = block.line_bounds(offset)
    before = block.data[max(0, begin - 16384) : begin].split(b"\n")[:-1][-SURROUNDINGS:]
    after = block.data[end + 1 : end + 16384].split(b"\n")[:SURROUNDINGS]
    rows = [(number - len(before) + place, raw) for place, raw in enumerate(before)]
    rows += [(number + 1 + place, raw) for place, raw in enumerate(after) if raw]
    rows.append((number, block.data[begin:end][:65536]))
    return tuple(sorted((place, redactor.clean(lines.parse(raw, place).text)) for place, raw in rows))


def _last_lines(block: Block, redactor: Redactor) -> list[tuple[int, str]]:
    raw = block.data[max(0, len(block.data) - 16384) :].rstrip(b"\n").split(b"\n")[-TAIL:]
    last = block.line + block.data.rstrip(b"\n").count(b"\n")
    return [(last - len(raw) + 1 + place, redactor.clean(lines.parse(text, last).text)) for place, text in enumerate(raw)]
