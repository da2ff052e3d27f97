"""Names that fill an edit's blanks: a near one among what the job's file defines, or what brings a name."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher, get_close_matches

from corpus.code_edits import NameSource, known_code_edits
from corpus.keys import canonical
from ingest.configfiles.formats import CODE
from service.remediation.code_edits.classes import (
    asked_as_truth,
    attributes,
    enclosing_class,
    kept_container,
    method_without_self,
    own_method,
    trees_of,
)
from service.remediation.code_edits.failing_code import FailingCode, JobFile, scope_nodes
from service.remediation.code_edits.matching import matches
from service.remediation.code_edits.source_text import parsed
from service.remediation.own_names import stands_for

# How alike a slip and what was meant are at least: `lable`, `label`.
ALIKE = 0.75
SHORTEST = 3
# How much more alike the nearest is than the next.
AHEAD = 0.05
_QUOTED = re.compile(r"['\"`]([\w.@/:+-](?:[\w.@/:+ -]{0,58}[\w.@/:+-])?)['\"`]")


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Sought:
    """A name that is looked for, with the failing statement and the other values of the message."""

    name: str
    code: FailingCode
    values: Mapping[str, str]
    files: Sequence[JobFile] = ()
    choices: Sequence[str] = ()


def computed(by: NameSource, sought: Sought) -> str | None:
    """Give the name that a source finds for another; None where none is plainly meant."""
    return _SOURCES[by](sought)


def near(name: str, choices: Iterator[str] | Sequence[str]) -> str | None:
    """Give the one choice that a name is plainly a slip of."""
    others = sorted({choice for choice in choices if choice and choice != name})
    # The same but for case and signs between words is the same name.
    same = [choice for choice in others if _bare(choice) == _bare(name)]
    if len(same) == 1:
        return same[0]
    # `lr` and `learning_rate` are one name, long and short.
    short = [choice for choice in others if stands_for(choice, name) or stands_for(name, choice)]
    if len(short) == 1:
        return short[0]
    if len(name) < SHORTEST:
        return None
    found = get_close_matches(name, others, n=2, cutoff=ALIKE)
    if len(found) == 2 and _likeness(name, found[0]) - _likeness(name, found[1]) < AHEAD:
        return None
    # Names that differ by their numbers alone are no slips: `x1` and `x2`.
    if not found or re.sub(r"\d", "", name) == re.sub(r"\d", "", found[0]):
        return None
    return found[0]


def _bare(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def _near_name(sought: Sought) -> str | None:
    return near(sought.name, _names_in_scope(sought.code)) if sought.code.file is not None else None


def _names_in_scope(code: FailingCode) -> Iterator[str]:
    """Give the names that the failing statement can read: of its function before it, and of the module."""
    for node in ast.walk(code.source.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    for top in code.source.tree.body:
        if isinstance(top, _DEFINITIONS):
            yield top.name
        else:
            yield from _stored(top)
    if code.function is not None:
        arguments = code.function.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        yield from (item.arg for item in every)
        for node in ast.walk(code.function):
            if isinstance(node, ast.stmt) and node.lineno < code.statement.lineno:
                yield from _stored(node)


def _stored(node: ast.AST) -> Iterator[str]:
    yield from (
        item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
    )


def _near_option(sought: Sought) -> str | None:
    trees = [parsed(file.text) for file in sought.files if file.name.endswith(CODE)]
    found = [
        name for tree in (sought.code.source.tree, *trees) if tree is not None for name in _options(tree)
    ]
    return near(sought.name, [name.lstrip("-").replace("-", "_") for name in found])


def _options(tree: ast.AST) -> Iterator[str]:
    """Give what a parser of the file defines: by `dest`, else by the first long name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            dest = next((item.value for item in node.keywords if item.arg == "dest"), None)
            names = [item.value for item in node.args if isinstance(item, ast.Constant)]
            texts = [text for text in names if isinstance(text, str)]
            if isinstance(dest, ast.Constant) and isinstance(dest.value, str):
                yield dest.value
            elif texts:
                yield next((text for text in texts if text.startswith("--")), texts[0])


