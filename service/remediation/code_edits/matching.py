"""Find what a pattern of code stands for in a tree; `corpus/code_edits.py` says how patterns are written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from service.remediation.code_edits.source_text import parsed

CAPTURE, ANY, REST = "capture_of_", "any_of_", "..."
_BLANK = re.compile(r"\{(?P<name>\w+)(?P<quoted>!r)?\}")
# What a message may put into code without quotes.
_PLAIN = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*|-?\d{1,12}(?:\.\d{1,12})?")
_CAPTURED = re.compile(r"\$(\w+)")
_NAMED = re.compile(r"@(\w+)")
# What a pattern does not speak of: what a tree says twice, and of a function what is no part of its call.
_UNASKED = frozenset({"ctx", "kind", "type_comment", "type_params", "decorator_list", "returns"})


@dataclass(frozen=True)
class Match:
    """A node that a pattern stands for, what its names stand for, and the arguments that `...` does."""

    node: ast.AST
    captures: Mapping[str, ast.expr] = field(default_factory=dict)
    rest: tuple[ast.AST, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


def filled(text: str, values: Mapping[str, str], trusted: Iterable[str] = ()) -> str | None:
    """Fill a pattern's or a template's blanks; None where a value is missing or is no name and no number.

    What the knowledge itself gives (`trusted`) is taken as it is.
    """
    known = set(trusted)
    missing = False

    def fill(match: re.Match[str]) -> str:
        nonlocal missing
        value = values.get(match["name"])
        if value is None or not value.isprintable():
            missing = True
            return ""
        if match["quoted"]:
            return ast.unparse(ast.Constant(value)).replace("'", '"') if "'" not in value else repr(value)
        if match["name"] not in known and not _PLAIN.fullmatch(value):
            missing = True
        return value

    told = _BLANK.sub(fill, text)
    return None if missing else told


def coded(text: str) -> str:
    """Give a pattern or a template as Python that parses."""
    return _NAMED.sub(rf"{ANY}\1", _CAPTURED.sub(rf"{CAPTURE}\1", text))


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> ast.AST | None:
    tree = parsed(coded(pattern))
    if tree is None or len(tree.body) != 1:
        return None
    only = tree.body[0]
    return only.value if isinstance(only, ast.Expr) else only


def is_pattern(text: str) -> bool:
    """Tell whether a pattern, its blanks filled by any name, is code."""
    return _compiled(_BLANK.sub("name_1", text)) is not None


def matches(
    pattern: str, nodes: Iterable[ast.AST], known: Mapping[str, ast.expr] | None = None
) -> list[Match]:
    """Give what a pattern stands for among nodes; `known` are names that stand for something already."""
    wanted = _compiled(pattern)
    if wanted is None:
        return []
    found = []
    for node in nodes:
        # What a statement sets is not what it reads and misses.
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            continue
        for one in _each_item(wanted, node):
            search = _Search(dict(known or {}))
            if search.same(wanted, one):
                found.append(Match(node, search.captures, tuple(search.rest), search.names))
    return found


def _each_item(wanted: ast.AST, node: ast.AST) -> Iterable[ast.AST]:
    """Give a dict once for each item that a pattern `{$key: $value, ...: ...}` may mean; else the node."""
    is_open = isinstance(wanted, ast.Dict) and len(wanted.keys) == 2 and _is_rest(wanted.keys[1])
    if not is_open or not isinstance(node, ast.Dict) or not isinstance(wanted, ast.Dict):
        return [node]
    items = zip(node.keys, node.values, strict=True)
    return [ast.Dict([key, wanted.keys[1]], [value, wanted.values[1]]) for key, value in items if key]


@dataclass
class _Search:
    """What the names of a pattern stand for so far."""

    captures: dict[str, ast.expr]
    rest: list[ast.AST] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def same(self, wanted: ast.AST, node: ast.AST) -> bool:
        if isinstance(wanted, ast.Name):
            if wanted.id.startswith(CAPTURE):
                return self._capture(wanted.id.removeprefix(CAPTURE), node)
            if wanted.id.startswith(ANY):
                name = wanted.id.removeprefix(ANY)
                return (isinstance(node, ast.Name) and node.id == name) or (
                    isinstance(node, ast.Attribute) and node.attr == name
                )
        if isinstance(wanted, ast.Constant) and type(wanted.value) in (int, float):
            return isinstance(node, ast.expr) and number_of(node) == wanted.value
        if isinstance(wanted, ast.JoinedStr) and not isinstance(node, ast.JoinedStr):
            # One part of a formatted text.
            part = next((item for item in wanted.values if isinstance(item, ast.FormattedValue)), None)
            return part is not None and isinstance(node, ast.FormattedValue) and self._formatted(part, node)
        if type(wanted) is not type(node):
            return False
        if isinstance(wanted, ast.arguments) and [item.arg for item in wanted.args] == [f"{CAPTURE}_"]:
            return True  # `def name($_): ...` takes any parameters
        if isinstance(wanted, ast.Call) and isinstance(node, ast.Call):
            return self.same(wanted.func, node.func) and self._arguments(wanted, node)
        return all(
            self._field(getattr(wanted, name, None), getattr(node, name, None))
            for name in wanted._fields
            if name not in _UNASKED
        )

    def _formatted(self, wanted: ast.FormattedValue, node: ast.FormattedValue) -> bool:
        """Compare parts of a formatted text; `...` stands for any format."""
        told = ast.unparse(wanted.format_spec) if wanted.format_spec else ""
        if "..." in told:
            return node.format_spec is not None and self.same(wanted.value, node.value)
        same = ast.unparse(node.format_spec) == told if node.format_spec else not told
        return same and self.same(wanted.value, node.value)

    def _field(self, wanted: object, node: object) -> bool:
        if isinstance(wanted, list) and isinstance(node, list):
            if len(wanted) == 1 and _is_rest(wanted[0]) and all(isinstance(item, ast.stmt) for item in node):
                return True
            if len(wanted) == 1 and isinstance(wanted[0], ast.alias) and wanted[0].name == f"{CAPTURE}_":
                return True
            return len(wanted) == len(node) and all(map(self._field, wanted, node))
        if isinstance(wanted, ast.AST) and isinstance(node, ast.AST):
            return self.same(wanted, node)
        if isinstance(wanted, str) and wanted.startswith(CAPTURE) and isinstance(node, str):
            name = wanted.removeprefix(CAPTURE)
            return name == "_" or self.names.setdefault(name, node) == node
        return wanted == node

    def _capture(self, name: str, node: ast.AST) -> bool:
        if not isinstance(node, ast.expr):
            return False
        if name == "_":
            return True
        held = self.captures.setdefault(name, node)
        return held is node or _plain(held) == _plain(node)

    def _arguments(self, wanted: ast.Call, node: ast.Call) -> bool:
        places = [place for place, item in enumerate(wanted.args) if _is_rest(item)]
        if not places:
            names = {item.arg for item in wanted.keywords}
            return (
                len(wanted.args) == len(node.args)
                and {item.arg for item in node.keywords} == names
                and len(node.keywords) == len(wanted.keywords)
                and all(map(self.same, wanted.args, node.args))
                and self._keywords(wanted.keywords, node.keywords)
            )
        before = wanted.args[: places[0]]
        if len(node.args) < len(before) or not all(map(self.same, before, node.args)):
            return False
        if not self._keywords(wanted.keywords, node.keywords):
            return False
        named = {item.arg for item in wanted.keywords}
        self.rest += [*node.args[len(before) :], *(item for item in node.keywords if item.arg not in named)]
        return True

    def _keywords(self, wanted: Sequence[ast.keyword], given: Sequence[ast.keyword]) -> bool:
        by_name = {item.arg: item.value for item in given}
        return all(item.arg in by_name and self.same(item.value, by_name[item.arg]) for item in wanted)


def _is_rest(node: object) -> bool:
    value = node.value if isinstance(node, ast.Expr) else node
    return isinstance(value, ast.Constant) and value.value is Ellipsis


def _plain(node: ast.AST) -> str:
    return ast.unparse(node)


def number_of(node: ast.expr) -> float | int | None:
    """Give what arithmetic of whole numbers comes to; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int | float) and node.value is not True else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number_of(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.BinOp):
        left, right = number_of(node.left), number_of(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.FloorDiv) and right:
            return left // right
    return None


def value_of(node: ast.expr, tree: ast.AST) -> float | int | None:
    """Give the number that an expression comes to, also by a name that code sets to one number alone."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return number_of(node)
    told = ast.unparse(node)
    given: list[ast.expr] = []
    for item in ast.walk(tree):
        if isinstance(item, ast.Assign) and any(ast.unparse(target) == told for target in item.targets):
            given.append(item.value)
        elif isinstance(item, ast.arguments):
            names = [*item.posonlyargs, *item.args][-len(item.defaults) :] if item.defaults else []
            given += [value for name, value in zip(names, item.defaults, strict=True) if name.arg == told]
    values = {number_of(value) for value in given}
    return values.pop() if len(values) == 1 else None
