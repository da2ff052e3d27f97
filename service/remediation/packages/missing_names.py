"""Names that the failing line misses and that other versions of a package have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from corpus.frameworks import known_frameworks
from corpus.keys import canonical
from corpus.library import Library
from corpus.message import in_both
from corpus.package_classes import modules_with
from corpus.schema import Text
from corpus.symbols import (
    ANY_CLASS,
    MODELS,
    PYTHON,
    SymbolHistory,
    history_of,
    packages_giving,
    packages_with,
)
from ingest.logs.events import Event
from ingest.logs.facts import Fact
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import own_call
from ingest.logs.stacks.own_names import refused_arguments
from service.remediation.rules.packages import distribution

_IMPORT = re.compile(r"(?:from|import) (?P<module>[A-Za-z_]\w*(?:\.\w+)+)")


@dataclass(frozen=True)
class MissingName:
    """A name that a package's version has not: which versions have it, and the sentence that says so."""

    specifier: str
    why: Text


@dataclass(frozen=True)
class _Sought:
    """A name as the message tells it: of which package, in which module or class, and how it is shown.

    The package is empty where the message names a class, or a method with an argument, alone.
    """

    package: str
    owner: str
    name: str
    shown: str


def missing_names(
    report: CrashReport, seen: Mapping[str, Version], python: Version | None = None
) -> dict[str, MissingName]:
    """Give the packages in which the failing line misses a name, with the versions that have it.

    A name of Python's own modules is missed of `python`, whose version is given apart.
    """
    found: dict[str, MissingName] = {}
    root = report.root
    told = [fact for fact in report.facts if root is not None and fact.line == root.line]
    asked = [
        sought for fact in told if root is not None for sought in (*_imported(fact, root), *_sought(fact))
    ]
    for sought in (*asked, *_of_any_class(told, seen)):
        package = sought.package or _only(packages_with(sought.owner, sought.name), report, seen)
        history = history_of(package, sought.owner, sought.name) if package else None
        if history is None and (own := history_of(PYTHON, sought.owner, sought.name)) is not None:
            package, history = PYTHON, own
        present = python if package == PYTHON else seen.get(package)
        _add(found, package, sought, history, present)
    return found


def refused_arguments_of(report: CrashReport, seen: Mapping[str, Version]) -> dict[str, MissingName]:
    """Give the packages of which some releases take what the call refuses, and which these are."""
    found: dict[str, MissingName] = {}
    root = report.root
    for owner, argument in refused_arguments(root.body, root.frames) if root is not None else ():
        package = _only(packages_with(owner, argument), report, seen)
        history = history_of(package, owner, argument) if package else None
        callee = owner.removesuffix(".__init__").removesuffix("()")
        sought = _Sought(package, owner, argument, f"{callee}({argument[1:]}=...)")
        _add(found, package, sought, history, seen.get(package))
    return found


def _add(
    found: dict[str, MissingName],
    package: str,
    sought: _Sought,
    history: SymbolHistory | None,
    present: Version | None,
) -> None:
    """Note which versions have a name, where they are others than the job's."""
    if history is None or package in found or (present is not None and history.surely_has(present)):
        return
    versions = history.specifier(present)
    if present is None or present not in SpecifierSet(versions):  # what the job has is no cure
        why = in_both("packages.has-name", name=sought.shown, package=package, versions=versions)
        found[package] = MissingName(versions, why)


