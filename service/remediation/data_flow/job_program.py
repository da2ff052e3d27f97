"""The job's own files as a program: modules, functions and classes, and which call reached which statement.

Code is parsed and never run. It is anybody's: files, nodes and depth are bounded.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

from ingest.configfiles.formats import CODE
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame
from service.remediation.code_edits.failing_code import FailingCode, JobFile, failing_code
from service.remediation.code_edits.source_text import fault, parsed

# How many files are read, and how many nodes of one: larger ones are generated.
MOST_FILES, MOST_NODES = 40, 150_000
# Call sites of one function; of more nobody can say which was meant.
MOST_SITES = 6
_MASK = re.compile(r"\[(redacted:[\w-]{1,20})\]")
_MASKED = "'redacted:"
# Rows of one file that a mask may have cut so that they are no code any more.
MOST_CUT = 8
Function = ast.FunctionDef | ast.AsyncFunctionDef
# Layers of a library that hand all arguments on, as `nn.Module.__call__` does.
_HANDS_ON = ("(*args, **kwargs)", "(*input, **kwargs)", "(*inputs, **kwargs)", "(*args, **kwds)")


class Assigned(NamedTuple):
    """An expression that a statement assigns; `is_whole` where the name has it itself, not a part."""

    value: ast.expr
    statement: ast.stmt
    is_whole: bool
    method: Function | None = None


@dataclass(frozen=True)
class Module:
    """One file's tree; `name` is as it was given, empty where only a row that a traceback quotes is known."""

    tree: ast.Module
    name: str = ""

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes, as far as they are counted."""
        found: list[ast.AST] = []
        for node in ast.walk(self.tree):
            found.append(node)
            if len(found) >= MOST_NODES:
                break
        return found

    @cached_property
    def parents(self) -> dict[int, ast.AST]:
        """The node that holds each node, by its identity."""
        return {id(child): node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        """The functions and methods, by name."""
        found: dict[str, list[Function]] = {}
        for node in self.nodes:
            if isinstance(node, Function):
                found.setdefault(node.name, []).append(node)
        return found

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """The classes, by name."""
        return {node.name: node for node in self.nodes if isinstance(node, ast.ClassDef)}

    @cached_property
    def calls(self) -> dict[str, list[ast.Call]]:
        """The calls, by the last part of what is called."""
        found: dict[str, list[ast.Call]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Call):
                found.setdefault(called(node), []).append(node)
        return found

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """What each imported name stands for: a module, and a name in it or nothing."""
        found: dict[str, tuple[str, str]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found |= {alias.asname or alias.name: (alias.name, "") for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found |= {alias.asname or alias.name: (node.module or "", alias.name) for alias in node.names}
        return found

    @cached_property
    def tables(self) -> dict[int, dict[str, list[Assigned]]]:
        """What functions, classes and the file assign, by the identity of each, as far as somebody asked."""
        return {}

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Give what holds a node, the nearest first."""
        above = self.parents.get(id(node))
        while above is not None:
            yield above
            above = self.parents.get(id(above))


@dataclass(frozen=True)
class Scope:
    """Where an expression stands: its function, the class of that, and its row.

    `level` is the place among the job's own calls where the function is one of them, so that its caller is
    known; None where it is not. `site` is the call that is looked into, and where that stands.
    """

    module: Module
    function: Function | None = None
    owner: ast.ClassDef | None = None
    line: int = 0
    level: int | None = None
    site: tuple[ast.Call, Scope] | None = None


@dataclass(frozen=True)
class OwnCall:
    """A statement of the job's own code on the stack.

    `calls` is the name of the function below it, of the job's or a library's, empty where it failed itself;
    `hands_on` tells that only layers that pass all arguments on stand between it and the own call below it.
    """

    scope: Scope
    statement: ast.stmt
    frame: Frame
    calls: str = ""
    hands_on: bool = False


def _readable(text: str) -> str:
    """Leave out the statements that a mask has cut in two, such as `x_pass = x[..., :n]`, which is no text.

    One such row would keep the whole file from being read.
    """
    rows = text.split("\n")
    for _ in range(MOST_CUT):
        stops = fault("\n".join(rows))
        row = stops.line if stops is not None else 0
        if not 0 < row <= len(rows) or _MASKED not in rows[row - 1]:
            break
        rows[row - 1] = f"{rows[row - 1][: -len(rows[row - 1].lstrip())]}pass"
    return "\n".join(rows)


