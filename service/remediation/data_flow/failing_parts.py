"""Which expressions of the failing statement a failure is about: where a slice begins."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from corpus.schema import Scalar
from ingest.logs.stacks.own_calls import is_own
from ingest.source_code.message_template import Pieces, is_said, pieces_of
from service.remediation.code_edits.source_text import expression, head_nodes
from service.remediation.data_flow.definitions import tests_around
from service.remediation.data_flow.job_program import Function, OwnCall, called

_ATTRIBUTE = re.compile(r"has no attribute '(?P<name>\w+)'")
_LOCAL = re.compile(r"local variable '(?P<name>\w+)'")
# Messages of number formats, and contexts that choose them.
_FORMATS = re.compile(r"(?i)\b(?:half|bfloat16|b?float(?:16|32)?|bf16|fp16|double|dtypes?)\b")
_CASTS = re.compile(r"(?i)cast|amp|precision")
_WEIGHTS = re.compile(r"['\"]((?:\w+\.)+\w+)['\"]")
MOST_WEIGHTS = 12
# What a switch that is on is compared with.
_SET = (True, "1", "true", "True", "yes", "on")
# numpy's and torch's words for a shape that does not hold as many numbers.
_INTO = re.compile(r"\binto shape [(\[](?P<shape>[\d, -]+)|\bshape '\[(?P<other>[\d, -]+)\]'")
# CPython's words for an operation on a value that is not there.
_OPERANDS = re.compile(
    r"unsupported operand type\(s\) for [^:\n]{1,20}: "
    r"(?=[^\n]{0,60}'NoneType')'(?P<left>\w+)' and '(?P<right>\w+)'"
)
_KEY = re.compile(r"\bKeyError: (?P<key>[^\n]{1,100})$")
# What stands below a call of the job's own that raises: how many conditions above it are its reason.
MOST_GUARDS = 2
_LEAVES = ast.Return | ast.Continue | ast.Break | ast.Raise
# How many parts of a statement are looked at, and how many are compared with what Python marked.
MOST_PARTS, MOST_ALIKE = 2000, 100


def parts_of(call: OwnCall) -> list[ast.expr]:
    """Give the expressions of a statement that failed: what Python marked, else what the call is handed."""
    nodes, is_marked = failing_nodes(call)
    below = [node for node in nodes if isinstance(node, ast.Call) and called(node) == call.calls]
    if not below and call.calls:
        below = [node for node in nodes if isinstance(node, ast.Call)][:1]
    if below:
        return [value for node in below for value in handed_to(node)]
    opened = [node for node in nodes if isinstance(node, ast.Call) and called(node) == "open"]
    if len(opened) == 1 and not call.calls:
        # Of what nothing is called below, what the interpreter itself opens failed, not what reads it.
        return list(handed_to(opened[0]))
    tops = nodes[:1] if is_marked else _tops(call.statement)
    # Of a call that failed itself, such as `open(path)`, what it is handed.
    return [part for top in tops for part in (handed_to(top) if isinstance(top, ast.Call) else [top])]


def guards_of(call: OwnCall, message: str = "") -> list[ast.expr]:
    """Give the conditions of a check of the job's own code that raises; none where nothing is checked.

    A file that was edited since may raise something else on that row: what the message says tells which one.
    """
    statement = call.statement
    if isinstance(statement, ast.Assert):
        return [statement.test]
    if isinstance(statement, ast.Raise) and is_own(call.frame) and not call.calls:
        raising = _raising(statement, call.scope.function, message)
        if raising is not None:
            return tests_around(raising, call.scope.module, call.scope.function)[:MOST_GUARDS]
    return []


def _raising(statement: ast.Raise, function: Function | None, message: str) -> ast.Raise | None:
    """Give what raises a message: the statement, unless it says other words, else one of its function."""
    if is_said(_pieces(statement), message) is not False:
        return statement
    nodes = ast.walk(function) if function is not None else ()
    others = [node for node in nodes if isinstance(node, ast.Raise) and is_said(_pieces(node), message)]
    return others[0] if len(others) == 1 else None


def _pieces(statement: ast.Raise) -> Pieces:
    match statement.exc:
        case ast.Call(args=[text, *_]):
            return pieces_of(text, {})
        case _:
            return ()


def passing_value(call: OwnCall, test: ast.expr) -> tuple[ast.expr, Scalar] | None:
    """Give what a check compares with the one constant with which it passes; None for other checks."""
    # What is asserted must hold; what stands around a statement that raises must not.
    holds = isinstance(call.statement, ast.Assert)
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, holds = test.operand, not holds
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    if not isinstance(test.ops[0], ast.Eq if holds else ast.NotEq):
        return None
    sides = [test.left, *test.comparators]
    constants = [side.value for side in sides if isinstance(side, ast.Constant)]
    others = [side for side in sides if isinstance(side, ast.Name | ast.Attribute | ast.Subscript)]
    if len(constants) == len(others) == 1 and isinstance(constants[0], bool | int | float | str):
        return others[0], constants[0]
    return None


def switches_of(call: OwnCall, message: str) -> tuple[list[ast.expr], list[ast.expr]]:
    """Give what must be true, and what must be there at all, for a statement to be reached.

    Where the message is of number formats, what a context around it is told of them counts too.
    """
    module, function = call.scope.module, call.scope.function
    if not module.name:
        return [], []
    true: list[ast.expr] = []
    there: list[ast.expr] = []
    inner: ast.AST = call.statement
    for above in module.around(call.statement):
        for test in _passed_exits(above, inner):
            match test:
                case ast.UnaryOp(op=ast.Not(), operand=held):
                    true.append(held)
                case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(None)]):
                    there.append(left)
        if above is function or isinstance(above, ast.ClassDef):
            break
        if isinstance(above, ast.If) and inner in above.body:
            _sort(above.test, true, there)
        if isinstance(above, ast.With | ast.AsyncWith) and _FORMATS.search(message):
            made = [item.context_expr for item in above.items if isinstance(item.context_expr, ast.Call)]
            true += [part for each in made if _CASTS.search(called(each)) for part in handed_to(each)]
        inner = above
    return true, there


def _sort(test: ast.expr, true: list[ast.expr], there: list[ast.expr]) -> None:
    """Add the parts of a condition that holds to what must be true, and to what must be there."""
    for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]:
        match part:
            case ast.Compare(ops=[ast.IsNot(), *_], comparators=[ast.Constant(None), *_]):
                there.append(part.left)
            case ast.Compare(ops=[ast.Eq(), *_], comparators=[ast.Constant(on), *_]) if on in _SET:
                true.append(part.left)
            case ast.Name() | ast.Attribute() | ast.Subscript() | ast.Call():
                true.append(part)


def _passed_exits(above: ast.AST, inner: ast.AST) -> Iterator[ast.expr]:
    """Give the conditions before a statement of a block under which that would have been left."""
    for name in ("body", "orelse", "finalbody"):
        block: list[ast.stmt] | ast.expr = getattr(above, name, [])
        if isinstance(block, list) and inner in block:
            for each in block[: block.index(inner)]:
                if isinstance(each, ast.If) and not each.orelse and isinstance(each.body[-1], _LEAVES):
                    yield each.test


def choices_of(call: OwnCall) -> list[tuple[ast.expr, str]]:
    """Give what must have which word for a statement to be reached: the branch that an option chose."""
    module, function = call.scope.module, call.scope.function
    found: list[tuple[ast.expr, str]] = []
    inner: ast.AST = call.statement
    for above in module.around(call.statement) if module.name else ():
        if above is function or isinstance(above, ast.ClassDef):
            break
        if isinstance(above, ast.If) and inner in above.body:
            test = above.test
            parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
            for part in parts:
                match part:
                    case ast.Compare(
                        left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=str() as word)]
                    ) if word not in _SET:
                        found.append((left, word))
        inner = above
    return found


def parts_named(message: str) -> list[str]:
    """Give the parts of a model that names of its weights tell, each once: `side` of `side.emb.weight`."""
    names = _WEIGHTS.findall(message)[:MOST_WEIGHTS]
    levels = (level for name in names for level in name.split(".")[:-1])
    return list(dict.fromkeys(level for level in levels if not level.isdecimal()))


def shaped(call: OwnCall, message: str) -> list[tuple[ast.expr, str]]:
    """Pair the arguments of a call that gives a new shape with the numbers of the shape that it asked for."""
    told = _INTO.search(message)
    numbers = re.findall(r"-?\d+", told["shape"] or told["other"]) if told else []
    for node in head_nodes(call.statement) if numbers else ():
        if isinstance(node, ast.Call) and called(node) in ("reshape", "view", "resize"):
            given = node.args
            if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List):
                given = given[0].elts
            given = given[-len(numbers) :] if len(given) == len(numbers) + 1 else given
            if len(given) == len(numbers):
                return [(part, number) for part, number in zip(given, numbers, strict=True) if number != "-1"]
    return []


def layers_of(call: OwnCall) -> list[ast.expr]:
    """Give what is called in a statement and was made before: `self.head` of `self.head(rows)`."""
    nodes, _ = failing_nodes(call)
    parts = (node.func for node in nodes if isinstance(node, ast.Call))
    return [part for part in parts if isinstance(part, ast.Name) or ast.unparse(part).count(".") == 1]


def empty_parts(call: OwnCall, message: str) -> Sequence[ast.expr]:
    """Give the expressions that hold nothing where the message says that something does."""
    nodes = [node for node in head_nodes(call.statement) if isinstance(node, ast.expr)]
    if found := _LOCAL.search(message):
        return [node for node in nodes if isinstance(node, ast.Name) and node.id == found["name"]][:1]
    if found := _ATTRIBUTE.search(message):
        holders = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == found["name"]]
        if "NoneType" not in message:
            return [node for node in holders if ast.unparse(node.value) == "self"][:1]
        return [node.value for node in holders][:1]
    if "subscriptable" in message:
        return [node.value for node in nodes if isinstance(node, ast.Subscript)][:1]
    if "callable" in message:
        return [node.func for node in nodes if isinstance(node, ast.Call)][:1]
    if "iterable" in message and isinstance(call.statement, ast.For):
        return [call.statement.iter]
    return []


def index_parts(call: OwnCall, message: str) -> list[ast.expr]:
    """Give what is taken as an index, a key or an operand, where the message is about its type."""
    nodes, _ = failing_nodes(call)
    if "indices must be" in message:
        return [node.slice for node in nodes if isinstance(node, ast.Subscript) and not text_key(node)]
    if "operand" in message or "not supported between" in message:
        pairs = [node for node in nodes if isinstance(node, ast.BinOp | ast.Compare)]
        if found := _OPERANDS.search(message):
            return _missing_sides(pairs, found)
        if not pairs:  # what is compared was handed to a library's call
            return parts_of(call)
        pairs = pairs[:1]
        return [side for node in pairs for side in ast.iter_child_nodes(node) if isinstance(side, ast.expr)]
    return parts_of(call)


def key_parts(call: OwnCall) -> list[ast.expr]:
    """Give what mappings are asked by in a statement, other than names in quotes."""
    nodes, _ = failing_nodes(call)
    return [node.slice for node in nodes if isinstance(node, ast.Subscript) and not text_key(node)]


def tables_of(call: OwnCall, message: str) -> list[ast.expr]:
    """Give what a statement asks for the very name that is not there: `row` of `row["label"]`."""
    nodes, key = failing_nodes(call)[0], missed_key(message)
    asked = [node for node in nodes if isinstance(node, ast.Subscript) and text_key(node)]
    return [node.value for node in asked if ast.unparse(node.slice).strip("'\"") == key]


def missed_key(message: str) -> str:
    """Give the key that a mapping has not, as CPython tells it: by its `repr`."""
    found = _KEY.search(message)
    return found["key"].strip("'\"") if found else ""


def divisors(call: OwnCall) -> list[ast.expr]:
    """Give what a statement divides by."""
    nodes, _ = failing_nodes(call)
    divisions = ast.Div | ast.FloorDiv | ast.Mod
    return [node.right for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, divisions)]


def _missing_sides(pairs: Sequence[ast.expr], found: re.Match[str]) -> list[ast.expr]:
    """Give the sides of a statement's operations that may be None: names, and no results or constants."""
    found_sides: list[ast.expr] = [
        side
        for pair in pairs
        if isinstance(pair, ast.BinOp)
        for side, kind in ((pair.left, found["left"]), (pair.right, found["right"]))
        if kind == "NoneType" and isinstance(side, ast.Name | ast.Attribute | ast.Subscript)
    ]
    return found_sides if len(found_sides) == 1 else []


