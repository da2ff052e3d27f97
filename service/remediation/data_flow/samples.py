"""What the job's own data set gives as a sample, held against what joins or reads the samples and failed.

A library joins them, so no row of the class is on the stack: its `__getitem__`, or the function that is
mapped over the rows, is found in the files at hand, where one alone may be meant.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corpus.expressions import compiled
from corpus.message import in_both
from corpus.paths import base_name
from corpus.sample_demands import SampleDemand, known_sample_demands
from corpus.schema import Text
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile, frames_of_failure
from service.remediation.data_flow.job_program import Function, JobProgram, Module

# So many keys, values and rows are named, and so much of one.
MOST_NAMED, LONGEST_NAMED = 8, 50
_MAPS = frozenset({"map", "with_transform", "set_transform"})


@dataclass(frozen=True)
class Given:
    """One way by which a function gives something back: its row and what that is.

    `keys` are those of a mapping; `others` what adds further ones that the file does not show. `parts` are
    the values of a tuple. Where all are empty it is one value, `one`.
    """

    line: int
    keys: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    one: str = ""


@dataclass(frozen=True)
class SampleMaker:
    """Where samples are made: its name, its file's own name with the row, and what it gives."""

    name: str
    module: Module
    function: Function
    given: tuple[Given, ...]

    @property
    def leaf(self) -> str:
        """The file's own name."""
        return base_name(self.module.name)


def sample_words(report: CrashReport, files: Sequence[JobFile]) -> Text | None:
    """Say which row of the job's data set makes the sample that failed; None where no file shows it."""
    if (demand := _demand(report)) is None:
        return None
    row, found = demand
    maker = sample_maker(JobProgram(frames_of_failure(report), files))
    if maker is None:
        return None
    last = maker.given[-1]
    told: dict[str, str | int] = {"owner": maker.name, "place": f"{maker.leaf}:{last.line}"}
    if row.demands == "key":
        return _lacking(str(found.get("wanted") or row.wanted), maker, told)
    values = ", ".join((*last.keys, *last.parts)[:MOST_NAMED]) or last.one or ", ".join(last.others)
    if not values:
        return None
    return in_both(f"changes.sample-{row.demands}", values=values, **told, **found)


def _demand(report: CrashReport) -> tuple[SampleDemand, dict[str, str]] | None:
    """Give the row of the knowledge that the failing line fits, and what it names."""
    root = report.root
    if root is None:
        return None
    line = root.body if root.exception in root.body else f"{root.exception}: {root.body}"
    codes = [frame.code for frame in frames_of_failure(report)]
    for row in known_sample_demands():
        found = compiled(row.expression).search(line) if row.cue in line else None
        if found is None or (row.code and not any(compiled(row.code).search(code) for code in codes[-3:])):
            continue
        return row, {name: text for name, text in found.groupdict().items() if text is not None}
    return None


def _lacking(wanted: str, maker: SampleMaker, told: dict[str, str | int]) -> Text | None:
    """Say that a sample lacks an entry which it is asked for; None where a row gives it."""
    if any(wanted in given.keys for given in maker.given):
        return None
    last = maker.given[-1]
    told |= {"wanted": wanted, "keys": ", ".join(f"`{key}`" for key in last.keys[:MOST_NAMED])}
    if last.parts or last.one:
        values = ", ".join(last.parts[:MOST_NAMED]) or last.one
        return in_both("changes.sample-unnamed", values=values, **told) if last.parts else None
    if not last.others:
        return in_both("changes.sample-lacks", **told) if last.keys else None
    others = ", ".join(f"`{each}`" for each in last.others[:MOST_NAMED])
    return in_both("changes.sample-lacks-open" if last.keys else "changes.sample-open", others=others, **told)


def sample_maker(program: JobProgram) -> SampleMaker | None:
    """Give the one class or mapped function of the job's that makes samples; None where several may."""
    classes = [
        SampleMaker(f"{owner.name}.{method.name}", module, method, given_back(method))
        for module in program.modules
        for owner in module.classes.values()
        for method in owner.body
        if isinstance(method, Function)
        and method.name == "__getitem__"
        # A data set has a length, or derives from one by name.
        and (
            "Dataset" in " ".join(map(ast.unparse, owner.bases))
            or any(getattr(item, "name", "") == "__len__" for item in owner.body)
        )
    ]
    if len(classes) > 1:
        made = {name for module in program.modules for name in module.calls}
        classes = [each for each in classes if each.name.partition(".")[0] in made]
    found = classes or list(_mapped(program))
    return found[0] if len(found) == 1 and found[0].given else None


