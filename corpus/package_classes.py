"""Which packages have a class of a name: `package_classes.txt`, a row a top module, read when asked for.

Of the classes whose own code tells of a failure, as the message atlas has them: packing it writes the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from corpus.library import pages
from corpus.message_atlas import Atlas

FILE = "package_classes.txt"
TOOLS = "package_tools.txt"


def modules_with(name: str) -> frozenset[str]:
    """Name the top modules of the packages that have a class of the name (`vllm`, `transformers`)."""
    return _modules().get(name.rpartition(".")[2], frozenset())


@cache
def everybodys_modules() -> frozenset[str]:
    """Name the top modules of the packages whose classes everybody's code asks, as its own (`numpy`)."""
    return frozenset(name for path in pages(TOOLS) for name in path.read_text(encoding="utf-8").split())


def write(atlas: Atlas, target: Path) -> int:
    """Write the classes that the atlas's Python sites stand in; gives how many names there are."""
    found: dict[str, set[str]] = {}
    for place in range(len(atlas.head["pages"])):
        for _, _, sites in atlas.page(place):
            for _, file, symbol, *_ in sites:
                # Only classes have names that begin so.
                classes = {step for step in symbol.split(".") if step.lstrip("_")[:1].isupper()}
                if file.endswith(".py") and "/" in file:
                    found.setdefault(file.partition("/")[0], set()).update(classes)
    rows = (f"{module}: {' '.join(sorted(names))}\n" for module, names in sorted(found.items()) if names)
    target.write_text("".join(rows), encoding="utf-8")
    return len(set().union(*found.values()))


@cache
def _modules() -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for path in pages(FILE):
        for row in path.read_text(encoding="utf-8").splitlines():
            module, _, names = row.partition(": ")
            for name in names.split():
                found.setdefault(name, set()).add(module)
    return {name: frozenset(modules) for name, modules in found.items()}