def _near_key(sought: Sought) -> str | None:
    """Find a near key among those that the file writes: of its mappings, its columns and its subscripts."""
    if sought.code.file is None:
        return None
    keys: list[str] = []
    for node in ast.walk(sought.code.source.tree):
        given: list[ast.expr | None] = []
        if isinstance(node, ast.Dict):
            given = list(node.keys)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            given = [node.slice]
        keys += [
            item.value for item in given if isinstance(item, ast.Constant) and isinstance(item.value, str)
        ]
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "dict":
            keys += [item.arg for item in node.keywords if item.arg]
    return None if sought.name in keys else near(sought.name, keys)


def _near_parameter(sought: Sought) -> str | None:
    """Find a near parameter of the function or class that the message calls, where the file defines it."""
    found = list(_definitions(sought.values.get("called", ""), sought.code))
    if len(found) != 1:
        return None
    items = (*found[0].args.args, *found[0].args.kwonlyargs)
    return near(sought.name, [item.arg for item in items if item.arg != "self"])


def _definitions(called: str, code: FailingCode) -> Iterator[ast.FunctionDef]:
    if code.file is None:
        return
    for node in ast.walk(code.source.tree):
        if isinstance(node, ast.FunctionDef) and node.name == called:
            yield node
        if isinstance(node, ast.ClassDef) and node.name == called:
            yield from (
                item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"
            )


def _near_listed(sought: Sought) -> str | None:
    """Find a near name among those that the message itself quotes (its group `choices`)."""
    # A KeyError shows its message as a text, in which quotes are escaped.
    listed = sought.values.get("choices", "").replace("\\'", "'")
    return near(sought.name, _QUOTED.findall(listed) or re.split(r"[,\s]+", listed))


def _import(sought: Sought) -> str | None:
    nodes = list(sought.code.nodes())
    for row in known_code_edits().imports:
        if row.name == sought.name and (not row.used or matches(row.used, nodes)):
            return row.statement
    return None


def _local(sought: Sought) -> str | None:
    """Give the name itself where the failing statement can read a value of that name."""
    code, name = sought.code, sought.name
    if code.file is None or hasattr(builtins, name):
        return None
    return name if name in set(_names_in_scope(code)) else None


def _first_local(sought: Sought) -> str | None:
    if sought.code.file is None:
        return None
    known = set(_names_in_scope(sought.code))
    return next((name for name in sought.choices if name in known), None)


def _module_name(sought: Sought) -> str | None:
    """Give a name that a function reads before it assigns it, where the module assigns it too."""
    name = sought.name or sought.values.get("old", "")
    if sought.code.file is None or sought.code.function is None:
        return None
    body = (node for node in sought.code.source.tree.body if not isinstance(node, _DEFINITIONS))
    return name if any(name in set(_stored(node)) for node in body) else None


def _first_given(sought: Sought) -> str | None:
    told = (sought.values.get(name, name if name.isdecimal() else "") for name in sought.choices)
    return next(filter(None, told), None)


def _loops(code: FailingCode) -> list[ast.For]:
    """Give the loops of the same function around the failing statement, the outermost first."""
    line = code.statement.lineno
    around = code.function or code.source.tree
    loops = [node for node in ast.walk(around) if isinstance(node, ast.For)]
    held = [
        node for node in loops if node.lineno <= line <= (node.end_lineno or 0) and node is not code.statement
    ]
    begin = code.function.lineno if code.function else 0
    inner = (
        node for node in ast.walk(around) if isinstance(node, _DEFINITIONS) and node is not code.function
    )
    # A loop around a function's definition is none around its statements.
    apart = [(node.lineno, node.end_lineno or 0) for node in inner]
    return [
        node
        for node in sorted(held, key=lambda node: node.lineno)
        if node.lineno >= begin and not any(node.lineno < one <= line <= last for one, last in apart)
    ]


def _loop_steps(sought: Sought) -> str | None:
    """Give how often the loops around the statement turn, where each says how often it does."""
    code = sought.code
    if code.file is None or not (loops := _loops(code)):
        return None
    turns = [_turns(node.iter) for node in loops]
    if None in turns:
        return None
    # The number is needed where the schedule is made, above the loops.
    known = {name for node in loops[:1] for name in _names_before(code, node.lineno)}
    read = {
        item.id for turn in turns for item in ast.walk(ast.parse(turn or "")) if isinstance(item, ast.Name)
    }
    return " * ".join(map(str, turns)) if read <= known | set(dir(builtins)) else None