def _mapped(program: JobProgram) -> Iterator[SampleMaker]:
    """Give the functions that are mapped over rows of data, each once."""
    seen: set[int] = set()
    for module in program.modules:
        for verb in _MAPS:
            for call in module.calls.get(verb, ()):
                first = [*call.args, *(word.value for word in call.keywords if word.arg == "function")][:1]
                name = first[0].id if first and isinstance(first[0], ast.Name) else ""
                home = program.function_named(name, module) if name else None
                if home is not None and id(home[1]) not in seen:
                    seen.add(id(home[1]))
                    yield SampleMaker(name, home[0], home[1], given_back(home[1]))


def given_back(function: Function) -> tuple[Given, ...]:
    """Give what a function's own `return` and `yield` statements hand out, in the order of their rows."""
    nodes = sorted(_own(function), key=lambda node: getattr(node, "lineno", 0))
    values = [
        (node.lineno, node.value)
        for node in nodes
        if isinstance(node, ast.Return | ast.Yield) and node.value is not None
    ]
    return tuple(_given(line, value, nodes) for line, value in values)


def _given(line: int, value: ast.expr, nodes: Sequence[ast.AST]) -> Given:
    match value:
        case ast.Tuple(elts=parts):
            return Given(line, parts=tuple(map(_short, parts)))
        case ast.Dict() | ast.DictComp() | ast.Call(func=ast.Name(id="dict")):
            keys, others = _entries(value)
            return Given(line, keys, others)
        case ast.Name(id=name):
            return _built(line, name, nodes)
    return Given(line, one=_short(value))


def _built(line: int, name: str, nodes: Sequence[ast.AST]) -> Given:
    """Give what a name holds that a function builds row by row: a mapping with its keys, or one value."""
    keys, others, last = list[str](), list[str](), None
    is_mapping = False
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=same)], value=value) if same == name:
                last, is_mapping = value, isinstance(value, ast.Dict | ast.DictComp | ast.Call)
                found = _entries(value) if is_mapping else ((), ())
                keys, others = list(found[0]), list(found[1])
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=same), slice=ast.Constant(value=str() as key))]
            ) if same == name:
                keys.append(key)
                is_mapping = True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=same), attr="update"), args=[given]):
                found = _entries(given) if same == name else ((), ())
                keys, others = [*keys, *found[0]], [*others, *found[1]]
    if keys or (is_mapping and not isinstance(last, ast.Call)):
        return Given(line, tuple(dict.fromkeys(keys)), tuple(others))
    if isinstance(last, ast.Tuple):
        return Given(line, parts=tuple(map(_short, last.elts)))
    return Given(line, one=_short(last) if last is not None else name)


def _entries(value: ast.expr) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give the keys of a mapping that are written there, and what adds others."""
    match value:
        case ast.Dict(keys=names, values=values):
            pairs = list(zip(names, values, strict=True))
            keys = tuple(str(key.value) for key, _ in pairs if isinstance(key, ast.Constant))
            others = [each if key is None else key for key, each in pairs]
            return keys, tuple(_short(each) for each in others if not isinstance(each, ast.Constant))
        case ast.DictComp(generators=[first, *_]):
            source = first.iter
            if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
                source = source.func.value
            return (), (_short(source),)
        case ast.Call(func=ast.Name(id="dict"), args=args, keywords=words):
            keys = tuple(word.arg for word in words if word.arg)
            return keys, tuple(map(_short, (*args, *(word.value for word in words if word.arg is None))))
    return (), (_short(value),)


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """Give what a function holds, without the functions within it."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            yield from _own(node)


def _short(node: ast.expr) -> str:
    text = re.sub(r"\s+", " ", ast.unparse(node).replace("`", "'"))
    return text if len(text) <= LONGEST_NAMED else f"{text[:LONGEST_NAMED]}…"
