"""Whose is what a message of Python's misses: of the job's own code, or of an installed package's.

Names alone do not tell: people call their classes `Trainer`, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from corpus.package_classes import everybodys_modules, modules_with
from corpus.symbols import packages_with
from ingest.logs.stacks.own_calls import is_own, raised_for
from ingest.logs.stacks.stack import Frame

# CPython, Objects/object.c and typeobject.c.
_ATTRIBUTE = re.compile(
    r"AttributeError: (?P<itself>type object )?'(?P<owner>[\w.]+)' (?:object )?"
    r"has no attribute '(?P<name>\w+)'"
)
_COMPOUND = re.compile(r"[A-Z]\w*[a-z0-9_][A-Z]")
# CPython, Python/ceval.c; `<locals>` stands behind a function that made the called one as it ran.
_CALLEE = re.compile(r"TypeError: ([\w.<>]+)\.<locals>\.[\w.<>]+\(\) (?:got|missing|takes|argument)\b")


def misses_own(message: str, frames: Sequence[Frame]) -> bool:
    """Tell whether the job's own code has to give what the message says is missing.

    An attribute that a method of the job's own asks of `self` is one of its class. A function that another
    made as it ran is the other's, which is in the job's code where that is seen to run.
    """
    attribute, callee = _ATTRIBUTE.search(message), _CALLEE.search(message)
    if attribute is not None:
        calls = raised_for(frames)
        asked = rf"\b(?:self|cls)\.{attribute['name']}\b"
        return bool(calls) and is_own(calls[-1]) and re.search(asked, calls[-1].code) is not None
    if callee is not None:
        makers = {part.rpartition(".")[2] for part in callee[1].split(".<locals>.")}
        return any(frame.function in makers and is_own(frame) for frame in frames)
    return False


def misses_of_release(message: str, frames: Sequence[Frame]) -> bool:
    """Tell whether the attribute that a class lacks came or went with the releases of its package."""
    attribute = _ATTRIBUTE.search(message)
    if attribute is None or misses_own(message, frames):
        return False
    return bool(packages_with(attribute["owner"].rpartition(".")[2], attribute["name"]))


def misses_of_other_package(message: str, frames: Sequence[Frame]) -> bool:
    """Tell whether a package asks in vain for an attribute of another package's class, or the job of a class.

    Where the job's code asks the class itself it has imported it by that name.
    """
    attribute = _ATTRIBUTE.search(message)
    modules = modules_with(attribute["owner"]) if attribute is not None else frozenset()
    if attribute is None or not modules or misses_own(message, frames):
        return False
    calls = raised_for(frames)
    if not calls or is_own(calls[-1]):
        return attribute["itself"] is not None
    return not _is_of(calls[-1], modules)


def misses_of_same_package(message: str, frames: Sequence[Frame]) -> bool:
    """Tell whether a package asks in vain for an attribute of a class of its own."""
    attribute = _ATTRIBUTE.search(message)
    modules = modules_with(attribute["owner"]) if attribute is not None else frozenset()
    calls = raised_for(frames)
    return bool(modules and calls) and not is_own(calls[-1]) and _is_of(calls[-1], modules)


def misses_of_package(message: str, frames: Sequence[Frame]) -> bool:
    """Tell whether a class of one package lacks an attribute, where nobody's calls are shown.

    Names of one word stand for much, and what a tool's class is asked for its caller asks.
    """
    attribute = _ATTRIBUTE.search(message)
    if attribute is None or frames or not _COMPOUND.match(attribute["owner"].rpartition(".")[2]):
        return False
    modules = modules_with(attribute["owner"])
    return bool(modules) and not modules & everybodys_modules()


def _is_of(frame: Frame, modules: frozenset[str]) -> bool:
    """Tell whether a call is in a file of one of the packages, by their top modules."""
    steps = frame.file.replace("\\", "/").split("/")
    return not modules.isdisjoint(steps)


# What `missing:` may ask: whose is what the failing line misses.
WHOSE: Mapping[str, Callable[[str, Sequence[Frame]], bool]] = {
    "own": misses_own,
    "release": misses_of_release,
    "other-package": misses_of_other_package,
    "same-package": misses_of_same_package,
    "package": misses_of_package,
}
