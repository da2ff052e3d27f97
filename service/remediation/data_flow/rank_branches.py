"""A collective within a branch that one rank alone takes: that rank waits in it for the others for good.

The branch is found in the job's files, also where it calls a function of theirs that holds the collective.
Where that statement comes first or last in the branch, it is taken out of it, and the rest stays one rank's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corpus.expressions import compiled
from corpus.message import in_both
from corpus.rank_branches import RankBranch, known_rank_branches
from corpus.schema import Text
from ingest.configfiles.formats import CODE
from ingest.configfiles.notebook import place_in
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.code_edits.source_text import SourceText, parsed, whole_source
from service.remediation.data_flow.job_program import Function, called
from service.remediation.own_edits import OwnEdit

# How deep a call of the job's own functions is looked into.
_DEPTH = 2


@dataclass(frozen=True)
class _Branch:
    """A branch of one rank, its statement that all ranks must come to, and the collective in it."""

    file: JobFile
    source: SourceText
    branch: ast.If
    own: ast.expr
    statement: ast.stmt
    collective: str

    @property
    def place(self) -> str:
        """The row of the branch as a person finds it."""
        return place_in(self.file.name, self.file.text, self.branch.lineno)

    def why(self, form: str) -> Text:
        """Say which collective waits for all ranks, and which condition keeps the others away."""
        return in_both(
            f"changes.{form}",
            collective=self.collective,
            test=ast.unparse(self.own),
            place=self.place,
            row=self.statement.lineno,
        )


def rank_branch_words(report: CrashReport, files: Sequence[JobFile]) -> Text | None:
    """Say which branch of one rank holds a collective; None where there is none, or there are several."""
    found = _only(report, files)
    return found.why("collective-in-branch") if found is not None else None


def rank_branch_edit(report: CrashReport, files: Sequence[JobFile]) -> OwnEdit | None:
    """Take the collective's statement out of the branch of one rank, and leave the rest in it."""
    found = _only(report, files)
    if found is None or found.branch.orelse:
        return None
    body = found.branch.body
    put = _rows(found) if body[0] is found.statement else None
    if put is None and body[-1] is found.statement and len(body) > 1:
        put = _rows_behind(found)
    if put is None:
        return None
    rows = found.source.rows()
    first, last = found.branch.lineno, found.branch.end_lineno or found.branch.lineno
    text = "\n".join([*rows[: first - 1], *put, *rows[last:]])
    if parsed(text) is None:
        return None
    before, after = rows[first - 1].strip(), put[0].strip()
    return OwnEdit("replace", found.place, before, after, found.why("collective-for-all"), found.file, text)


def _only(report: CrashReport, files: Sequence[JobFile]) -> _Branch | None:
    cause = report.root.cause if report.root is not None else None
    rows = [row for row in known_rank_branches() if cause in row.causes]
    code = [file for file in files if file.name.endswith(CODE)] if rows else []
    found = [branch for row in rows for file in code for branch in _branches(row, file, code)]
    return found[0] if len(found) == 1 else None


def _branches(row: RankBranch, file: JobFile, files: Sequence[JobFile]) -> Iterator[_Branch]:
    source = whole_source(file.text)
    functions = _functions(files)
    scopes = [node for node in ast.walk(source.tree) if isinstance(node, Function)] if source else []
    for scope in [*scopes, *([source.tree] if source is not None else [])]:
        tested = [node for node in _own(scope) if isinstance(node, ast.If) and _rank_test(node, row)]
        named = [name for node in tested for name in _collectives(node.body, row, functions)]
        for node in tested:
            own = _rank_test(node, row)
            inner = [(each, list(_collectives([each], row, functions))) for each in node.body]
            held = [(each, names[0]) for each, names in inner if names]
            # What stands in two branches, or in the other one too, is met by all of the ranks.
            others = list(_collectives(node.orelse, row, functions))
            is_met = others or any(named.count(name) > 1 for _, name in held)
            if source is not None and own is not None and len(held) == 1 and not is_met:
                yield _Branch(file, source, node, own, *held[0])


def _rank_test(node: ast.If, row: RankBranch) -> ast.expr | None:
    """Give the part of a condition that one rank alone meets."""
    tests = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
    if isinstance(node.test, ast.BoolOp) and not isinstance(node.test.op, ast.And):
        return None
    return next((test for test in tests if compiled(row.test).fullmatch(ast.unparse(test))), None)


def _functions(files: Sequence[JobFile]) -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for file in files:
        tree = parsed(file.text)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, Function):
                found.setdefault(node.name, []).append(node)
    return found


def _collectives(
    body: Sequence[ast.AST], row: RankBranch, functions: dict[str, list[Function]], depth: int = _DEPTH
) -> Iterator[str]:
    """Give the calls that all ranks must make, of statements and of the job's own functions they call."""
    for node in (inner for each in body for inner in ast.walk(each)):
        if not isinstance(node, ast.Call):
            continue
        if compiled(row.calls).fullmatch(ast.unparse(node.func)):
            yield ast.unparse(node.func)
        elif depth and len(own := functions.get(called(node), [])) == 1:
            yield from _collectives(own[0].body, row, functions, depth - 1)


def _own(scope: Function | ast.Module) -> Iterator[ast.AST]:
    """Give what a function or a file holds, without what the functions in it do."""
    waiting: list[ast.AST] = list(scope.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def _rows(found: _Branch) -> list[str] | None:
    """Give the rows of a branch whose first statement all ranks come to; None where they cannot be moved."""
    node, source = found.branch, found.source
    rows, indent = source.rows(), source.indent(node)
    inner = source.indent(node.body[0])
    texts = (each for each in ast.walk(node) if isinstance(each, ast.Constant | ast.JoinedStr))
    # Rows of a text that goes over several would change with their indent.
    is_moved = all(each.lineno == each.end_lineno for each in texts)
    first = node.body[0]
    is_plain = node.body[0].lineno > node.test.lineno and node.test.end_lineno == node.lineno
    if indent is None or inner is None or not is_moved or not is_plain or not inner.startswith(indent):
        return None
    step = inner[len(indent) :]
    if not rows[node.lineno - 1].lstrip().startswith("if "):
        return None  # `elif` belongs to what stands before it
    head = rows[first.lineno - 1 : first.end_lineno]
    rest = rows[first.end_lineno or first.lineno : node.end_lineno] if len(node.body) > 1 else []
    others = node.test.values if isinstance(node.test, ast.BoolOp) else []
    kept = [ast.unparse(each) for each in others if each is not found.own]
    own = ast.unparse(found.own)
    if not kept:
        plain = [row.removeprefix(step) if row.startswith(indent + step) else row for row in head]
        return [*plain, *([f"{indent}if {own}:", *rest] if rest else [])]
    deeper = [step + row if row.strip() else row for row in rest]
    under = [f"{inner}if {own}:", *deeper] if rest else []
    return [f"{indent}if {' and '.join(kept)}:", *head, *under]


def _rows_behind(found: _Branch) -> list[str] | None:
    """Give the rows of a branch with its last statement behind it, which stands in one row."""
    node, last, rows = found.branch, found.statement, found.source.rows()
    indent = found.source.indent(node)
    row = rows[last.lineno - 1]
    is_plain = node.test is found.own and rows[node.lineno - 1].lstrip().startswith("if ")
    if indent is None or not is_plain or last.lineno != last.end_lineno or ";" in row:
        return None
    return [*rows[node.lineno - 1 : last.lineno - 1], indent + row.strip()]
