"""The backward slice of an expression: from where it failed to the options that its value is from.

The way goes by assignments, by arguments of the calls that the stack shows, by attributes of the object and
the call that made it. What a library does with its arguments is not known: what comes through
one is told apart (`computed`) from what is handed on as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Literal

from corpus.keys import canonical
from service.remediation.data_flow import definitions
from service.remediation.data_flow.definitions import Definition
from service.remediation.data_flow.job_program import (
    MOST_SITES,
    Function,
    JobProgram,
    Module,
    Scope,
    called,
    default_of,
    keyword,
)
from service.remediation.data_flow.option_reads import (
    HOLDER,
    LOOSE,
    DefinedOption,
    defined_options,
    environment_key,
    is_command,
    is_entry,
    level_of,
    literal,
    loads_options,
    text_of,
    wrapped,
)

# How far a slice goes: nodes that it looks at, and steps of one way.
MOST_NODES, MOST_STEPS = 1500, 14
# Calls that give their argument in another form, and calls that put a path or a text together.
_SAME = frozenset(
    {
        "str", "int", "float", "bool", "Path", "PurePath", "abspath", "expanduser", "realpath", "normpath",
        "fspath", "strip", "lower", "upper", "rstrip", "lstrip", "resolve", "absolute", "to_absolute_path",
        "list", "tuple", "sorted", "item", "expandvars", "device",
    }
)  # fmt: skip
_BUILDS = frozenset(
    {
        "join", "format", "joinpath", "replace", "with_suffix", "with_name", "dirname", "split", "basename",
        "min", "max", "abs", "round", "len", "range", "sum", "prod", "sqrt", "ceil", "floor", "glob", "rglob",
    }
)  # fmt: skip
How = Literal[0, 1, 2]
PASSED, BUILT, COMPUTED = 0, 1, 2


@dataclass(frozen=True)
class FlowEnd:
    """An option that a value is from.

    `key` is its name as the program's user gives it as far as code tells it, `levels` the same without signs;
    `reads` the expression that reads it. `how` tells whether the value is handed on as it is, is part of what
    was built, or went through calls whose outcome is not known. `value` is what code itself says that it is,
    and `short` are the option's further names on a command line.
    """

    key: str
    kind: Literal["option", "env", "constant", "parameter"]
    reads: str
    how: int
    steps: int
    value: str | None = None
    part: str = ""
    short: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Way:
    """How a value came so far."""

    how: int = PASSED
    steps: int = 0

    def further(self, how: int = PASSED) -> _Way:
        return _Way(max(self.how, how), self.steps + 1)


class Slicer:
    """Follows expressions of one program backwards; what was looked at is counted over all of them."""

    def __init__(self, program: JobProgram) -> None:
        self._program = program
        self._left = MOST_NODES
        # With the nodes themselves: one that is made on the way must not leave its identity to another.
        self._seen: dict[tuple[int, int | None, int], ast.expr] = {}

    def ends(self, node: ast.expr, scope: Scope) -> list[FlowEnd]:
        """Give the options that an expression's value is from, each once, the nearest first."""
        self._seen.clear()
        found: dict[str, FlowEnd] = {}
        for end in self._ends(node, scope, _Way()):
            known = found.get(end.key)
            if known is None or (end.how, end.steps) < (known.how, known.steps):
                found[end.key] = replace(end, part=ast.unparse(node)[:80])
        return sorted(found.values(), key=lambda end: (end.how, end.steps))

    def written_values(self) -> list[FlowEnd]:
        """Give all options whose value the program's own code says, whatever it does with them."""
        found: list[FlowEnd] = []
        for name, option in self._options.items():
            found.append(FlowEnd(option.spelled, "option", name, BUILT, MOST_STEPS, option.default))
        for module in self._program.modules:
            for node in module.nodes:
                read = environment_key(node) if isinstance(node, ast.Call) else None
                if read is not None:
                    found.append(FlowEnd(read[0], "env", ast.unparse(node), BUILT, MOST_STEPS, read[1]))
            for owner in module.classes.values():
                for name, value in definitions.fields(owner).items():
                    found.append(
                        FlowEnd(name, "constant", f"{owner.name}.{name}", BUILT, MOST_STEPS, literal(value))
                    )
        return [end for end in found if end.value]

    def made_by(self, attribute: str) -> list[FlowEnd]:
        """Give the options that decide whether an object of the job's own classes has a part of a name."""
        for module in self._program.modules:
            for owner in module.classes.values():
                made = definitions.of_attribute(attribute, Scope(module, None, owner), self._program, 0)
                part = ast.Attribute(ast.Name("self"), attribute)
                if made and (found := self.empty_by(part, Scope(module, None, owner))):
                    return found
        return []

    def made_with(self, node: ast.expr, scope: Scope) -> list[FlowEnd]:
        """Give the options that the object of an expression was made with, such as a layer."""
        calls = (
            (call, made.scope)
            for made in self._definitions(node, scope)
            for call in islice(ast.walk(made.value), MOST_STEPS)
            if isinstance(call, ast.Call)
        )
        return [
            end
            for call, outer in calls
            for value in (*call.args, *(word.value for word in call.keywords))
            for end in self.ends(value, outer)
        ]

    def empty_by(self, node: ast.expr, scope: Scope) -> list[FlowEnd]:
        """Give the options whose value decides whether an expression has a value at all."""
        found: list[FlowEnd] = []
        for made in self._definitions(node, scope):
            tests = definitions.tests_around(made.statement, made.scope.module, made.scope.function)
            if isinstance(made.value, ast.IfExp) and _is_none(made.value.orelse, made.value.body):
                tests = [made.value.test]
            elif _is_none(made.value):
                continue
            for test in tests[:1]:
                found += self.ends(test, made.scope)
        return found

    def _definitions(self, node: ast.expr, scope: Scope) -> list[Definition]:
        if isinstance(node, ast.Name):
            return definitions.of_name(node.id, replace(scope, line=scope.line))
        if isinstance(node, ast.Attribute) and _is_of_self(node):
            return definitions.of_attribute(node.attr, scope, self._program)
        return []

    @cached_property
    def _options(self) -> Mapping[str, DefinedOption]:
        return defined_options(self._program)

    def _ends(self, node: ast.expr, scope: Scope, way: _Way) -> Iterator[FlowEnd]:
        key = (id(node), scope.level, way.how)
        if self._left <= 0 or way.steps > MOST_STEPS or key in self._seen:
            return
        self._left -= 1
        self._seen[key] = node
        if (variable := environment_key(node)) is not None:
            yield FlowEnd(variable[0], "env", ast.unparse(node), way.how, way.steps, variable[1])
            return
        read = list(self._option(node, scope, way))
        yield from read or self._inner(node, scope, way)

    def _inner(self, node: ast.expr, scope: Scope, way: _Way) -> Iterator[FlowEnd]:
        """Give the ends of what an expression is made of."""
        match node:
            case ast.Name():
                yield from self._name(node, scope, way)
            case ast.Attribute():
                yield from self._attribute(node, scope, way)
            case ast.Subscript(value=value, slice=index):
                yield from self._ends(value, scope, way.further(BUILT))
                yield from self._ends(index, scope, way.further(COMPUTED))
            case ast.Call():
                yield from self._call(node, scope, way)
            case ast.IfExp(test=test, body=body, orelse=other):
                yield from self._ends(body, scope, way.further())
                yield from self._ends(other, scope, way.further())
                yield from self._ends(test, scope, way.further(COMPUTED))
            case ast.Lambda():
                return
            case _:
                how = PASSED if isinstance(node, ast.BoolOp) else BUILT
                for child in ast.iter_child_nodes(node):
                    inner = _inside(child)
                    if isinstance(inner, ast.expr):
                        yield from self._ends(inner, scope, way.further(how))

    # Options

    def _option(self, node: ast.expr, scope: Scope, way: _Way) -> Iterator[FlowEnd]:
        """Give the option that an expression reads from what holds them."""
        read = level_of(node)
        if read is None:
            return
        holder, name, fallback = read
        own = self._own_field(holder, name, scope, way)
        if own:
            yield from own
            return
        levels = self._held(holder, scope, MOST_STEPS - way.steps)
        if levels is None or name.startswith("__"):
            return
        path = ".".join((*levels, name))
        option = self._options.get(name if not levels else "") or DefinedOption(path, None)
        value = fallback if option.default is None else option.default
        reads = ast.unparse(node)
        yield FlowEnd(option.spelled, "option", reads, way.how, way.steps, value, short=option.short)

    def _own_field(self, holder: ast.expr, name: str, scope: Scope, way: _Way) -> list[FlowEnd]:
        """Give the ends of a field of a class of the job's own that holds options."""
        home = self._class_of(holder, scope)
        if home is None:
            return []
        value = definitions.fields(home[1]).get(name)
        if value is None:
            return []
        if (plain := literal(value)) is not None:
            return [FlowEnd(name, "constant", f"{home[1].name}.{name}", way.how, way.steps, plain)]
        outer = Scope(home[0], None, home[1])
        return list(self._ends(value, outer, way.further()))

    def _class_of(self, node: ast.expr, scope: Scope) -> tuple[Module, ast.ClassDef] | None:
        """Give the job's own class whose fields an expression's object has, where its making is seen."""
        if isinstance(node, ast.Name):
            home = self._program.class_named(node.id, scope.module)
            if home is not None:
                return home
        for made in self._values_of(node, scope):
            if isinstance(made, ast.Call):
                home = self._program.class_named(called(made), scope.module)
                if home is not None and any(value for value in definitions.fields(home[1]).values()):
                    return home
        return None

    def _values_of(self, node: ast.expr, scope: Scope, depth: int = 5) -> Iterator[ast.expr]:
        """Give the expressions that a name or an attribute stands for, through arguments of calls."""
        self._left -= 1
        if isinstance(node, ast.Call):
            yield node
        elif depth and self._left > 0:
            for made in self._definitions(node, scope):
                yield from self._values_of(made.value, made.scope, depth - 1)
            if isinstance(node, ast.Name) and scope.function is not None:
                for value, outer in self._program.arguments(node.id, scope):
                    yield from self._values_of(value, outer, depth - 1)

    def _held(self, node: ast.expr, scope: Scope, depth: int) -> tuple[str, ...] | None:
        """Give the levels under which an expression holds options; None where it holds none."""
        self._left -= 1
        if depth <= 0 or self._left <= 0:
            return None
        if isinstance(node, ast.Call):
            return self._held_by_call(node, scope, depth)
        if isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_of_self(node)):
            return self._held_by_name(node, scope, depth)
        read = level_of(node)
        if read is None:
            return None
        is_imported = isinstance(read[0], ast.Name) and read[0].id in scope.module.imports
        if is_imported and HOLDER.fullmatch(read[1]) and not LOOSE.fullmatch(read[1]):
            return ()  # the options of the run, as a logger keeps them
        levels = self._held(read[0], scope, depth - 1)
        return None if levels is None else (*levels, read[1])

    def _held_by_name(
        self, node: ast.Name | ast.Attribute, scope: Scope, depth: int
    ) -> tuple[str, ...] | None:
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name == "FLAGS":
            return ()
        values = [(made.value, made.scope) for made in self._definitions(node, scope)]
        if isinstance(node, ast.Name) and scope.function is not None:
            if is_entry(scope.function) and HOLDER.fullmatch(name):
                return ()
            values += self._program.arguments(name, scope)
        for value, outer in values:
            levels = self._held(value, outer, depth - 1)
            if levels is not None:
                return levels
        return () if self._may_hold(name, [value for value, _ in values]) else None

    def _may_hold(self, name: str, values: list[ast.expr]) -> bool:
        """Tell whether a name is that of options, and nothing that is seen says otherwise."""
        if not HOLDER.fullmatch(name) or LOOSE.fullmatch(name):
            return False
        return not any(
            isinstance(value, ast.Call | ast.Constant | ast.List | ast.Tuple | ast.ListComp | ast.Dict)
            for value in values
        )

    def _held_by_call(self, node: ast.Call, scope: Scope, depth: int) -> tuple[str, ...] | None:
        inner = wrapped(node)
        if inner is not None:
            return self._held(inner, scope, depth - 1)
        read = level_of(node)
        if read is not None:
            levels = self._held(read[0], scope, depth - 1)
            return None if levels is None else (*levels, read[1])
        if loads_options(node):
            return ()
        home = self._program.class_named(called(node), scope.module)
        return () if home is not None and HOLDER.fullmatch(_words(called(node))) else None

    # Names and attributes

    def _name(self, node: ast.Name, scope: Scope, way: _Way) -> Iterator[FlowEnd]:
        found = definitions.of_name(node.id, scope)
        for made in found:
            plain = literal(made.value) if made.is_whole else None
            if isinstance(made.value, ast.List) and not made.value.elts:
                yield from self._grown(node.id, made.scope, way)
            elif plain is not None:
                yield FlowEnd(node.id, "constant", node.id, way.how, way.steps, plain)
            else:
                yield from self._ends(made.value, made.scope, way.further(PASSED if made.is_whole else BUILT))
        if scope.function is not None and not found:
            yield from self._parameter(node.id, scope, way)
        elif not found and (source := scope.module.imports.get(node.id)) is not None and source[1]:
            module = self._program.module_named(source[0])
            if module is not None and module is not scope.module:
                yield from self._name(ast.Name(source[1]), Scope(module), way.further())

    def _grown(self, name: str, scope: Scope, way: _Way) -> Iterator[FlowEnd]:
        """Give the ends of what is put into a list that begins empty."""
        calls = (call for verb in ("append", "extend", "add") for call in scope.module.calls.get(verb, ()))
        for call in calls:
            is_of_it = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == name
            home = self._program.scope_of(scope.module, call) if is_of_it else None
            if home is not None and home.function is scope.function:
                for value in call.args:
                    yield from self._ends(value, replace(scope, line=call.lineno), way.further(BUILT))

    def _parameter(self, name: str, scope: Scope, way: _Way) -> Iterator[FlowEnd]:
        function = scope.function
        assert function is not None  # noqa: S101 - the caller has asked
        if name not in definitions.names_taken(function):
            yield from self._name(ast.Name(name), definitions.enclosing(scope), way.further())
            return
        if is_command(function):
            unknown = DefinedOption(f"--{name.replace('_', '-')}", None)
            option = self._options.get(canonical(name), unknown)
            yield FlowEnd(option.spelled, "option", name, way.how, way.steps, option.default)
            return
        sites = list(self._program.arguments(name, scope))
        for value, outer in sites:
            plain = literal(value)
            if plain is not None:
                yield FlowEnd(name, "parameter", name, way.how, way.steps, plain)
            else:
                yield from self._ends(value, outer, way.further())
        default = None if sites else default_of(function, name)
        # None is filled by who calls, which nobody sees: only a setting of that name tells the value.
        if default is not None and ((plain := literal(default)) is not None or _is_none(default)):
            yield FlowEnd(name, "parameter", name, way.how, way.steps + 1, plain)

    def _attribute(self, node: ast.Attribute, scope: Scope, way: _Way) -> Iterator[FlowEnd]:
        if not _is_of_self(node):
            source = scope.module.imports.get(ast.unparse(node.value))
            module = self._program.module_named(".".join(filter(None, source))) if source else None
            if module is not None:
                yield from self._name(ast.Name(node.attr), Scope(module), way.further())
            else:
                yield from self._ends(node.value, scope, way.further(COMPUTED))
            return
        found = definitions.of_attribute(node.attr, scope, self._program)
        for made in found:
            plain = literal(made.value)
            if plain is not None and made.is_whole:
                yield FlowEnd(node.attr, "constant", ast.unparse(node), way.how, way.steps, plain)
            else:
                yield from self._ends(made.value, made.scope, way.further(PASSED if made.is_whole else BUILT))
        if not found and scope.owner is not None:
            yield from self._declared(node.attr, scope, way)

    def _declared(self, name: str, scope: Scope, way: _Way) -> Iterator[FlowEnd]:
        """Give the ends of a field that a class declares: what it is made with, else the default."""
        owner = scope.owner
        assert owner is not None  # noqa: S101 - the caller has asked
        declared = definitions.fields(owner)
        if name not in declared:
            return
        sites = [
            (module, call) for module in self._program.modules for call in module.calls.get(owner.name, ())
        ]
        given = [
            (value, self._program.scope_of(module, call))
            for module, call in sites[:MOST_SITES]
            if (value := keyword(call, name)) is not None
        ]
        for value, outer in given:
            yield from self._ends(value, self._live(outer), way.further())
        plain = literal(declared[name])
        if not given and plain is not None:
            yield FlowEnd(name, "constant", f"{owner.name}.{name}", way.how, way.steps, plain)

    def _live(self, scope: Scope) -> Scope:
        """Give a scope as the stack has it, where its function is on it."""
        found = (
            call.scope
            for call in self._program.calls
            if scope.function and call.scope.function is scope.function
        )
        live = next(found, None)
        return scope if live is None else replace(live, line=scope.line)

    def _call(self, node: ast.Call, scope: Scope, way: _Way) -> Iterator[FlowEnd]:
        name = called(node)
        values = [*node.args, *(word.value for word in node.keywords)]
        values = [value.value if isinstance(value, ast.Starred) else value for value in values]
        own = self._own_function(node, scope)
        if own is not None:
            yield from self._returned(own, scope, way)
            return
        how = PASSED if name in _SAME else BUILT if name in _BUILDS else COMPUTED
        if isinstance(node.func, ast.Attribute) and text_of(node.func.value) is None:
            receiver = node.func.value
            is_module = isinstance(receiver, ast.Name | ast.Attribute) and (
                ast.unparse(receiver).partition(".")[0] in scope.module.imports
            )
            if not is_module:
                yield from self._ends(receiver, scope, way.further(how))
        for value in values:
            yield from self._ends(value, scope, way.further(how))

    def _own_function(self, node: ast.Call, scope: Scope) -> tuple[Scope, Function] | None:
        """Give the job's own function that a call calls, with the scope of its body."""
        if isinstance(node.func, ast.Name) or _is_of_self(node.func):
            home = self._program.function_named(called(node), scope.module)
            if home is not None:
                owner = scope.owner if _is_of_self(node.func) else None
                return Scope(home[0], home[1], owner, 0, None, (node, scope)), home[1]
        return None

    def _returned(self, own: tuple[Scope, Function], scope: Scope, way: _Way) -> Iterator[FlowEnd]:
        inner, function = own
        site: Scope | None = scope
        while site is not None:  # a function that calls itself
            if site.function is function:
                return
            site = site.site[1] if site.site else None
        for statement in ast.walk(function):
            if isinstance(statement, ast.Return) and statement.value is not None:
                yield from self._ends(statement.value, replace(inner, line=statement.lineno), way.further())


def _is_of_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _inside(node: ast.AST) -> ast.AST:
    """Give the expression that a part of another holds: what is formatted, handed on, or gone through."""
    if isinstance(node, ast.FormattedValue | ast.keyword):
        return node.value
    return node.iter if isinstance(node, ast.comprehension) else node


def _is_none(*nodes: ast.expr) -> bool:
    return any(isinstance(node, ast.Constant) and node.value is None for node in nodes)


def _words(name: str) -> str:
    """Give a class's name in the words of a variable: `TrainConfig` as `train_config`."""
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name).lstrip("_")
