"""Where a name or an attribute of an object gets its value in the job's own code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from service.remediation.data_flow.job_program import Assigned, Function, JobProgram, Module, Scope, owner_of

# How many assignments of one name are followed: the nearest, and those that another branch makes.
MOST_DEFINITIONS = 3
_BRANCHES = ast.If | ast.Try | ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler
# Methods that make an object: what they assign counts before what others do.
_MAKERS = ("__init__", "setup", "__post_init__", "build", "reset")


class Definition(NamedTuple):
    """An expression that a name gets its value from, where that stands, and the statement.

    `is_whole` tells that the name has the value itself, not an element or an outcome of it.
    """

    value: ast.expr
    scope: Scope
    statement: ast.stmt
    is_whole: bool = True


def of_name(name: str, scope: Scope) -> list[Definition]:
    """Give the assignments of a name in the function, else in what is around it, the nearest first."""
    if scope.function is not None:
        found = _before(scope, name, scope.function)
        if found or name in names_taken(scope.function):
            return found
        return of_name(name, enclosing(scope))
    return _before(scope, name, scope.module.tree)


def names_taken(function: Function) -> frozenset[str]:
    """Give the names of a function's parameters."""
    args = function.args
    return frozenset(arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs))


def enclosing(scope: Scope) -> Scope:
    """Give the scope in which a function of the scope is defined: a function around it, else the module."""
    above = scope.module.around(scope.function) if scope.function is not None else iter(())
    outer = next((each for each in above if isinstance(each, Function)), None)
    return Scope(scope.module, outer, owner_of(scope.module, outer) if outer is not None else None)


def of_attribute(name: str, scope: Scope, program: JobProgram, depth: int = 3) -> list[Definition]:
    """Give the assignments of `self.name` in the methods of the class and of those that it derives from."""
    owner = scope.owner
    if owner is None:
        return []
    found = [
        Definition(each.value, _method_scope(program, scope, each), each.statement, each.is_whole)
        for each in _attributes(scope.module, owner).get(name, ())
    ]
    made = [item for item in found if item.scope.function and item.scope.function.name in _MAKERS]
    if found or not depth:
        return (made or found)[-MOST_DEFINITIONS:]
    for base in owner.bases:
        last = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        home = program.class_named(last, scope.module)
        if home is not None and home[1] is not owner:
            outer = Scope(home[0], None, home[1])
            if below := of_attribute(name, outer, program, depth - 1):
                return below
    return []


def _attributes(module: Module, owner: ast.ClassDef) -> dict[str, list[Assigned]]:
    """Give what the methods of a class assign to attributes of their object, by name."""
    if id(owner) not in module.tables:
        found: dict[str, list[Assigned]] = {}
        for method in (item for item in owner.body if isinstance(item, Function)):
            for target, assigned in _assigned(method, method):
                if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                    found.setdefault(target.attr, []).append(assigned)
        module.tables[id(owner)] = found
    return module.tables[id(owner)]


def _names(module: Module, root: ast.AST) -> dict[str, list[Assigned]]:
    """Give what a function or a file assigns to names, by name."""
    if id(root) not in module.tables:
        found: dict[str, list[Assigned]] = {}
        for target, assigned in _assigned(root):
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(assigned)
        module.tables[id(root)] = found
    return module.tables[id(root)]


def _assigned(root: ast.AST, method: Function | None = None) -> Iterator[tuple[ast.expr, Assigned]]:
    """Give each target of an assignment within a function or a module, with what it gets."""
    for statement in _own_statements(root):
        for target, value, is_whole in _targets(statement):
            yield target, Assigned(value, statement, is_whole, method)


def fields(owner: ast.ClassDef) -> dict[str, ast.expr | None]:
    """Give the fields that a class declares in its body, each with the value that it has there."""
    found: dict[str, ast.expr | None] = {}
    for item in owner.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            found[item.target.id] = _default_value(item.value)
        elif isinstance(item, ast.Assign):
            found |= {each.id: item.value for each in item.targets if isinstance(each, ast.Name)}
    return found


def tests_around(statement: ast.AST, module: Module, function: Function | None) -> list[ast.expr]:
    """Give the conditions under which a statement is reached within its function, the nearest first."""
    found: list[ast.expr] = []
    for above in module.around(statement):
        if above is function or isinstance(above, ast.ClassDef):
            break
        if isinstance(above, ast.If | ast.While):
            found.append(above.test)
    return found


def _default_value(value: ast.expr | None) -> ast.expr | None:
    """Give the default of a field that is declared by a call: `field(default=3)`, `Field(3)`, `Option(3)`."""
    if isinstance(value, ast.Call):
        named = [word.value for word in value.keywords if word.arg == "default"]
        last = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        if last in ("field", "Field", "Option", "Argument", "option"):
            return next(iter([*named, *value.args]), None)
    return value


def _method_scope(program: JobProgram, scope: Scope, each: Assigned) -> Scope:
    """Give the scope of a method, with its caller where it is on the stack."""
    level = next((call.scope.level for call in program.calls if call.scope.function is each.method), None)
    return Scope(scope.module, each.method, scope.owner, each.statement.lineno, level)


def _before(scope: Scope, name: str, root: ast.AST) -> list[Definition]:
    """Give those that may count at a row: the last one above it, and others where that is in a branch."""
    rows = _names(scope.module, root).get(name, [])
    rows = [each for each in rows if not scope.line or each.statement.lineno < scope.line]
    kept: list[Definition] = []
    for each in sorted(rows, key=lambda each: each.statement.lineno, reverse=True):
        at = replace(scope, line=each.statement.lineno)
        kept.append(Definition(each.value, at, each.statement, each.is_whole))
        above = next(scope.module.around(each.statement), None) if scope.module.name else None
        # What stands in no branch hides all above it, unless it works on the value that it had.
        is_final = not isinstance(above, _BRANCHES) and not isinstance(each.statement, ast.AugAssign)
        if is_final or len(kept) == MOST_DEFINITIONS:
            break
    return kept


def _own_statements(root: ast.AST) -> Iterator[ast.stmt]:
    """Give the statements of a function or a module, without those of what is defined in it."""
    waiting = list(ast.iter_child_nodes(root))[::-1]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, Function | ast.ClassDef | ast.expr):
            waiting.extend(list(ast.iter_child_nodes(node))[::-1])


def _targets(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """Give what a statement assigns, with the expression, and whether that is the whole value."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _parts(target, value)
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.AugAssign(target=target, value=value)
        ):
            yield target, value, not isinstance(statement, ast.AugAssign)
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            yield from ((part, value, False) for part in ast.walk(target) if isinstance(part, ast.expr))
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from (
                (item.optional_vars, item.context_expr, False) for item in items if item.optional_vars
            )


def _parts(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """Pair the parts of a tuple with those of its value, else with the whole."""
    if not isinstance(target, ast.Tuple | ast.List):
        yield target, value, True
    elif isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
        yield from ((one, other, True) for one, other in zip(target.elts, value.elts, strict=True))
    else:
        yield from ((part, value, False) for part in target.elts)
