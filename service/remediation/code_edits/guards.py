"""Tests and handlers around a failing statement under which it cannot fail as its message says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from ingest.logs.events import Event
from service.remediation.code_edits.failing_code import FailingCode

# Exceptions whose handlers catch others too: docs.python.org, the hierarchy of exceptions.
_CATCHES = {
    "FileNotFoundError": {"OSError", "IOError", "EnvironmentError"},
    "PermissionError": {"OSError", "IOError", "EnvironmentError"},
    "FileExistsError": {"OSError", "IOError", "EnvironmentError"},
    "ModuleNotFoundError": {"ImportError"},
    "KeyError": {"LookupError"},
    "IndexError": {"LookupError"},
    "ZeroDivisionError": {"ArithmeticError"},
    "UnboundLocalError": {"NameError"},
}
# What a handler calls that tells of the failure, or ends the program with it.
_TELLS = re.compile(r"(?:exception|error|critical|print_exc|format_exc|exc_info|exit|_exit|abort|kill)$")
_LOOKS = frozenset({"exists", "isfile", "isdir", "lexists", "is_file", "is_dir"})
_MAKES = frozenset({"makedirs", "mkdir"})
# Calls of two paths, where one of them tells nothing of the other, and those that several ranks race in.
_UNSURE = re.compile(r"(?:copy\w*|move|rename|replace|symlink|link|remove|unlink|rmtree|rmdir)$")
_NO_FILE = re.compile(r"FileNotFoundError|No such file or directory")
_NONE = re.compile(r"'NoneType' object (?:has no attribute '(?P<name>\w+)'|is not (?P<used>\w+))")
_NO_ATTRIBUTE = re.compile(r"has no attribute '(?P<name>\w+)'")
_LEAVES = (ast.Return, ast.Continue, ast.Break, ast.Raise)


def guard_of(root: Event, code: FailingCode) -> ast.stmt | None:
    """Give the statement that rules out what a message says of the statement below it; None without one."""
    scope = code.function or code.source.tree
    ways = _ways(scope, code.statement)
    read = {name.id for name in _names(code.statement)}
    for block, place in ways:
        holder, field = place
        if isinstance(holder, ast.Try) and field == "body" and _is_caught(root.exception, holder):
            return holder
        before = block[: next(at for at, item in enumerate(block) if code.statement in ast.walk(item))]
        # What sets a name that the failing statement reads.
        sets = [{name.id for name in _names(item) if isinstance(name.ctx, ast.Store)} for item in before]
        anew = [at for at, names in enumerate(sets) if names & read]
        branch = holder if isinstance(holder, ast.If) and field in ("body", "orelse") and not anew else None
        if branch is not None and _rules_out(branch.test, root, code, holds=field == "body"):
            return branch
        for item in before[max(anew, default=-1) + 1 :]:
            if not isinstance(item, ast.If) or item.orelse or not _ends_or_makes(item.body):
                continue
            if _rules_out(item.test, root, code, holds=False):
                return item
    return None


Place = tuple[ast.AST, str]


def _ways(scope: ast.AST, statement: ast.stmt) -> list[tuple[list[ast.stmt], Place]]:
    """Give the blocks around a statement, each with what it is a block of; the outermost first."""
    found: list[tuple[list[ast.stmt], Place]] = []
    holder: ast.AST | None = scope
    while holder is not None:
        inner: ast.AST | None = None
        for field, value in ast.iter_fields(holder):
            block = [item for item in value if isinstance(item, ast.stmt)] if isinstance(value, list) else []
            below = [item for item in block if statement in ast.walk(item)]
            if below:
                found.append((block, (holder, field)))
                inner = below[0]
            handlers = value if field == "handlers" and isinstance(value, list) else []
            inner = inner or next((each for each in handlers if statement in ast.walk(each)), None)
        holder = inner if inner is not statement else None
    return found


def _is_caught(exception: str, statement: ast.Try) -> bool:
    """Tell whether a handler takes an exception of that very kind, and neither tells of it nor raises."""
    name = exception.partition("(")[0].rpartition(".")[2]
    for handler in statement.handlers:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        named = {ast.unparse(kind).rpartition(".")[2] for kind in kinds if kind is not None}
        if name and named & ({name} | _CATCHES.get(name, set())):
            nodes = [node for item in handler.body for node in ast.walk(item)]
            calls = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
            return not any(isinstance(node, ast.Raise) for node in nodes) and not any(
                map(_TELLS.search, calls)
            )
    return False


def _ends_or_makes(block: Sequence[ast.stmt]) -> bool:
    """Tell whether what stands behind a block is not reached from it, or finds the folder that it makes."""
    last = block[-1]
    if isinstance(last, _LEAVES):
        return True
    called = (
        ast.unparse(last.value.func)
        if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)
        else ""
    )
    return called.rpartition(".")[2] in {*_MAKES, "exit", "_exit"}


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (each for each in ast.walk(node) if isinstance(each, ast.Name))


def _rules_out(test: ast.expr, root: Event, code: FailingCode, *, holds: bool) -> bool:
    """Tell whether a test that holds, or does not, leaves no way for a message to come of a statement."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _rules_out(test.operand, root, code, holds=not holds)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if holds else ast.Or):
        return any(_rules_out(part, root, code, holds=holds) for part in test.values)
    message = f"{root.exception}: {root.body}"
    read = {ast.unparse(node): node for node in code.nodes() if isinstance(node, ast.expr)}
    if _NO_FILE.search(message):
        calls = [ast.unparse(node.func) for node in read.values() if isinstance(node, ast.Call)]
        # What a package opens below the path may be missing while the path is there.
        is_surely = code.is_innermost or code.frame.line != code.statement.lineno
        is_seen = holds and is_surely and not any(map(_UNSURE.search, calls))
        return is_seen and bool(set(_looked_at(test)) & set(read))
    if match := _NONE.search(message):
        used = set(_used(code, match))
        return len(used) == 1 and used <= set(_not_none(test, holds=holds))
    match test:
        case ast.Call(func=ast.Name(id="hasattr"), args=[holder, ast.Constant(value=str() as name)]):
            missed = _NO_ATTRIBUTE.search(message)
            is_named = missed is not None and missed["name"] == name
            return holds and is_named and f"{ast.unparse(holder)}.{name}" in read
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn() as op], comparators=[holder]):
            is_key = "KeyError" in root.exception and holds == isinstance(op, ast.In)
            return is_key and f"{ast.unparse(holder)}[{ast.unparse(key)}]" in read
    return False


