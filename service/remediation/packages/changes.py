"""Changes of packages that follow from what their releases require of one another."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from corpus.frameworks import cued_frameworks, known_frameworks
from corpus.library import Library
from corpus.message import in_both
from corpus.package_classes import everybodys_modules, modules_with
from corpus.releases import known_packages, version_of
from corpus.schema import Change, Text
from corpus.symbols import PYTHON, packages_giving, packages_told
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.own_names import misses_shadowed, naming_package
from service.remediation.packages import builds
from service.remediation.packages.fit import python_version
from service.remediation.packages.missing_names import missing_arguments, missing_names, refused_arguments_of
from service.remediation.packages.moves import Move, Situation, smallest_moves
from service.remediation.packages.seen import involved_packages, libraries_of, seen_versions
from service.remediation.packages.unresolved import resolving_moves
from service.remediation.rules.packages import distribution, range_in_words


@dataclass(frozen=True)
class PackageChange:
    """A change of a package, and the version of it that the job has, as far as it shows."""

    change: Change
    present: str | None


# Of several moves that are as small, the second is worth telling; a third is a choice too many.
MOST = 2
_FITTING = "the release that the importing package was made for (see its requirements)"
_LACKS = re.compile(r"has no attribute '|got an unexpected keyword argument '|missing \d+ required ")

_UNKNOWN_KEYWORD = re.compile(
    r"(?P<callee>[\w.<>]{1,100})\(\) got an unexpected keyword argument '(?P<argument>\w{1,80})'"
)
# A function that is private to a package, or a class, that no user hands on under its own name.
_ASKED_FOR = re.compile(
    r"TypeError: (?P<callee>(?:\w{1,80}\.){0,3}?(?P<name>_[a-zA-Z]\w{0,80}|[A-Z]\w{0,80})(?:\.__init__)?)"
    r"\(\) missing \d+ required (?:positional|keyword-only) arguments?: '(?P<argument>\w{1,80})'"
)

_UNDEFINED = re.compile(r"NameError: name '(?P<name>\w{1,80})' is not defined")


def fitting_changes(
    cause: str, report: CrashReport, library: Library, settings: Sequence[Setting] = ()
) -> list[PackageChange]:
    """Give the changes that make packages fit, the smallest first; none where the log tells too little."""
    turns_on = library.causes[cause].turns_on
    if not turns_on or report.root is None:
        return []
    seen = seen_versions(report, settings)
    if "driver" in turns_on and (build := builds.for_driver(report, seen)):
        return [_change("torch", build.specifier, build.why, seen.get("torch"))]
    if "architecture" in turns_on and (build := builds.for_card(report, seen)):
        return [_change("torch", build.specifier, build.why, seen.get("torch"))]
    refused = refused_arguments_of(report, seen)
    if "package-versions" not in turns_on:
        # What a class takes by now, or no more, is no setting to correct.
        return [
            _change(package, name.specifier, name.why, seen.get(package)) for package, name in refused.items()
        ]
    python = next((version_of(found.version) for found in report.frameworks if found.name == PYTHON), None)
    if resolving := list(resolving_moves(report)):
        return [_change(move.package, move.specifier, move.why, move.present) for move in resolving[:MOST]]
    named = missing_arguments(report, library, seen) | refused | missing_names(report, seen, python)
    if (interpreter := named.pop(PYTHON, None)) is not None:
        present = str(python) if python is not None else None
        change = Change(
            framework=PYTHON, kind="package", key=PYTHON, to=interpreter.specifier, why=interpreter.why
        )
        return [*_callers(report), PackageChange(change, present)]
    asked = {package: name.specifier for package, name in named.items()}
    situation = _situation(report, seen, asked, python or python_version(report))
    spoken = _spoken_of(report, situation)
    alone = [(Move(package, seen.get(package), name.specifier, None),) for package, name in named.items()]
    found = [
        moves
        for moves in smallest_moves(situation) or alone
        if _is_about(moves, spoken)
        and all(move.reason is not None or situation.wanted.get(move.package) for move in moves)
    ]
    if not found:
        return (
            list(_passing(report))
            or list(_as_listed(report, seen, settings))
            or list(_of_package_code(report, seen))
            or list(_of_class(report, seen))
            or list(_of_callee(report, seen))
            or list(_of_module(report, seen))
            or list(_of_program(report, seen))
        )
    fitting = [
        _change(
            move.package,
            move.specifier,
            named[move.package].why if move.package in named else _why(move, situation),
            move.present,
        )
        for moves in found[:MOST]
        for move in sorted(moves, key=lambda move: move.package not in named)
    ]
    return [*fitting, *_older_callers(report, asked, fitting)]


def _older_callers(
    report: CrashReport, asked: Mapping[str, str], fitting: Sequence[PackageChange]
) -> Iterator[PackageChange]:
    """Offer an older release of the package that asks for what only newer releases of another one have."""
    raised = next((fact for fact in involved_packages(report) if fact.kind == "raised"), None)
    caller = str(raised.fields["package"]) if raised is not None else ""
    came_later = bool(asked) and all(versions.startswith(">=") for versions in asked.values())
    if came_later and caller and caller not in {*asked, *(item.change.key for item in fitting)}:
        yield _change(caller, "older than what is installed", in_both("packages.older-caller"), None)


def _callers(report: CrashReport) -> Iterator[PackageChange]:
    """Offer a newer release of the installed package whose own code asks for what Python lacks."""
    frames = report.root.frames if report.root is not None else ()
    if frames and (called := known_frameworks().package_file.search(frames[-1].file)):
        package = canonicalize_name(distribution(called["module"]))
        yield _change(package, "newer than what is installed", in_both("packages.caller"), None)


def _passing(report: CrashReport) -> Iterator[PackageChange]:
    """Offer a newer release of the installed package whose own code calls what another one has otherwise.

    It passes an argument that is not taken, or lacks one that is asked for. What the job's call hands on
    stands in no code of the package. A class that no package has is the job's own: its method overrides one
    that a newer release of the calling package takes more arguments for.
    """
    frames = report.root.frames if report.root is not None else ()
    body = report.root.body if report.root is not None and frames else ""
    match = _UNKNOWN_KEYWORD.search(body) or _ASKED_FOR.search(body)
    called = known_frameworks().package_file.search(frames[-1].file) if match is not None else None
    if match is None or called is None or _is_in_no_package(match["callee"]):
        return
    is_lacking = match.re is _ASKED_FOR
    asked = rf"(?<![\w.]){match['name']}\((?!.*\*)" if is_lacking else ""
    if re.search(asked or rf"(?<!\w){match['argument']} ?=(?!=)", frames[-1].code):
        package = canonicalize_name(distribution(called["module"]))
        told = {"package": package, "argument": match["argument"], "callee": match["callee"]}
        why = in_both("packages.lacking" if is_lacking else "packages.passing", **told)
        yield _change(package, "newer than what is installed", why, None)


def _is_in_no_package(callee: str) -> bool:
    """Tell whether a callee is a method of a class, not its making, that no package is known to have."""
    path, _, name = callee.rpartition(".")
    owner = path.rpartition(".")[2]
    return (
        owner[:1].isupper()
        and not name.startswith("__")
        and not modules_with(owner)
        and not packages_giving(owner)
    )


def _of_package_code(report: CrashReport, seen: Mapping[str, Version]) -> Iterator[PackageChange]:
    """Offer other releases where the code of an installed package misses a name that no job can give it.

    Its own, and that of the package which the name comes from, where only some releases of that have it.
    """
    match = _UNDEFINED.search(report.root.body) if report.root is not None else None
    raised = next((fact for fact in involved_packages(report) if fact.kind == "raised"), None)
    if match is None or raised is None:
        return
    package, name = str(raised.fields["package"]), match["name"]
    told = {"package": package, "name": name}
    yield _change(package, "newer than what is installed", in_both("packages.undefined", **told), None)
    for giver in packages_giving(name):
        if giver != package:
            why = in_both("packages.undefined-of", **told, giver=giver)
            yield _change(
                giver,
                "the release that the importing package was made for (see its requirements)",
                why,
                seen.get(giver),
            )
            return


def _of_class(report: CrashReport, seen: Mapping[str, Version]) -> Iterator[PackageChange]:
    """Offer another release of the one package that has the class in which an attribute is missed.

    A package that neither a version nor a call shows is offered where no calls are shown at all: others have
    classes of that name too.
    """
    frames = report.root.frames if report.root is not None else ()
    called = (known_frameworks().package_file.search(frame.file) for frame in frames)
    shown = seen.keys() | {canonicalize_name(distribution(match["module"])) for match in called if match}
    for fact in report.facts:
        told = str(fact.fields.get("type", "")).rpartition(".")[2]
        if fact.kind != "attribute" or report.root is None or fact.line != report.root.line:
            continue
        owners = {canonicalize_name(distribution(module)) for module in modules_with(told)}
        # Of several packages with a class of that name it is the one that the job shows.
        owners = owners & shown or (set() if frames else owners)
        if len(owners) == 1 and not modules_with(told) & everybodys_modules():
            package = owners.pop()
            why = in_both("packages.class-of", type=told, package=package, name=fact.fields["symbol"])
            to = "the release that the importing package was made for (see its requirements)"
            yield _change(package, to, why, seen.get(package))
            return


def _of_callee(report: CrashReport, seen: Mapping[str, Version]) -> Iterator[PackageChange]:
    """Offer another release of the package that the refusing function is named after."""
    body = report.root.body if report.root is not None else ""
    match, package = _UNKNOWN_KEYWORD.search(body), naming_package(body)
    if match is not None and package:
        why = in_both(
            "packages.callee-of", callee=match["callee"], argument=match["argument"], package=package
        )
        yield _change(package, _FITTING, why, seen.get(package))


def _of_module(report: CrashReport, seen: Mapping[str, Version]) -> Iterator[PackageChange]:
    """Offer another release of the package whose module lacks the name that is taken from it.

    Of packages whose names are known by release a name that never came or went is none of a release. What the
    job's own code takes may as well be mended there.
    """
    root = report.root
    for fact in report.facts:
        if fact.kind != "package" or root is None or fact.line != root.line or "symbol" not in fact.fields:
            continue
        module = str(fact.fields.get("name", ""))
        top = module.partition(".")[0]
        package = canonicalize_name(distribution(top))
        is_known = package in known_packages() or top in known_frameworks().modules
        is_own_call = bool(root.frames) and is_own(root.frames[-1])
        if (
            is_known
            and package not in packages_told()
            and not is_own_call
            and not misses_shadowed(root.body, ())
        ):
            why = in_both("packages.module-of", module=module, name=fact.fields["symbol"], package=package)
            yield _change(package, _FITTING, why, seen.get(package))
            return


def _of_program(report: CrashReport, seen: Mapping[str, Version]) -> Iterator[PackageChange]:
    """Offer a newer release of the package whose program was started, where its own code tripped."""
    root, command = report.root, report.command[1]
    if root is None or not _LACKS.search(root.body) or not report.view().test("started", "package").value:
        return
    row = known_frameworks().row(cued_frameworks(command)[0])
    package = canonicalize_name(row.package or row.id)
    why = in_both("packages.program", package=package)
    yield _change(package, "newer than what is installed", why, seen.get(package))


def _as_listed(
    report: CrashReport, seen: Mapping[str, Version], settings: Sequence[Setting]
) -> Iterator[PackageChange]:
    """Offer the release that the job's own list asks for of a package in which a module lacks a name.

    What releases have it is not known then; the list is what the job was written for.
    """
    lists = {
        canonicalize_name(item.key): item for item in settings if item.file and item.spelled == "package"
    }
    for fact in report.facts:
        if fact.kind != "package" or report.root is None or fact.line != report.root.line:
            continue
        package = canonicalize_name(distribution(str(fact.fields.get("name", "")).split(".")[0]))
        item = lists.get(package) if "symbol" in fact.fields and package in known_packages() else None
        present = seen.get(package)
        if item is None or not item.value:
            continue
        try:
            asked = SpecifierSet(item.value)
        except InvalidSpecifier:
            continue
        if present is None or present not in asked:
            why = in_both("packages.as-listed", file=item.file, spec=f"{item.key}{item.value}")
            yield _change(package, str(asked), why, present)


def _situation(
    report: CrashReport, seen: Mapping[str, Version], named: Mapping[str, str], python: Version | None
) -> Situation:
    """Read what the failing message says of packages: which it misses, asks for, or cannot load."""
    wanted: dict[str, str] = {}
    for fact in report.facts:
        if fact.kind == "package" and report.root is not None and fact.line == report.root.line:
            wanted |= _asked({name: str(value) for name, value in fact.fields.items()})
    wanted |= named
    cause = report.root.cause if report.root is not None else None
    # Whose compiled libraries do not load, or whose operators are not there.
    libraries = {
        name
        for event in report.standing
        if event.cause is not None and event.cause == cause
        for name in libraries_of(event.text)
    }
    return Situation(seen, wanted, known_packages() & libraries, python)


def _asked(fields: Mapping[str, str]) -> dict[str, str]:
    """Give the package that a message asks for, with the versions that it names, if any."""
    name = canonicalize_name(distribution(fields.get("package") or fields.get("name", "")))
    text = fields.get("wanted", "")
    try:
        asked = Requirement(text)
        return {canonicalize_name(asked.name): str(asked.specifier)}
    except InvalidRequirement:
        pass
    if worded := range_in_words(text):
        return {name: worded}
    least = version_of(text)
    if least is not None and name in known_packages():
        return {name: f">={least}"}
    missing = not {"symbol", "version", "wanted"} & set(fields)
    return {name: ""} if missing and name in known_packages() else {}


def _spoken_of(report: CrashReport, situation: Situation) -> frozenset[str]:
    """Name the packages that the failure speaks of; where it names none, those that its calls go through."""
    events = [event for event in report.standing if event is report.root]
    words = {word for event in events for word in re.findall(r"[A-Za-z][\w-]{2,40}", event.text)}
    named = {canonicalize_name(distribution(word)) for word in words}
    if not named & known_packages():
        files = (frame.file for event in events for frame in event.frames)
        in_package = known_frameworks().package_file
        modules = {match["module"] for file in files for match in in_package.finditer(file)}
        named |= {canonicalize_name(distribution(word)) for word in modules}
    return frozenset(named | set(situation.wanted) | situation.suspects)


def _is_about(moves: Collection[Move], spoken: Collection[str]) -> bool:
    """Tell whether a move mends what the failure speaks of, and not another clash of the same environment."""
    return all(
        move.package in spoken
        or (move.reason is not None and {move.reason.package, move.reason.needs} & set(spoken))
        for move in moves
    )


def _change(package: str, specifier: str, why: Text, present: Version | None) -> PackageChange:
    installer = min(known_frameworks().with_field("installs"))
    change = Change(framework=installer, kind="package", key=package, to=specifier or "install", why=why)
    return PackageChange(change, str(present) if present is not None else None)


def _why(move: Move, situation: Situation) -> Text:
    reason = move.reason
    if reason is None:
        return in_both("packages.asked", package=move.package)
    other = reason.needs if reason.package == move.package else reason.package
    present = situation.seen.get(other)
    return in_both(
        "packages.requires" if present is not None else "packages.requires-of",
        package=reason.package,
        version=reason.version,
        needs=f"{reason.needs}{reason.specifier}",
        other=other,
        present=present,
    )
