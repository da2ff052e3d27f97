"""What a failing statement holds: the part of it that a message speaks of without naming it.

Python's message says that something is None, empty or zero; the statement that the traceback quotes says
what. The statement is one row of source, often the first of several, and is read as far as it goes.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from corpus.schema import StatementPart
from ingest.logs.stacks.code_rows import closing_brackets

# A part that is longer is no name to tell in a sentence.
LONGEST_PART = 70
# Parts that are found by a name of the message.
NAMED_PARTS: frozenset[StatementPart] = frozenset({"attribute-owner", "call", "mapping"})
_OPEN_BLOCK = re.compile(r":\s*(?:#.*)?$")
# What stands at the end of a row that goes on, and is no expression yet.
_DANGLING = re.compile(r"(?:\b\w+\s*=|[-+*/%@.\\&|^,]|\b(?:and|or|not|in|is|if|else|lambda|for))\s*$")


def statement_part(
    code: str, part: StatementPart, names: Mapping[str, str | None], *, leads: bool = False
) -> str | None:
    """Give the part of a statement as it is written there; None where it does not show, or not only one.

    `names` are those of the message: `name` of an attribute, `callee` of a call, `key` of a mapping,
    `op` of an operator. `leads` tells that the statement did not fail itself, but called what did: of such
    only those parts are given that the message names.
    """
    tree = None if leads and part not in NAMED_PARTS else _parsed(code)
    if tree is None:
        return None
    found = {ast.unparse(node) for node in _READERS[part](_Statement(tree, names, leads))}
    told = found.pop() if len(found) == 1 else ""
    return told if 0 < len(told) <= LONGEST_PART else None


def named_in(code: str) -> list[str]:
    """Give the names that a condition of a statement reads, without those that it calls.

    Of `assert not args.packed or len(rows) > 1`: `packed` and `rows`.
    """
    tree = _parsed(code)
    if tree is None:
        return []
    tests = [node.test for node in ast.walk(tree) if isinstance(node, ast.Assert | ast.If | ast.IfExp)]
    nodes = [node for test in tests for node in ast.walk(test)]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    held = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    names = (
        node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        for node in nodes
        if id(node) not in called and id(node) not in held
    )
    return list(dict.fromkeys(filter(None, names)))


def keywords_in(code: str) -> dict[str, str]:
    """Give the arguments that the calls of a statement name, each with the expression that fills it.

    Of `DataLoader(rows, num_workers=args.workers)`: `num_workers`, `args.workers`. A name that two of the
    calls have is left out.
    """
    tree = _parsed(code)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
    named = [(word.arg, ast.unparse(word.value)) for call in calls for word in call.keywords if word.arg]
    counts = Counter(name for name, _ in named)
    return {name: source for name, source in named if counts[name] == 1}


@lru_cache(maxsize=64)
def _parsed(code: str) -> ast.AST | None:
    """Parse a row of source: a block's head gets a body, brackets that stay open are closed."""
    row = re.sub(r"^(?:el)?if\b", "if", code.strip()).rstrip("\\ ")
    row = f"{row} pass" if _OPEN_BLOCK.search(row) else row
    if re.match(r"(?:else|except|finally|try)\b", row):
        return None
    for _ in range(3):
        closed = row + closing_brackets(row)
        for text in (closed, f"{closed}: pass"):
            try:
                return ast.parse(text)
            except (SyntaxError, ValueError, RecursionError):
                continue
        row = _DANGLING.sub("", row.rstrip())
    return None


