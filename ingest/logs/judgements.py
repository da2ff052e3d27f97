"""What a line means by its text and the patterns that match it, wherever it stands.

Lines that differ in their digits alone mean the same, where nothing that is asked of them tells one digit
from another: they are judged once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from corpus.log_patterns import Pattern, PatternTable
from ingest.digit_blind import MASK, told_apart
from ingest.logs.events import GroupKey, masked
from ingest.logs.lines import Line, LineLayout, shape_of
from ingest.logs.repeats import Sighting
from ingest.logs.samples import spoken_rows, without_samples
from ingest.logs.stacks import tracebacks
from ingest.logs.transcripts import is_entered
from ingest.logs.wording import COUNTS_FAILED, happened, has_many_clauses, holds, says, says_it_continues

# What loggers call a line that is no trouble; glog writes one letter.
REMARKS = frozenset({"INFO", "DEBUG", "TRACE", "I", "D"})
# So many judgements are remembered.
REMEMBERED = 8192

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
        # The group in which such a line was counted as one more of its events, outside of tracebacks and
        # where it ended one.
        self.counted_in: dict[bool, GroupKey] = {}
        # How often, and how many bytes of such a line are searched for secrets in vain, once that is known.
        self.counted = self.size_of_clear = 0

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

    @cached_property
    def stating(self) -> Sequence[Pattern]:
        """Those of them whose values are facts."""
        return [row for row in self.telling if row.fact]

    @cached_property
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
        # Where the parts of such lines are, where they are their own text, and the sighting of their wording.
        self.layout: LineLayout | None = None
        self.sight: Sighting | None = None

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
    def only_failures(self) -> FailureJudgement | None:
        """What `failures` gives where the line tells of nothing else, and Python ignores nothing in it."""
        is_more = self.calm_rows or self.deaths or self.begins_traceback
        return None if is_more else self.failures(ignored=False)

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


# The numbers of rows, and a line's text or what those have in common that are alike.
_Key = tuple[tuple[int, ...], bytes]
_Known = dict[_Key, LineJudgement]


@dataclass(frozen=True, slots=True)
class _Family:
    """Lines that are alike but for their digits, some of which their patterns tell from others.

    `asked` are the patterns that do. What a judgement takes from one is where it stands in the line, and
    whether it holds: lines of which both are the same for each of them mean the same.
    """

    asked: tuple[Pattern, ...]
    members: dict[tuple[object, ...], LineJudgement]

    def findings(self, line: Line) -> tuple[object, ...]:
        """Give what the patterns find in a line, as far as a judgement asks for it."""
        told: list[object] = []
        for row in self.asked:
            found = row.finds(line.body), row.finds(line.text)
            told += (*(each and each.span() for each in found), holds(row, line))
        return tuple(told)


class Judgements:
    """The judgements of lines of shapes that were seen."""

    def __init__(self, table: PatternTable) -> None:
        self._table = table
        # By lines that are alike but for their digits, and by such whose digits tell more.
        self._alike: _Known = {}
        self._same: _Known = {}
        self._families: dict[_Key, _Family | tuple[Line, LineJudgement]] = {}
        # Which digits the patterns of some rows take for the same.
        self._tables: dict[tuple[int, ...], bytes | None] = {}

    def known(self, numbers: tuple[int, ...], raw: bytes) -> LineJudgement | None:
        """Give the judgement of a raw line where that is known, with its layout; None of every other."""
        table = self._tables.get(numbers)
        found = self._alike.get((numbers, raw.translate(table))) if table is not None else None
        return found if found is not None and found.layout is not None else None

    def of(self, numbers: tuple[int, ...], line: Line) -> LineJudgement:
        """Judge a line that the rows of some numbers match."""
        table, text = self._table_of(numbers), line.text.encode("utf-8", "surrogatepass")
        alike = numbers, text if table is None else text.translate(table)
        found = self._alike.get(alike)
        if found is not None:
            return found
        # Asked of what is new alone: a line that differs from a known one in its digits does not in this.
        shape = shape_of(line.text)
        if shape is None or _HEXADECIMAL.search(shape):
            return self._same.get((numbers, text)) or self._judged(self._same, (numbers, text), line)
        if table == MASK:
            return self._judged(self._alike, alike, line)
        key = numbers, shape
        family = self._families.get(key)
        if family is None:
            # Most lines of a log whose lines all differ have no family.
            found = self._judged(self._alike, alike, line)
            self._families[key] = line, found
            return found
        if isinstance(family, tuple):
            family = self._families[key] = self._begun(numbers, *family)
        if not family.asked:
            return self._judged(self._alike, alike, line)
        findings = family.findings(line)
        found = self._judged(self._alike, alike, line, family.members.get(findings))
        family.members[findings] = found
        return found

    def _judged(
        self, known: _Known, key: _Key, line: Line, like: LineJudgement | None = None
    ) -> LineJudgement:
        """Judge a line, or remember that it means the same as another."""
        if len(known) >= REMEMBERED:
            known.clear()
            self._families.clear()
        found = like or LineJudgement([self._table.rows[number] for number in key[0]], line)
        known[key] = found
        return found

    def _begun(self, numbers: tuple[int, ...], line: Line, judged: LineJudgement) -> _Family:
        """Begin a family with its first line; it asks nothing where more tells than what patterns find."""
        # Parts of the line alone are searched where it quotes samples, or only supposes something.
        if without_samples(line.body) != line.body or happened(line.body) != line.body:
            return _Family((), {})
        rows = (self._table.rows[number] for number in numbers if self._table_of((number,)) != MASK)
        family = _Family(tuple(rows), {})
        family.members[family.findings(line)] = judged
        return family

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
    # Of glog's warnings some say why a process is ended next; an exception that one holds was caught.
    is_letter = line.level == "W" and (row.survivable or ends_traceback)
    warns = line.level.startswith("WARN") or is_letter
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
        return row.model_copy(update={"role": "wrapper", "strength": "hints", "passing": True})
    is_warning = tracebacks.warns(line.body)
    if row.kind == "error" and row.strength != "states" and is_warning:
        # Python's own warning: whoever is told it has gone on, if it does not say why all that follows fails.
        return row.model_copy(update={"kind": "warning", "role": "none"})
    # A warning means what it says, and may be survived; Python's own ends no program.
    as_warning = {"role": "wrapper", "passing": row.passing or is_warning}
    return row.model_copy(update=as_warning) if _WARNING.search(line.body) else row
