"""Check the corpus as a whole: what one file alone cannot show to be wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from corpus import phases
from corpus.errors import InvalidCorpusError
from corpus.library import Library
from corpus.log_patterns import Pattern, PatternTable
from corpus.message import is_chinese
from corpus.predicates import Predicate, parse
from corpus.schema import Case, Change, Remedy
from ingest.logs.scanner import Block, Scanner
from service.remediation.setting_values import is_guidance, misfit_reason
from service.remediation.values import rule_ids

# A list or mapping as JSON or YAML writes it: blanks make no words of it.
_LITERAL = re.compile(r"\[.*\]|\{.*\}", re.DOTALL)


def findings(library: Library, table: PatternTable, cache: Path | None = None) -> list[str]:
    """Give what is wrong, a sentence each; empty where all is well.

    `cache` is a folder that may hold the compiled patterns.
    """
    found = [text for case in library.cases.values() for text in _case(case, library, table)]
    found += [
        text for rows in library.remedies.values() for row in rows for text in _remedy(row, library, table)
    ]
    found += [text for row in table.by_id.values() for text in _pattern(row, library)]
    found += [
        f"exceptions.yaml: unknown cause {cause}"
        for cause in (*table.exceptions.open, *(row.cause for row in table.exceptions.meanings))
        if cause not in library.causes
    ]
    found += _guidance(library)
    found += _examples(table, cache)
    found += _twins(library)
    found += [
        f"{spec.framework}: {spec.key}: no rule {spec.rule}"
        for spec in library.specs.values()
        if spec.rule is not None and spec.rule not in rule_ids()
    ]
    found += [
        f"cause {cause.id}: unknown neighbour {other.cause}"
        for cause in library.causes.values()
        for other in cause.confused_with
        if other.cause not in library.causes
    ]
    return found


def _twins(library: Library) -> Iterator[str]:
    """Find cases that always match together: nothing in a log could choose between them."""
    seen: dict[object, str] = {}
    for case in library.cases.values():
        signature = case.signatures
        sign = (
            frozenset(signature.any),
            frozenset(signature.all),
            frozenset(signature.none),
            frozenset(case.frameworks.items()),
        )
        if sign in seen:
            yield f"{case.id}: always matches together with {seen[sign]}"
        seen.setdefault(sign, case.id)


def _case(case: Case, library: Library, table: PatternTable) -> Iterator[str]:
    if case.cause not in library.causes:
        yield f"{case.id}: unknown cause {case.cause}"
    if not case.signatures.any and not case.signatures.all:
        yield f"{case.id}: its signature has no condition that must hold"
    yield from (
        f"{case.id}: refines no known case {name}" for name in case.refines if name not in library.cases
    )
    if case.id in library.refined.get(case.id, ()):
        yield f"{case.id}: refines itself through others"
    for predicate in case.signatures.predicates():
        if predicate.subject == "cause" and predicate.name not in library.causes:
            yield f"{case.id}: unknown cause {predicate.name}"
        if not _is_seen(predicate, table):
            yield f"{case.id}: no {'phase' if predicate.subject == 'phase' else 'pattern'} {predicate.name}"
    for change in case.changes:
        yield from (f"{case.id}: {text}" for text in _change(change, library))


def _is_seen(predicate: Predicate, table: PatternTable) -> bool:
    """Tell whether a condition on patterns or phases can hold at all."""
    if predicate.subject == "phase":
        return predicate.name in phases.load().by_name
    if predicate.subject not in ("pattern", "root"):
        return True
    return any(fnmatchcase(name, predicate.name) for name in table.by_id)


def _change(change: Change, library: Library) -> Iterator[str]:
    spec = library.setting(change.framework, change.key)
    if spec is None:
        if change.kind in ("setting", "flag", "env"):
            yield f"{change.framework} has no setting {change.key} in the catalogue"
    elif "{" not in str(change.to) and (
        reason := misfit_reason(change.to, spec)
    ):  # else the value comes out of the log
        yield f"{change.key}: {reason}"
    if change.to == "unset" and change.kind != "env":
        yield f"{change.key}: only a variable can be unset; say in words to leave it out"
    if change.rule is not None and change.rule not in rule_ids():
        yield f"{change.key}: no rule {change.rule}"
    is_words = is_guidance(change.to) and not _LITERAL.fullmatch(str(change.to).strip())
    if is_words and change.to not in library.guidance:
        yield f"{change.key}: no Chinese in guidance.yaml for {change.to!r}"


def _guidance(library: Library) -> Iterator[str]:
    """Find Chinese that is none, and rows whose text no change has any more."""
    changes = [change for case in library.cases.values() for change in case.changes]
    changes += [row for rows in library.remedies.values() for row in rows]
    used = {text for change in changes for text in (change.to, change.key)}
    for english, chinese in library.guidance.items():
        if not is_chinese(chinese):
            yield f"guidance.yaml: {english!r} stands in one language only"
        if english not in used:
            yield f"guidance.yaml: no case or remedy says {english!r}"


def _remedy(row: Remedy, library: Library, table: PatternTable) -> Iterator[str]:
    where = f"remedy of {row.cause}: {row.framework}"
    if row.cause not in library.causes:
        yield f"{where}: unknown cause"
    for predicate in map(parse, (*row.when, *row.unless)):
        if not _is_seen(predicate, table):
            kind = "phase" if predicate.subject == "phase" else "pattern"
            yield f"{where}: {row.key}: no {kind} {predicate.name}"
    texts = [row.why, *([row.costs] if row.costs else [])]
    if any(not text.en or not is_chinese(text.zh) for text in texts):
        yield f"{where}: {row.key}: its reason stands in one language only"
    if "{" in row.key:  # the name comes out of the log
        return
    yield from (f"{where}: {text}" for text in _change(row, library))
    if row.kind == "package" and (row.framework, row.key) not in library.specs:
        yield f"{where} has no package {row.key} in the catalogue"


def _pattern(row: Pattern, library: Library) -> Iterator[str]:
    named = [row.cause, *(refinement.cause for refinement in row.refine)]
    yield from (
        f"{row.id}: unknown cause {cause}" for cause in named if cause and cause not in library.causes
    )
    if row.phase and row.phase not in phases.load().by_name:
        yield f"{row.id}: unknown phase {row.phase}"
    if row.fails and row.expression and not row.near:
        yield f"{row.id}: a failure's pattern needs a line that nearly matches"
    for line in row.examples:
        if not row.compiled.search(line):
            yield f"{row.id}: does not match its example {line[:80]!r}"
    for line in row.near:
        if row.compiled.search(line):
            yield f"{row.id}: matches its near miss {line[:80]!r}"


def _examples(table: PatternTable, cache: Path | None) -> Iterator[str]:
    """Run all examples through the real scanner, since `re` and Hyperscan differ in places."""
    try:
        scanner = Scanner(table.rows, cache)
    except InvalidCorpusError:
        yield from _refused(table.rows)
        return
    for number, row in enumerate(table.rows):
        missed = (line for line in row.examples if number not in _rows_found(scanner, line))
        yield from (f"{row.id} ({number}): the scanner does not find {line[:80]!r}" for line in missed)
        found = (line for line in row.near if number in _rows_found(scanner, line))
        yield from (f"{row.id} ({number}): the scanner finds its near miss {line[:80]!r}" for line in found)


def _refused(rows: Sequence[Pattern]) -> Iterator[str]:
    """Name the rows that Hyperscan refuses, each compiled by itself."""
    for row in rows:
        try:
            Scanner((row,))
        except InvalidCorpusError as error:
            yield f"{row.id}: {error}"


def _rows_found(scanner: Scanner, line: str) -> set[int]:
    """Give the numbers of the rows that the scanner finds in a line."""
    scanner.fresh()
    data = line.encode() + b"\n"
    return {match.row for match in scanner.matches(Block(data, 1, 0, len(data)))}
