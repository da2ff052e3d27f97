"""Check the corpus as a whole: what one file alone cannot show to be wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from fnmatch import fnmatchcase
from pathlib import Path
from string import Formatter

from corpus import job_kinds, message_atlas, phases
from corpus.batch_limits import known_batch_limits
from corpus.code_edits import known_code_edits
from corpus.condition_nodes import Name, Predicate
from corpus.conditions import parse, subjects_of
from corpus.errors import InvalidCorpusError
from corpus.extract.messages import checks
from corpus.extract.messages.packages import atlas_packages
from corpus.flow_aims import known_flow_aims
from corpus.frameworks import known_frameworks
from corpus.library import BLANKS, FACT_HEADLINES, MESSAGE_FORMS, ROOT, Library
from corpus.log_patterns import Pattern, PatternTable
from corpus.message import is_chinese
from corpus.own_values import known_own_values
from corpus.rank_branches import known_rank_branches
from corpus.rules import known_rules
from corpus.sample_demands import known_sample_demands
from corpus.schema import Case, Cause, Change, FactHeadline, MessageForm, Procedure, Remedy, Text
from corpus.stand_ins import known_stand_ins
from corpus.stated_commands import known_stated_commands
from ingest.logs.derived_facts import DERIVED_FIELDS
from ingest.logs.scanner import Block, Scanner
from service.composition.blanks import OTHER_VALUES
from service.composition.headlines import ADDED_BLANKS
from service.composition.message_forms import EMPTY_BLANKS, FRAME_BLANKS, LISTED_BLANKS
from service.composition.shape_arithmetic import AXES_BLANKS, SHAPE_BLANKS
from service.remediation.code_edits.checks import code_edit_findings
from service.remediation.rules.checks import rule_findings
from service.remediation.setting_values import is_guidance, misfit_reason
from service.remediation.values import rule_ids
from service.telemetry import rules

# A list or mapping as JSON or YAML writes it: blanks make no words of it.
_LITERAL = re.compile(r"\[.*\]|\{.*\}", re.DOTALL)


def read_tables() -> None:
    """Read each table whose expressions a start leaves unchecked; raises InvalidCorpusError naming the field.

    To be called within `corpus.library.checking_all`, by a process that has read none of them yet.
    """
    for read in (
        known_code_edits,
        known_own_values,
        known_stated_commands,
        known_rules,
        known_flow_aims,
        known_batch_limits,
        known_sample_demands,
        known_rank_branches,
        known_stand_ins,
        job_kinds.load,
        phases.load,
    ):
        read()


def findings(library: Library, table: PatternTable, cache: Path | None = None) -> list[str]:
    """Give what is wrong, a sentence each; empty where all is well.

    `cache` is a folder that may hold the compiled patterns.
    """
    found = [text for case in library.cases.values() for text in _case(case, library, table)]
    found += [
        text for rows in library.remedies.values() for row in rows for text in _remedy(row, library, table)
    ]
    found += [text for row in table.by_id.values() for text in _pattern(row, library, table)]
    found += [
        f"exceptions.yaml: unknown cause {cause}"
        for cause in (
            *table.exceptions.open,
            *(row.cause for row in (*table.exceptions.meanings, *table.exceptions.defaults)),
        )
        if cause not in library.causes
    ]
    found += [text for row in library.procedures for text in _procedure(row, library, table)]
    found += [text for form in library.message_forms for text in _message_form(form, library, table)]
    found += [
        f"{BLANKS}: {blank.word}: the log states no {name}"
        for blank in library.blanks
        for name in blank.values
        if not name.startswith(OTHER_VALUES) and name not in known_facts(table)
    ]
    found += [text for row in library.fact_headlines for text in _fact_headline(row, table)]
    found += [text for cause in library.causes.values() for text in _cause(cause, library, table)]
    found += _guidance(library)
    found += _examples(table, cache)
    found += _identical_signatures(library)
    found += [
        f"setting {spec.key} of {spec.framework}: no rule {spec.rule}"
        for spec in library.specs.values()
        if spec.rule is not None and spec.rule not in rule_ids()
    ]
    return found


def table_findings(library: Library, table: PatternTable) -> list[str]:
    """Give what is wrong in `rules.yaml`, `telemetry.yaml`, the code's edits and the message atlas."""
    found = list(rule_findings(library, known_facts(table)))
    found += _job_kinds(library, table)
    found += code_edit_findings()
    telemetry = rules.load_rules()
    for name, sign in telemetry.signs.items():
        found += [f"{rules.FILE}: sign {name}: {text}" for text in _conditions(sign.any, library, table)]
    for row in telemetry.rules:
        found += [f"{rules.FILE}: rule {row.id}: {text}" for text in _conditions(row.when, library, table)]
        unknown = [cause for cause in row.causes if cause not in library.causes]
        found += [f"{rules.FILE}: rule {row.id}: unknown cause {cause}" for cause in unknown]
    packages = atlas_packages()
    found += checks.table_findings(packages, known_frameworks().rows)
    found += checks.atlas_findings(ROOT / message_atlas.FILE, packages)
    return found


