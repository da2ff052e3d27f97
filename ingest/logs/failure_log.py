"""The failures of a log while it goes by: which pattern tells most of a line, and what its event says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corpus import trouble_words
from corpus.frameworks import cued_frameworks
from corpus.log_patterns import Pattern
from ingest.logs import levels
from ingest.logs.context_lines import SURROUNDINGS, context_lines
from ingest.logs.events import Event, EventLog
from ingest.logs.facts import Value
from ingest.logs.job_notes import JobNotes
from ingest.logs.lines import Line
from ingest.logs.masking import CODE, Masking
from ingest.logs.placed_line import PlacedLine
from ingest.logs.repeats import Sighting
from ingest.logs.scanner import Block
from ingest.logs.stacks import tracebacks
from ingest.logs.stacks.tracebacks import Traceback
from ingest.logs.traceback_log import TracebackLog
from ingest.logs.wording import goes_on, happened, is_prose, says, says_it_continues

# What loggers call a line that is no trouble; glog writes one letter.
REMARKS = frozenset({"INFO", "DEBUG", "TRACE", "I", "D"})

# How many failures beside the root's are shown with the rows around them.
WINDOWS = 4

_STRENGTH = {"states": 0, "suggests": 1, "hints": 2}
_ROLE = {"origin": 0, "collateral": 1, "wrapper": 2, "none": 3}
_WARNING = re.compile(r"\b[A-Z]\w*Warning: ")
# What a program calls a warning in words of its own, without a logger.
_WARNS = re.compile(r"(?:W(?:arning|ARNING)|warning)s?\b ?[:!]")
# Pydantic's list of what does not fit: a field a line, with what is wrong with it below.
_VALIDATION = re.compile(r"\d validation errors? for \w")
_FIELD = re.compile(r"[A-Za-z_][\w.]{0,120}\s*$")
# How many lines Ray says that one stands for.
_REPEATED = re.compile(r"\[repeated (\d{1,9})x across cluster\]")


def _length(pattern: Pattern, body: str) -> int:
    """Give how much of a line a pattern finds."""
    found = pattern.compiled.search(body)
    return 0 if found is None else len(found[0])


class FailureLog:
    """The failures of one job's output, with the rows around the first lines of each."""

    def __init__(
        self, masking: Masking, notes: JobNotes, events: EventLog, traceback_log: TracebackLog
    ) -> None:
        self._masking = masking
        self._notes = notes
        self._events = events
        self._tracebacks = traceback_log
        self._around: dict[int, tuple[tuple[int, bytes], ...]] = {}

    def add(self, rows: Sequence[Pattern], at: PlacedLine, sight: Sighting, *, ignored: bool = False) -> None:
        """Take in a line with the patterns of failures and warnings that match it.

        What Python has `ignored` follows from another failure, where there is one.
        """
        known = [row for row in rows if not row.last_resort]
        line = at.line
        if tracebacks.is_warning_call(line.body):
            return
        # General words of a failure are none in a traceback, whose last line tells, nor where the run goes
        # on, nor where a line only warns of one, nor in a text of many sentences.
        is_told = self._tracebacks.is_inside(line) or line.level in REMARKS
        is_told = is_told or goes_on(line.body) or is_prose(line.body)
        said = happened(line.body)
        is_told = is_told or (said != line.body and not any(says(row, said) for row in rows))
        if not known and is_told:
            return
        is_general = all(row.last_resort or row.generic for row in rows)
        if is_general and tracebacks.is_in_warning(at.block, at.offset, line, at.parsed):
            return
        ranked = sorted(
            known or rows,
            key=lambda pattern: (
                not pattern.announces,
                pattern.generic,
                _ROLE[pattern.role],
                not pattern.cause,
                _STRENGTH[pattern.strength],
                # Of some alike the one that knows more of the line: "no space" of NCCL's segment, of a disk.
                -_length(pattern, line.body),
            ),
        )
        fields = self._fields(ranked, line)
        traceback = self._tracebacks.ended_by(at)
        if _VALIDATION.search(line.body):
            self._note_misfit(at)
        best = _toned_down(ranked[0], line, traceback)
        if (
            best.kind == "error"
            and traceback is None
            and tracebacks.ends_warning(at.block, at.offset, line, at.parsed)
        ):
            best = best.model_copy(update={"role": "wrapper"})
        if ignored and best.role == "origin":
            best = best.model_copy(update={"role": "collateral"})
        event = self._event(best, line, traceback, fields, ranked)
        sight.group = self._events.add(event)
        self._notes.progress.timeline.event(line.number, line.time)
        # Several frameworks share their checks' words: where the calls are shown, they say whose it is.
        frames = traceback.frames if traceback else ()
        called = {name for frame in frames for name in cued_frameworks(frame.file)}
        if len(best.frameworks) < 2 or not frames or called & set(best.frameworks):
            self._notes.see_shown(best, line)
        if line.number in self._around or len(self._around) < EventLog.LIMIT:
            # Of lines that say the same the first one alone is shown.
            shown = self._around.setdefault(line.number, ())
            if not shown and self._events.begins_in(sight.group, line.number):
                self._around[line.number] = context_lines(at.block, at.offset, line.number)

    def _fields(self, ranked: Sequence[Pattern], line: Line) -> dict[str, Value]:
        """Note the facts that the patterns find in a line; give all values, the best pattern's first."""
        fields: dict[str, Value] = {}
        for row in ranked:
            found = self._masking.fields(row, line)
            fields = {**found, **fields}
            if row.fact and found:
                self._notes.add_fact(row.fact, line.number, found, line.rank or line.source)
        return fields

    def _note_misfit(self, at: PlacedLine) -> None:
        """Note the first setting that a validation error lists below its own line."""
        rows = tracebacks.under(at.block, at.offset, at.line, at.parsed, 2)
        if len(rows) == 2 and _FIELD.match(rows[0].body) and rows[1].body[:1].isspace():
            kind = "config_key" if "Extra inputs" in rows[1].body else "config_value"
            fields: dict[str, Value] = {"key": rows[0].body.strip(), "reason": rows[1].body.strip()[:CODE]}
            self._notes.add_fact(kind, at.line.number, fields)

    def _event(
        self,
        pattern: Pattern,
        line: Line,
        traceback: Traceback | None,
        fields: dict[str, Value],
        ranked: Sequence[Pattern],
    ) -> Event:
        """Make the event of a line; `pattern` is the first of the `ranked`, as the line means it."""
        match = _REPEATED.search(line.body)
        # A message that a console broke is whole in its traceback.
        whole = f"{traceback.exception}: {traceback.message}" if traceback else ""
        is_broken = traceback and traceback.message and whole.startswith(line.body.rstrip())
        body = whole if is_broken else line.body
        return Event(
            pattern.id,
            pattern.kind,
            pattern.role,
            line.number,
            self._masking.shown(line.text, pattern),
            self._masking.shown(body, pattern),
            cause=pattern.cause,
            strength=pattern.strength,
            source=self._masking.clean(line.source),
            rank=line.rank or line.told,
            time=line.time,
            exception=self._masking.clean(traceback.exception) if traceback else "",
            frames=self._masking.frames(traceback) if traceback else (),
            remote=traceback.remote if traceback else "",
            facts=fields,
            frameworks=pattern.frameworks,
            also=tuple(other.id for other in ranked[1:]),
            traceback=traceback.start if traceback else 0,
            linked=traceback.linked if traceback else False,
            rest=self._masking.clean(traceback.rest) if traceback else "",
            announces=traceback.announces if traceback else False,
            calm=traceback.calm if traceback else 0,
            logged=traceback.logged if traceback else levels.is_error(line.level),
            passing=pattern.passing,
            lasting=pattern.lasting,
            final=pattern.final,
            count=max(1, int(match[1])) if match else 1,
            handler=pattern.handler,
            tells=tuple(told for other in ranked for told in other.tells),
            leads_to=pattern.leads_to,
        )

    def note_error_levels(self, block: Block, pattern: Pattern) -> None:
        """Note the lines near a block's end that a logger calls errors, as events of `pattern`.

        One without a word of trouble may be no error at all: some programs log their stages so.
        """
        trouble = trouble_words.trouble()
        for line in levels.error_levels(block):
            called_error = Event(
                pattern.id,
                pattern.kind,
                pattern.role,
                line.number,
                self._masking.shown(line.text),
                self._masking.shown(line.body),
                source=self._masking.clean(line.source),
                rank=line.rank or line.told,
                time=line.time,
                passing=trouble.search(line.body) is None,
                handler=pattern.handler,
            )
            self._events.add(called_error)

    def surroundings(self, number: int) -> tuple[tuple[int, str], ...]:
        """Give the rows around a failure's line as they may be shown."""
        rows = self._masking.rows(self._around.get(number, ()))
        return tuple(row for row in rows if abs(row[0] - number) <= SURROUNDINGS)

    def rows_near_origins(self, events: Sequence[Event]) -> tuple[tuple[int, str], ...]:
        """Give the rows around other failures that may be the cause; those that say most count first."""
        origins = [event for event in events if event.role != "root" and event.pattern_role == "origin"]
        ranked = sorted(
            origins, key=lambda event: (event.role != "collateral", *(-part for part in event.weight))
        )
        found: dict[int, str] = {}
        for event in ranked[:WINDOWS]:
            found.update(self.surroundings(event.line))
        return tuple(sorted(found.items()))


