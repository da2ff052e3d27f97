"""Change the version of a package in a requirements file or in a conda environment."""

from __future__ import annotations

import re
from collections.abc import Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from corpus.frameworks import known_frameworks
from corpus.message import Message
from ingest.configfiles import yaml_document
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.requirements import (
    RequirementLine,
    conda_edit,
    conda_item,
    conda_lists,
    read_lines,
    read_specifier,
    specifier_text,
    with_version,
)
from service.patching.target import PatchTarget


def apply(text: str, target: PatchTarget, name: str = "") -> str:
    """Give the text with the version that the target names.

    Raises NotPatchableError where that is not safe.
    """
    del name
    package, specifier = wanted(target)
    found = [line for line in read_lines(text) if line.name == canonicalize_name(package.name)]
    if len(found) > 1:
        raise NotPatchableError(
            Message(
                "patch.stands-more-once-lines",
                name=package.name,
                found=", ".join(str(line.number) for line in found),
            )
        )
    if not found:
        return _with_line(text, f"{package}{specifier}")
    line = found[0]
    if _says(line, specifier):
        return text
    if specifier is None or "--hash" in line.rest or "\\" in line.rest:
        raise NotPatchableError(Message("patch.line-pins-hashes-over", number=line.number, name=package.name))
    return text[: line.start] + with_version(line, specifier) + text[line.end :]


def holds(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether the file, read anew, asks for the package as the target says."""
    del name
    try:
        package, specifier = wanted(target)
    except NotPatchableError:
        return False
    found = [line for line in read_lines(text) if line.name == canonicalize_name(package.name)]
    return len(found) == 1 and _says(found[0], specifier)


def carries(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether the file asks for the package, in whatever version."""
    del name
    package = re.split(r"[\[=<>]", target.names[0])[0]
    return target.kind == "package" and any(
        line.name == canonicalize_name(package) for line in read_lines(text)
    )


def wanted(target: PatchTarget) -> tuple[Requirement, SpecifierSet]:
    """Read the target's package and version; `install` asks for the package in any version."""
    if target.kind != "package":
        raise NotPatchableError(Message("patch.not-set-among-requirements", kind=target.kind))
    if target.framework and not known_frameworks().row(target.framework).installs:
        raise NotPatchableError(Message("patch.package-not-pip", framework=target.framework))
    try:
        return Requirement(target.names[0]), read_specifier(str(target.to))
    except InvalidRequirement as error:
        raise NotPatchableError(Message("patch.no-version-package", to=target.to)) from error


def _says(line: RequirementLine, specifier: SpecifierSet) -> bool:
    try:
        now = Requirement(line.body.strip())
    except InvalidRequirement:
        return False
    return not str(specifier) or (now.url is None and now.specifier == specifier)


def is_met(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether the file pins the package to a release that is among those that are wanted."""
    del name
    package = re.split(r"[\[=<>]", target.names[0])[0]
    return is_pinned(
        [line.body for line in read_lines(text) if line.name == canonicalize_name(package)], target
    )


def is_pinned(asked: Sequence[str], target: PatchTarget) -> bool:
    """Tell whether one of some requirements of the target's package pins it to a release that is wanted."""
    try:
        specifier = wanted(target)[1]
    except NotPatchableError:
        return False
    pins = [re.search(r"^[^<>!~=]*={1,3}\s*([\w.+!-]+)(?:=[\w.]+)?\s*(?:[;#].*)?$", item) for item in asked]
    return bool(str(specifier)) and any(
        pin is not None and specifier.contains(pin[1], prereleases=True) for pin in pins
    )


def _with_line(text: str, requirement: str) -> str:
    ending = "\r\n" if "\r\n" in text else "\n"
    if "--hash" in text:
        raise NotPatchableError(Message("patch.file-pins-hashes-line"))
    if text.rstrip().endswith("\\"):
        raise NotPatchableError(Message("patch.last-line-goes-backslash"))
    if not text or text.endswith("\n"):
        return f"{text}{requirement}{ending}"
    return f"{text}{ending}{requirement}"


def apply_to_conda(text: str, target: PatchTarget, name: str = "") -> str:
    """Give a conda environment's text with the version in its pip section, or among its own packages."""
    del name
    document = yaml_document.read(text)
    package, specifier = wanted(target)
    item = conda_item(document, package.name)
    if item is None:
        pip = conda_lists(document)[1]
        if pip is None:
            raise NotPatchableError(Message("patch.environment-no-pip-section"))
        return yaml_document.applied(
            document, [yaml_document.appended(document, pip, f"{package}{specifier_text(specifier)}")]
        )
    if conda_holds(text, target):
        return text
    return yaml_document.applied(document, [conda_edit(document, item, specifier)])


def conda_holds(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether a conda environment asks for the package as the target says."""
    del name
    try:
        package, specifier = wanted(target)
        item = conda_item(yaml_document.read(text), package.name)
        if item is None:
            return False
        now = re.sub(r"(?<![=<>!~])=(?!=)", "==", item.value)
        return not str(specifier) or Requirement(now.split("::")[-1]).specifier == specifier
    except (NotPatchableError, InvalidRequirement):
        return False


def conda_is_met(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether a conda environment pins the package to a release that is among those that are wanted."""
    del name
    try:
        item = conda_item(yaml_document.read(text), wanted(target)[0].name)
    except NotPatchableError:
        return False
    return item is not None and is_pinned([item.value], target)


def conda_carries(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether a conda environment asks for the package."""
    del name
    try:
        return (
            target.kind == "package"
            and conda_item(yaml_document.read(text), wanted(target)[0].name) is not None
        )
    except NotPatchableError:
        return False
