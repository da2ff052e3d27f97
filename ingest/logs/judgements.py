"""What a line means by its text and the patterns that match it, wherever it stands.

Lines that differ in their digits alone mean the same, where nothing that is asked of them tells one digit
from another: they are judged once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cached_property

from corpus.log_patterns import Pattern, PatternTable
from ingest.digit_blind import told_apart
from ingest.logs.events import masked
from ingest.logs.lines import Line, shape_of
from ingest.logs.samples import spoken_rows
from ingest.logs.stacks import tracebacks
from ingest.logs.transcripts import is_entered
from ingest.logs.wording import COUNTS_FAILED, happened, has_many_clauses, holds, says, says_it_continues

# What loggers call a line that is no trouble; glog writes one letter.
REMARKS = frozenset({"INFO", "DEBUG", "TRACE", "I", "D"})
# So many judgements are remembered.
REMEMBERED = 4096

_STRENGTH = {"states": 0, "suggests": 1, "hints": 2}
_ROLE = {"origin": 0, "collateral": 1, "wrapper": 2, "none": 3}
_WARNING = re.compile(r"\b[A-Z]\w*Warning: ")
# What a program calls a warning in words of its own, without a logger.
_WARNS = re.compile(r"(?:W(?:arning|ARNING)|warning)s?\b ?[:!]")
# Pydantic's list of what does not fit: a field a line, with what is wrong with it below.
_VALIDATION = re.compile(r"\d validation errors? for \w")
# A variable of an environment that somebody prints is no message, whatever its value says.
_VARIABLE = re.compile(r"^_?[A-Z][A-Z0-9_]{2,60}=")
# In the shape of a line, what may be a number in hexadecimal, by which words of a job may be known.
_HEXADECIMAL = re.compile(rb"1x")


class FailureJudgement:
    """What the patterns of failures and warnings mean that match a line."""

    def __init__(self, rows: Sequence[Pattern], line: Line) -> None:
        self._line = line
        self._known = [row for row in rows if not row.last_resort]
        self._rows = rows

    @cached_property
    def ranked(self) -> Sequence[Pattern]:
        """The patterns that count, the one first that tells most of the line."""
        body = self._line.body
        return sorted(
            self._known or self._rows,
            key=lambda pattern: (
                not pattern.announces,
                pattern.generic,
                _ROLE[pattern.role],
                not pattern.cause,
                _STRENGTH[pattern.strength],
                # Of some alike the one that knows more of the line: "no space" of NCCL's segment, of a disk.
                -_length(pattern, body),
            ),
        )

    @cached_property
    def telling(self) -> Sequence[Pattern]:
        """Those of them that find values in the line; the others have no named groups."""
        return [row for row in self.ranked if row.compiled.groupindex]

    @property
    def is_general_talk(self) -> bool:
        """Tell whether only general words of a failure stand in the line."""
        return not self._known

    @cached_property
    def is_general(self) -> bool:
        """Tell whether no pattern knows more than that something failed, or was raised."""
        return all(row.last_resort or row.generic for row in self._rows)

    @cached_property
    def is_warning_call(self) -> bool:
        """Tell whether the line is the statement that Python shows below a warning."""
        return tracebacks.is_warning_call(self._line.body)

    @cached_property
    def masked(self) -> str:
        """The message without its numbers, as its group is told by."""
        return masked(self._line.body)

    @cached_property
    def lists_misfits(self) -> bool:
        """Tell whether settings that do not fit are listed below the line."""
        return _VALIDATION.search(self._line.body) is not None

    @cached_property
    def is_supposed(self) -> bool:
        """Tell whether a line with general words of a failure only remarks or warns of one, or is prose."""
        line = self._line
        if line.level in REMARKS or has_many_clauses(line.body):
            return True
        said = happened(line.body)
        return said != line.body and not any(says(row, said) for row in self._rows)

    @cached_property
    def alone(self) -> Pattern:
        """The best pattern as a line means it that ends no traceback."""
        return _toned_down(self.ranked[0], self._line, ends_traceback=False)

    @cached_property
    def within_traceback(self) -> Pattern:
        """The best pattern as a line means it that ends a traceback."""
        return _toned_down(self.ranked[0], self._line, ends_traceback=True)


class LineJudgement:
    """What the patterns mean that match a line."""

    def __init__(self, rows: Sequence[Pattern], line: Line) -> None:
        self._rows, self._line = rows, line
        self._failures: dict[bool, FailureJudgement | None] = {}

    @cached_property
    def is_entered(self) -> bool:
        """Tell whether the line is code that was entered at a prompt."""
        return is_entered(self._line.text)

    @cached_property
    def rows(self) -> Sequence[Pattern]:
        """The patterns that hold for what the line says itself, beside samples that it quotes."""
        return [row for row in spoken_rows(list(self._rows), self._line) if holds(row, self._line)]

    @cached_property
    def begins_traceback(self) -> bool:
        """Tell whether a stack begins in the line."""
        return any(row.handler == "traceback" for row in self.rows)

    @cached_property
    def calm_rows(self) -> Sequence[Pattern]:
        """The patterns that tell of no failure and warn of none."""
        return [row for row in self.rows if not row.fails and row.kind != "warning"]

    @cached_property
    def deaths(self) -> Sequence[Pattern]:
        """The patterns of failures by which a main program says that it dies."""
        return [row for row in self.rows if row.fails and row.dies]

    def failures(self, *, ignored: bool) -> FailureJudgement | None:
        """Give what the patterns of failures and warnings mean; None where none counts.

        What Python has `ignored` counts for some of them only.
        """
        if ignored not in self._failures:
            rows = self._failing(ignored=ignored)
            is_variable = _VARIABLE.match(self._line.body) is not None
            self._failures[ignored] = FailureJudgement(rows, self._line) if rows and not is_variable else None
        return self._failures[ignored]

    def _failing(self, *, ignored: bool) -> Sequence[Pattern]:
        failing = [
            row for row in self.rows if (row.fails or row.kind == "warning") and row.counts(ignored=ignored)
        ]
        # What a row settles, its own words name too ("stop condition met: stopping training").
        settled = [wanted for row in self.rows for wanted in row.settles]
        return [row for row in failing if not any(fnmatchcase(row.id, name) for name in settled)]


class Judgements:
    """The judgements of lines of shapes that were seen."""

    def __init__(self, table: PatternTable) -> None:
        self._table = table
        self._known: dict[tuple[tuple[int, ...], bytes], LineJudgement] = {}
        # Which digits the patterns of some rows take for the same.
        self._tables: dict[tuple[int, ...], bytes | None] = {}

    def of(self, numbers: tuple[int, ...], line: Line) -> LineJudgement:
        """Judge a line that the rows of some numbers match."""
        shape, table = shape_of(line.text), self._table_of(numbers)
        if shape is None or table is None or _HEXADECIMAL.search(shape):
            return self._judged(numbers, line)
        key = numbers, line.text.encode().translate(table)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            found = self._known[key] = self._judged(numbers, line)
        return found

    def _judged(self, numbers: tuple[int, ...], line: Line) -> LineJudgement:
        return LineJudgement([self._table.rows[number] for number in numbers], line)

    def _table_of(self, numbers: tuple[int, ...]) -> bytes | None:
        if numbers not in self._tables:
            if len(self._tables) >= REMEMBERED:
                self._tables.clear()
            rows = [self._table.rows[number] for number in numbers]
            # Of an end it is asked whether something failed, which a nought denies.
            counted = [COUNTS_FAILED] if any(row.kind in ("end", "finish") for row in rows) else []
            self._tables[numbers] = told_apart([*(row.expression for row in rows), *counted])
        return self._tables[numbers]


def _length(pattern: Pattern, body: str) -> int:
    """Give how much of a line a pattern finds."""
    found = pattern.compiled.search(body)
    return 0 if found is None else len(found[0])


def _calls_warning(row: Pattern, line: Line) -> bool:
    """Tell whether a program calls a line a warning by a word that is none of the message that it knows.

    What a message states, such as a dead device, is no less so for that word.
    """
    word, found = _WARNS.match(line.body), row.compiled.search(line.body)
    return word is not None and found is not None and found.start() > 0 and row.strength != "states"


def _toned_down(row: Pattern, line: Line, *, ends_traceback: bool) -> Pattern:
    """Give the row as a line means it that warns, goes on without what failed, or only remarks."""
    warns = line.level.startswith("WARN") or (line.level == "W" and row.survivable)
    warns = warns or (not ends_traceback and _calls_warning(row, line))
    if (
        row.kind == "error"
        and row.role == "origin"
        and (warns or (not ends_traceback and says_it_continues(line.body)))
    ):
        # Whoever says so has gone on.
        row = row.model_copy(update={"kind": "warning", "strength": "hints"})
    elif row.last_resort and (warns or line.level == "W"):
        row = row.model_copy(update={"passing": True})
    if ends_traceback:
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
