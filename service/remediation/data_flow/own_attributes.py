"""Where a class of the job's own sets an attribute, or defines a method, that an object of it lacks.

Said is the row, the method or the branch that holds it, and who calls that method under which condition. What
another method sets from nothing of its own is set in `__init__` as well by an edit.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corpus.message import in_both
from corpus.paths import base_name
from corpus.schema import Text
from ingest.configfiles.notebook import place_in
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.code_edits.source_text import parsed, whole_source
from service.remediation.data_flow.job_program import Function, Module
from service.remediation.own_edits import OwnEdit

_ABSENT = re.compile(r"'(?P<owner>[A-Za-z_]\w*)' object has no attribute '(?P<name>\w+)'")
# What makes an object of its own, which a class may have from its beginning: a class by its usual name.
_CLASS = re.compile(r"(?:\w+\.)*_?[A-Z]\w*|(?:\w+\.)?(?:dict|list|set|deque|defaultdict|OrderedDict)")
_BUILT_IN = frozenset(dir(builtins))
_LONGEST, _MOST = 60, 3
LONGEST_SHOWN = 100
_MAKER = "__init__"


@dataclass(frozen=True)
class _SetPlace:
    """A statement that sets the attribute, in a method of a class of a file."""

    module: Module
    file: JobFile
    owner: ast.ClassDef
    method: Function
    node: ast.AST

    @property
    def row(self) -> str:
        """The file's own name with the row."""
        return f"{base_name(self.file.name)}:{getattr(self.node, 'lineno', 0)}"


def set_elsewhere(report: CrashReport, files: Sequence[JobFile]) -> Text | None:
    """Say where the attribute that is missed is set, or the method is defined; None where nothing shows."""
    if (found := _missed(report)) is None:
        return None
    owner, name = found
    places = _places(owner, name, files)
    if not places:
        return _defined_apart(owner, name, files)
    if any(each.method.name == _MAKER and _condition(each) is None for each in places):
        return None
    told = {"owner": owner, "name": name, "where": ", ".join(each.row for each in places[:_MOST])}
    if len(places) == 1 and (test := _condition(places[0])) is not None and places[0].method.name == _MAKER:
        form = "changes.set-under" if test.holds else "changes.set-unless"
        return in_both(form, test=test.text, row=test.line, **told)
    methods = list(dict.fromkeys(each.method.name for each in places))
    calls = [call for method in methods if method != _MAKER for call in _calls_of(method, files)]
    if len(methods) == len(calls) == 1:
        return in_both("changes.set-by-call", methods=methods[0], called=calls[0], **told)
    return in_both("changes.set-elsewhere", methods=", ".join(methods), **told)


def set_at_once(report: CrashReport, files: Sequence[JobFile]) -> OwnEdit | None:
    """Set in `__init__` what one other method alone sets, from nothing that is that method's own."""
    if (found := _missed(report)) is None:
        return None
    owner, name = found
    places = _places(owner, name, files)
    if len(places) != 1 or places[0].method.name == _MAKER:
        return None
    place = places[0]
    maker = next((item for item in place.owner.body if getattr(item, "name", "") == _MAKER), None)
    source = whole_source(place.file.text)
    statement = next((item for item in place.method.body if place.node in ast.walk(item)), None)
    if source is None or not isinstance(maker, Function) or not isinstance(statement, ast.Assign):
        return None
    is_asked = re.search(rf"hasattr\(\s*self\s*,\s*['\"]{name}['\"]|\bdel self\.{name}\b", place.file.text)
    if is_asked or len(statement.targets) != 1 or not _is_free(statement.value, place, maker):
        return None
    indent = source.indent(maker.body[-1])
    if indent is None or isinstance(maker.body[-1], ast.Return | ast.Raise):
        return None
    had = source.indent(statement) or ""
    put = [
        indent + row.removeprefix(had) if row.strip() else row for row in source.source(statement).split("\n")
    ]
    line = maker.body[-1].end_lineno or maker.body[-1].lineno
    rows = source.rows()
    text = "\n".join([*rows[:line], *put, *rows[line:]])
    if parsed(text) is None:
        return None
    why = in_both("changes.set-at-once", owner=owner, name=name, method=place.method.name, row=place.row)
    told = ast.unparse(statement)
    told = told if len(told) <= LONGEST_SHOWN else f"{told[:LONGEST_SHOWN]}…"
    at = place_in(place.file.name, place.file.text, line)
    return OwnEdit("insert-after", at, "", told, why, place.file, text)


def _missed(report: CrashReport) -> tuple[str, str] | None:
    found = _ABSENT.search(report.root.body) if report.root is not None else None
    return (found["owner"], found["name"]) if found is not None else None


def _modules(files: Sequence[JobFile]) -> Iterator[tuple[JobFile, Module]]:
    for file in files:
        if (tree := parsed(file.text)) is not None:
            yield file, Module(tree, file.name)


