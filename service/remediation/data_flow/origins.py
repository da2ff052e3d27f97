"""Where the values of a failing statement were made: rows of the job's files, from the statement back.

The way goes through assignments, arguments of calls, what the job's own functions give back, and entries of a
dict that was written as one. A library between two own calls hands on the one argument that it was given.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ingest.configfiles.notebook import place_in
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile, frames_of_failure
from service.remediation.code_edits.source_text import head_nodes
from service.remediation.data_flow import definitions
from service.remediation.data_flow.definitions import Definition
from service.remediation.data_flow.failing_parts import (
    empty_parts,
    failing_nodes,
    guards_of,
    index_parts,
    parts_of,
)
from service.remediation.data_flow.job_program import JobProgram, OwnCall, Scope, called
from service.remediation.data_flow.option_reads import HOLDER, LOOSE, loads_options
from service.remediation.own_edits import job_files

# How many steps are gone back, and how many expressions are looked at.
MOST_STEPS, MOST_LOOKED = 9, 120
# A call with more named arguments is one that sets something up.
SET_UP = 3
_ATTRIBUTE = re.compile(r"has no attribute '(?P<name>\w+)'")
_KEY = re.compile(r"KeyError: (?P<key>'[^'\n]{1,80}'|\d{1,9})\s*$")
# What is missed is a name, and no value.
_NAMELESS = re.compile(r"^NameError: name '")
_WORD = re.compile(r"[a-z]{4,}")
# What brings a value in from outside: where it is from is told by that call itself.
_READS = re.compile(r"(?:open|load|read|fetch|download|from_)\w*|File|safe_load|imread|listdir|glob|getenv")
# What gives the same in another form: of what it is told, nothing is from.
_CASTS = frozenset({"to", "type", "astype"})


@dataclass(frozen=True)
class Step:
    """A statement on the way back: it made a value, or called a function and `handed` it over.

    `name` is what the value is called where it is read, `place` the file and the row as a person finds it.
    """

    name: str
    scope: Scope
    statement: ast.stmt
    place: str
    made: Definition | None = None
    handed: ast.expr | None = None


@dataclass(frozen=True)
class _SoughtValue:
    """An expression whose value is sought, where it stands, and the entry of it that is meant."""

    node: ast.expr
    scope: Scope
    steps: int = 0
    key: str | int | None = None


def origins(report: CrashReport, files: Sequence[JobFile] | None = None) -> list[Step] | None:
    """Give the statements that made what the innermost own call failed with, the nearest first.

    None where that call's file is not at hand as it ran; empty where the message is of no value.
    """
    root = report.root
    frames = frames_of_failure(report)
    if root is None or not frames:
        return None
    message = (
        root.body if root.exception and root.exception in root.body else f"{root.exception}: {root.body}"
    )
    program = JobProgram(frames, job_files(report) if files is None else files)
    call = program.calls[-1] if program.calls else None
    if call is None or not call.scope.module.name:
        return None
    if _NAMELESS.search(message):
        return []
    words = {word for frame in frames for word in _WORD.findall(f"{frame.function} {frame.code}".lower())}
    try:
        return list(_Walk(program, words).back(spoken_parts(call, message), call.scope))
    except RecursionError:  # code that nests deeper than a walk can
        return []


def spoken_parts(call: OwnCall, message: str) -> list[ast.expr]:
    """Give the expressions of a failing statement that its message speaks of, else all that it is given."""
    nodes, _ = failing_nodes(call)
    if found := _ATTRIBUTE.search(message):
        holders = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == found["name"]]
        if holders:
            return [holders[0].value]
    if found := _KEY.search(message):
        key = ast.literal_eval(found["key"])
        asked = [node for node in nodes if isinstance(node, ast.Subscript) and _key_of(node) == key]
        if asked:
            return [asked[0].value]
    if guards := guards_of(call, message):
        return guards
    return list(empty_parts(call, message)) or index_parts(call, message) or parts_of(call)


def _key_of(node: ast.Subscript) -> str | int | None:
    value = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


class _Walk:
    """Goes back through one program; `words` are those of the calls below the job's own."""

    def __init__(self, program: JobProgram, words: set[str]) -> None:
        self._program, self._words = program, words
        self._left = MOST_LOOKED
        self._told: set[tuple[int, str]] = set()

    def back(self, parts: Sequence[ast.expr], scope: Scope) -> Iterator[Step]:
        """Give what made the values of some expressions, by the number of steps from them."""
        waiting = deque(_SoughtValue(part, scope) for part in parts)
        while waiting and self._left > 0:
            sought = waiting.popleft()
            self._left -= 1
            for step, further in self._made(sought):
                if step is not None and (key := (id(step.statement), step.name)) not in self._told:
                    self._told.add(key)
                    yield step
                if further.steps <= MOST_STEPS:
                    waiting.append(further)

    def _made(self, sought: _SoughtValue) -> Iterator[tuple[Step | None, _SoughtValue]]:
        """Give the steps that one expression's value came by, each with what is sought next."""
        match sought.node:
            case ast.Name(id=name):
                yield from self._name(name, sought)
            case ast.Attribute() as node if _is_of_self(node):
                found = _set_above(node, sought.scope) or definitions.of_attribute(
                    node.attr, sought.scope, self._program
                )
                yield from self._assigned(node.attr, found, sought)
            case ast.Call() as node:
                yield from self._call(node, sought)
            case node:
                yield from (
                    (None, replace(sought, node=part, key=key)) for part, key in _within(node, sought)
                )

    def _name(self, name: str, sought: _SoughtValue) -> Iterator[tuple[Step | None, _SoughtValue]]:
        scope = sought.scope
        is_options = HOLDER.fullmatch(name) and not LOOSE.fullmatch(name)
        if name in ("self", "cls") or (is_options and sought.steps):
            return
        found = definitions.of_name(name, scope)
        yield from self._assigned(name, found, sought)
        function = scope.function
        if not found and (function is None or name not in definitions.names_taken(function)):
            yield from self._assigned(name, self._imported(name, scope), sought)
        if found or function is None or name not in definitions.names_taken(function):
            return
        handed = list(self._program.arguments(name, scope)) or self._through_library(scope)
        for value, outer in handed:
            around = (above for above in outer.module.around(value) if isinstance(above, ast.stmt))
            statement = next(around, None)
            further = _SoughtValue(value, outer, sought.steps + 1, sought.key)
            if statement is None:  # what was only made on the way stands nowhere
                yield None, further
            else:
                place = self._place(outer, statement)
                yield Step(name, outer, statement, place, handed=value), further

    def _imported(self, name: str, scope: Scope) -> list[Definition]:
        """Give what another of the job's files assigns to a name that is imported from it, also by a star."""
        imports = (node for node in scope.module.nodes if isinstance(node, ast.ImportFrom) and node.module)
        for node in imports:
            brought = {alias.asname or alias.name: alias.name for alias in node.names}
            module = self._program.module_named(node.module or "") if {name, "*"} & brought.keys() else None
            is_other = module is not None and module is not scope.module
            found = definitions.of_name(brought.get(name, name), Scope(module)) if module and is_other else []
            if found:
                return found
        return []

    def _through_library(self, scope: Scope) -> list[tuple[ast.expr, Scope]]:
        """Give the one thing that the own call above hands to the library which calls a function."""
        if not scope.level:
            return []
        above = self._program.calls[scope.level - 1]
        calls = [node for node in head_nodes(above.statement) if isinstance(node, ast.Call)]
        handed = [
            value for node in calls[:1] for value in [*node.args, *(word.value for word in node.keywords)]
        ]
        return [(handed[0], above.scope)] if len(calls) == len(handed) == 1 else []

    def _assigned(
        self, name: str, found: Sequence[Definition], sought: _SoughtValue
    ) -> Iterator[tuple[Step | None, _SoughtValue]]:
        for made in found:
            step = Step(name, made.scope, made.statement, self._place(made.scope, made.statement), made)
            key = sought.key if made.is_whole else _place_in(made, name)
            yield step, _SoughtValue(made.value, made.scope, sought.steps + 1, key)

    def _place(self, scope: Scope, statement: ast.stmt) -> str:
        """Name a row; one that only the traceback quotes has the traceback's place."""
        if not scope.module.name:
            return self._program.calls[scope.level].frame.found_at if scope.level is not None else ""
        text = next((file.text for file in self._program.files if file.name == scope.module.name), "")
        return place_in(scope.module.name, text, statement.lineno)

    def _call(self, node: ast.Call, sought: _SoughtValue) -> Iterator[tuple[Step | None, _SoughtValue]]:
        own = self._own(node, sought.scope)
        if own is not None:
            site: Scope | None = sought.scope
            while site is not None:  # a function that calls itself
                if site.function is own.function:
                    return
                site = site.site[1] if site.site else None
            for statement in ast.walk(own.function) if own.function else ():
                if isinstance(statement, ast.Return) and statement.value is not None:
                    inner = replace(own, line=statement.lineno)
                    yield None, _SoughtValue(statement.value, inner, sought.steps + 1, sought.key)
            return
        if loads_options(node):
            return
        words = [word for word in node.keywords if word.arg]
        if len(words) > SET_UP:  # of what sets something up, what the calls below it are of
            # By the last part of their names: `dataset` of `train_dataset`.
            kinds = [(word, (word.arg or "").lower().rpartition("_")[2]) for word in words]
            words = [word for word, kind in kinds if any(kind in each for each in self._words)] or words
        is_source = called(node) in _CASTS or _READS.fullmatch(called(node)) is not None
        handed = [] if is_source else [*node.args, *(word.value for word in words)]
        for value in [*handed, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]:
            part = value.value if isinstance(value, ast.Starred) else value
            # A module is no value.
            if ast.unparse(part).partition(".")[0] not in sought.scope.module.imports:
                yield None, replace(sought, node=part, key=None)

    def _own(self, node: ast.Call, scope: Scope) -> Scope | None:
        """Give the scope of the job's own function that a call calls."""
        if not (isinstance(node.func, ast.Name) or _is_of_self(node.func)):
            return None
        home = self._program.function_named(called(node), scope.module)
        if home is None:
            return None
        owner = scope.owner if _is_of_self(node.func) else None
        return Scope(home[0], home[1], owner, 0, None, (node, scope))


