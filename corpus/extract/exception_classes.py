"""The exception classes of packages and what they mean: `python -m corpus.extract exceptions PACKAGE...`.

A package's source says which class derives from which. A class has the kind that the table has for it
already, else that which the words of its name tell, else that of the nearest class that it derives from; what
the table tells without a row of its own is not added to it. Nothing is imported.
"""

from __future__ import annotations

import ast
import re
import textwrap
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from corpus.errors import InvalidCorpusError
from corpus.exceptions import ANY, ExceptionMeanings

# Code of a package that no job runs.
_ASIDE = re.compile(
    r"(?:^|/)(?:tests?|testing|_vendor|vendored|examples?|benchmarks?|docs)/|(?:^|/)(?:test_|conftest)"
)
_WARNING = re.compile(r"Warning$")
_WIDTH = 110

Kinds = Mapping[str, Mapping[str, Sequence[str]]]


def extended(table: ExceptionMeanings, packages: Sequence[Path]) -> dict[str, dict[str, list[str]]]:
    """Give the classes of the table together with those that these packages' sources add.

    A package is a folder, a module's file or a wheel. Raises InvalidCorpusError where one cannot be read.
    """
    found = {
        package: {kind: list(names) for kind, names in kinds.items()}
        for package, kinds in table.classes.items()
    }
    for place in packages:
        for package, bases in _classes(place).items():
            known = {name: kind for kind, names in found.get(package, {}).items() for name in names}
            for name in sorted(_exceptions(bases)):
                kind = None if name in known else _kind(name, bases, known, table)
                if kind and kind != table.kind(f"{package}.{name}", ""):
                    found.setdefault(package, {}).setdefault(kind, []).append(name)
    return {
        package: {kind: sorted(names) for kind, names in sorted(kinds.items())}
        for package, kinds in sorted(found.items())
    }


def written(classes: Kinds, head: str) -> str:
    """Write the table as YAML behind its head: a package, its kinds, and the names of each."""
    rows = [head.rstrip("\n")]
    for package, kinds in classes.items():
        rows.append(f"{package}:")
        for kind, names in kinds.items():
            text = f"  {kind}: [{', '.join(name if name != ANY else repr(ANY) for name in names)}]"
            rows += textwrap.wrap(text, _WIDTH, subsequent_indent="    ", break_long_words=False)
    return "\n".join(rows) + "\n"


def _kind(
    name: str, bases: Mapping[str, Sequence[str]], known: Mapping[str, str], table: ExceptionMeanings
) -> str | None:
    """Give the kind of a class by the table, its name, or the nearest class above it that has one."""
    level, seen = [name], set()
    while level:
        for one in level:
            if kind := known.get(one) or table.kind(one, ""):
                return kind
        seen.update(level)
        level = [base for one in level for base in bases.get(one, ()) if base not in seen]
    return None


def _exceptions(bases: Mapping[str, Sequence[str]]) -> set[str]:
    """Name the classes that derive from an exception: of this package, of Python, or of any by its name."""
    found: set[str] = set()
    while True:
        more = {
            name
            for name, above in bases.items()
            if name not in found
            and not _WARNING.search(name)
            and any(base in found or re.search(r"(?:Error|Exception)$", base) for base in above)
        }
        if not more:
            return found
        found |= more


def _classes(place: Path) -> dict[str, dict[str, list[str]]]:
    """Read the classes of each package in a place with the names of their bases."""
    found: dict[str, dict[str, list[str]]] = {}
    for path, text in _sources(place):
        package = path.split("/")[0].removesuffix(".py").removesuffix(".pyi")
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):  # a template, or another language's version of Python
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                names = [ast.unparse(base).split("[")[0].rpartition(".")[2] for base in node.bases]
                found.setdefault(package, {}).setdefault(node.name, []).extend(names)
    return found


def _sources(place: Path) -> Iterator[tuple[str, str]]:
    """Give the Python files of a package with their paths, which begin with its name."""
    if place.suffix == ".whl":
        with zipfile.ZipFile(place) as wheel:
            for name in wheel.namelist():
                if name.endswith((".py", ".pyi")) and not _ASIDE.search(name):
                    yield name, wheel.read(name).decode("utf-8", "replace")
        return
    if not place.exists():
        raise InvalidCorpusError(f"{place}: there is no such package")
    for path in [place] if place.is_file() else sorted(place.rglob("*.py*")):
        name = path.relative_to(place.parent).as_posix()
        if path.suffix in (".py", ".pyi") and not _ASIDE.search(name):
            yield name, path.read_text(encoding="utf-8", errors="replace")
