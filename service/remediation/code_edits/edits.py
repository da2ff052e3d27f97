"""The edit of the job's own code that follows from a failure's message and the statement that it came of."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from corpus.code_edits import CodeEditRow, CodeOperator, known_code_edits, may_follow
from corpus.expressions import compiled
from corpus.keys import canonical, unsigned
from corpus.schema import Text
from ingest.configfiles.formats import CODE
from ingest.configfiles.notebook import place_in
from ingest.configfiles.settings import TextEdit
from ingest.logs.report import CrashReport
from ingest.logs.stacks.stack import EXCEPTION
from service.remediation.code_edits.failing_code import (
    FailingCode,
    JobFile,
    failing_code,
    frames_of_failure,
    scope_nodes,
)
from service.remediation.code_edits.matching import Match, filled, matches, value_of
from service.remediation.code_edits.names import Sought, computed
from service.remediation.code_edits.rewriting import blanks_of, edits_of, holding, with_import
from service.remediation.code_edits.source_text import SourceText, parsed, whole_source
from service.remediation.own_edits import EditKind, OwnEdit, job_files

# The pattern of a row that asks for nothing in the failing statement itself.
ANY_STATEMENT = "..."
# Sources of names that ask for more than one name of the message.
NAMELESS = frozenset(
    {
        "first-local",
        "module-name",
        "first-given",
        "loop-steps",
        "loop-row",
        "kept-container",
        "enclosing-class",
    }
)
# Sources that give code of the knowledge's own, or of the job's.
WRITTEN = frozenset({"import", "loop-steps"})
# Rows below the failing line that may belong to its message.
BELOW = 40
# Characters of a row that is shown whole; of a longer one the part that changes.
LONGEST_SHOWN = 100


@dataclass(frozen=True, kw_only=True)
class CodeEdit(OwnEdit):
    """An edit of the job's code, with the row of the knowledge that it follows from."""

    row: CodeEditRow


def code_edit(report: CrashReport, files: Sequence[JobFile] | None = None) -> CodeEdit | None:
    """Give the edit that follows from the root's message and its statement; None where none does.

    Without `files`, those of the report are taken.
    """
    root = report.root
    frames = frames_of_failure(report)
    if root is None or not frames:
        return None
    files = job_files(report) if files is None else files
    # The failing line with the exception's type before its message.
    name = root.exception.partition("(")[0]
    line = root.body if not name or EXCEPTION.match(root.body) else f"{name}: {root.body}"
    numbers = range(root.line + 1, root.line + BELOW)
    rows_below = (report.texts[number] for number in numbers if number in report.texts)
    below = "\n".join([line, root.rest, *rows_below])
    if not may_follow(below):
        return None
    texts = {"line": line, "below": below}
    own: list[FailingCode] | None = None
    for row in known_code_edits().rows:
        if row.cue not in line and row.reads == "line":
            continue
        text = texts[row.reads]
        found = compiled(row.expression).search(text) if row.cue in text else None
        if found is None:
            continue
        own = list(failing_code(frames, files)) if own is None else own
        code = statement_of(row, own)
        edit = edit_of(row, found, code, files) if code is not None else None
        if edit is not None:
            return edit
    return None


def statement_of(row: CodeEditRow, own: Sequence[FailingCode]) -> FailingCode | None:
    """Give the statement that a row speaks of, of the own ones of a stack, the innermost first."""
    if row.level == "call":
        return own[0] if own else None
    return next((code for code in reversed(own) if code.frame.function == "<module>"), None)


def edit_of(
    row: CodeEditRow, found: re.Match[str], code: FailingCode, files: Sequence[JobFile]
) -> CodeEdit | None:
    """Give the edit of one row, whose expression was found in the message, at a statement."""
    if row.raised != "any" and code.is_innermost != (row.raised == "here"):
        return None
    values = _values(row, found, code, files)
    if values is None:
        return None
    tree = code.source.tree
    if row.lacks and (code.file is None or any(matches(text, ast.walk(tree)) for text in row.lacks)):
        return None  # what must be lacking stands in the file, or may where that is not at hand
    # What the knowledge itself gives.
    imports = (name for name, source in row.computes.items() if source.by in WRITTEN)
    trusted = frozenset([*imports, *([row.table.gives] if row.table else [])])
    place = _found_in_statement(row, code, values, trusted)
    if not place:
        return None
    if row.then:
        elsewhere = None
        for each in place:
            found_there = _found_elsewhere(row, code, each, files, values | dict(each.names), trusted)
            elsewhere = elsewhere or found_there
        if elsewhere is None:
            return None
        code, place = elsewhere
    beside = _beside(row, code, place[0], values, trusted)
    if beside is None:
        return None
    place = [beside, *place[1:]]
    values |= beside.names
    return _made(row, code, _spread(row, code, place, values, trusted), values, trusted)


