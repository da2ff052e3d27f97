"""Change the version of a package that a project needs, in its `pyproject.toml`.

https://packaging.python.org/en/latest/specifications/pyproject-toml/#dependencies-optional-dependencies and
dependency groups (PEP 735). What another tool resolves in a table of its own (Poetry) is left to it.
"""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from service.patching.requirements import is_pinned, wanted
from service.patching.target import PatchTarget

_STRING = re.compile(r"(?P<quote>[\"'])(?P<body>[^\"'\\\n]+)(?P=quote)")
# The list itself, up to its last item; a comment in it is not read.
_DEPENDENCIES = re.compile(
    r"^dependencies[ \t]*=[ \t]*\[(?P<items>(?:\s*(?:\"[^\"\\\n]*\"|'[^'\\\n]*')\s*,?)+?)\s*,?\s*\]",
    re.MULTILINE,
)


def parse(text: str) -> dict[str, Any]:
    """Read the file; raises NotPatchableError where it is no TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotPatchableError(Message("patch.format-not-patched")) from error


def apply(text: str, target: PatchTarget, name: str = "") -> str:
    """Give the text with the version that the target names.

    Raises NotPatchableError where that is not safe.
    """
    package, specifier = wanted(target)
    if holds(text, target, name):
        return text
    asked = _asked(text, package.name)
    if not asked:
        return _with_item(text, f"{package}{specifier}")
    found = [match for match in _STRING.finditer(text) if match["body"] == asked[0]]
    if len(set(asked)) > 1 or len(found) != len(asked):
        raise NotPatchableError(Message("patch.dependencies-resolved-tool-change"))
    requirement = Requirement(asked[0])
    if requirement.url is not None:
        raise NotPatchableError(Message("patch.dependencies-resolved-tool-change"))
    requirement.specifier = specifier
    for match in reversed(found):
        text = text[: match.start("body")] + str(requirement) + text[match.end("body") :]
    return text


def holds(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether the project asks for the package as the target says."""
    del name
    try:
        package, specifier = wanted(target)
        asked = _asked(text, package.name)
    except NotPatchableError:
        return False
    is_any = not str(specifier)
    return bool(asked) and (is_any or all(Requirement(item).specifier == specifier for item in asked))


def carries(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether the project asks for the package, in whatever version."""
    del name
    try:
        return target.kind == "package" and bool(_asked(text, wanted(target)[0].name))
    except NotPatchableError:
        return False


def is_met(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether the project pins the package to a release that is among those that are wanted."""
    del name
    try:
        return is_pinned(_asked(text, wanted(target)[0].name), target)
    except NotPatchableError:
        return False


def _asked(text: str, package: str) -> list[str]:
    """Give the project's requirements of a package, as they are written."""
    read = parse(text)
    project = read.get("project", {})
    lists = [
        project.get("dependencies", []),
        *project.get("optional-dependencies", {}).values(),
        *read.get("dependency-groups", {}).values(),
    ]
    items = (item for each in lists for item in each if isinstance(item, str))
    found = []
    for item in items:
        with suppress(InvalidRequirement):
            if canonicalize_name(Requirement(item).name) == canonicalize_name(package):
                found.append(item)
    return found


def _with_item(text: str, requirement: str) -> str:
    """Add a requirement behind the last one of the project's own list."""
    found = list(_DEPENDENCIES.finditer(text))
    if len(found) != 1 or not parse(text).get("project", {}).get("dependencies"):
        raise NotPatchableError(Message("patch.dependencies-resolved-tool-change"))
    last = list(_STRING.finditer(text, *found[0].span("items")))[-1]
    row = text[text.rfind("\n", 0, last.start()) + 1 : last.start()]
    between = f",\n{row}" if not row.strip() else ", "
    quote = last["quote"]
    return f"{text[: last.end()]}{between}{quote}{requirement}{quote}{text[last.end() :]}"
