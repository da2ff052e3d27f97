"""Packages: which one a module comes from, and which version a message asks for."""

from __future__ import annotations

import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from corpus.frameworks import known_frameworks
from service.remediation.rules.context import ComputedValue, RuleContext, ValueRule, number_text

PIP = "https://pip.pypa.io/en/stable/reference/requirement-specifiers/"

_CAUSES = frozenset(
    {
        "package-missing",
        "package-incompatible",
        "abi-mismatch",
        "jit-build-failed",
        "attention-backend-unsupported",
    }
)
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


def distribution(name: str) -> str:
    """Give the package that a module, a requirement or a package's own name speaks of."""
    modules = known_frameworks().modules
    if name in modules:
        return modules[name]
    match = _NAME.match(name.strip())
    top = (match[0] if match else name).split(".")[0]
    return modules.get(top, top)


def _named(s: RuleContext) -> ComputedValue | None:
    """Take the version that the message about this very package asks for."""
    wanted = canonicalize_name(s.change.key.split("[")[0])
    for fact in s.facts:
        if fact.kind != "package":
            continue
        names = [str(fact.fields[field]) for field in ("wanted", "name", "package") if field in fact.fields]
        asked = [specifier for name in names if (specifier := _specifier(name, wanted, names)) is not None]
        if asked:
            return ComputedValue(
                asked[0],
                number_text(f"The message asks for {wanted}{asked[0]}.", f"报错要求 {wanted}{asked[0]}。"),
            )
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


def _least(text: str) -> str | None:
    """Read a bare version as the least one, and a range as it is."""
    try:
        return f">={Version(text)}"
    except InvalidVersion:
        pass
    try:
        return str(SpecifierSet(text)) or None
    except InvalidSpecifier:
        return None


RULES = (ValueRule("named-package", _CAUSES, "the version that the message names, else any", PIP, _named),)
