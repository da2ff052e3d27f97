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
from corpus.schema import Text
from corpus.symbols import MODELS, PYTHON, history_of, packages_giving, packages_with
from ingest.logs.events import Event
from ingest.logs.facts import Fact
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import own_call
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
    for fact in report.facts:
        if report.root is None or fact.line != report.root.line:
            continue
        for sought in (*_imported(fact, report.root), *_sought(fact)):
            package = sought.package or _only(packages_with(sought.owner, sought.name), report.root)
            history = history_of(package, sought.owner, sought.name) if package else None
            if history is None and (own := history_of(PYTHON, sought.owner, sought.name)) is not None:
                package, history = PYTHON, own
            present = python if package == PYTHON else seen.get(package)
            if history is None or (present is not None and history.surely_has(present)):
                continue
            versions = history.specifier(present)
            if package in found or (present is not None and present in SpecifierSet(versions)):
                continue  # what the job has is no cure
            why = in_both("packages.has-name", name=sought.shown, package=package, versions=versions)
            found[package] = MissingName(versions, why)
    return found


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


def _only(packages: Sequence[str], root: Event) -> str:
    """Give the one package whose releases differ in a name; of several the one whose code fails, if any."""
    if len(packages) == 1:
        return packages[0]
    for frame in reversed(root.frames):
        steps = {canonicalize_name(distribution(step)) for step in frame.file.split("/")}
        if len(here := steps.intersection(packages)) == 1:
            return here.pop()
    return ""


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
    if fact.kind == "call" and "." in name and "key" in fields:
        yield _Sought("", name, f"({fields['key']}", f"{name}({fields['key']}=...)")
    if fact.kind == "model" and name:
        yield _Sought("", MODELS, name, name)
        # What no package knows as a model is a class of one, such as its tokenizer.
        for giver in packages_giving(name) if not packages_with(MODELS, name) else ():
            yield _Sought(giver, giver.replace("-", "_"), name, name)
    if fact.kind == "missing_key" and packages_with(MODELS, key := fields.get("key", "").strip("'\"")):
        yield _Sought("", MODELS, key, key)
    if fact.kind == "attribute" and symbol and "type" in fields:
        yield _Sought("", fields["type"], symbol, f"{fields['type']}.{symbol}")
