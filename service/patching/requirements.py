"""Change the version of a package in a requirements file or in a conda environment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ingest.configfiles import yaml_document
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.tree import TreeNode
from ingest.configfiles.yaml_document import YamlFile
from service.patching.target import PatchTarget

# A line's requirement, without its comment; options such as `--hash` follow after white space.
_LINE = re.compile(
    r"(?P<body>[^\n]*?)(?P<rest>(?:\s+#[^\n]*|\s+--[a-z][^\n]*|\s*\\\r?\n(?:[^\n]*\\\r?\n)*[^\n]*|\s*))(?P<end>\r?\n|\Z)"
)
_HEAD = re.compile(
    r"\s*(?P<name>[A-Za-z0-9][\w.-]*)\s*(?P<extras>\[[^\]]*\])?\s*(?P<version>\([^)]*\)|[^;@#]*?)(?P<tail>\s*(?:;.*)?)$"
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


def apply(text: str, target: PatchTarget, name: str = "") -> str:
    """Give the text with the version that the target names.

    Raises NotPatchableError where that is not safe.
    """
    del name
    package, specifier = wanted(target)
    found = [line for line in _lines(text) if line.name == canonicalize_name(package.name)]
    if len(found) > 1:
        raise NotPatchableError(
            f"{package.name} stands more than once (lines {', '.join(str(line.number) for line in found)})"
        )
    if not found:
        return _with_line(text, f"{package}{specifier}")
    line = found[0]
    if _says(line, specifier):
        return text
    if specifier is None or "--hash" in line.rest or "\\" in line.rest:
        raise NotPatchableError(f"line {line.number} pins {package.name} by hashes or over several lines")
    return text[: line.start] + _body(line, specifier) + text[line.end :]


def holds(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether the file, read anew, asks for the package as the target says."""
    del name
    try:
        package, specifier = wanted(target)
    except NotPatchableError:
        return False
    found = [line for line in _lines(text) if line.name == canonicalize_name(package.name)]
    return len(found) == 1 and _says(found[0], specifier)