def text_key(node: ast.Subscript) -> bool:
    """Tell whether a subscript is a name in quotes, which is written there and no option's value."""
    return isinstance(node.slice, ast.Constant)


def handed_to(node: ast.Call) -> Iterator[ast.expr]:
    """Give what a call is handed, then what it is called on."""
    for value in (*node.args, *(word.value for word in node.keywords)):
        yield value.value if isinstance(value, ast.Starred) else value
    if isinstance(node.func, ast.Attribute):
        yield node.func.value


def failing_nodes(call: OwnCall) -> tuple[list[ast.expr], bool]:
    """Give the expressions of a statement, of the marked part alone where one is, and whether one is."""
    nodes = [node for node in islice(head_nodes(call.statement), MOST_PARTS) if isinstance(node, ast.expr)]
    marked = expression(call.frame.failing) if call.frame.failing else None
    if marked is None:
        return nodes, False
    alike = [node for node in nodes if type(node) is type(marked)][:MOST_ALIKE]
    wanted = ast.unparse(marked)
    found = next((node for node in alike if ast.unparse(node) == wanted), None)
    walked = islice(ast.walk(found), MOST_PARTS) if found is not None else ()
    return [inner for inner in walked if isinstance(inner, ast.expr)], True


def _tops(statement: ast.stmt) -> list[ast.expr]:
    """Give the expressions of a statement that stand for themselves: a loop's rows, what is assigned."""
    match statement:
        case ast.Assign(value=value, targets=targets):
            return [value, *(each for each in targets if isinstance(each, ast.Subscript))]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return [item.context_expr for item in items]
        case ast.Raise(exc=ast.Call() as made):
            return list(made.args)
    children = ast.iter_child_nodes(statement)
    return [child for child in children if isinstance(child, ast.expr)]
