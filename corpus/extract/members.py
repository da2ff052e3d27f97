"""What classes of a package have: attributes and methods; and what methods and functions take."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from corpus.symbols import ANY_CLASS

# Bases are followed so many steps.
_DEEPEST = 8

Members = Mapping[str, frozenset[str] | None]


def members(texts: Iterable[str]) -> dict[str, frozenset[str] | None]:
    """Give the attributes of each class, and under `Class.method` its arguments, each behind a bracket.

    Arguments of a function stand under `function()`, what any class has under `ANY_CLASS`. Classes of one
    name count as one, and so do functions. What takes any argument, or any attribute, is None; but a class
    that another one of its name derives from takes what it did, whatever that hands on to it.
    """
    own: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    taken: dict[str, set[str] | None] = {}
    for text in texts:
        classes, functions = _parts(text)
        calls = list(functions.items())
        for name, parents, attributes, arguments in classes:
            own.setdefault(name, set()).update(attributes)
            bases.setdefault(name, set()).update(parents)
            hands_on = any(parent.lstrip("_") == name for parent in parents)
            calls += (
                (f"{name}.{method}", words)
                for method, words in arguments.items()
                if words is not None or not hands_on
            )
        for name, words in calls:
            known = taken.setdefault(name, set())
            taken[name] = None if words is None or known is None else known | words
    found: dict[str, frozenset[str] | None] = {name: _whole(name, own, bases) for name in own}
    found |= {name: frozenset(words) if words is not None else None for name, words in taken.items()}
    return {**found, ANY_CLASS: frozenset().union(*own.values())} if own else found


def _whole(
    name: str, own: Mapping[str, set[str]], bases: Mapping[str, set[str]], depth: int = 0
) -> frozenset[str] | None:
    """Give a class's attributes with those of its bases; None where a base is not the package's own."""
    if depth > _DEEPEST or name not in own or "__getattr__" in own[name]:
        return None
    parts = [_whole(base, own, bases, depth + 1) for base in bases[name] if base not in _PLAIN | {name}]
    if any(part is None for part in parts):
        return None
    return frozenset(own[name]).union(*(part for part in parts if part is not None))


# Bases that bring no attribute of interest.
_PLAIN = frozenset({"object", "ABC", "Protocol", "Generic", "Enum", "str", "Exception"})
_Class = tuple[str, frozenset[str], frozenset[str], dict[str, frozenset[str] | None]]


# Most files are the same in several releases.
@lru_cache(maxsize=8192)
def _parts(text: str) -> tuple[tuple[_Class, ...], Mapping[str, frozenset[str] | None]]:
    """Give the classes of a module, and what its functions take."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return (), {}
    functions = {
        f"{node.name}()": _arguments(node)
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return tuple(_class(node) for node in module.body if isinstance(node, ast.ClassDef)), functions


def _class(node: ast.ClassDef) -> _Class:
    parents = frozenset(ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases)
    methods = [item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
    fields = [
        item.target.id
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    ]
    arguments = {method.name: _arguments(method) for method in methods}
    if "Struct" in parents or any("dataclass" in ast.unparse(word) for word in node.decorator_list):
        # Those of its bases are taken too; what came or went in the class itself is all that is asked for.
        arguments.setdefault("__init__", frozenset(f"({name}" for name in fields))
    attributes = {method.name for method in methods} | set(fields)
    attributes |= {
        target.id
        for item in node.body
        if isinstance(item, ast.Assign)
        for target in item.targets
        if isinstance(target, ast.Name)
    }
    attributes |= {name for method in methods for name in _of_self(method)}
    return node.name, parents, frozenset(attributes), arguments


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str] | None:
    """Give what a function takes by name, each behind a bracket; None where that is anything."""
    given = function.args
    own = [word.arg for word in (*given.args, *given.kwonlyargs) if word.arg not in ("self", "cls")]
    kept = [_kept(word) for word in function.decorator_list]
    is_open = given.kwarg is not None or None in kept
    words = frozenset(f"({name}" for name in (*own, *(name for names in kept for name in names or ())))
    return None if is_open else words


# Decorators that leave what a function takes as it is; `deprecate...` adds what it names.
_PLAIN_DECORATORS = frozenset(
    {
        "staticmethod",
        "classmethod",
        "abstractmethod",
        "override",
        "overload",
        "final",
        "cache",
        "lru_cache",
        "contextmanager",
        "no_grad",
        "_no_grad",
        "inference_mode",
        "_exception_logger",
        "_time_logger",
        "_defaults_from_env_vars",
        "dynamic_rope_update",
        "auto_docstring",
        "add_start_docstrings",
        "add_start_docstrings_to_model_forward",
        "replace_return_docstrings",
    }
)


def _kept(decorator: ast.expr) -> frozenset[str] | None:
    """Give the arguments that a decorator takes beside the function's own; None where it may take any."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = ast.unparse(called).rpartition(".")[2]
    if name in _PLAIN_DECORATORS:
        return frozenset()
    if "deprecate" not in name:
        return None
    texts = (node.value for node in ast.walk(decorator) if isinstance(node, ast.Constant))
    return frozenset(text for text in texts if isinstance(text, str) and text.isidentifier())


def _of_self(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Give what a method sets of its own object."""
    for node in ast.walk(method):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        ):
            yield node.attr