def _beside(
    row: CodeEditRow, code: FailingCode, place: Match, values: Mapping[str, str], trusted: frozenset[str]
) -> Match | None:
    """Give the match with what the patterns beside it capture.

    None where one of them does not stand there, or one does that must not.
    """
    if row.beside and code.file is None:
        return None
    captures, names = dict(place.captures), dict(place.names)
    for group in row.beside:
        patterns = [text for item in group if (text := filled(item, values, trusted)) is not None]
        found = [
            match
            for text in patterns
            for match in matches(text, ast.walk(code.source.tree), captures)
            if match.node is not place.node and _fits(row, match, code.source, values)
        ]
        if not found:
            return None
        captures |= found[0].captures
        names |= found[0].names
    refused = (text for item in row.without if (text := filled(item, values, trusted)) is not None)
    if any(next(iter(matches(text, ast.walk(code.source.tree), captures)), None) for text in refused):
        return None
    return replace(place, captures=captures, names=names)


def _spread(
    row: CodeEditRow,
    code: FailingCode,
    place: list[Match],
    values: Mapping[str, str],
    trusted: frozenset[str],
) -> list[Match]:
    """Add the other places of the function or of the file where the same stands."""
    if not row.spreads or code.file is None:
        return place
    nodes = list(scope_nodes(code) if row.spreads == "function" else ast.walk(code.source.tree))
    same = "x" if row.spreads == "function" else "m"
    known = {name: node for name, node in place[0].captures.items() if name == same}
    told = (text for item in row.find if (text := filled(item, values, trusted)) is not None)
    found = [
        match
        for text in told
        for match in matches(text, nodes, known)
        if _fits(row, match, code.source, values, spread=True)
    ]
    others = [match for match in found if all(match.node is not item.node for item in place)]
    return [*place, *others]


def _values(
    row: CodeEditRow, found: re.Match[str], code: FailingCode, files: Sequence[JobFile]
) -> dict[str, str] | None:
    """Give what fills the row's blanks; None where something it needs is not to be had."""
    values = {name: text for name, text in found.groupdict().items() if text is not None}
    if callee := values.get("callee"):
        values["called"] = callee.removesuffix(".__init__").rpartition(".")[2]
    if row.table is not None:
        key = " ".join(values.get(name, "") for name in row.table.of)
        if key not in row.table.rows:
            return None
        values[row.table.gives] = row.table.rows[key]
    for name, source in row.computes.items():
        name_of = values.get(source.of, "" if source.by in NAMELESS else None)
        sought = None if name_of is None else Sought(name_of, code, values, files, source.choices)
        told = computed(source.by, sought) if sought is not None else None
        if told is None:
            return None
        values[name] = told
    return values


def _found_in_statement(
    row: CodeEditRow, code: FailingCode, values: Mapping[str, str], trusted: frozenset[str]
) -> list[Match]:
    nodes = list(code.nodes())
    for text in row.find:
        if text == ANY_STATEMENT:
            return [Match(code.statement)]
        pattern = filled(text, values, trusted)
        if pattern is None:
            continue
        found = [match for match in matches(pattern, nodes) if _fits(row, match, code.source, values)]
        # Several that are written alike are changed alike.
        if found and (row.every or len({ast.dump(match.node) for match in found}) == 1):
            return found
    return []


def _fits(
    row: CodeEditRow, match: Match, source: SourceText, values: Mapping[str, str], *, spread: bool = False
) -> bool:
    """Tell whether a match stands where it says and meets the row's conditions on what it captures."""
    # Of a part of a formatted text only the expression has a place of its own.
    node = match.node.value if isinstance(match.node, ast.FormattedValue) else match.node
    if not isinstance(node, ast.stmt) and not source.is_placed(node):
        return False
    told = {name: ast.unparse(node) for name, node in match.captures.items()} | dict(match.names)
    return (
        all(compiled(text).search(told[name]) for name, text in row.where.items() if name in told)
        and not any(compiled(text).search(told[name]) for name, text in row.unless.items() if name in told)
        and (
            spread
            or all(
                _comes_to(name, match, source) == canonical(values.get(group, ""))
                for name, group in row.equals.items()
                if name in told
            )
        )
    )


