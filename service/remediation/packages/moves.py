"""The smallest change of versions after which packages fit together, by what their releases require."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from corpus.frameworks import known_frameworks
from corpus.releases import Release, allows, known_packages, releases_of

# More packages than this at once are a new environment, and no small change of this one.
MOST_MOVED = 2
# Combinations of releases that are looked at for one set of packages.
MOST_TRIED = 20_000


@dataclass(frozen=True)
class Situation:
    """The packages of a job as far as they are known, and what has to become of some of them.

    `seen` are the versions that it has. `wanted` says which versions of a package would do, whether the job
    has it or not; `suspects` are packages that do not work as they are, whatever their version is.
    """

    seen: Mapping[str, Version]
    wanted: Mapping[str, str]
    suspects: frozenset[str] = frozenset()
    python: Version | None = None


@dataclass(frozen=True)
class Reason:
    """What one release requires of another package."""

    package: str
    version: Version
    needs: str
    specifier: str


@dataclass(frozen=True)
class Move:
    """One package's new version: as a specifier, with the present one and the requirement that tells it."""

    package: str
    present: Version | None
    specifier: str
    reason: Reason | None


def conflicts(seen: Mapping[str, Version]) -> Iterator[Reason]:
    """Give what the packages of a job require of one another and have not."""
    for package, version in sorted(seen.items()):
        release = _release(package, version)
        for needed, specifier in release.requires.items() if release else ():
            if needed in seen and not allows(specifier, seen[needed]):
                yield Reason(package, version, needed, specifier)


def smallest_moves(situation: Situation) -> list[tuple[Move, ...]]:
    """Give the smallest sets of moves after which all fits, the one that changes least first."""
    seen = situation.seen
    fixed = frozenset(
        [
            name
            for name, wanted in situation.wanted.items()
            if name not in seen or not allows(wanted, seen[name])
        ]
        + [name for name in situation.suspects if name not in seen]
    )
    broken = [] if fixed else list(conflicts(seen))
    if not fixed and not broken:
        return []
    plain = _as_asked(situation, broken)
    movable = sorted({*seen, *fixed} & known_packages())
    # For what was built for other packages these stay: it can also be built anew.
    least = max(1, len(fixed))
    for count in range(least, (least if situation.suspects else max(MOST_MOVED, least)) + 1):
        found = [
            (_cost(moves, broken), distance, moves)
            for moved in combinations(movable, count)
            if fixed <= set(moved) and all({one.package, one.needs} & set(moved) for one in broken)
            if (best := _best(situation, moved)) is not None
            for distance, moves in (best,)
        ]
        if found or plain:
            return [*plain, *(moves for _, _, moves in sorted(found, key=lambda item: item[:2]))]
    return []


def _as_asked(situation: Situation, broken: Collection[Reason]) -> list[tuple[Move, ...]]:
    """Give what every conflict is about as the others ask for it, where it has no table of releases."""
    needed = {reason.needs for reason in broken}
    if len(needed) != 1 or needed & known_packages():
        return []
    (name,) = needed
    specifier = str(SpecifierSet(",".join(reason.specifier for reason in broken)))
    return [(Move(name, situation.seen[name], specifier, next(iter(broken))),)]


def _cost(moves: Collection[Move], broken: Collection[Reason]) -> int:
    """Rate moves by who has to give way.

    A package gives way to what requires a range of it. What was built for one very version of another follows
    that one; a trainer or an engine is what the user chose, and stays if it can.
    """
    frameworks = known_frameworks().trainers | known_frameworks().engines
    total = 0
    for move in moves:
        for reason in broken:
            exact = reason.specifier.startswith("==")
            chosen = reason.package in frameworks
            if move.package == reason.needs:
                total += exact
            elif move.package == reason.package:
                total += (not exact) + 2 * chosen
    return total


