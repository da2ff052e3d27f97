"""What a module's text says of one row: its statement, the conditions that lead there, and what they read.

Pure: a text and a row go in. Of a file only the function around the row is parsed, which takes a tenth of the
time; where that cannot be cut out, the whole file is.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from ingest.source_code.message_template import Pieces, is_said, pieces_of, told_values
from ingest.source_code.names_read import MOST_NAMES, names_read

# Of a function that raises oftener none is told apart: each costs a walk through the module.
MOST_RAISES = 60
# A whole module is parsed up to this size; a function is a part of it.
LONGEST_PARSED = 400_000
# Of a module's own rows those above say what its names are; of a longer one only the statement is parsed.
SHORT_MODULE = 16_000
MOST_CONDITIONS = 8
LONGEST_STATEMENT, LONGEST_CONDITION = 240, 160
Function = ast.FunctionDef | ast.AsyncFunctionDef
_DEF = re.compile(r"(?:async +)?def +\w")
# The end of a signature or a call stands as far left as its begin.
_CLOSING = (")", "]", "}", "#")
_GOES_ON = re.compile(r"[)\]}#]|(?:elif|else|except|finally)\b")
_LEAVES = ast.Return | ast.Continue | ast.Break


@dataclass(frozen=True)
class Condition:
    """What held when the statement was reached: a test, or the opposite of one where it did not hold.

    Without an `expression` it is the pattern of a `case`, or what an `except` caught.
    """

    text: str
    expression: ast.expr | None = None
    holds: bool = True


@dataclass(frozen=True)
class GuardedStatement:
    """A statement with the conditions that lead to it in its function, the nearest first.

    `names` are what the nearest condition reads that reads anything, then what the message names, each with
    the objects that hold it (`self.config.max_model_len`). `assigned` holds the expressions that the function
    gives its names before, `defaults` the parameters with theirs; `raises` tells that it is a `raise` or an
    `assert`, whose conditions are a check; `message` is what that says, in pieces.
    """

    statement: str
    function: str
    conditions: tuple[Condition, ...]
    names: tuple[str, ...]
    assigned: Mapping[str, ast.expr]
    defaults: Mapping[str, str]
    raises: bool
    message: Pieces = ()

    def told(self, text: str) -> dict[str, str]:
        """Give what the expressions of the message were, by how they are written, as a line tells them."""
        return told_values(self.message, text)


def read_statement(text: str, line: int) -> GuardedStatement | None:
    """Read the statement of a row, counted from 1; None where the text does not parse or has none there."""
    for first, part in _parts(text, line):
        tree = _parsed(part)
        found = _path_to(tree, line - first + 1) if tree is not None else []
        if found:
            try:
                return _guarded(found)
            except RecursionError:  # code that nests deeper than a walk can
                return None
    return None


def find_raise(text: str, message: str, function: str) -> GuardedStatement | None:
    """Read the statement of a function that raises or asserts with a message; None where not one does."""
    tree = _parsed(text) if len(text) <= LONGEST_PARSED else None
    functions = (
        node
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function
    )
    raising = [
        node for around in functions for node in ast.walk(around) if isinstance(node, ast.Raise | ast.Assert)
    ]
    found = []
    for node in raising if len(raising) <= MOST_RAISES else ():
        try:
            read = _guarded(_path_to(tree, node.lineno)) if tree is not None else None
        except RecursionError:  # code that nests deeper than a walk can
            continue
        if read is not None and read.function == function and is_said(read.message, message):
            found.append(read)
    return found[0] if len(found) == 1 else None


def _parts(text: str, line: int) -> Iterator[tuple[int, str]]:
    """Give the function around a row, or a long module's statement, then all of the text, with first rows."""
    rows = text.split("\n")
    if not 0 < line <= len(rows):
        return
    part = _function_rows(rows, line - 1)
    if part is None and len(text) > SHORT_MODULE:
        part = _outer_rows(rows, line - 1)
    if part is not None:
        begin, end = part
        yield begin + 1, textwrap.dedent("\n".join(rows[begin:end]))
    if len(text) <= LONGEST_PARSED:
        yield 1, text


def _function_rows(rows: Sequence[str], place: int) -> tuple[int, int] | None:
    """Give the rows of the innermost function around one, by how far they are indented."""
    least = _indent(rows[place])
    for begin in range(place - 1, -1, -1):
        row = rows[begin].lstrip()
        if not row or row.startswith(_CLOSING):
            continue
        indent = _indent(rows[begin])
        if indent < least and _DEF.match(row):
            break
        least = min(least, indent)
    else:
        return None
    edge = _indent(rows[begin])
    for end in range(place + 1, len(rows)):
        row = rows[end].lstrip()
        if row and not row.startswith(_CLOSING) and _indent(rows[end]) <= edge:
            return begin, end
    return begin, len(rows)


def _outer_rows(rows: Sequence[str], place: int) -> tuple[int, int] | None:
    """Give the rows of the statement of the module itself that holds a row, by what stands at the left."""
    begins = (row for row in range(place, -1, -1) if _begins(rows[row]))
    begin = next(begins, None)
    if begin is None:
        return None
    return begin, next((row for row in range(place + 1, len(rows)) if _begins(rows[row])), len(rows))


