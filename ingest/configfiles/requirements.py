"""The packages of a requirements file and of a conda environment, and edits of their versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from corpus.message import Message
from ingest.configfiles import yaml_document
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.tree import TreeEdit, TreeNode, line_of
from ingest.configfiles.yaml_document import YamlFile

# A line's requirement, without its comment; options such as `--hash` follow after white space.
_LINE = re.compile(
    r"(?P<body>[^\n]*?)"
    r"(?P<rest>(?:\s+#[^\n]*|\s+--[a-z][^\n]*|\s*\\\r?\n(?:[^\n]*\\\r?\n)*[^\n]*|\s*))(?P<end>\r?\n|\Z)"
)
_HEAD = re.compile(
    r"\s*(?P<name>[A-Za-z0-9][\w.-]*)(?P<extras>\s*\[[^\]]*\])?"
    r"(?P<blank>\s*)(?P<version>\([^)]*\)|[^;@#]*?)(?P<tail>\s*(?:;.*)?)$"
)
_CONDA = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?P<version>[ =<>!~].*)?")


@dataclass(frozen=True, slots=True)
class RequirementLine:
    """A requirement of the file: offsets of its body, its 1-based line and what follows it on the line."""

    start: int
    end: int
    number: int
    body: str
    rest: str

    @property
    def name(self) -> str:
        """Give the package's canonical name; empty for options, files and bare addresses."""
        match = re.match(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:$|[\[(;@=<>!~])", self.body)
        return canonicalize_name(match[1]) if match and "://" not in match[1] else ""


def read_lines(text: str) -> Iterator[RequirementLine]:
    """Give the requirements of a file, in order."""
    offset, number = 0, 1
    while offset < len(text):
        match = _LINE.match(text, offset)
        if match is None:
            return
        body = match["body"]
        if not body.lstrip().startswith(("#", "-")):
            yield RequirementLine(match.start("body"), match.end("body"), number, body, match["rest"])
        number += match[0].count("\n")
        offset = max(match.end(), offset + 1)


def with_version(line: RequirementLine, specifier: SpecifierSet) -> str:
    """Give a requirement's text with another version; raises NotPatchableError where that is not safe."""
    try:
        now = Requirement(line.body.strip().rstrip("\ufeff"))
    except InvalidRequirement as error:
        raise NotPatchableError(Message("patch.line-no-requirement-pip", number=line.number)) from error
    if now.url is not None:
        raise NotPatchableError(
            Message("patch.line-installs-address", number=line.number, name=now.name, url=now.url)
        )
    match = _HEAD.match(line.body)
    if match is None or "===" in line.body:
        raise NotPatchableError(Message("patch.line-written-unusual-way", line=line.number))
    begin, end = match.span("version")
    if begin == end:
        # The blank stands before what follows, a marker or a comment.
        begin = end = match.start("blank")
    return line.body[:begin] + specifier_text(specifier) + line.body[end:]


def specifier_text(specifier: SpecifierSet) -> str:
    """Write the bounds with the lower first, as people do."""
    order = ["==", "===", "~=", ">", ">=", "!=", "<", "<="]
    return ",".join(
        str(part) for part in sorted(specifier, key=lambda part: (order.index(part.operator), part.version))
    )


def conda_lists(document: YamlFile) -> tuple[TreeNode, TreeNode | None]:
    """Give the list of dependencies and that of pip within it; raises NotPatchableError."""
    dependencies = document.only().child("dependencies")
    if dependencies is None or dependencies.kind != "sequence":
        raise NotPatchableError(Message("patch.file-no-list-dependencies"))
    pips = [
        pip
        for item in dependencies.items
        if (pip := item.child("pip")) is not None and pip.kind == "sequence"
    ]
    return dependencies, pips[0] if pips else None


def conda_items(document: YamlFile) -> list[TreeNode]:
    """Give the requirements of an environment: those for pip, then its own."""
    dependencies, pip = conda_lists(document)
    return [item for item in (*(pip.items if pip else ()), *dependencies.items) if item.kind == "scalar"]


def conda_item(document: YamlFile, package: str) -> TreeNode | None:
    """Give the requirement of a package; raises NotPatchableError where there are several."""
    found = [
        item
        for item in conda_items(document)
        if canonicalize_name(re.split(r"[\[\s=<>!~;@]", item.value)[0]) == canonicalize_name(package)
    ]
    if len(found) > 1:
        raise NotPatchableError(Message("patch.stands-more-once", package=package))
    return found[0] if found else None


def conda_edit(document: YamlFile, item: TreeNode, specifier: SpecifierSet) -> TreeEdit:
    """Make the edit that asks for another version of a package; raises NotPatchableError."""
    line = RequirementLine(0, len(item.value), line_of(document.text, item.start), item.value, "")
    pip = conda_lists(document)[1]
    if pip is not None and item in pip.items:
        return yaml_document.item_replacement(document, item, with_version(line, specifier))
    match = _CONDA.fullmatch(item.value)
    if match is None:
        raise NotPatchableError(Message("patch.line-written-unusual-way", line=line.number))
    return yaml_document.item_replacement(document, item, match["name"] + specifier_text(specifier))


def read_specifier(to: str) -> SpecifierSet:
    """Read a version or bounds; `install` asks for any. Raises NotPatchableError."""
    if to in ("install", "any", ""):
        return SpecifierSet()
    try:
        Version(to)
    except InvalidVersion:
        try:
            return SpecifierSet(to)
        except InvalidSpecifier as error:
            raise NotPatchableError(Message("patch.no-version-package", to=to)) from error
    return SpecifierSet(f"=={to}")