def _classes(owner: str, files: Sequence[JobFile]) -> list[tuple[JobFile, Module, ast.ClassDef]]:
    """Give the one class of a name and those of the job's that it derives from, each found once."""
    known: dict[str, list[tuple[JobFile, Module, ast.ClassDef]]] = {}
    for file, module in _modules(files):
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                known.setdefault(node.name, []).append((file, module, node))
    waiting, found = [owner], list[tuple[JobFile, Module, ast.ClassDef]]()
    for name in waiting:
        if len(named := known.get(name, [])) != 1:
            continue
        found += named
        bases = (ast.unparse(base).rpartition(".")[2] for base in named[0][2].bases)
        waiting += [base for base in bases if base not in waiting]
    return found


def _places(owner: str, name: str, files: Sequence[JobFile]) -> list[_SetPlace]:
    """Give the statements of a class and those it derives from that set an attribute of its object."""
    return [
        _SetPlace(module, file, cls, method, node)
        for file, module, cls in _classes(owner, files)
        for method in cls.body
        if isinstance(method, Function)
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store)
    ]


@dataclass(frozen=True)
class _Condition:
    """What decides whether a statement is reached within its method, and whether it has to hold."""

    text: str
    line: int
    holds: bool


def _condition(place: _SetPlace) -> _Condition | None:
    """Give the nearest condition on a statement; what runs for each item, or is tried, counts as one too."""
    below: ast.AST = place.node
    for above in place.module.around(place.node):
        if above is place.method:
            return None
        if isinstance(above, ast.If) and below is not above.test:
            return _Condition(_short(above.test), above.lineno, below in above.body)
        if isinstance(above, ast.For | ast.While | ast.ExceptHandler | ast.FunctionDef | ast.Try):
            return _Condition(ast.unparse(above).partition("\n")[0].rstrip(":"), above.lineno, holds=True)
        below = above
    return None


def _calls_of(method: str, files: Sequence[JobFile]) -> list[str]:
    """Give the rows that call a method, each with the condition around it where there is one."""
    found = []
    for file, module in _modules(files):
        for call in module.calls.get(method, ()):
            inner = next((each for each in module.around(call) if isinstance(each, ast.If)), None)
            row = f"{base_name(file.name)}:{call.lineno}"
            found.append(f"{row}, `if {_short(inner.test)}`" if inner is not None else row)
    return found


def _defined_apart(owner: str, name: str, files: Sequence[JobFile]) -> Text | None:
    """Say that a method stands within another one, or behind the class: its rows are indented otherwise."""
    classes = _classes(owner, files)
    if not classes or any(getattr(item, "name", "") == name for _, _, cls in classes for item in cls.body):
        return None
    file, module, cls = classes[0]
    for node in module.functions.get(name, ()):
        first = [arg.arg for arg in node.args.args[:1]]
        above = next(module.around(node), None)
        if first != ["self"] or isinstance(above, ast.ClassDef):
            continue
        where = f"{base_name(file.name)}:{node.lineno}"
        if isinstance(above, Function) and above in cls.body:
            return in_both("changes.defined-within", owner=owner, name=name, where=where, method=above.name)
        if isinstance(above, ast.Module):
            return in_both("changes.defined-outside", owner=owner, name=name, where=where)
    return None


def _is_free(value: ast.expr, place: _SetPlace, maker: Function) -> bool:
    """Tell whether a value can be had as an object is made: from no name of the method that sets it.

    What it reads of the object itself must be there by then: set by `__init__`, or nowhere in the class and
    so by one that it derives from.
    """
    is_plain = isinstance(value, ast.Constant | ast.List | ast.Dict | ast.Tuple) or (
        isinstance(value, ast.Call) and _CLASS.fullmatch(ast.unparse(value.func)) is not None
    )
    outer = {node.id for node in _stores(place.module.tree)} | set(place.module.imports)
    outer |= set(place.module.classes) | _BUILT_IN
    outer |= {item.name for item in place.module.tree.body if isinstance(item, Function)}
    inner = {node.arg for each in ast.walk(value) if isinstance(each, ast.Lambda) for node in each.args.args}
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)} - {"self"} - inner
    set_in = {
        node.attr: method.name
        for method in place.owner.body
        if isinstance(method, Function)
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    made = {
        node.attr
        for node in ast.walk(maker)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    read = {
        node.attr
        for node in ast.walk(value)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
    }
    return is_plain and names <= outer and all(each in made or each not in set_in for each in read)


def _stores(tree: ast.Module) -> Iterator[ast.Name]:
    """Give the names that a file's own statements set."""
    for statement in tree.body:
        if not isinstance(statement, Function | ast.ClassDef):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node


def _short(node: ast.expr) -> str:
    text = ast.unparse(node).replace("`", "'")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
