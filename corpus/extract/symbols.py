"""`python -m corpus.extract symbols PACKAGE`: which names came and went in its modules, by release."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from packaging.version import Version

from corpus.errors import InvalidCorpusError
from corpus.extract.checkouts import Revision
from corpus.extract.members import members
from corpus.extract.messages.archives import released
from corpus.extract.messages.packages import AtlasPackage
from corpus.library import ROOT
from corpus.symbols import digest_of

# Names bound at the top of a module, also within a condition: a name too many only hides that it went.
_BOUND = re.compile(
    r"^(?:class|def|async def) (?P<defined>\w+)"
    r"|^(?: {4}(?=[A-Z]))?(?P<assigned>[A-Za-z_]\w*)(?: ?:[^=\n]{1,80})? ?="
    r"|^ {0,8}(?:from [\w.]+ )?import (?P<imported>\((?:[^)]*)\)|[^\n(]+)",
    re.MULTILINE,
)
_STAR = re.compile(r"^ {0,8}from (?P<source>[\w.]+) import \*", re.MULTILINE)
_DYNAMIC = re.compile(r"^def __getattr__", re.MULTILINE)
_LISTED = re.compile(r"""__all__\s*=\s*[\[(](?P<names>[^\])]*)[\])]""")
_LAZY = re.compile(r"\b_LazyModule\b|\battach\(")
# Where such a module says itself what it offers, no list of a module below counts.
_STATED = re.compile(r"\b_import_structure\s*(?::[^=\n]{1,80})?=\s*\{")
_QUOTED = re.compile(r"""["'](\w+)["']""")
_REMARK = re.compile(r"#[^\n]*")
# Modules that take one another's names whole do so over few steps.
_DEEPEST = 5
# A package's tests and examples are no part of what others import.
_APART = re.compile(r"(?:^|/)(?:tests?|examples?|benchmarks?|docs?)/")


def main(words: Sequence[str]) -> int:
    """Write the names that came or went between the given releases of a package."""
    given = _parser().parse_args(words)
    found: dict[str, Mapping[str, frozenset[str] | None]] = {}
    places = [
        AtlasPackage(name=given.package, archive=given.archive, platforms=given.platform, python=python)
        for python in given.python
    ]
    versions = given.versions or last_of_each_minor(listed_versions(given.package), given.since)
    for version in sorted(versions, key=Version):
        try:
            if given.git is None:
                files = _files(places, version)
            else:
                revision = Revision(given.git, given.tag.format(version))
                files = list(revision.files(f"{given.inside}{given.module}", ".py"))
            left = [
                text
                for path, text in files
                if path.endswith(".py")
                and not _APART.search(path)
                and not any(f"/{folder}/" in f"/{path}" for folder in given.without_classes)
            ]
            found[version] = modules(files, given.module) | ({} if given.modules_only else members(left))
        except InvalidCorpusError as error:
            sys.stderr.write(f"{error}\n")
    write_history(given.package, found, given.out, every=given.every)
    return 0


def _files(places: Sequence[AtlasPackage], version: str) -> list[tuple[str, str]]:
    """Give path and text of a release's files, from the first place that has it."""
    *others, last = places
    for place in others:
        with suppress(InvalidCorpusError):
            return list(released(place, version))
    return list(released(last, version))


def write_history(
    package: str, found: Mapping[str, Mapping[str, frozenset[str] | None]], out: Path, *, every: bool = False
) -> None:
    """Write which names came or went between a package's versions into its file of a folder."""
    names = dict(history(list(found.values())))
    table = {
        "package": package,
        "versions": list(found),
        "names": names,
        **({"every": True} if every else {}),
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{package}.json").write_text(json.dumps(table, separators=(",", ":")) + "\n", encoding="utf-8")
    sys.stdout.write(f"{package}: {len(names)} names of {len(found)} versions\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m corpus.extract symbols", description=__doc__)
    parser.add_argument("package", help="its name on the package index")
    parser.add_argument(
        "versions", nargs="*", help="the releases to compare; by default the last one of each minor version"
    )
    parser.add_argument("--since", default="0", help="the oldest release of these")
    parser.add_argument("--module", required=True, help="the module that it brings")
    parser.add_argument("--archive", choices=("wheel", "sdist"), default="wheel", help="what is downloaded")
    parser.add_argument("--platform", nargs="+", default=(), help="platforms of a wheel that will do")
    parser.add_argument(
        "--python", nargs="+", default=[""], help="Pythons whose wheels are tried in turn, such as 311"
    )
    parser.add_argument(
        "--modules-only", action="store_true", help="leave out what classes have and functions take"
    )
    parser.add_argument(
        "--git", type=Path, help="a git directory with its tags; else releases are downloaded"
    )
    parser.add_argument("--tag", default="v{}", help="how a version is tagged")
    parser.add_argument("--inside", default="", help="the folder of the repository that holds the module")
    parser.add_argument(
        "--without-classes",
        nargs="+",
        default=[],
        metavar="FOLDER",
        help="folders whose classes are left out",
    )
    parser.add_argument("--every", action="store_true", help="no release lies between the given ones")
    parser.add_argument("--out", type=Path, default=ROOT / "symbols", help="the folder of symbols")
    return parser


def listed_versions(package: str) -> list[str]:
    """Give the releases of a package that its registry lists; raises InvalidCorpusError where it has none."""
    words = [sys.executable, "-m", "pip", "index", "versions", "--ignore-requires-python", package]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
    match = re.search(r"^Available versions: (?P<versions>.+)$", done.stdout, re.MULTILINE)
    if match is None:
        raise InvalidCorpusError(f"{package}: {done.stderr.strip()[-300:]}")
    return match["versions"].split(", ")


def last_of_each_minor(versions: Iterable[str], since: str) -> list[str]:
    """Give of each minor version the last release, from one on."""
    ordered = sorted((one for one in versions if Version(one) >= Version(since)), key=Version)
    return list({Version(one).release[:2]: one for one in ordered}.values())


def modules(files: Iterable[tuple[str, str]], top: str) -> dict[str, frozenset[str] | None]:
    """Give the names of each module; None where they cannot be told without running it."""
    found: dict[str, frozenset[str] | None] = {}
    lazy: dict[str, set[str]] = {}
    stated: set[str] = set()
    stars: dict[str, list[str]] = {}
    listed: dict[str, set[str]] = {}
    for path, text in files:
        name = path[path.find(f"{top}/") :].removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        if not path.endswith(".py") or not name.startswith(top) or _APART.search(path):
            continue
        plain = _REMARK.sub("", text)
        if lists := _LISTED.search(plain):
            listed[name] = set(_QUOTED.findall(lists["names"]))
        if _LAZY.search(plain):
            lazy[name] = set(_QUOTED.findall(plain)) | set(_names(plain))
            stated |= {name} if _STATED.search(plain) else set()
        else:
            found[name] = None if _DYNAMIC.search(plain) else frozenset(_names(plain))
            stars[name] = [_source(match["source"], name, path) for match in _STAR.finditer(plain)]
    for name, own in lazy.items():
        # What a lazy package offers is listed in it, or else in the modules below it.
        below = (
            names for other, names in listed.items() if name not in stated and other.startswith(f"{name}.")
        )
        found[name] = frozenset(own.union(*below))
    for name in stars:
        found[name] = _with_stars(name, found, stars, listed)
    return found


def _source(text: str, name: str, path: str) -> str:
    """Give the module that a star import names, from where it stands."""
    dots = len(text) - len(text.lstrip("."))
    if not dots:
        return text
    parts = name.split(".")
    kept = parts[: len(parts) - dots + path.endswith("/__init__.py")]
    return ".".join([*kept, *filter(None, [text.lstrip(".")])])


def _with_stars(
    name: str,
    found: Mapping[str, frozenset[str] | None],
    stars: Mapping[str, Sequence[str]],
    listed: Mapping[str, set[str]],
    depth: int = 0,
) -> frozenset[str] | None:
    """Give a module's names with all that it takes from others; None where one of these is not known."""
    own = found.get(name)
    if own is None or depth > _DEEPEST:
        return None
    for source in stars.get(name, ()):
        given = listed.get(source) or _with_stars(source, found, stars, listed, depth + 1)
        if given is None:
            return None
        own |= given
    return own


def _names(text: str) -> Iterator[str]:
    for match in _BOUND.finditer(text):
        if not match["imported"]:
            yield match["defined"] or match["assigned"]
            continue
        items = match["imported"].strip("()").replace("\n", " ").split(",")
        yield from (item.split()[-1].split(".")[0] for item in items if item.strip() not in ("", "*"))


def history(found: Sequence[Mapping[str, frozenset[str] | None]]) -> Iterator[tuple[str, list[list[int]]]]:
    """Give digests of the names that are not in every release, with the runs of releases that have them.

    A module counts as a name of its own. Where its names cannot be told, none of them counts as gone.
    """
    every = sorted({module for release in found for module in release})
    for module in every:
        there = [module in release for release in found]
        told = [release.get(module, frozenset()) for release in found]
        # A method comes and goes with its class, and a function with its module, which tell it.
        is_call = any(name.startswith("(") for names in told for name in names or ())
        if not all(there) and not is_call:
            yield digest_of(module, ""), runs(there)
        # What takes any argument refuses none; of a class with a strange base nothing is known.
        if None in told and not is_call:
            continue
        for name in sorted(frozenset().union(*(names for names in told if names))):
            has = [names is None or name in names for names in told]
            # Of a module that came or went itself, the module tells it.
            if any(has[place] != there[place] for place in range(len(found))):
                yield digest_of(module, name), runs(has)


def runs(values: Sequence[bool]) -> list[list[int]]:
    """Give the first and last place of each unbroken row of true values."""
    places = [
        (value, [place for place, _ in group])
        for value, group in groupby(enumerate(values), lambda pair: pair[1])
    ]
    return [[group[0], group[-1]] for value, group in places if value]