def _begins(row: str) -> bool:
    return bool(row) and not row[0].isspace() and not _GOES_ON.match(row)


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            # What the code of others is warned of is none of ours.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _path_to(tree: ast.Module, line: int) -> list[ast.AST]:
    """Give what holds the innermost statement of a row, from the module down to it."""
    path: list[ast.AST] = [tree]
    while True:
        below = (node for node in ast.iter_child_nodes(path[-1]) if _spans(node, line))
        inner = next((node for node in below if not isinstance(node, ast.expr)), None)
        if inner is None:
            return path if isinstance(path[-1], ast.stmt) else []
        path.append(inner)


def _spans(node: ast.AST, line: int) -> bool:
    if isinstance(node, ast.match_case):
        return node.pattern.lineno <= line <= (node.body[-1].end_lineno or line)
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    return first is not None and last is not None and first <= line <= last


def _guarded(path: Sequence[ast.AST]) -> GuardedStatement:
    statement = path[-1]
    inside = max((place for place, node in enumerate(path[:-1]) if isinstance(node, Function)), default=0)
    outer = path[inside]
    function = outer if isinstance(outer, Function) else None
    raises = isinstance(statement, ast.Raise | ast.Assert)
    assigned = _assigned(outer, statement)
    match statement:
        case ast.Assert(msg=ast.expr() as message) | ast.Raise(exc=ast.Call(args=[message, *_])):
            pieces = pieces_of(message, assigned)
        case _:
            pieces = ()
    # Without the blocks that it holds.
    text = ast.unparse(statement)
    head = text.split("\n", 1)[0] if hasattr(statement, "body") else " ".join(text.split())
    conditions = list(islice(_conditions(path[inside:]), MOST_CONDITIONS))
    tests = (_names(item.expression, assigned) for item in conditions if item.expression is not None)
    read = next(filter(None, tests), [])
    said = [name for piece in pieces if isinstance(piece, ast.expr) for name in _names(piece, assigned)]
    return GuardedStatement(
        _short(head, LONGEST_STATEMENT),
        function.name if function is not None else "<module>",
        tuple(conditions),
        tuple(dict.fromkeys([*read, *said]))[:MOST_NAMES],
        assigned,
        _defaults(function) if function is not None else {},
        raises,
        pieces,
    )


def _names(expression: ast.expr, assigned: Mapping[str, ast.expr]) -> list[str]:
    return list(islice(names_read(expression, assigned), MOST_NAMES))


def _conditions(path: Sequence[ast.AST]) -> Iterator[Condition]:
    """Give the conditions that lead to the last node of a path within its first, the nearest first."""
    statement = path[-1]
    if isinstance(statement, ast.Assert):
        yield _condition(statement.test, holds=False)
    is_open = not isinstance(statement, ast.Assert)
    for above, node in reversed(list(pairwise(path))):
        if is_open and isinstance(node, ast.stmt) and (left := _left_before(above, node)) is not None:
            yield _condition(left, holds=False)
        is_open = is_open and not isinstance(above, ast.If | ast.While | ast.match_case)
        match above:
            case ast.If(test=test) | ast.While(test=test):
                yield _condition(test, holds=any(node is each for each in above.body))
            case ast.match_case(pattern=pattern, guard=guard):
                if guard is not None:
                    yield _condition(guard, holds=True)
                yield Condition(_short(f"case {ast.unparse(pattern)}", LONGEST_CONDITION))
            case ast.ExceptHandler(type=caught):
                told = f"except {ast.unparse(caught)}" if caught is not None else "except"
                yield Condition(_short(told, LONGEST_CONDITION))


def _left_before(above: ast.AST, statement: ast.stmt) -> ast.expr | None:
    """Give the test right above a statement by which its block would have been left otherwise."""
    for block in (getattr(above, name, None) for name in ("body", "orelse", "finalbody")):
        rows = block if isinstance(block, list) else []
        place = next((place for place, each in enumerate(rows) if each is statement), 0)
        before = rows[place - 1] if place else None
        if isinstance(before, ast.If) and not before.orelse and isinstance(before.body[-1], _LEAVES):
            return before.test
    return None


def _condition(test: ast.expr, *, holds: bool) -> Condition:
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, holds = test.operand, not holds
    text = ast.unparse(test)
    if not holds:
        text = f"not ({text})" if isinstance(test, ast.BoolOp | ast.Compare | ast.IfExp) else f"not {text}"
    return Condition(_short(text, LONGEST_CONDITION), test, holds)


def _assigned(function: ast.AST, statement: ast.AST) -> dict[str, ast.expr]:
    """Give the last expression that each name gets above a statement, in its function alone."""
    found: dict[str, tuple[int, ast.expr]] = {}
    waiting = list(ast.iter_child_nodes(function))
    last = getattr(statement, "lineno", 0)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.lineno < last and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and node.lineno >= found.get(target.id, (0,))[0]:
                    found[target.id] = (node.lineno, node.value)
        if not isinstance(node, ast.expr | ast.ClassDef | Function):
            waiting.extend(ast.iter_child_nodes(node))
    return {name: value for name, (_, value) in found.items()}


def _defaults(function: Function) -> dict[str, str]:
    args = function.args
    placed = [*args.posonlyargs, *args.args]
    pairs = [*zip(placed[::-1], args.defaults[::-1], strict=False)]
    pairs += [(arg, value) for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True) if value]
    return {arg.arg: _short(ast.unparse(value), LONGEST_CONDITION) for arg, value in pairs}


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