def _comes_to(name: str, match: Match, source: SourceText) -> str:
    """Give what a capture is: an attribute's name, an option's, or a number."""
    if name in match.names:
        return canonical(match.names[name])
    node = match.captures[name]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return canonical(unsigned(node.value))
    return str(value_of(node, source.tree))


def _found_elsewhere(
    row: CodeEditRow,
    code: FailingCode,
    place: Match,
    files: Sequence[JobFile],
    values: Mapping[str, str],
    trusted: frozenset[str],
) -> tuple[FailingCode, list[Match]] | None:
    """Find the other place that a row edits, where there is one alone."""
    sources = [(code.file, code.source)] if code.file is not None else []
    if row.within == "files":
        others = [file for file in files if file.name.endswith(CODE) and file != code.file]
        sources += [(file, source) for file in others if (source := whole_source(file.text)) is not None]
    for text in row.then:
        pattern = filled(text, values, trusted)
        if pattern is None:
            continue
        found = []
        for file, source in sources:
            is_inner = row.within in ("function", "above")
            nodes = scope_nodes(code) if is_inner else ast.walk(source.tree)
            for match in matches(pattern, nodes, place.captures):
                statement = holding(source, match.node)
                if statement is not None and _fits(row, match, source, values):
                    found.append((replace(code, file=file, source=source, statement=statement), match))
        if row.within == "above":
            before = [item for item in found if item[0].statement.lineno < code.statement.lineno]
            found = sorted(before, key=lambda item: item[0].statement.lineno)[-1:]
        if len(found) == 1:
            return found[0][0], [found[0][1]]
        if found:
            return None
    return None


def _made(
    row: CodeEditRow,
    code: FailingCode,
    found: Sequence[Match],
    values: Mapping[str, str],
    trusted: frozenset[str],
) -> CodeEdit | None:
    source, edits = code.source, list[TextEdit]()
    first: list[TextEdit] = []
    if row.edit is not None:
        for match in found:
            own = {**values, **match.names}
            made = _edits_at(row.edit, match, code.statement, source, own, trusted)
            further = _further(row, match, source, own, trusted) if made is not None else None
            if made is None or further is None:
                return None
            edits += [*made, *further]
            first = first or made
    imports = [text for item in row.imports if (text := filled(item, values, trusted)) is not None]
    if len(imports) < len(row.imports):
        return None
    edits, first = list(dict.fromkeys(edits)), list(dict.fromkeys(first))
    brought = [edit for text in imports if (edit := with_import(source, text)) is not None]
    if row.edit is None and not (brought or code.file is None):
        return None
    overlap = any(one.end > other.start for one, other in pairwise(sorted(edits)))
    if overlap or any(edit.end > source.limit for edit in edits):
        return None
    whole = source.edited([*edits, *brought]) if code.file is not None else source.edited(edits)
    if parsed(whole) is None or (row.edit is not None and whole == source.text):
        return None
    shown = edits if row.every and not row.spreads else first
    kind, before, after = _shown(row, shown, imports, found[0], source)
    return CodeEdit(
        kind,
        _place(row, code, first),
        before,
        after,
        _why(row, _words(values, found[0], source)),
        code.file,
        whole if code.file is not None else "",
        "; ".join(imports) if row.edit is not None and brought and code.file is not None else "",
        row.sure == "named",
        row=row,
    )


def _place(row: CodeEditRow, code: FailingCode, edits: Sequence[TextEdit]) -> str:
    """Name the row that is edited as a person finds it."""
    if code.file is None:
        return code.frame.found_at
    return place_in(code.file.name, code.file.text, _line(row, code, edits))


def _why(row: CodeEditRow, told: Mapping[str, str]) -> Text:
    """Give what a row says of its edit, and what that does not prove."""
    parts = [text for text in (row.says, row.unproved) if text is not None]
    en, zh = ([getattr(text, name).format(**told) for text in parts] for name in ("en", "zh"))
    return Text(en=" ".join(en), zh="".join(zh))


