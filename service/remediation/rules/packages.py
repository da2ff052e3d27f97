"""Packages: which one a module comes from, and which version a message asks for."""

from __future__ import annotations

import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from corpus.frameworks import known_frameworks
from service.remediation.rules.context import RuleContext

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_WORDED = re.compile(
    r"(?P<release>\d+(?:\.\d+)*) or "
    r"(?:(?P<most>less|lower|older|earlier|below)|greater|higher|newer|later|above)"
)


def distribution(name: str) -> str:
    """Give the package that a module, a requirement or a package's own name speaks of."""
    modules = known_frameworks().modules
    if name in modules:
        return modules[name]
    match = _NAME.match(name.strip())
    top = (match[0] if match else name).split(".")[0]
    return modules.get(top, top)


def asking_package(context: RuleContext) -> str:
    """Give the name of the package that a change is about."""
    return canonicalize_name(context.change.key.split("[")[0])


def asked_version(context: RuleContext) -> str | None:
    """Give the version that the message about this very package asks for."""
    wanted = asking_package(context)
    for fact in context.facts:
        if fact.kind != "package":
            continue
        names = [str(fact.fields[field]) for field in ("wanted", "name", "package") if field in fact.fields]
        asked = [specifier for name in names if (specifier := _specifier(name, wanted, names)) is not None]
        if asked:
            return asked[0]
    return None


def _specifier(text: str, package: str, names: list[str]) -> str | None:
    """Read `transformers>=4.41,<4.47`, or a version or range that stands beside the package's name."""
    beside = any(canonicalize_name(distribution(name)) == package for name in names if name != text)
    least = _least(text)
    if least is not None:
        return least if beside else None
    try:
        asked = Requirement(text)
    except InvalidRequirement:
        return None
    return str(asked.specifier) or None if canonicalize_name(asked.name) == package else None


def range_in_words(text: str) -> str | None:
    """Read `2.2 or less`, with the patch releases of 2.2, and `1.24 or newer`."""
    match = _WORDED.fullmatch(text.strip())
    if match is None:
        return None
    *first, last = match["release"].split(".")
    return f"<{'.'.join([*first, str(int(last) + 1)])}" if match["most"] else f">={match['release']}"


def _least(text: str) -> str | None:
    """Read a bare version as the least one, and a range as it is or in words."""
    if worded := range_in_words(text):
        return worded
    try:
        return f">={Version(text)}"
    except InvalidVersion:
        pass
    try:
        return str(SpecifierSet(text)) or None
    except InvalidSpecifier:
        return None
