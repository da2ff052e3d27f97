"""The table of patterns: what each notable line means, loaded from `patterns/*.yaml`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from corpus.errors import InvalidCorpusError
from corpus.library import ROOT, read_cache, read_yaml, validated, write_cache
from corpus.schema import PredicateText, Record, Specifier

SYSTEM_WORDS = "system_words.yaml"

Kind = Literal["error", "kill", "hang", "warning", "progress", "finish", "end", "teardown", "version", "fact"]
PatternRole = Literal["origin", "collateral", "wrapper", "none"]
Strength = Literal["states", "suggests", "hints"]

# An anchor that is one: neither escaped nor a member of a class.
_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]")
_ANCHOR = re.compile(r"[\^$]")

FAILURES: frozenset[Kind] = frozenset({"error", "kill", "hang"})


class Refinement(Record):
    """A more exact cause for a pattern's line where all conditions hold."""

    when: tuple[PredicateText, ...]
    cause: str
    strength: Strength | None = None


class Pattern(Record):
    """One family of log lines.

    `expression` is searched in one line, by Hyperscan over raw bytes and by `re` for its named groups,
    so it keeps to what both know. `role` says whether a failure can begin at such a line (origin),
    whether it as a rule follows another (collateral), or repeats another (wrapper). `strength` says how
    far the line alone settles `cause`. A `finish` undoes the failures before it; an `end` only closes a log
    in which nothing stands, since servers and scripts close in good order after a failure too. A `last_resort`
    row says in anybody's words that something failed: it counts only where no other row knows a failure of
    the job. A progress row that is `whole` counts all steps of the run, so that its `total` is the run's end.
    """

    id: str
    kind: Kind
    role: PatternRole = "none"
    cause: str | None = None
    strength: Strength = "hints"
    refine: tuple[Refinement, ...] = ()
    expression: str
    caseless: bool = False
    last_resort: bool = False
    whole: bool = False
    fact: str | None = None
    phase: str | None = None
    frameworks: tuple[str, ...] = ()
    versions: Specifier = ""
    source: str = ""
    examples: tuple[str, ...]
    near: tuple[str, ...] = ()
    note: str = ""

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The expression for decoded text."""
        return re.compile(self.expression, re.IGNORECASE if self.caseless else 0)

    @cached_property
    def is_anchored(self) -> bool:
        """Tell whether the expression asks where in the line it stands."""
        return bool(_ANCHOR.search(_CLASS.sub("", self.expression)))

    @property
    def fails(self) -> bool:
        """Tell whether such a line speaks of a failure."""
        return self.kind in FAILURES


@dataclass(frozen=True)
class PatternTable:
    """All patterns, in a fixed order that the scanner numbers them by."""

    rows: tuple[Pattern, ...]

    @cached_property
    def by_id(self) -> dict[str, Pattern]:
        """Each row under its id."""
        return {row.id: row for row in self.rows}

    @cached_property
    def last_resort(self) -> frozenset[str]:
        """The ids of rows that count only where no other row knows a failure."""
        return frozenset(row.id for row in self.rows if row.last_resort)

    @cached_property
    def alike(self) -> frozenset[int]:
        """The numbers of rows of which one line says what the next of the same wording says."""
        return frozenset(
            number
            for number, row in enumerate(self.rows)
            if row.fails or row.kind in ("warning", "teardown") or row.id.startswith("structure.")
        )

    @cached_property
    def starts(self) -> frozenset[int]:
        """The numbers of rows that begin a traceback."""
        return frozenset(
            number for number, row in enumerate(self.rows) if row.id.startswith("structure.traceback")
        )


class CachedPatterns(Record):
    """All rows, as one cache file holds them."""

    rows: tuple[Pattern, ...]


def load(root: Path = ROOT, cache: Path | None = None) -> PatternTable:
    """Load every table of `root`; raises InvalidCorpusError naming the row and field.

    With a `cache` folder, rows that were checked once are read back without their YAML.
    """
    stored = cache / f"patterns-{digest(root)[:16]}.json" if cache else None
    shelf = read_cache(CachedPatterns, stored)
    if shelf is None:
        # What the system says in English, each with an expression for it in all languages that are known.
        table: dict[str, list[str]] = read_yaml(root / SYSTEM_WORDS) if (root / SYSTEM_WORDS).exists() else {}
        words = {english: f"(?:{'|'.join([english, *others])})" for english, others in table.items()}
        rows = (_spoken(row, words) for path in _tables(root) for row in _rows(path))
        shelf = CachedPatterns(rows=tuple(_unique(rows)))
        write_cache(shelf, stored)
    return PatternTable(shelf.rows)


def digest(root: Path = ROOT) -> str:
    """Give a hash over all files that logs are read with, to tell whether what was read still counts."""
    total = hashlib.sha256()
    for path in (*_tables(root), *root.glob(SYSTEM_WORDS)):
        total.update(path.read_bytes())
    return total.hexdigest()


def _tables(root: Path) -> list[Path]:
    return sorted(root.glob("patterns/*.yaml"))


def _rows(path: Path) -> Iterator[Pattern]:
    table = read_yaml(path)
    if not isinstance(table, list) or not all(isinstance(row, dict) for row in table):
        raise InvalidCorpusError(f"{path.name}: a table of patterns is a list of mappings")
    for row in table:
        yield validated(Pattern, row, f"{path.name}: {row.get('id')}")


def _spoken(row: Pattern, words: Mapping[str, str]) -> Pattern:
    """Let a row that has the system's words read them in other languages, too: most rows have none."""
    heard = (
        re.sub("|".join(words), lambda match: words[match.group()], row.expression)
        if words
        else row.expression
    )
    return row if heard == row.expression else row.model_copy(update={"expression": heard})


def _unique(rows: Iterable[Pattern]) -> Iterator[Pattern]:
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise InvalidCorpusError(f"two patterns are called {row.id!r}")
        seen.add(row.id)
        yield row