def _edits_at(
    operator: CodeOperator,
    match: Match,
    statement: ast.stmt,
    source: SourceText,
    values: Mapping[str, str],
    trusted: frozenset[str],
) -> list[TextEdit] | None:
    """Give the edits of an operator at one place, its blanks filled."""
    told: dict[str, str] = {}
    for key, template in blanks_of(operator).items():
        name, text = filled(key, values, trusted), filled(template, values, trusted)
        if name is None or text is None:
            return None
        told[name] = text
    return edits_of(operator, match, statement, source, told)


def _further(
    row: CodeEditRow, match: Match, source: SourceText, values: Mapping[str, str], trusted: frozenset[str]
) -> list[TextEdit] | None:
    """Give the edits that go with one, within what it edits; None where a place for one is not there."""
    edits: list[TextEdit] = []
    for also in row.also:
        told = (text for item in also.find if (text := filled(item, values, trusted)) is not None)
        places = [item for text in told for item in matches(text, ast.walk(match.node), match.captures)]
        for place in places:
            statement = holding(source, place.node)
            made = (
                _edits_at(also.edit, place, statement, source, values, trusted)
                if statement is not None
                else None
            )
            if made is None:
                return None
            edits += made
        if not places:
            return None
    return edits


def _words(values: Mapping[str, str], match: Match, source: SourceText) -> dict[str, str]:
    """Give what fills a sentence: the message's words and what the patterns' names stand for."""
    captured = {name: source.source(node) for name, node in match.captures.items() if source.is_placed(node)}
    told = {
        name: re.sub(r"\$(\w+)", lambda part: captured.get(part[1], part[0]), text)
        for name, text in values.items()
    }
    texts = {**captured, **told}
    return {name: " ".join(text.replace("`", "'").split())[:LONGEST_SHOWN] for name, text in texts.items()}


def _line(row: CodeEditRow, code: FailingCode, edits: Sequence[TextEdit]) -> int:
    """Give the row of the file that an edit changes, as it is counted before it."""
    if row.edit is None or row.edit.before or row.edit.after or row.edit.guard:
        return code.statement.lineno
    return code.source.text.count("\n", 0, min(edit.start for edit in edits)) + 1


def _shown(
    row: CodeEditRow, edits: Sequence[TextEdit], imports: Sequence[str], match: Match, source: SourceText
) -> tuple[EditKind, str, str]:
    """Give the rows that an edit changes as they are and as they become, or what it inserts."""
    if row.edit is None:
        return "import", "", "; ".join(imports)
    if row.edit.before or row.edit.after:
        kind: EditKind = "insert-before" if row.edit.before else "insert-after"
        return kind, "", "; ".join(line.strip() for line in edits[0].new.strip().split("\n"))
    text = source.text[: source.limit]
    start = text.rfind("\n", 0, min(edit.start for edit in edits)) + 1
    end = text.find("\n", max(edit.end for edit in edits))
    end = len(text) if end < 0 else end
    before, after = _within(edits, start, end, text)
    if max(len(before), len(after)) > LONGEST_SHOWN:
        inner = min(source.start(match.node), *(edit.start for edit in edits))
        outer = max(source.end(match.node), *(edit.end for edit in edits))
        if not isinstance(match.node, ast.stmt):
            before, after = _within(edits, inner, outer, text)
    before, after = _cut(before, after)
    return "replace", before, after


def _within(edits: Sequence[TextEdit], start: int, end: int, text: str) -> tuple[str, str]:
    after = text[start:end]
    for edit in sorted(edits, reverse=True):
        after = after[: edit.start - start] + edit.new + after[edit.end - start :]
    return _one_row(text[start:end]), _one_row(after)


def _one_row(text: str) -> str:
    """Give code as one row; statements that stand alone are parted."""
    rows = [row.strip() for row in text.strip().split("\n")]
    return ("; " if len(rows) > 1 and all(map(parsed, rows)) else " ").join(rows)


def _cut(before: str, after: str) -> tuple[str, str]:
    """Cut two texts that are long to what differs, with a little around it."""
    if max(len(before), len(after)) <= LONGEST_SHOWN:
        return before, after
    same = next(
        (place for place, (one, two) in enumerate(zip(before, after, strict=False)) if one != two),
        min(len(before), len(after)),
    )
    begin = max(0, same - LONGEST_SHOWN // 3)

    def part(text: str) -> str:
        end = begin + LONGEST_SHOWN
        return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"

    return part(before), part(after)
