"""In which releases of a package a name of its modules exists: `symbols/PACKAGE.json`, read when asked for.

Only names that came or went between the releases that were read are kept, as digests: of modules, of classes
(`Cache`) and of all classes together (`ANY_CLASS`), and of the arguments that methods (`Cache.get`) and
functions (`build()`) take, with a bracket before the argument.
`python -m corpus.extract symbols` writes them, `models` those of models (`symbols/models/PACKAGE.json`), and
`standard-library` those of Python's own modules (`symbols/python.json`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import Version

from corpus.library import pages

FOLDER = "symbols"
# The package whose modules are Python's own.
PYTHON = "python"
# What stands for whatever class of a package has a name.
ANY_CLASS = "*"
# The folder of the names of models, and what they are kept as names of.
MODELS = "symbols/models"


@dataclass(frozen=True)
class SymbolHistory:
    """The releases that were read, from old to new, and the places of those that have the name.

    `every` tells that no release lies between those that were read.
    """

    versions: tuple[Version, ...]
    runs: tuple[tuple[int, int], ...]
    every: bool = False

    def has(self, version: Version) -> bool:
        """Tell whether a version has the name, as the last release read up to it."""
        known = [place for place, one in enumerate(self.versions) if one <= version]
        return bool(known) and any(first <= known[-1] <= last for first, last in self.runs)

    def surely_has(self, version: Version) -> bool:
        """Tell whether a version has the name, and the next one that was read has not lost it since."""
        behind = [place for place, one in enumerate(self.versions) if one >= version]
        is_kept = not behind or any(first <= behind[0] <= last for first, last in self.runs)
        return self.has(version) and (is_kept or self.every)

    def specifier(self, present: Version | None) -> str:
        """Say which versions have the name: the run next to the present version, else the last one."""
        last_place = len(self.versions) - 1
        here = sum(one <= present for one in self.versions) if present is not None else last_place + 1
        first, last = min(self.runs, key=lambda run: min(abs(here - 1 - run[0]), abs(here - 1 - run[1])))
        parts = [f">={self.versions[first]}"] if first else []
        if last < last_place:
            parts.append(f"<{self.versions[last + 1]}" if self.every else f"<={self.versions[last]}")
        return ",".join(parts)


def digest_of(module: str, name: str) -> str:
    """Give what a module's name is kept as; of the module itself with an empty name."""
    return blake2b(f"{module}:{name}".encode(), digest_size=4).hexdigest()


def history_of(package: str, module: str, name: str = "") -> SymbolHistory | None:
    """Give the history of a name; None where it is not known to have come or gone.

    With `MODELS` for the module, the name is the one by which a package knows a model.
    """
    table = _table(canonicalize_name(package), module if module == MODELS else FOLDER)
    runs = table["names"].get(digest_of(module, name)) if table else None
    if table is None or not runs:
        return None
    return SymbolHistory(
        tuple(map(Version, table["versions"])),
        tuple((first, last) for first, last in runs),
        table.get("every", False),
    )


def packages_with(owner: str, name: str) -> tuple[str, ...]:
    """Name the packages whose releases differ in a name of a class, or of a method's arguments."""
    known = (path.stem for path in pages(f"{owner if owner == MODELS else FOLDER}/*.json"))
    return tuple(package for package in known if history_of(package, owner, name) is not None)


def packages_giving(name: str) -> tuple[str, ...]:
    """Name the packages whose releases differ in a name of their own top module."""
    known = (path.stem for path in pages(f"{FOLDER}/*.json"))
    return tuple(package for package in known if history_of(package, package.replace("-", "_"), name))


@cache
def packages_told() -> frozenset[str]:
    """Name the packages whose names of modules and classes are known by release."""
    return frozenset(path.stem for path in pages(f"{FOLDER}/*.json"))


@cache
def _table(package: str, folder: str) -> dict[str, Any] | None:
    path = next((path for path in pages(f"{folder}/*.json") if path.stem == package), None)
    return json.loads(path.read_bytes()) if path is not None else None
