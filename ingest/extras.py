"""Packages that a light installation lacks, and the command that adds each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from corpus.message import Message

# A module of these that is missing is no package that somebody could add.
_OWN = frozenset({"corpus", "ingest", "service", "eval", "ui", "whycrash"})
# What installs everything is no way to add one thing, and what only developers need is none for users.
_BROAD = frozenset({"all", "dev"})


def missing(error: ModuleNotFoundError) -> Message | None:
    """Say which command adds what an import did not find; None where that is a module of whycrash."""
    name = (error.name or "").partition(".")[0]
    return advice(name) if name and name not in _OWN else None


def advice(package: str) -> Message:
    """Say which command adds a package, by its name or a module of its own."""
    name = canonicalize_name(package.partition(".")[0])
    if extra := extras_of_packages().get(name):
        return Message("errors.package-needs-extra", package=name, extra=extra)
    return Message("errors.package-not-installed", package=name)


@cache
def extras_of_packages() -> dict[str, str]:
    """Give the extra of each package, as the metadata of whycrash lists them."""
    try:
        rows: Sequence[str] = requires("whycrash") or ()
    except PackageNotFoundError:  # run from its folder, without being installed
        return {}
    found: dict[str, str] = {}
    for requirement in map(Requirement, rows):
        # A marker such as `extra == "serve"`.
        named = re.findall(r"""extra == ["']([^"']+)""", str(requirement.marker or ""))
        for extra in set(named) - _BROAD:
            found.setdefault(canonicalize_name(requirement.name), extra)
    return found