def _job_kinds(library: Library, table: PatternTable) -> Iterator[str]:
    for row in (*job_kinds.load().kinds, *job_kinds.load().traits):
        signs = (*row.any, *row.unless)
        yield from (f"{job_kinds.FILE}: {row.name}: {text}" for text in _conditions(signs, library, table))
        # A row that asked for what the table tells would ask itself.
        asking = [text for text in signs if "job" in subjects_of(text)]
        yield from (f"{job_kinds.FILE}: {row.name}: {text} asks for another row" for text in asking)
    for tool in job_kinds.load().tools:
        unknown = sorted({*tool.absent} - {row.name for row in job_kinds.load().traits})
        yield from (f"{job_kinds.FILE}: {tool.expression}: there is no trait {name}" for name in unknown)


def known_facts(table: PatternTable) -> frozenset[str]:
    """Give each `kind.field` that a log can state."""
    kinds = (*table.fact_fields.items(), *DERIVED_FIELDS.items())
    return frozenset(f"{kind}.{field}" for kind, fields in kinds for field in fields)


def _message_form(form: MessageForm, library: Library, table: PatternTable) -> Iterator[str]:
    where = f"{MESSAGE_FORMS}: {form.id}"
    yield from (f"{where}: unknown cause {name}" for name in form.causes if name not in library.causes)
    names = {name for names in form.facts.values() for name in names}
    yield from (f"{where}: the log states no {name}" for name in sorted(names - known_facts(table)))
    yield from (
        f"{where}: its cue or its expression is not in {example!r}"
        for example in form.examples
        if form.cue not in example or re.search(form.expression, example) is None
    )
    groups = {*re.compile(form.expression).groupindex, *form.facts, *form.statement, *FRAME_BLANKS}
    groups |= SHAPE_BLANKS if form.shape else set()
    groups |= AXES_BLANKS if form.axes else set()
    groups |= LISTED_BLANKS if form.listed else set()
    groups |= EMPTY_BLANKS if form.empties else set()
    groups |= form.differences.keys() | form.options.keys()
    told = (form.headline, form.exact_headline, form.means, form.look, *form.acts)
    for text in filter(None, told):
        yield from _blanks(text, groups, where)


def _fact_headline(row: FactHeadline, table: PatternTable) -> Iterator[str]:
    fields = {name.partition(".")[2] for name in known_facts(table) if name.startswith(f"{row.kind}.")}
    if not fields:
        yield f"{FACT_HEADLINES}: the log states no {row.kind}"
    yield from _blanks(row.says, {*fields, *ADDED_BLANKS}, f"{FACT_HEADLINES}: {row.kind}")


def _blanks(text: Text, filled: Set[str], where: str) -> Iterator[str]:
    """Find blanks of a text that nothing fills, or that one of its languages lacks."""
    asked = [{name for _, name, _, _ in Formatter().parse(words) if name} for words in (text.en, text.zh)]
    yield from (f"{where}: nothing fills {{{name}}}" for name in sorted(asked[0] - filled))
    if asked[0] != asked[1]:
        yield f"{where}: English and Chinese have other blanks: {text.en!r}"


def _identical_signatures(library: Library) -> Iterator[str]:
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
            yield f"case {case.id}: always matches together with {seen[sign]}"
        seen.setdefault(sign, case.id)


def _cause(cause: Cause, library: Library, table: PatternTable) -> Iterator[str]:
    limited = (*cause.titles, *cause.advice.sentences, *cause.checks)
    conditions = [text for part in limited for text in part.when]
    yield from (f"cause {cause.id}: {text}" for text in _conditions(conditions, library, table))
    unknown = (other.cause for other in cause.confused_with if other.cause not in library.causes)
    yield from (f"cause {cause.id}: unknown neighbour {name}" for name in unknown)


def _case(case: Case, library: Library, table: PatternTable) -> Iterator[str]:
    if case.cause not in library.causes:
        yield f"case {case.id}: unknown cause {case.cause}"
    if not case.signatures.any and not case.signatures.all:
        yield f"case {case.id}: its signature has no condition that must hold"
    yield from (
        f"case {case.id}: refines no known case {name}" for name in case.refines if name not in library.cases
    )
    if case.id in library.refined.get(case.id, ()):
        yield f"case {case.id}: refines itself through others"
    conditions = [*case.signatures.conditions]
    for change in case.changes:
        conditions += [*change.when, *change.unless]
    conditions += [text for check in case.checks for text in check.when]
    conditions += [text for part in case.limited for text in part.when]
    yield from (f"case {case.id}: {text}" for text in _conditions(conditions, library, table))
    for change in case.changes:
        yield from (f"case {case.id}: {text}" for text in _change(change, library))