class JobProgram:
    """The job's files, read when they are needed, and the own calls of a stack, outermost first."""

    def __init__(self, frames: Sequence[Frame], files: Sequence[JobFile]) -> None:
        code = [file for file in files if file.name.endswith(CODE)][:MOST_FILES]
        # A secret that is masked in code stands there as a text, so that the rest is read.
        self.files = [JobFile(file.name, _readable(_MASK.sub(r"'\1'", file.text))) for file in code]
        self._modules: dict[str, Module] = {}
        shown = [frame for frame in frames if frame.file and not frame.file.startswith("<")]
        self.files = _as_run(shown, self.files)
        found = list(failing_code(shown, self.files))[::-1]
        self.calls = [
            self._own_call(code, level, _below(code.frame, shown)) for level, code in enumerate(found)
        ]

    @cached_property
    def modules(self) -> list[Module]:
        """All files that parse."""
        found = ((file, parsed(file.text)) for file in self.files)
        return [self._module(tree, file.name) for file, tree in found if tree is not None]

    def module_named(self, name: str) -> Module | None:
        """Give the file of a module by its dotted name, where one alone may be meant."""
        last = name.rpartition(".")[2]
        found = [
            module
            for module in self.modules
            if PurePosixPath(module.name.replace("\\", "/")).stem == last
            or module.name.endswith(f"{last}/__init__.py")
        ]
        return found[0] if last and len(found) == 1 else None

    def class_named(self, name: str, module: Module) -> tuple[Module, ast.ClassDef] | None:
        """Give a class of the job's own by its name, that of the module itself first."""
        for each in (module, *self.modules):
            if name in each.classes:
                return each, each.classes[name]
        return None

    def function_named(self, name: str, module: Module) -> tuple[Module, Function] | None:
        """Give a function by its name, where one alone has it."""
        if len(own := module.functions.get(name, [])) == 1:
            return module, own[0]
        found = [(each, one) for each in self.modules for one in each.functions.get(name, [])]
        return found[0] if len(found) == 1 else None

    def scope_of(self, module: Module, node: ast.AST) -> Scope:
        """Give the scope of a node that is on no stack."""
        function = next((each for each in module.around(node) if isinstance(each, Function)), None)
        return Scope(module, function, owner_of(module, function), getattr(node, "lineno", 0))

    def arguments(self, name: str, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        """Give what fills a parameter of a function, by the call on the stack, else by its calls."""
        function = scope.function
        if function is None:
            return
        for site, outer in self.sites(scope):
            call = _with_bound(site, function, outer.module)
            value = _argument(call, function, name, is_method=scope.owner is not None)
            if value is not None:
                yield value, outer

    def sites(self, scope: Scope) -> list[tuple[ast.Call, Scope]]:
        """Give the calls of a function, each with where it stands."""
        function = scope.function
        if function is None:
            return []
        if scope.site is not None:
            return [scope.site]
        names = {function.name} if function.name != "__init__" or scope.owner is None else {scope.owner.name}
        if scope.level:
            above = self.calls[scope.level - 1]
            nodes = [node for node in ast.walk(above.statement) if isinstance(node, ast.Call)]
            named = [node for node in nodes if called(node) in names]
            if not named and above.hands_on:
                marked = [node for node in nodes if ast.unparse(node) == above.frame.failing]
                named = marked or nodes[:1]
            return [(node, above.scope) for node in named[:1]]
        found = [
            (call, self.scope_of(module, call))
            for module in (scope.module, *(each for each in self.modules if each is not scope.module))
            for name in names
            for call in module.calls.get(name, ())
        ]
        return found if len(found) <= MOST_SITES else self._on_stack(found)

    def _on_stack(self, sites: list[tuple[ast.Call, Scope]]) -> list[tuple[ast.Call, Scope]]:
        """Give those of many calls that stand in a function which is on the stack."""
        functions = {id(call.scope.function): call.scope for call in self.calls}
        found = [
            (call, replace(functions[id(outer.function)], line=outer.line))
            for call, outer in sites
            if id(outer.function) in functions
        ]
        return found if len(found) <= MOST_SITES else []

    def _module(self, tree: ast.Module, name: str) -> Module:
        if name not in self._modules:
            self._modules[name] = Module(tree, name)
        return self._modules[name]

    def _own_call(self, code: FailingCode, level: int, below: tuple[Frame, ...]) -> OwnCall:
        name = code.file.name if code.file else ""
        module = self._module(code.source.tree, name) if name else Module(code.source.tree)
        scope = Scope(module, code.function, owner_of(module, code.function), code.statement.lineno, level)
        own = next((place for place, frame in enumerate(below) if is_own(frame)), len(below))
        return OwnCall(
            scope,
            code.statement,
            code.frame,
            below[0].function.rpartition(".")[2] if below else "",
            hands_on=all(frame.code.rstrip().endswith(_HANDS_ON) for frame in below[:own]),
        )


def _as_run(frames: Sequence[Frame], files: list[JobFile]) -> list[JobFile]:
    """Give the files by the names that the run had for them: a script is copied before it is started.

    It is the same one where the rows of two calls, and of most, stand at their very lines.
    """
    found = list(files)
    names = {PurePosixPath(file.name.replace("\\", "/")).name for file in files}
    unknown = [frame for frame in frames if is_own(frame) and PurePosixPath(frame.file).name not in names]
    for path in dict.fromkeys(frame.file for frame in unknown):
        quoted = {frame.line: frame.code for frame in unknown if frame.file == path and len(frame.code) > 3}
        for place, file in enumerate(found):
            rows = file.text.split("\n") if len(quoted) > 1 else []
            same = sum(line <= len(rows) and rows[line - 1].strip() == code for line, code in quoted.items())
            if same > 1 and 2 * same > len(quoted):
                found[place] = JobFile(path, file.text)
                break
    return found


def _below(frame: Frame, shown: Sequence[Frame]) -> tuple[Frame, ...]:
    """Give the calls below one."""
    place = next(index for index in reversed(range(len(shown))) if shown[index] is frame)
    return tuple(shown[place + 1 :])


def owner_of(module: Module, function: Function | None) -> ast.ClassDef | None:
    """Give the class that a function is a method of."""
    if function is None or not module.name:
        return None
    above = next(module.around(function), None)
    return above if isinstance(above, ast.ClassDef) else None


def called(call: ast.Call) -> str:
    """Give the last part of what is called: `load` of `torch.load(path)`."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def parameters(function: Function) -> list[ast.arg]:
    """Give the parameters that a position or a name fills, in order."""
    return [*function.args.posonlyargs, *function.args.args]


def default_of(function: Function, name: str) -> ast.expr | None:
    """Give the value that a parameter has where no argument fills it."""
    args = function.args
    placed = parameters(function)
    pairs = zip(reversed(placed), reversed(args.defaults), strict=False)
    named = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    found = (value for arg, value in (*pairs, *named) if arg.arg == name)
    return next(found, None)


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """Give what a call's keyword has, also where a mapping is taken apart."""
    for word in call.keywords:
        if word.arg == name:
            return word.value
    spread = [word.value for word in call.keywords if word.arg is None]
    return ast.Subscript(spread[0], ast.Constant(name)) if len(spread) == 1 else None


def _with_bound(call: ast.Call, function: Function, module: Module) -> ast.Call:
    """Give a call with what `functools.partial` bound to a function that is called by another name."""
    name = getattr(call.func, "id", "")
    bound = [
        node.value
        for node in (module.nodes if name and name != function.name else ())
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and called(node.value) == "partial"
        and any(getattr(target, "id", "") == name for target in node.targets)
        and ast.unparse(node.value.args[0] if node.value.args else node.value) == function.name
    ]
    if len(bound) != 1:
        return call
    given = {word.arg for word in call.keywords}
    kept = [word for word in bound[0].keywords if word.arg not in given]
    return ast.Call(call.func, [*bound[0].args[1:], *call.args], [*call.keywords, *kept])


def _argument(call: ast.Call, function: Function, name: str, *, is_method: bool) -> ast.expr | None:
    """Give what fills a parameter at a call."""
    placed = [arg.arg for arg in parameters(function)]
    static = any(ast.unparse(each) == "staticmethod" for each in function.decorator_list)
    placed = placed[1:] if is_method and not static and placed[:1] in (["self"], ["cls"]) else placed
    if name in placed:
        place = placed.index(name)
        before = call.args[: place + 1]
        if len(before) > place and not any(isinstance(arg, ast.Starred) for arg in before):
            return call.args[place]
    return keyword(call, name)