@dataclass(frozen=True)
class _Statement:
    """A parsed statement with the names of the message; each method gives the parts of one kind."""

    tree: ast.AST
    names: Mapping[str, str | None]
    leads: bool

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def attribute_owners(self) -> Iterator[ast.AST]:
        for node in self._nodes:
            if isinstance(node, ast.Attribute) and node.attr == self.names.get("name"):
                yield node.value

    def divisors(self) -> Iterator[ast.AST]:
        for node in self._nodes:
            is_division = isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(
                node.op, ast.Div | ast.FloorDiv | ast.Mod
            )
            divisor = node.right if isinstance(node, ast.BinOp) else getattr(node, "value", None)
            # A number that is written there is seen not to be zero, and text is formatted.
            if is_division and divisor is not None and not isinstance(divisor, ast.Constant | ast.Tuple):
                yield divisor

    @cached_property
    def _subscripts(self) -> list[ast.Subscript]:
        return [node for node in self._nodes if isinstance(node, ast.Subscript)]

    def sequences(self) -> Iterator[ast.AST]:
        """Give what is indexed by a place: neither a slice, which never fails, nor a key in quotes."""
        for node in self._subscripts:
            is_text = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
            if not isinstance(node.slice, ast.Slice) and not is_text:
                yield node.value

    def indices(self) -> Iterator[ast.AST]:
        for node in self._subscripts:
            is_text = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
            if not isinstance(node.slice, ast.Slice) and not is_text:
                yield node.slice

    def mappings(self) -> Iterator[ast.AST]:
        """Give what is asked for the key: by the key itself, or else by anything that may have held it."""
        asked = self._subscripts
        exact = [node for node in asked if ast.unparse(node.slice) == self.names.get("key")]
        # What stands within other brackets only makes the key.
        within = {id(inner) for node in asked for inner in ast.walk(node.slice)}
        others = [] if self.leads else [node for node in asked if id(node) not in within]
        yield from (node.value for node in exact or others if not isinstance(node.slice, ast.Slice))

    def subscripted(self) -> Iterator[ast.AST]:
        yield from (node.value for node in self._subscripts)

    def calls(self) -> Iterator[ast.Call]:
        """Give the calls of the callee that the message names; a class is called by its own name."""
        levels = (self.names.get("callee") or "").removesuffix(".__init__").split(".")
        for node in self._nodes:
            if isinstance(node, ast.Call):
                called = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                if not self.names.get("callee") or called == levels[-1]:
                    yield node

    def called(self) -> Iterator[ast.AST]:
        yield from (node.func for node in self._nodes if isinstance(node, ast.Call))

    def arguments(self) -> Iterator[ast.AST]:
        """Give the only argument of the calls."""
        for node in self.calls():
            if len(node.args) == 1 and not isinstance(node.args[0], ast.Starred):
                yield node.args[0]

    def first_arguments(self) -> Iterator[ast.AST]:
        yield from (node.args[0] for node in self.calls() if node.args)

    def iterated(self) -> Iterator[ast.AST]:
        """Give what a loop runs over, or what is taken apart into several names."""
        for node in self._nodes:
            if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
                yield node.iter
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple | ast.List):
                yield node.value

    def conditions(self) -> Iterator[ast.AST]:
        yield from (node.test for node in self._nodes if isinstance(node, ast.Assert))

    def _operands(self) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Give what stands left and right of each operator that the message names.

        A chain such as `a < b <= c` holds one operator between each two neighbours.
        """
        for node in self._nodes:
            joined: list[tuple[ast.expr, ast.operator | ast.cmpop, ast.expr]] = []
            if isinstance(node, ast.BinOp):
                joined = [(node.left, node.op, node.right)]
            elif isinstance(node, ast.Compare):
                joined = list(zip([node.left, *node.comparators], node.ops, node.comparators, strict=False))
            for left, sign, right in joined:
                if _SIGNS.get(type(sign)) == self.names.get("op"):
                    yield left, right

    def left_operands(self) -> Iterator[ast.AST]:
        """Give what stands left of the operator that the message names."""
        yield from (left for left, _ in self._operands())

    def right_operands(self) -> Iterator[ast.AST]:
        """Give what stands right of the operator that the message names."""
        yield from (right for _, right in self._operands())

    def _lookups(self) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Give what is searched for one entry, and that entry."""
        for node in self._nodes:
            match node:
                case ast.Call(func=ast.Attribute(value=where, attr="index" | "remove"), args=[what]):
                    yield where, what

    def searched(self) -> Iterator[ast.AST]:
        """Give the list that is asked for the place of an entry."""
        yield from (where for where, _ in self._lookups())

    def sought(self) -> Iterator[ast.AST]:
        """Give the entry whose place is asked for."""
        yield from (what for _, what in self._lookups())


_SIGNS: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">=",
}  # fmt: skip
_READERS: Mapping[StatementPart, Callable[[_Statement], Iterator[ast.AST]]] = {
    "attribute-owner": _Statement.attribute_owners,
    "divisor": _Statement.divisors,
    "sequence": _Statement.sequences,
    "index": _Statement.indices,
    "mapping": _Statement.mappings,
    "subscripted": _Statement.subscripted,
    "call": _Statement.calls,
    "called": _Statement.called,
    "argument": _Statement.arguments,
    "first-argument": _Statement.first_arguments,
    "iterated": _Statement.iterated,
    "condition": _Statement.conditions,
    "left": _Statement.left_operands,
    "right": _Statement.right_operands,
    "searched": _Statement.searched,
    "sought": _Statement.sought,
}
