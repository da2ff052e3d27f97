"""The settings of a launch file in Python: plain values that it assigns or hands to calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import accumulate

from corpus.keys import unsigned
from corpus.message import Message
from corpus.schema import Scalar
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.settings import LONGEST, Setting, TextEdit, place_at

# The parser's stack bounds how deep a file may nest; its time grows with the length.
MAX_CHARACTERS = 1 << 18
_OPTION = re.compile(r"--[A-Za-z]|-[A-Za-z]\w")
_TYPE = re.compile(r"(?:bfloat|float|int|uint)\d{1,2}(?:_e\dm\d\w*)?|half|double")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# What holds a program's options, by its name: `args`, `self.cfg`, yacs's `_C`, a class `TrainConfig`.
_HOLDER = re.compile(
    r"_C|(?i:(?:[a-z0-9_]*_)?(?:args?|cfg|conf|configs?|configuration|opts?|options?|hparams|hyper_?params"
    r"|params|settings|flags)"
    r"|[a-z0-9_]*(?:config|configuration|args|arguments|options|hparams|params|settings))"
)
# Calls that make options of a function's parameters: Python Fire, typer, tyro, defopt.
_RUNNERS = frozenset({"Fire", "run", "cli"})
_RUNNER_MODULES = frozenset({"fire", "typer", "tyro", "defopt"})
# The calls that begin a tracked run: wandb.init, swanlab.init, aim and Comet's runs.
_TRACKING = frozenset({"init", "Experiment", "start_run"})


def read(text: str) -> list[Setting]:
    """Read `NAME = 1`, `cfg.name = 1`, `call(name=1)`, `{"name": 1}`, and the defaults of options and fields.

    Those are also the parameters of a function that a command line calls. A name that its scope also gives a
    computed value is none, nor what a tracker is told and no row reads. Raises NotPatchableError.
    """
    if len(text) > MAX_CHARACTERS:
        raise NotPatchableError(Message("patch.file-longer-characters", max_characters=f"{MAX_CHARACTERS:,}"))
    try:
        tree = ast.parse(text)
        computed = (value for _, value in _reassigned(tree))
        dropped = {id(node) for node in (*computed, *_told_to_trackers(tree))}
        values = (*_values(tree), *_attributes(tree), *_parameters(tree))
        kept = (item for item in values if id(item[1]) not in dropped)
        found = sorted(kept, key=lambda item: (item[1].lineno, item[1].col_offset))
        filled = [
            Setting(name, _template(value)[:LONGEST], value.lineno, "dump")
            for name, value in _reassigned(tree)
            if isinstance(value, ast.JoinedStr)
        ]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotPatchableError(Message("patch.file-no-python-read")) from error
    rows = text.split("\n")
    starts = [0, *accumulate(len(row) + 1 for row in rows)]
    plain = (_setting(text, rows, starts, key, node, scope) for key, node, scope in found)
    return sorted([*plain, *filled], key=lambda setting: setting.line)


def _setting(text: str, rows: list[str], starts: list[int], key: str, node: ast.expr, scope: str) -> Setting:
    def offset(line: int, column: int) -> int:
        # The parser counts the bytes of a row.
        return starts[line - 1] + len(rows[line - 1].encode()[:column].decode())

    start = offset(node.lineno, node.col_offset)
    end = offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    value = ast.unparse(node) if _is_type(node) else ast.literal_eval(node)
    place = place_at(text, start, scope, lambda to: TextEdit(start, end, _written(node, to)))
    return Setting(key, str(value)[:LONGEST], place.line, "dump", place)


def _written(node: ast.expr, to: Scalar) -> str:
    """Write a value in the place of another one: a type of numbers as a name of the same module."""
    name = str(to).rpartition(".")[2]
    if isinstance(node, ast.Attribute) and _TYPE.fullmatch(name):
        return f"{ast.unparse(node.value)}.{name}"
    return repr(to)


def _values(tree: ast.AST) -> Iterator[tuple[str, ast.expr, str]]:
    """Give key, value and scope of each plain value."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_plain(value):
                yield name, value, ""
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                default: ast.expr | None = None
                if isinstance(value, ast.Call) and _is_field(value):
                    default = next((each.value for each in value.keywords if each.arg == "default"), None)
                if _is_plain(default or value):
                    yield name, default or value, ""
            case ast.Call() if not _is_field(node):
                yield from _arguments(node)
            case ast.Dict():
                yield from (
                    (key.value, value, "{}")
                    for key, value in zip(node.keys, node.values, strict=True)
                    if isinstance(key, ast.Constant) and isinstance(key.value, str) and _is_plain(value)
                )