def carries(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether the file asks for the package, in whatever version."""
    del name
    package = re.split(r"[\[=<>]", target.names[0])[0]
    return target.kind == "package" and any(line.name == canonicalize_name(package) for line in _lines(text))


def wanted(target: PatchTarget) -> tuple[Requirement, SpecifierSet]:
    """Read the target's package and version; `install` asks for the package in any version."""
    if target.kind != "package":
        raise NotPatchableError(f"a {target.kind} is not set among the requirements")
    if target.framework not in ("pip", "python", ""):
        raise NotPatchableError(f"it is a package of {target.framework}, not of pip")
    try:
        package = Requirement(target.names[0])
        return package, _specifier(str(target.to))
    except (InvalidRequirement, InvalidSpecifier) as error:
        raise NotPatchableError(f"`{target.to}` is no version of a package") from error


def _specifier(to: str) -> SpecifierSet:
    if to in ("install", "any", ""):
        return SpecifierSet()
    try:
        Version(to)
    except InvalidVersion:
        return SpecifierSet(to)
    return SpecifierSet(f"=={to}")


def _lines(text: str) -> Iterator[RequirementLine]:
    offset = number = 0
    number = 1
    while offset < len(text):
        match = _LINE.match(text, offset)
        if match is None:
            return
        body = match["body"]
        if not body.lstrip().startswith(("#", "-")):
            yield RequirementLine(match.start("body"), match.end("body"), number, body, match["rest"])
        number += match[0].count("\n")
        offset = max(match.end(), offset + 1)


def _says(line: RequirementLine, specifier: SpecifierSet) -> bool:
    try:
        now = Requirement(line.body.strip())
    except InvalidRequirement:
        return False
    return not str(specifier) or (now.url is None and now.specifier == specifier)


def _body(line: RequirementLine, specifier: SpecifierSet) -> str:
    try:
        now = Requirement(line.body.strip().rstrip("\ufeff"))
    except InvalidRequirement as error:
        raise NotPatchableError(f"line {line.number} is no requirement that pip reads") from error
    if now.url is not None:
        raise NotPatchableError(f"line {line.number} installs {now.name} from an address ({now.url})")
    match = _HEAD.match(line.body)
    if match is None or "===" in line.body:
        raise NotPatchableError(f"line {line.number} is written in an unusual way")
    begin, end = match.span("version")
    return line.body[:begin] + _written(specifier) + line.body[end:]


def _written(specifier: SpecifierSet) -> str:
    """Write the bounds with the lower first, as people do."""
    order = ["==", "===", "~=", ">", ">=", "!=", "<", "<="]
    return ",".join(
        str(part) for part in sorted(specifier, key=lambda part: (order.index(part.operator), part.version))
    )


def _with_line(text: str, requirement: str) -> str:
    ending = "\r\n" if "\r\n" in text else "\n"
    if "--hash" in text:
        raise NotPatchableError("the file pins by hashes; a line without them would make pip refuse all")
    if text.rstrip().endswith("\\"):
        raise NotPatchableError("the last line goes on with a backslash")
    if not text or text.endswith("\n"):
        return f"{text}{requirement}{ending}"
    return f"{text}{ending}{requirement}"


def apply_to_conda(text: str, target: PatchTarget, name: str = "") -> str:
    """Give a conda environment's text with the version in its pip section, or among its own packages."""
    del name
    document = yaml_document.read(text)
    package, specifier = wanted(target)
    item = _conda_item(document, package.name)
    if item is None:
        return _conda_added(document, f"{package}{_written(specifier)}")
    if conda_holds(text, target):
        return text
    line = RequirementLine(0, len(item.value), text.count("\n", 0, item.start) + 1, item.value, "")
    pip = _conda_lists(document)[1]
    is_pip_item = pip is not None and item in pip.items
    if is_pip_item:
        return yaml_document.applied(
            document, [yaml_document.item_replacement(document, item, _body(line, specifier))]
        )
    match = _CONDA.fullmatch(item.value)
    if match is None:
        raise NotPatchableError(f"line {line.number} is written in an unusual way")
    return yaml_document.applied(
        document, [yaml_document.item_replacement(document, item, match["name"] + _written(specifier))]
    )


def conda_holds(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether a conda environment asks for the package as the target says."""
    del name
    try:
        package, specifier = wanted(target)
        item = _conda_item(yaml_document.read(text), package.name)
        if item is None:
            return False
        now = re.sub(r"(?<![=<>!~])=(?!=)", "==", item.value)
        return not str(specifier) or Requirement(now.split("::")[-1]).specifier == specifier
    except (NotPatchableError, InvalidRequirement):
        return False


def conda_carries(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether a conda environment asks for the package."""
    del name
    try:
        return (
            target.kind == "package"
            and _conda_item(yaml_document.read(text), wanted(target)[0].name) is not None
        )
    except NotPatchableError:
        return False


def _conda_lists(document: YamlFile) -> tuple[TreeNode, TreeNode | None]:
    dependencies = document.only().child("dependencies")
    if dependencies is None or dependencies.kind != "sequence":
        raise NotPatchableError("the file has no list of `dependencies`")
    pips = [
        pip
        for item in dependencies.items
        if (pip := item.child("pip")) is not None and pip.kind == "sequence"
    ]
    return dependencies, pips[0] if pips else None


def _conda_item(document: YamlFile, package: str) -> TreeNode | None:
    dependencies, pip = _conda_lists(document)
    items = [item for item in (*(pip.items if pip else ()), *dependencies.items) if item.kind == "scalar"]
    found = [
        item
        for item in items
        if canonicalize_name(re.split(r"[\[\s=<>!~;@]", item.value)[0]) == canonicalize_name(package)
    ]
    if len(found) > 1:
        raise NotPatchableError(f"{package} stands more than once")
    return found[0] if found else None


def _conda_added(document: YamlFile, requirement: str) -> str:
    pip = _conda_lists(document)[1]
    if pip is None:
        raise NotPatchableError("the environment has no pip section to add it to")
    return yaml_document.applied(document, [yaml_document.appended(document, pip, requirement)])
