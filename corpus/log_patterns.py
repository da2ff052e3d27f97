"""The table of patterns: what each notable line means, loaded from `patterns/*.yaml`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

from pydantic import model_validator

from corpus import exceptions, library, phases
from corpus.errors import InvalidCorpusError
from corpus.exceptions import ExceptionMeanings
from corpus.library import read_yaml, validated
from corpus.record_cache import loaded_once, read_cache, write_cache
from corpus.schema import Expression, LogCondition, Record, Specifier, Strength

SYSTEM_WORDS = "system_words.yaml"

Kind = Literal[
    "error", "kill", "hang", "warning", "progress", "work", "finish", "end", "teardown", "version", "fact"
]
PatternRole = Literal["origin", "collateral", "wrapper", "none"]
# What the reader does with a line beside noting it, or what it makes an event of by itself.
Handler = Literal[
    "traceback",  # read the traceback that begins here
    "command",  # read the command that started the job
    "settings",  # read the settings that are printed from here on
    "directives",  # read the row of a Slurm script's head
    "ignored-exception",  # Python ignores the exception that follows
    "unknown-exception",  # a traceback whose last line no row knows
    "cut-traceback",  # a traceback without its last line
    "error-level",  # a line that its logger calls an error, where no row knows anything
]
# What a message says of the job's settings: that one does not exist, that a given value was not accepted.
Tells = Literal["unknown-setting", "refused-override"]
# What of a printed sample a line begins: a question, an answer, what it is held against; or the marks around
# a turn of a dialogue, or around the whole.
SamplePart = Literal["asked", "answered", "judged", "opens", "closes", "begins", "ends"]

# Handlers that make events without a line that an expression finds.
MADE: frozenset[Handler] = frozenset({"cut-traceback", "error-level"})
# An anchor that is one: neither escaped nor a member of a class.
_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]")
_ANCHOR = re.compile(r"[\^$]")
_GROUP = re.compile(r"\([^()]*\)")

FAILURES: frozenset[Kind] = frozenset({"error", "kill", "hang"})


class Refinement(Record):
    """A more exact cause for a pattern's line where all conditions hold.

    `role` is origin where they say of a line that as a rule follows another that the failure began there.
    """

    when: tuple[LogCondition, ...]
    cause: str
    strength: Strength | None = None
    role: Literal["origin"] | None = None


class Pattern(Record):
    """One family of log lines.

    `expression` is searched in one line, by Hyperscan over raw bytes and by `re` for its named groups, so it
    keeps to what both know. `role` says whether a failure can begin at such a line (origin), whether it as a
    rule follows another (collateral), or repeats another (wrapper). `strength` says how far the line alone
    settles `cause`. A `finish` undoes the failures before it; an `end` only closes a log in which nothing
    stands, since servers and scripts close in good order after a failure too. A `last_resort` row says in
    anybody's words that something failed: it counts only where no other row knows a failure of the job, and
    one that is said `at_end` only in the last lines of its log. A
    progress row that is `whole` counts all steps of the run, so that its `total` is the run's end. A
    `partial` end may be that of an evaluation amid the run: it closes none that counts steps. A `once` end
    is one where its words stand once in the file, in its last lines: what is printed after each epoch ends
    nothing. A `counted` end is one only where a count of all steps or epochs stands at its last. An `asked`
    row is printed only by who was told from outside to end, and now does.

    A `generic` row (any exception's line) gives way to every row that knows the message. What a
    `survivable` row warns of in glog's style was survived; a C++ core may call its last words a warning.
    A row that is `said_at_info` counts although its program says it at the level of a remark. What a
    `passing` row tells of its program may have gone on after: it is no root beside another failure. A row
    that `saves` tells that a checkpoint `begins` to be written, or that it is `done`: its groups `path`
    and `step` say which. `shows` names the frameworks that such a line shows to be in the job. What
    stands between a `sample`'s parts is data. A row that `settles` others (by their ids, with `*`) is
    printed only by who survived such a failure: one of its own stream in the last `settles_within` lines
    above, or in all where that is 0. A row that `dies` is printed only by a main program that ends by an
    exception which nobody caught. Behind a row that `sets_out`, a program's first word of its work, an
    earlier good end tells of an earlier run alone. What a row finds in an exception that Python ignores (in
    a destructor, at exit) is no failure, unless the row counts it `also`, or finds it there `only`.
    `leads_to` finds what failures say that come of what a row tells and do not name it (a job that sees no
    card asks for fewer). A row that `announces` the failure below it comes before every row that knows the
    name which it repeats. What a `lasting` row tells of is a failure where it holds to the last step,
    whatever end the job says that it came to; one that `turns` holds where rows of the same shape above it
    had numbers in place of its NaN, and those below it have none. A `final` row is a shell's, launcher's or
    scheduler's word of how a program ended, which no good word of the program above it undoes. An `outright`
    row says its cause in so many words, whatever else may lie behind it: where that cause is named, the log
    states it. A row without an expression is one that its `handler` makes events of. A `sign` is an
    expression that is found faster and ends in each line in which the row's own one ends: only lines that
    hold it are searched for that.
    """

    id: str
    kind: Kind
    role: PatternRole = "none"
    cause: str | None = None
    strength: Strength = "hints"
    refine: tuple[Refinement, ...] = ()
    expression: str = ""
    sign: Expression = ""
    handler: Handler | None = None
    sample: SamplePart | None = None
    settles: tuple[str, ...] = ()
    settles_within: int = 0
    caseless: bool = False
    last_resort: bool = False
    at_end: bool = False
    generic: bool = False
    announces: bool = False
    if_ignored: Literal["also", "only"] | None = None
    survivable: bool = False
    said_at_info: bool = False
    outright: bool = False
    passing: bool = False
    lasting: bool = False
    turns: bool = False
    final: bool = False
    whole: bool = False
    partial: bool = False
    once: bool = False
    counted: bool = False
    asked: bool = False
    dies: bool = False
    sets_out: bool = False
    shows: tuple[str, ...] = ()
    tells: tuple[Tells, ...] = ()
    leads_to: Expression = ""
    saves: Literal["begins", "done"] | None = None
    fact: str | None = None
    phase: str | None = None
    frameworks: tuple[str, ...] = ()
    versions: Specifier = ""
    source: str = ""
    examples: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    note: str = ""

    @model_validator(mode="after")
    def _is_found(self) -> Self:
        if not self.expression and self.handler not in MADE:
            raise ValueError("a row needs an expression that finds its lines")
        return self

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The expression for decoded text."""
        return re.compile(self.expression, re.IGNORECASE if self.caseless else 0)

    @cached_property
    def finds(self) -> Callable[[str], re.Match[str] | None]:
        """What finds the expression in a text: `re` searches for one that begins with `^` at every place."""
        plain = _CLASS.sub("", self.expression)
        while (outer := _GROUP.sub("", plain)) != plain:
            plain = outer
        is_first = plain.startswith("^") and "|" not in plain
        return self.compiled.match if is_first else self.compiled.search

    @cached_property
    def as_sign(self) -> Self:
        """The row with its sign as its expression."""
        return self.model_copy(update={"expression": self.sign})

    @cached_property
    def is_anchored(self) -> bool:
        """Tell whether the expression asks where in the line it stands."""
        return bool(_ANCHOR.search(_CLASS.sub("", self.expression)))

    def counts(self, *, ignored: bool) -> bool:
        """Tell whether the row tells of a line, which may end an exception that Python ignores."""
        return self.if_ignored is not None if ignored else self.if_ignored != "only"

    @property
    def fails(self) -> bool:
        """Tell whether such a line speaks of a failure."""
        return self.kind in FAILURES


@dataclass(frozen=True)
class PatternTable:
    """All patterns that lines are searched for, in a fixed order that the scanner numbers them by.

    `made` holds the rows without an expression, `exceptions` what exceptions mean that no row knows. The last
    `own` rows are those that the user adds to what ships.
    """

    rows: tuple[Pattern, ...]
    made: tuple[Pattern, ...] = ()
    exceptions: ExceptionMeanings = field(default_factory=ExceptionMeanings)
    own: int = 0

    @cached_property
    def by_id(self) -> dict[str, Pattern]:
        """Each row under its id."""
        return {row.id: row for row in (*self.rows, *self.made)}

    @cached_property
    def fact_fields(self) -> dict[str, frozenset[str]]:
        """The fields that lines give to each kind of fact."""
        found: dict[str, frozenset[str]] = {}
        for row in (*self.rows, *self.made):
            if row.fact:
                groups = frozenset(row.compiled.groupindex)
                # What is printed in milliseconds is told in seconds too (`ingest/logs/facts.py`).
                seconds = {name.removesuffix("_ms") + "_s" for name in groups if name.endswith("_ms")}
                found[row.fact] = found.get(row.fact, frozenset()) | groups | seconds
        return found

    @cached_property
    def by_handler(self) -> dict[Handler, Pattern]:
        """The first row that says so of each handler."""
        return {row.handler: row for row in reversed((*self.rows, *self.made)) if row.handler}

    @cached_property
    def last_resort(self) -> frozenset[str]:
        """The ids of rows that count only where no other row knows a failure."""
        return frozenset(row.id for row in self.rows if row.last_resort)

    @cached_property
    def at_end(self) -> frozenset[str]:
        """The ids of rows that count only in the last lines of a log."""
        return frozenset(row.id for row in self.rows if row.at_end)

    @cached_property
    def alike(self) -> frozenset[int]:
        """The numbers of rows of which one line says what the next of the same wording says."""
        return frozenset(
            number
            for number, row in enumerate(self.rows)
            if row.fails or row.kind in ("warning", "teardown") or row.handler
        )

    @cached_property
    def starts(self) -> frozenset[int]:
        """The numbers of rows that begin a traceback."""
        return frozenset(number for number, row in enumerate(self.rows) if row.handler == "traceback")


class CachedPatterns(Record):
    """All rows, as one cache file holds them; those of the user's `own` tables come last."""

    rows: tuple[Pattern, ...]
    exceptions: ExceptionMeanings
    own: frozenset[str] = frozenset()


def load(root: Path | None = None, cache: Path | None = None) -> PatternTable:
    """Load every table of `root`, or of every folder of knowledge.

    With a `cache` folder, rows that were checked once are read back without their YAML. Raises
    InvalidCorpusError naming row and field.
    """
    known = digest(root)
    stored = cache / f"patterns-{known[:16]}.json" if cache else None
    if root is not None:
        return _loaded((root,), stored)[1]
    return loaded_once(PatternTable, known, stored, lambda: _loaded(library.roots(), stored))


def _loaded(folders: Sequence[Path], stored: Path | None) -> tuple[CachedPatterns, PatternTable]:
    shelf = read_cache(CachedPatterns, stored)
    if shelf is None:
        # What the system says in English, each with an expression for it in all languages that are known.
        spoken: dict[str, list[str]] = {}
        for folder in folders:
            spoken |= read_yaml(folder / SYSTEM_WORDS) if (folder / SYSTEM_WORDS).exists() else {}
        words = {english: f"(?:{'|'.join([english, *others])})" for english, others in spoken.items()}
        read = [[row for path in _tables(folder) for row in _rows(path)] for folder in folders]
        shelf = CachedPatterns(
            rows=tuple(_unique(_spoken(row, words) for rows in read for row in rows)),
            exceptions=exceptions.load(*folders),
            own=frozenset(row.id for rows in read[1:] for row in rows),
        )
        write_cache(shelf, stored)
    return shelf, PatternTable(
        tuple(row for row in shelf.rows if row.expression),
        tuple(row for row in shelf.rows if not row.expression),
        shelf.exceptions,
        sum(row.id in shelf.own for row in shelf.rows if row.expression),
    )


def digest(root: Path | None = None) -> str:
    """Give a hash over all files that logs are read with, to tell whether what was read still counts."""
    total = hashlib.sha256()
    others = (SYSTEM_WORDS, exceptions.FILE, exceptions.CLASSES, phases.FILE)
    for folder in (root,) if root is not None else library.roots():
        for path in (*_tables(folder), *(path for name in others for path in folder.glob(name))):
            total.update(path.read_bytes())
    return total.hexdigest()


def _tables(root: Path) -> list[Path]:
    return sorted(root.glob("patterns/*.yaml"))


def _rows(path: Path) -> Iterator[Pattern]:
    table = read_yaml(path)
    defaults, rows = {}, table
    if isinstance(table, dict) and table.keys() == {"defaults", "rows"}:
        defaults, rows = table["defaults"], table["rows"]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in (defaults, *rows)):
        raise InvalidCorpusError(
            f"{path.name}: a table of patterns is a list of mappings, or has `defaults` for its `rows`"
        )
    for row in rows:
        yield validated(Pattern, {**defaults, **row}, f"{path.name}: {row.get('id')}")


def _spoken(row: Pattern, words: Mapping[str, str]) -> Pattern:
    """Let a row that has the system's words read them in other languages, too: most rows have none."""
    heard = {
        name: re.sub("|".join(words), lambda match: words[match.group()], text) if words else text
        for name, text in (("expression", row.expression), ("sign", row.sign))
    }
    return row if heard["expression"] == row.expression else row.model_copy(update=heard)


def _unique(rows: Iterable[Pattern]) -> Iterator[Pattern]:
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise InvalidCorpusError(f"two patterns are called {row.id!r}")
        seen.add(row.id)
        yield row