def _conditions(texts: Iterable[str], library: Library, table: PatternTable) -> Iterator[str]:
    """Find what conditions over a log name and nothing gives: a test on it could never hold."""
    for text in texts:
        for node in parse(text).walk():
            if isinstance(node, Name) and node.name not in known_facts(table):
                yield f"{text}: no pattern states {node.name}"
            if not isinstance(node, Predicate):
                continue
            name = node.argument
            if node.subject == "cause" and name not in library.causes:
                yield f"unknown cause {name}"
            elif node.subject == "phase" and name not in phases.load().by_name:
                yield f"no phase {name}"
            elif node.subject == "job" and (unknown := {*name.split("|")} - job_kinds.load().names):
                yield f"no kind or trait of jobs: {', '.join(sorted(unknown))}"
            elif node.subject in ("pattern", "root") and not any(
                fnmatchcase(each, name) for each in table.by_id
            ):
                yield f"no pattern {name}"
            elif node.subject == "config" and not library.is_setting(name):
                yield f"{text}: no framework has a setting {name}"


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
    asked = _conditions((*row.when, *row.unless), library, table)
    yield from (f"{where}: {row.key}: {text}" for text in asked)
    texts = [row.why, *([row.costs] if row.costs else [])]
    if any(not text.en or not is_chinese(text.zh) for text in texts):
        yield f"{where}: {row.key}: its reason stands in one language only"
    if (
        "{" in row.key or row.own or row.holds
    ):  # the name comes out of the log, or out of the job's own settings
        return
    yield from (f"{where}: {text}" for text in _change(row, library))
    if row.kind == "package" and (row.framework, row.key) not in library.specs:
        yield f"{where} has no package {row.key} in the catalogue"


def _procedure(row: Procedure, library: Library, table: PatternTable) -> Iterator[str]:
    where = f"procedure of {row.cause}"
    if row.cause not in library.causes:
        yield f"{where}: unknown cause"
    yield from (f"{where}: {text}" for text in _conditions(row.when, library, table))
    for step in (*row.look, row.act):
        if not step.why.en or not is_chinese(step.why.zh):
            yield f"{where}: {step.run}: its reason stands in one language only"


def _pattern(pattern: Pattern, library: Library, table: PatternTable) -> Iterator[str]:
    named = [pattern.cause, *(refinement.cause for refinement in pattern.refine)]
    yield from (
        f"pattern {pattern.id}: unknown cause {cause}"
        for cause in named
        if cause and cause not in library.causes
    )
    for refinement in pattern.refine:
        yield from (f"pattern {pattern.id}: {text}" for text in _conditions(refinement.when, library, table))
    if pattern.phase and pattern.phase not in phases.load().by_name:
        yield f"pattern {pattern.id}: unknown phase {pattern.phase}"
    if pattern.fails and pattern.expression and not pattern.near:
        yield f"pattern {pattern.id}: a failure's pattern needs a line that nearly matches"
    for line in pattern.examples:
        if not pattern.compiled.search(line):
            yield f"pattern {pattern.id}: does not match its example {line[:80]!r}"
    for line in pattern.near:
        if pattern.compiled.search(line):
            yield f"pattern {pattern.id}: matches its near miss {line[:80]!r}"


def _examples(table: PatternTable, cache: Path | None) -> Iterator[str]:
    """Run all examples through the real scanner, since `re` and Hyperscan differ in places."""
    try:
        scanner = Scanner(table.rows, cache, table.own)
    except InvalidCorpusError:
        yield from _refused(table.rows)
        return
    for number, row in enumerate(table.rows):
        missed = (line for line in row.examples if number not in _rows_found(scanner, line))
        yield from (
            f"pattern {row.id} ({number}): the scanner does not find {line[:80]!r}" for line in missed
        )
        found = (line for line in row.near if number in _rows_found(scanner, line))
        yield from (
            f"pattern {row.id} ({number}): the scanner finds its near miss {line[:80]!r}" for line in found
        )


def _refused(rows: Sequence[Pattern]) -> Iterator[str]:
    """Name the rows that Hyperscan refuses, each compiled by itself."""
    for row in rows:
        try:
            Scanner((row,))
        except InvalidCorpusError as error:
            yield f"pattern {row.id}: {error}"


def _rows_found(scanner: Scanner, line: str) -> set[int]:
    """Give the numbers of the rows that the scanner finds in a line."""
    scanner.fresh()
    data = line.encode() + b"\n"
    return {match.row for match in scanner.matches(Block(data, 1, 0, len(data)))}
