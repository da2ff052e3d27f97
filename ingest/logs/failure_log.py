"""The failures of a log while it goes by: which pattern tells most of a line, and what its event says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corpus import trouble_words
from corpus.frameworks import cued_frameworks
from corpus.log_patterns import Pattern
from ingest.logs import levels
from ingest.logs.context_lines import SURROUNDINGS, context_lines
from ingest.logs.events import Event, EventLog, GroupKey, Told
from ingest.logs.facts import Value
from ingest.logs.job_notes import JobNotes
from ingest.logs.judgements import FailureJudgement
from ingest.logs.lines import Line
from ingest.logs.masking import CODE, SHOWN, Masking
from ingest.logs.placed_line import PlacedLine
from ingest.logs.repeats import Sighting
from ingest.logs.scanner import Block
from ingest.logs.stacks import tracebacks
from ingest.logs.stacks.stack import under
from ingest.logs.stacks.tracebacks import Traceback
from ingest.logs.traceback_log import TracebackLog
from ingest.logs.turned_numbers import ShapedRows
from ingest.logs.wording import goes_on

# How many failures beside the root's are shown with the rows around them.
WINDOWS = 4

_FIELD = re.compile(r"[A-Za-z_][\w.]{0,120}\s*$")
# How many lines Ray says that one stands for.
_REPEATED = re.compile(r"\[repeated (\d{1,9})x across cluster\]")


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
        self._shaped: tuple[Block, ShapedRows] | None = None

    def add(
        self, judged: FailureJudgement, at: PlacedLine, sight: Sighting, *, ignored: bool = False
    ) -> None:
        """Take in a line with what its patterns of failures and warnings mean.

        What Python has `ignored` follows from another failure, where there is one.
        """
        line = at.line
        if judged.is_warning_call or (judged.is_general_talk and self._is_told(judged, line)):
            return
        if judged.is_general and tracebacks.is_in_warning(at.block, at.offset, line, at.parsed):
            return
        ranked = judged.ranked
        fields = self._fields(judged.telling, line)
        traceback = self._tracebacks.ended_by(at)
        if judged.lists_misfits:
            self._note_misfit(at)
        best = judged.within_traceback if traceback else judged.alone
        sight.group = self._again(best, judged, line, traceback)
        if sight.group is None:
            # What a role tells is asked for the first of a group alone.
            best = self._as_it_stands(best, at, is_bare=traceback is None, ignored=ignored)
            sight.group = self._events.add(self._event(best, line, traceback, fields, ranked))
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

    def count(self, judged: FailureJudgement, at: PlacedLine, sight: Sighting) -> bool:
        """Count a line like one that was only counted before; where this gives False, `add` has to read it.

        It does wherever something around the line might make it another than that one.
        """
        line = at.line
        stack = self._tracebacks.ending(line)
        group = judged.counted_in.get(stack is not None)
        if group is None or not self._tracebacks.leave_alone(line, stack):
            return False
        best = judged.within_traceback if stack else judged.alone
        if (
            not self._events.holds_from_above(group, line.number)
            or (judged.is_general_talk and (stack is not None or goes_on(line.body)))
            or (judged.is_general and tracebacks.is_in_warning(at.block, at.offset, line, at.parsed))
            or not (
                self._only_ends(stack.traceback, best, group, line)
                if stack
                # No calls stand above it that would make it the end of a traceback without a header.
                else self._tracebacks.headless(at) is None
            )
            or not (judged.size_of_clear or self._masking.are_clear(line.text, line.body))
        ):
            return False
        if stack:
            stack.is_matched = True
        sight.group = group
        if judged.stating:
            self._note_facts(judged.stating, line)
        if judged.size_of_clear:
            self._masking.redactor.pass_clear(judged.size_of_clear)
        else:
            judged.counted += 1
            # Shapes become known while a log goes by.
            if judged.counted & (judged.counted - 1) == 0:
                judged.size_of_clear = self._masking.size_of_clear(line)
        self._count_in(group, best, line)
        self._notes.progress.timeline.event(line.number, line.time)
        if len(self._around) < EventLog.LIMIT:
            self._around.setdefault(line.number, ())
        return True

    def _only_ends(self, traceback: Traceback, best: Pattern, group: GroupKey, line: Line) -> bool:
        """Tell whether a line that ends a traceback would only be counted with a group."""
        # Of a row that several frameworks share the calls say whose it is.
        return (
            len(best.frameworks) < 2
            and self._events.only_counts(group, best.kind, traceback.frames, is_linked=traceback.linked)
            and _message(line, traceback) == line.body
        )

    def _is_told(self, judged: FailureJudgement, line: Line) -> bool:
        """Tell whether general words of a failure are none.

        In a traceback the last line tells.
        """
        return self._tracebacks.is_inside(line) or judged.is_supposed or goes_on(line.body)

    def _again(
        self, best: Pattern, judged: FailureJudgement, line: Line, traceback: Traceback | None
    ) -> GroupKey | None:
        """Count a line whose event would only be one more of its group; give the group, None where it is not.

        Of a line that holds no secret all that is kept then is who said it, and when.
        """
        group = best.id, judged.masked
        frames, is_linked = (traceback.frames, traceback.linked) if traceback else ((), False)
        if len(line.text) > SHOWN or not self._events.only_counts(
            group, best.kind, frames, is_linked=is_linked
        ):
            return None
        if _message(line, traceback) != line.body or not self._masking.are_clear(line.text, line.body):
            return None
        if not judged.lists_misfits:
            judged.counted_in[traceback is not None] = group
        return self._count_in(group, best, line)

    def _count_in(self, group: GroupKey, best: Pattern, line: Line) -> GroupKey:
        source = self._masking.clean(line.source) if line.source else ""
        told = Told(best.kind, line.number, line.text, source, line.rank or line.told, line.time)
        return self._events.add_again(group, told, _times(line))

    def _note_facts(self, stating: Sequence[Pattern], line: Line) -> None:
        for row in stating:
            if row.fact and (found := self._masking.fields(row, line)):
                self._notes.add_fact(row.fact, line.number, found, line.rank or line.source)

    def _fields(self, telling: Sequence[Pattern], line: Line) -> dict[str, Value]:
        """Note the facts that the patterns find in a line; give all values, the best pattern's first."""
        fields: dict[str, Value] = {}
        for row in telling:
            found = self._masking.fields(row, line)
            fields = {**found, **fields}
            if row.fact and found:
                self._notes.add_fact(row.fact, line.number, found, line.rank or line.source)
        return fields

    def _note_misfit(self, at: PlacedLine) -> None:
        """Note the first setting that a validation error lists below its own line."""
        rows = under(at.block, at.offset, at.line, at.parsed, 2)
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
        body = _message(line, traceback)
        traceback = self._tracebacks.told(traceback) if traceback else None
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
            outright=pattern.outright,
            count=_times(line),
            handler=pattern.handler,
            tells=tuple(told for other in ranked for told in other.tells),
            leads_to=pattern.leads_to,
        )

    def _as_it_stands(self, best: Pattern, at: PlacedLine, *, is_bare: bool, ignored: bool) -> Pattern:
        """Give a line's pattern with the role that it has at its place."""
        block, line = at.block, at.line
        if best.kind == "error" and is_bare and tracebacks.ends_warning(block, at.offset, line, at.parsed):
            best = best.model_copy(update={"role": "wrapper"})
        if ignored and best.role == "origin":
            best = best.model_copy(update={"role": "collateral"})
        if best.turns:
            begin, end = block.line_bounds(at.offset)
            if not self._rows_of(block).have_numbers_above(begin, block.data[begin:end]):
                best = best.model_copy(update={"lasting": False})
        return best

    def let_numbers_return(self, block: Block) -> None:
        """Let go of what turned to NaN and has numbers again in the last block of a file."""
        for group, text in self._events.lasting():
            if self._rows_of(block).have_numbers_again(text.encode()):
                self._events.let_go(group)

    def _rows_of(self, block: Block) -> ShapedRows:
        """Give a block's rows by their shapes, which are looked through once where anybody asks."""
        if self._shaped is None or self._shaped[0] is not block:
            self._shaped = block, ShapedRows(block.data)
        return self._shaped[1]

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


def _times(line: Line) -> int:
    """Give how many lines one stands for."""
    match = _REPEATED.search(line.body) if "[repeated" in line.body else None
    return max(1, int(match[1])) if match else 1


def _message(line: Line, traceback: Traceback | None) -> str:
    """Give what a line says; a message that a console broke is whole in its traceback."""
    if traceback is None or not traceback.message:
        return line.body
    whole = f"{traceback.exception}: {traceback.message}"
    return whole if whole.startswith(line.body.rstrip()) else line.body