def missing_arguments(
    report: CrashReport, library: Library, seen: Mapping[str, Version]
) -> dict[str, MissingName]:
    """Give the packages whose call lacks an argument that the catalogue has for other versions.

    The job's own statement names the call (`from_pretrained(..., load_in_4bit=True)`), where the message
    names only the constructor below it that refused.
    """
    own = own_call(report.root.frames) if report.root is not None else None
    keys = {
        canonical(str(fact.fields["key"]))
        for fact in report.facts
        if fact.kind == "call" and "key" in fact.fields and report.root and fact.line == report.root.line
    }
    found: dict[str, MissingName] = {}
    for spec in library.specs.values() if own is not None and keys else ():
        call, _, argument = spec.key.rpartition(".")
        if spec.spelled != "python" or not spec.versions or canonical(argument) not in keys or own is None:
            continue
        row = known_frameworks().row(spec.framework)
        package = canonicalize_name(row.package or spec.framework)
        present = seen.get(package)
        is_made = re.search(rf"(?<!\w){re.escape(call.rpartition('.')[2])}\(", own.code) is not None
        if is_made and not (present is not None and present in SpecifierSet(spec.versions)):
            shown = f"{call}({argument}=...)"
            why = in_both("packages.has-name", name=shown, package=package, versions=spec.versions)
            found[package] = MissingName(spec.versions, why)
    return found


def _only(packages: Sequence[str], report: CrashReport, seen: Mapping[str, Version]) -> str:
    """Give the one package whose releases differ in a name; of several the one that fails, or is shown."""
    if len(packages) == 1:
        return packages[0]
    for frame in reversed(report.root.frames if report.root is not None else ()):
        steps = {canonicalize_name(distribution(step)) for step in frame.file.split("/")}
        if len(here := steps.intersection(packages)) == 1:
            return here.pop()
    frameworks = (known_frameworks().row(found.name) for found in report.frameworks)
    for shown in (set(seen), {canonicalize_name(row.package or row.id) for row in frameworks}):
        if len(there := shown.intersection(packages)) == 1:
            return there.pop()
    return ""


def _of_any_class(facts: Sequence[Fact], seen: Mapping[str, Version]) -> Iterator[_Sought]:
    """Give an attribute that no class of a package has in the job's release, or in the newest one known.

    It is missed of one of its classes, whose own history does not tell it: a base class had it.
    """
    for fact in facts:
        owner, name = str(fact.fields.get("type", "")).rpartition(".")[2], str(fact.fields.get("symbol", ""))
        if fact.kind != "attribute" or not name or packages_with(owner, name):
            continue
        owners = {canonicalize_name(distribution(module)) for module in modules_with(owner)}
        owners.update(map(canonicalize_name, packages_giving(owner)))
        for package in owners.intersection(packages_with(ANY_CLASS, name)):
            history, present = history_of(package, ANY_CLASS, name), seen.get(package)
            if history is not None and not history.has(present or history.versions[-1]):
                yield _Sought(package, ANY_CLASS, name, f"{owner}.{name}")


def _imported(fact: Fact, root: Event) -> Iterator[_Sought]:
    """Give the whole module that the failing import asks for, of which the message names the part above."""
    match = _IMPORT.match(root.frames[-1].code.strip()) if root.frames else None
    above = str(fact.fields.get("name", "")) if fact.kind == "package" and "symbol" not in fact.fields else ""
    if match is not None and above and match["module"].startswith(f"{above}."):
        package = canonicalize_name(distribution(above.split(".")[0]))
        yield _Sought(package, match["module"], "", match["module"])


def _sought(fact: Fact) -> Iterator[_Sought]:
    fields = {name: str(value) for name, value in fact.fields.items()}
    name, symbol = fields.get("name", ""), fields.get("symbol", "")
    if fact.kind == "package" and name:
        package = canonicalize_name(distribution(name.split(".")[0]))
        yield _Sought(package, name, symbol, f"{name}.{symbol}" if symbol else name)
    if fact.kind == "model" and name:
        yield _Sought("", MODELS, name, name)
        # What no package knows as a model is a class of one, such as its tokenizer.
        for giver in packages_giving(name) if not packages_with(MODELS, name) else ():
            yield _Sought(giver, giver.replace("-", "_"), name, name)
    if fact.kind == "missing_key" and packages_with(MODELS, key := fields.get("key", "").strip("'\"")):
        yield _Sought("", MODELS, key, key)
    if fact.kind == "attribute" and symbol and "type" in fields:
        yield _Sought("", fields["type"], symbol, f"{fields['type']}.{symbol}")