def _attributes(tree: ast.Module) -> Iterator[tuple[str, ast.expr, str]]:
    """Give the plain values that what holds the options gets: `cfg.a = 1`, `cfg["a"] = 1`, `self.a = 1`.

    The last one in a class whose name says that it holds options. One that is worked out elsewhere is none.
    """
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    own = {id(node) for each in classes if _HOLDER.fullmatch(each.name) for node in ast.walk(each)}
    found: dict[tuple[str, str], list[ast.expr | None]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign | ast.AugAssign):
            continue
        value = node.value if isinstance(node, ast.Assign) else None
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            owner, *names = _levels(target)
            held = next(
                (place for place, part in enumerate((owner, *names)) if _HOLDER.fullmatch(part)), None
            )
            if held is None and owner == "self" and id(node) in own:
                held = 0
            if held is not None and (key := ".".join(names[held:])):
                found.setdefault((key, ".".join((owner, *names[:held]))), []).append(value)
    for (key, scope), values in found.items():
        plain = [value for value in values if value is not None and _is_plain(value)]
        if len(plain) == len(values):
            yield from ((key, value, scope) for value in plain)


def _levels(node: ast.expr) -> list[str]:
    """Give the names of `cfg.train["rate"]`, from left to right; an empty one where it is anything else."""
    match node:
        case ast.Name(id=name):
            return [name]
        case ast.Attribute(value=owner, attr=name):
            return [*_levels(owner), name]
        case ast.Subscript(value=owner, slice=ast.Constant(value=str() as name)):
            return [*_levels(owner), name]
    return [""]


def _parameters(tree: ast.Module) -> Iterator[tuple[str, ast.expr, str]]:
    """Give the plain defaults of parameters of functions that a command line calls: `fire.Fire(train)`."""
    called = {
        node.args[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and node.args
        and isinstance(node.args[0], ast.Name)
        and _is_runner(node.func)
    }
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name in called:
            given = function.args
            placed = [*given.posonlyargs, *given.args]
            pairs = [
                *zip(placed[len(placed) - len(given.defaults) :], given.defaults, strict=True),
                *zip(given.kwonlyargs, given.kw_defaults, strict=True),
            ]
            yield from (
                (name.arg, value, function.name)
                for name, value in pairs
                if value is not None and _is_plain(value)
            )


def _is_runner(function: ast.expr) -> bool:
    """Tell whether a call hands the command line to a function."""
    module, _, name = ast.unparse(function).rpartition(".")
    return name in _RUNNERS and (module in _RUNNER_MODULES or (not module and name == "Fire"))


def _is_field(node: ast.expr) -> bool:
    """Tell whether a value is the `field(default=...)` of a dataclass or of a model of pydantic."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2].lower() == "field"


def _template(value: ast.JoinedStr) -> str:
    """Write what a text is filled into as it stands, without its quotes."""
    return "".join(
        f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue) else ast.literal_eval(part)
        for part in value.values
    )


def _reassigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Give all values of names that one scope gives both a plain one and a computed one."""
    for scope in (tree, *(node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS))):
        found = [
            (target.id, node.value)
            for node in _within(scope)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        ]
        plain = {name for name, value in found if _is_plain(value)}
        computed = {
            name
            for name, value in found
            if not (isinstance(value, ast.Constant | ast.UnaryOp) or _is_type(value))
        }
        yield from ((name, value) for name, value in found if name in plain & computed)


def _within(scope: ast.AST) -> Iterator[ast.AST]:
    """Give the statements of a scope without those of the functions and classes in it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield node
            yield from _within(node)


def _told_to_trackers(tree: ast.Module) -> Iterator[ast.expr]:
    """Give the values that `wandb.init(config={...})` and its like note, where no row reads them by name."""
    read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    read |= {
        node.slice.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    }
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in _TRACKING:
            noted = (word.value for word in call.keywords if word.arg in ("config", "params", "hparams"))
            for note in (node for node in noted if isinstance(node, ast.Dict)):
                pairs = zip(note.keys, note.values, strict=True)
                yield from (
                    value for key, value in pairs if isinstance(key, ast.Constant) and key.value not in read
                )


def _arguments(call: ast.Call) -> Iterator[tuple[str, ast.expr, str]]:
    """Give a call's plain keyword arguments; of an option, its `default` alone, by the option's name."""
    scope = ast.unparse(call.func)
    words = (word.value for word in call.args if isinstance(word, ast.Constant))
    names = [word for word in words if isinstance(word, str) and _OPTION.match(word)]
    # The longest one is that by which a command gives it: `-b`, `--batch-size`; some have one dash alone.
    option = next((name for name in names if name.startswith("--")), next(iter(names), ""))
    for keyword in call.keywords:
        # The help, the action and the type of an option are no settings.
        if keyword.arg and _is_plain(keyword.value) and (not option or keyword.arg == "default"):
            yield unsigned(option) if option else keyword.arg, keyword.value, scope


def _is_plain(node: ast.expr) -> bool:
    """Tell a number, a switch, a string or a type of numbers; a sign before a number is part of it."""
    inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    is_number = isinstance(inner, ast.Constant) and isinstance(inner.value, int | float)
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_number or is_text or _is_type(node)


def _is_type(node: ast.expr) -> bool:
    """Tell whether a value is a type of numbers, as a module names it: `torch.float16`."""
    is_attribute = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return is_attribute and _TYPE.fullmatch(ast.unparse(node).rpartition(".")[2]) is not None