def _best(situation: Situation, moved: tuple[str, ...]) -> tuple[int, tuple[Move, ...]] | None:
    """Give the nearest versions of these packages that fit the others, with how far they are."""
    choices = [_choices(situation, name, moved) for name in moved]
    if not 0 < prod(map(len, choices)) <= MOST_TRIED:
        return None
    fitting = [
        chosen
        for chosen in product(*choices)
        if not any(conflicts({name: one.version for name, one in zip(moved, chosen, strict=True)}))
    ]
    if not fitting:
        return None
    nearest = min(fitting, key=lambda chosen: _distance(situation, moved, chosen))
    others = {**situation.seen, **{name: one.version for name, one in zip(moved, nearest, strict=True)}}
    moves = tuple(
        Move(
            name,
            situation.seen.get(name),
            _specifier(situation, others, release, name, [chosen[place].version for chosen in fitting]),
            _reason(name, release, others, situation),
        )
        for place, (name, release) in enumerate(zip(moved, nearest, strict=True))
    )
    return _distance(situation, moved, nearest), moves


def _choices(situation: Situation, name: str, moved: Collection[str]) -> list[Release]:
    """Give the releases of a package that fit the job's other ones.

    Where only some releases say for which version of another package they were built, only those count.
    """
    table = releases_of(name)
    releases = table.releases if table else ()
    kept = {other: version for other, version in situation.seen.items() if other not in moved}
    stated = [(other, release.requires.get(other, "")) for other in kept for release in releases]
    pinned = {
        other
        for other, wanted in stated
        if wanted.startswith("==") or (wanted and name in situation.suspects)
    }
    return [
        release
        for release in releases
        if allows(situation.wanted.get(name, ""), release.version)
        and (situation.python is None or allows(release.python, situation.python))
        and all(release.requires.get(other) for other in pinned)
        and all(allows(release.requires.get(other, ""), version) for other, version in kept.items())
        and all(allows(_asked(other, version, name), release.version) for other, version in kept.items())
    ]


def _asked(package: str, version: Version, name: str) -> str:
    """Give what a package requires of another one; the empty specifier where it says nothing."""
    release = _release(package, version)
    return release.requires.get(name, "") if release else ""


def _distance(situation: Situation, moved: Collection[str], chosen: tuple[Release, ...]) -> int:
    """Count the releases between the present versions and the chosen ones; the newest is nearest to none."""
    total = 0
    for name, release in zip(moved, chosen, strict=True):
        table = releases_of(name)
        versions = [one.version for one in table.releases] if table else []
        present = situation.seen.get(name)
        known = [at for at, version in enumerate(versions) if present is not None and version <= present]
        place = versions.index(release.version)
        total += abs(place - known[-1]) if known else len(versions) - place
    return total


def _specifier(
    situation: Situation, others: Mapping[str, Version], release: Release, name: str, fitting: list[Version]
) -> str:
    """Say which versions will do: as the others ask for it where nothing else binds it, else one release.

    From one release on, where all newer ones fit too.
    """
    asked = [_asked(other, version, name) for other, version in others.items() if other != name]
    bound = any(release.requires.get(other) for other in others if other != name)
    combined = ",".join(filter(None, dict.fromkeys((situation.wanted.get(name, ""), *asked))))
    if combined and not bound:
        return str(SpecifierSet(",".join(_tightest(SpecifierSet(combined)))))
    table = releases_of(name)
    newer = {one.version for one in table.releases if one.version >= release.version} if table else set()
    present = situation.seen.get(name)
    upward = present is not None and release.version > present
    return f"{'>=' if upward and newer <= set(fitting) else '=='}{release.version}"


def _tightest(wanted: SpecifierSet) -> Iterator[str]:
    """Give the parts of a specifier without bounds that a tighter one of the same kind makes idle."""
    for part in wanted:
        tightest = {">=": max, ">": max, "<=": min, "<": min}.get(part.operator)
        alike = (one.version for one in wanted if one.operator == part.operator)
        if tightest is None or part.version == tightest(alike, key=Version):
            yield str(part)


def _reason(
    name: str, release: Release, others: Mapping[str, Version], situation: Situation
) -> Reason | None:
    """Give the requirement that tells the version: of this package on another one, or the other way round."""
    own = [
        Reason(name, release.version, other, release.requires[other])
        for other in others
        if release.requires.get(other) and other != name
    ]
    of_others = [
        Reason(other, version, name, known.requires[name])
        for other, version in others.items()
        if other != name and (known := _release(other, version)) is not None and known.requires.get(name)
    ]
    present = situation.seen.get(name)
    broken = [reason for reason in of_others if present is None or not allows(reason.specifier, present)]
    return next(iter((*broken, *own, *of_others)), None)


def _release(package: str, version: Version) -> Release | None:
    table = releases_of(package)
    return table.at(version) if table else None