def _set_above(node: ast.Attribute, scope: Scope) -> list[Definition]:
    """Give the last statement above in the same function that sets an attribute as a whole."""
    wanted = ast.unparse(node)
    found = [
        each
        for each in (ast.walk(scope.function) if scope.function is not None else ())
        if isinstance(each, ast.Assign)
        and each.lineno < scope.line
        and any(ast.unparse(target) == wanted for target in each.targets)
    ]
    last = max(found, key=lambda each: each.lineno, default=None)
    return [Definition(last.value, replace(scope, line=last.lineno), last)] if last is not None else []


def _within(node: ast.expr, sought: _SoughtValue) -> Iterator[tuple[ast.expr, str | int | None]]:
    """Give the parts of an expression that its value is from, each with the entry of it that is meant."""
    match node:
        case ast.Subscript() if (key := _key_of(node)) is not None:
            yield node.value, key
        case ast.Subscript(value=value, slice=index):
            # How an entry is chosen tells where a value is from in the failing statement alone.
            yield from ((part, None) for part in ((value, index) if not sought.steps else (value,)))
        case ast.Dict() if sought.key is not None:
            pairs = zip(node.keys, node.values, strict=True)
            named = [
                value for key, value in pairs if isinstance(key, ast.Constant) and key.value == sought.key
            ]
            yield from ((value, None) for value in named[:1] or node.values[:3])
        case ast.Tuple() | ast.List() if isinstance(sought.key, int) and sought.key >= 0:
            yield from ((part, None) for part in node.elts[sought.key : sought.key + 1])
        case ast.IfExp(body=body, orelse=other):
            yield from ((part, sought.key) for part in (body, other))
        case ast.Lambda() | ast.Constant():
            return
        case _:
            yield from ((part, None) for part in _parts(node))


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """Give the expressions that another is made of."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FormattedValue() | ast.keyword() | ast.Starred():
                yield child.value
            case ast.comprehension():
                yield child.iter
            case ast.expr():
                yield child


def _place_in(made: Definition, name: str) -> int | None:
    """Give the place of a name among those that one statement assigns."""
    targets = made.statement.targets if isinstance(made.statement, ast.Assign) else []
    for target in targets:
        if isinstance(target, ast.Tuple | ast.List):
            names = [
                part.id if isinstance(part, ast.Name) else getattr(part, "attr", "") for part in target.elts
            ]
            return names.index(name) if name in names else None
    return None


def _is_of_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