def _turns(over: ast.expr) -> str | None:
    """Give how often a loop over an expression turns: `range(n)`, `loader`, `enumerate(loader)`."""
    if isinstance(over, ast.Call):
        name = ast.unparse(over.func).rpartition(".")[2]
        if name == "range" and len(over.args) == 1:
            return _factor(over.args[0])
        if name == "range" and len(over.args) == 2:
            first, end = over.args
            is_whole = isinstance(first, ast.Constant) and first.value == 0
            return _factor(end) if is_whole else f"({ast.unparse(end)} - {_factor(first)})"
        return _turns(over.args[0]) if name in ("enumerate", "tqdm", "track") and over.args else None
    return f"len({ast.unparse(over)})" if isinstance(over, ast.Name | ast.Attribute) else None


def _factor(node: ast.expr) -> str:
    """Write a number's expression as one that can be multiplied."""
    plain = isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Constant)
    text = ast.unparse(node)
    return text if plain else f"({text})"


def _names_before(code: FailingCode, line: int) -> Iterator[str]:
    """Give the names that stand above a schedule which is made in the function before a row."""
    made = [
        node
        for node in scope_nodes(code)
        if isinstance(node, ast.Call)
        and node.lineno < line
        and any(keyword.arg in ("total_steps", "num_training_steps") for keyword in node.keywords)
    ]
    first = min((node.lineno for node in made), default=line)
    earlier = replace(code, statement=ast.Pass(lineno=first, col_offset=0))
    yield from _names_in_scope(earlier)


def _loop_row(sought: Sought) -> str | None:
    """Give the name that the innermost loop around the statement goes over, where the statement reads it."""
    loops = _loops(sought.code) if sought.code.file is not None else []
    if not loops:
        return None
    targets = list(_stored(loops[-1].target))
    read = [node.id for node in sought.code.nodes() if isinstance(node, ast.Name)]
    found = [name for name in targets if name in read]
    return found[0] if len(found) == 1 else None


def _saved_key(sought: Sought) -> str | None:
    """Give the one key of what the job's files save that shares a word with the name: `model_state_dict`."""
    texts = [file.text for file in sought.files if file.name.endswith(CODE)]
    keys = {key for text in texts if (tree := parsed(text)) is not None for key in _keys_saved(tree)}
    if sought.name in keys:
        return None
    words = set(canonical(sought.name).split("_"))
    found = [key for key in keys if words & set(canonical(key).split("_"))]
    return found[0] if len(found) == 1 else None


def _keys_saved(tree: ast.AST) -> Iterator[str]:
    """Give the keys of the dicts that `torch.save` is given, also by a name that is set to one."""
    saved = [match.captures["saved"] for match in matches("torch.save($saved, ...)", ast.walk(tree))]
    names = {node.id for node in saved if isinstance(node, ast.Name)}
    given = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id in names for target in node.targets)
    ]
    for node in (*saved, *given):
        if isinstance(node, ast.Dict):
            keys = (key.value for key in node.keys if isinstance(key, ast.Constant))
            yield from (key for key in keys if isinstance(key, str))


def _near_attribute(sought: Sought) -> str | None:
    """Find a near name among what the job's own class has, whose object the message names."""
    trees = trees_of(sought.code, sought.files)
    return near(sought.name, attributes(sought.values.get("type", ""), trees))


def _enclosing_class(sought: Sought) -> str | None:
    """Give the class whose method holds the statement, where the method takes no object."""
    around, function = enclosing_class(sought.code), sought.code.function
    if around is None or function is None:
        return None
    trees = [sought.code.source.tree]
    return around.name if method_without_self(function.name, trees) else None


_SOURCES: Mapping[NameSource, Callable[[Sought], str | None]] = {
    "near-name": _near_name,
    "near-option": _near_option,
    "near-key": _near_key,
    "near-parameter": _near_parameter,
    "near-listed": _near_listed,
    "import": _import,
    "local-of-name": _local,
    "first-local": _first_local,
    "module-name": _module_name,
    "first-given": _first_given,
    "loop-steps": _loop_steps,
    "loop-row": _loop_row,
    "saved-key": _saved_key,
    "own-method": lambda sought: own_method(sought.name, sought.code),
    "near-attribute": _near_attribute,
    "asked-as-truth": lambda sought: asked_as_truth(sought.name, sought.code),
    "kept-container": lambda sought: kept_container(sought.code, _loops(sought.code)),
    "method-without-self": lambda sought: method_without_self(
        sought.name, trees_of(sought.code, sought.files)
    ),
    "enclosing-class": _enclosing_class,
}
