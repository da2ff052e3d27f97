"""`python -m corpus.extract standard-library GITDIR`: which names Python's own modules gained and lost.

The stubs of typeshed say by `sys.version_info` which version has what. A revision of them covers the versions
that were supported then: several are read, each for its own.
"""

from __future__ import annotations

import argparse
import ast
import json
import operator
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from corpus.extract.checkouts import Revision
from corpus.extract.symbols import runs
from corpus.library import ROOT
from corpus.symbols import PYTHON, digest_of

_FOLDER = "stdlib"
_RANGE = re.compile(r"^(?P<module>[\w.]+): (?P<first>\d+\.\d+)-(?P<last>\d+\.\d+)?", re.MULTILINE)
_COMPARED: Mapping[type[ast.cmpop], Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
    ast.LtE: operator.le,
    ast.Lt: operator.lt,
    ast.Eq: operator.eq,
}
# Modules that take one another's names whole do so over few steps.
_DEEPEST = 4

PythonVersion = tuple[int, ...]
# The names of each module; the module itself is the empty name.
Names = frozenset[tuple[str, str]]


def main(words: Sequence[str]) -> int:
    """Write the names that came or went between the given versions of Python."""
    parser = argparse.ArgumentParser(prog="python -m corpus.extract standard-library", description=__doc__)
    parser.add_argument("git", type=Path, help="a git directory of typeshed")
    parser.add_argument(
        "--read",
        action="append",
        required=True,
        metavar="REVISION=VERSION,...",
        help="a revision, and the versions of Python to read from it; from old to new",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "symbols", help="the folder of symbols")
    given = parser.parse_args(words)
    parts: list[dict[PythonVersion, Names]] = []
    for text in given.read:
        revision, _, versions = text.partition("=")
        stubs = Stubs(dict(Revision(given.git, revision).files(_FOLDER, "")))
        parts.append({version: stubs.names(version) for version in map(version_of, versions.split(","))})
    names = {digest_of(*name): runs(there) for name, there in changed(parts)}
    table = {
        "package": PYTHON,
        "versions": [".".join(map(str, version)) for version in _versions(parts)],
        # Every version was read, so that a name that one lacks is gone from it on.
        "every": True,
        "names": names,
    }
    (given.out / f"{PYTHON}.json").write_text(
        json.dumps(table, separators=(",", ":")) + "\n", encoding="utf-8"
    )
    sys.stdout.write(f"{PYTHON}: {len(names)} names of {len(_versions(parts))} versions\n")
    return 0


def version_of(text: str) -> PythonVersion:
    """Read `3.11`."""
    return tuple(map(int, text.split(".")))


def _versions(parts: Sequence[Mapping[PythonVersion, Names]]) -> list[PythonVersion]:
    return sorted({version for part in parts for version in part})


def changed(parts: Sequence[Mapping[PythonVersion, Names]]) -> Iterator[tuple[tuple[str, str], list[bool]]]:
    """Give the names that not every version has, with whether each has it, from old to new.

    A part is what one revision of the stubs says. Stubs grow: that a name is in one revision of them alone
    says nothing of Python. Only what differs within a revision counts, and stays as it is at that one's end
    for versions that it does not speak of.
    """
    versions = _versions(parts)
    differing = [
        frozenset[tuple[str, str]]().union(*part.values()) - frozenset.intersection(*part.values())
        for part in parts
    ]
    modules = [{name for part in parts if one in part for name, _ in part[one]} for one in versions]
    for name in sorted(frozenset[tuple[str, str]]().union(*differing)):
        own = [part for part, names in zip(parts, differing, strict=True) if name in names]
        there = [_has(name, version, own) for version in versions]
        # Of a module that came or went itself, the module tells it.
        if not name[1] or [name[0] in known for known in modules] != there:
            yield name, there


def _has(name: tuple[str, str], version: PythonVersion, own: Sequence[Mapping[PythonVersion, Names]]) -> bool:
    """Tell whether a version has a name, by the revisions in which it differs."""
    if told := [name in part[version] for part in own if version in part]:
        return any(told)
    rims = [(min(part) if version < min(part) else max(part), part) for part in own]
    rim, part = min(rims, key=lambda pair: abs(pair[0][1] - version[1]))
    return name in part[rim]


class Stubs:
    """The stubs of one revision, by path."""

    def __init__(self, files: Mapping[str, str]) -> None:
        """Read the versions of modules; stubs are parsed when they are asked for."""
        self._files = {
            path.removeprefix(f"{_FOLDER}/")
            .removesuffix(".pyi")
            .replace("/", ".")
            .removesuffix(".__init__"): text
            for path, text in files.items()
            if path.endswith(".pyi")
        }
        self._ranges = {
            match["module"]: (version_of(match["first"]), version_of(match["last"] or "99.0"))
            for match in _RANGE.finditer(files[f"{_FOLDER}/VERSIONS"])
        }
        self._parsed = cache(lambda module: ast.parse(self._files[module]))

    def names(self, version: PythonVersion) -> Names:
        """Give all names of the public modules that a version has."""
        modules = [
            name for name in self._files if not re.search(r"(?:^|\.)_", name) and self._is_in(name, version)
        ]
        own = {(name, word) for name in modules for word in self._of(name, version)}
        return frozenset(own | {(name, "") for name in modules})

    def _is_in(self, module: str, version: PythonVersion) -> bool:
        """Tell whether a version has a module; one that is not listed is there as long as its parent is."""
        while module not in self._ranges and "." in module:
            module = module.rpartition(".")[0]
        first, last = self._ranges.get(module, ((99, 0), (0, 0)))
        return first <= version <= last

    def _of(self, module: str, version: PythonVersion, depth: int = 0) -> Iterator[str]:
        for node in _held(self._parsed(module).body, version):
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield name
                case ast.AnnAssign(target=ast.Name(id=name)):
                    yield name
                case (
                    ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                    | ast.AugAssign(target=ast.Name(id="__all__"), value=value)
                ):
                    yield from (str(item.value) for item in ast.walk(value) if isinstance(item, ast.Constant))
                case ast.Assign(targets=targets):
                    yield from (target.id for target in targets if isinstance(target, ast.Name))
                case ast.ImportFrom(names=[ast.alias(name="*")], module=str(source)):
                    if depth < _DEEPEST and source in self._files:
                        yield from self._of(source, version, depth + 1)
                case ast.ImportFrom(names=names) | ast.Import(names=names):
                    yield from (item.asname for item in names if item.asname == item.name)


def _held(body: Sequence[ast.stmt], version: PythonVersion) -> Iterator[ast.stmt]:
    """Give the statements that hold for a version; of what depends on anything else, both ways."""
    for node in body:
        if not isinstance(node, ast.If):
            yield node
            continue
        holds = _holds(node.test, version)
        if holds is not False:
            yield from _held(node.body, version)
        if holds is not True:
            yield from _held(node.orelse, version)


def _holds(test: ast.expr, version: PythonVersion) -> bool | None:
    match test:
        case ast.Compare(
            left=ast.Attribute(attr="version_info"), ops=[operation], comparators=[ast.Tuple(elts=items)]
        ):
            wanted = tuple(int(str(item.value)) for item in items if isinstance(item, ast.Constant))
            compared = _COMPARED.get(type(operation))
            return compared(version, wanted) if compared else None
        case ast.BoolOp(op=joined, values=values):
            told = [_holds(value, version) for value in values]
            decides = isinstance(joined, ast.Or)
            return decides if decides in told else None if None in told else not decides
        case _:
            return None