def _used(code: FailingCode, match: re.Match[str]) -> Iterator[str]:
    """Give what a statement uses as the message says that None cannot be used."""
    for node in code.nodes():
        match node:
            case ast.Attribute(value=value, attr=name) if name == match["name"]:
                yield ast.unparse(value)
            case ast.Subscript(value=value) if match["used"] == "subscriptable":
                yield ast.unparse(value)
            case ast.Call(func=value) if match["used"] == "callable":
                yield ast.unparse(value)
            case ast.For(iter=value) if match["used"] == "iterable":
                yield ast.unparse(value)


def _looked_at(test: ast.expr) -> Iterator[str]:
    """Give the paths that a test finds to be there."""
    match test:
        case ast.Call(func=ast.Attribute(attr=attr, value=holder), args=args) if attr in _LOOKS:
            yield ast.unparse(args[0] if args else holder)
        case ast.Call(func=ast.Name(id=name), args=[path]) if name in _LOOKS:
            yield ast.unparse(path)


def _not_none(test: ast.expr, *, holds: bool) -> Iterator[str]:
    """Give what a test that holds, or does not, finds to be something."""
    match test:
        case ast.Compare(
            left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]
        ):
            if holds == isinstance(op, ast.IsNot):
                yield ast.unparse(left)
        case ast.Name() | ast.Attribute():
            if holds:
                yield ast.unparse(test)