def _calls_warning(row: Pattern, line: Line) -> bool:
    """Tell whether a program calls a line a warning by a word that is none of the message that it knows.

    What a message states, such as a dead device, is no less so for that word.
    """
    word, found = _WARNS.match(line.body), row.compiled.search(line.body)
    return word is not None and found is not None and found.start() > 0 and row.strength != "states"


def _toned_down(row: Pattern, line: Line, traceback: Traceback | None) -> Pattern:
    """Give the row as a line means it that warns, goes on without what failed, or only remarks."""
    warns = line.level.startswith("WARN") or (line.level == "W" and row.survivable)
    warns = warns or (traceback is None and _calls_warning(row, line))
    if (
        row.kind == "error"
        and row.role == "origin"
        and (warns or (traceback is None and says_it_continues(line.body)))
    ):
        # Whoever says so has gone on.
        row = row.model_copy(update={"kind": "warning", "strength": "hints"})
    elif row.last_resort and (warns or line.level == "W"):
        row = row.model_copy(update={"passing": True})
    if traceback is not None:
        return row
    is_remark = line.level in REMARKS or line.body.startswith("NCCL INFO ")
    if is_remark and not row.said_at_info:
        # A remark that mentions a failure's words: it stands only where nothing else does.
        return row.model_copy(update={"role": "wrapper", "strength": "hints"})
    if row.kind == "error" and row.strength != "states" and tracebacks.warns(line.body):
        # Python's own warning: whoever is told it has gone on, if it does not say why all that follows fails.
        return row.model_copy(update={"kind": "warning", "role": "none"})
    # A warning means what it says, and may be survived.
    return row.model_copy(update={"role": "wrapper"}) if _WARNING.search(line.body) else row
