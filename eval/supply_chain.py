"""`python -m eval.supply_chain`: what the product is made of, its licences, and what is known against it.

`sbom FILE` writes a bill of materials (CycloneDX 1.6, https://cyclonedx.org/docs/1.6/json/), `licences` lists
the licences, `audit FOLDER` compares the lock with a checkout of PyPA's advisory database, without a network.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from corpus.library import read_yaml
from eval.errors import EvalError
from ingest.default_model import PUBLISHED_SHA256

LOCK = Path(__file__).parents[1] / "requirements.lock"
# Packages whose files the lock names without a hash, and why.
UNHASHED: Mapping[str, str] = {"torch": "its builds for CPUs and for CUDA have one version and other files"}
# Licences, by a word of them, that ask for what a service or its users need not know they do: none is here
# without a person having looked.
REFUSED = (
    "AGPL",
    "GPL-2",
    "GPL-3",
    "GPLV2",
    "GPLV3",
    "GNU GENERAL",
    "GNU AFFERO",
    "SSPL",
    "BUSL",
    "NON-COMMERCIAL",
)
# What their metadata leaves out; the licence stands in a file of each.
STATED: Mapping[str, str] = {"atheris": "Apache-2.0", "axe-playwright-python": "MIT"}
# A lesser licence lets a program use the library as it is installed.
_LESSER = re.compile(r"(?i)\bLGPL|lesser")
_ENTRY = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class LockedPackage(NamedTuple):
    """A package of the lock: its exact version, and the SHA-256 of each file that may be installed for it."""

    name: str
    version: str
    hashes: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Name it as other tools do (https://github.com/package-url/purl-spec)."""
        return f"pkg:pypi/{self.name}@{self.version}"


class Match(NamedTuple):
    """An advisory that a locked version falls under."""

    package: LockedPackage
    advisory: str
    says: str


def read_lock(file: Path = LOCK) -> tuple[LockedPackage, ...]:
    """Read the lock; raises EvalError where an entry is no exact version."""
    found = []
    for entry in re.split(r"(?m)^(?=[^\s#])", file.read_text(encoding="utf-8"))[1:]:
        match = _ENTRY.match(entry)
        if match is None:
            raise EvalError(f"{file.name}: {entry.splitlines()[0]!r} is no exact version")
        found.append(
            LockedPackage(canonicalize_name(match["name"]), match["version"], tuple(_HASH.findall(entry)))
        )
    return tuple(found)


def licence_of(name: str) -> str:
    """Give a package's licence as its metadata states it; the empty text where it is not installed."""
    try:
        about = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    named = [
        row.split(" :: ")[-1] for row in about.get_all("Classifier") or () if row.startswith("License ::")
    ]
    whole = [
        *(about.get_all("License-Expression") or ()),
        "; ".join(named),
        *(about.get_all("License") or ()),
    ]
    return STATED.get(name) or next((text.split("\n")[0][:80] for text in whole if text), "unknown")


def is_refused(licence: str) -> bool:
    """Tell whether a licence is unknown, or one that nobody has agreed to."""
    return licence == "unknown" or (
        not _LESSER.search(licence) and any(word in licence.upper() for word in REFUSED)
    )


def bill_of_materials(packages: Sequence[LockedPackage]) -> dict[str, Any]:
    """Give all that is installed, in CycloneDX's form; the same lock gives the same bill."""
    own = metadata.version("whycrash")
    refs = {package.name: package.purl for package in packages}
    digest = sha256("".join(map(repr, packages)).encode()).digest()[:16]
    weights = {
        "type": "machine-learning-model",
        "bom-ref": "all-MiniLM-L6-v2",
        "name": "all-MiniLM-L6-v2",
        "hashes": [{"alg": "SHA-256", "content": PUBLISHED_SHA256}],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.UUID(bytes=digest, version=4)}",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "bom-ref": "whycrash", "name": "whycrash", "version": own}
        },
        "components": [*map(_component, packages), weights],
        "dependencies": [
            {"ref": "whycrash", "dependsOn": sorted({*_needed("whycrash", refs), "all-MiniLM-L6-v2"})},
            *({"ref": ref, "dependsOn": sorted(_needed(name, refs))} for name, ref in refs.items()),
        ],
    }


def _component(package: LockedPackage) -> dict[str, Any]:
    licence = licence_of(package.name)
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        # A component has one hash of each kind in CycloneDX, a package of PyPI one for each of its files.
        "properties": [{"name": "whycrash:file:sha-256", "value": each} for each in package.hashes],
    }
    return found | ({"licenses": [{"license": {"name": licence}}]} if licence else {})


def _needed(name: str, refs: Mapping[str, str]) -> set[str]:
    """Give what a package asks for, as far as the lock has it, on a platform like this one."""
    try:
        rows = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return set()
    extras = (metadata.metadata(name).get_all("Provides-Extra") or []) if name == "whycrash" else [""]
    asked = [
        wanted
        for wanted in map(Requirement, rows)
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in [*extras, ""])
    ]
    return {refs[found] for wanted in asked if (found := canonicalize_name(wanted.name)) in refs}


def audit(packages: Sequence[LockedPackage], folder: Path) -> Iterator[Match]:
    """Yield the advisories of a checkout of PyPA's database that locked versions fall under.

    Raises EvalError where the folder is none.
    """
    if not (folder / "vulns").is_dir():
        raise EvalError(f"{folder} is no checkout of the advisory database: it has no folder `vulns`.")
    for package in packages:
        for file in sorted((folder / "vulns" / package.name).glob("*.yaml")):
            advisory = read_yaml(file)
            if not advisory.get("withdrawn") and any(
                _affects(item, package.version) for item in advisory.get("affected", ())
            ):
                says = " ".join(str(advisory.get("details", "")).split())[:160]
                yield Match(package, str(advisory["id"]), says)


def _affects(item: Mapping[str, Any], version: str) -> bool:
    """Tell whether a version is listed, or in a range: behind what introduced a fault, before what ended it.

    The format: https://ossf.github.io/osv-schema/.
    """
    if version in item.get("versions", ()):
        return True
    own = Version(version)
    for events in (each["events"] for each in item.get("ranges", ()) if each["type"] == "ECOSYSTEM"):
        is_in = False
        for event in events:
            if "introduced" in event and Version(str(event["introduced"])) <= own:
                is_in = True
            if "fixed" in event and Version(str(event["fixed"])) <= own:
                is_in = False
            if "last_affected" in event and Version(str(event["last_affected"])) < own:
                is_in = False
        if is_in:
            return True
    return False


def _licences(packages: Sequence[LockedPackage]) -> int:
    """List the licences with their packages; gives the exit code, 1 where one is refused."""
    found = defaultdict(list)
    for package in packages:
        found[licence_of(package.name) or "not installed here"].append(package.name)
    for licence, names in sorted(found.items(), key=lambda row: (-len(row[1]), row[0])):
        sys.stdout.write(f"{len(names):4}  {licence}: {', '.join(names)}\n")
    refused = [licence for licence in found if is_refused(licence)]
    sys.stdout.write(f"refused: {', '.join(refused)}\n" if refused else "no licence is refused\n")
    return int(bool(refused))


def _audit(packages: Sequence[LockedPackage], folder: Path) -> int:
    found = list(audit(packages, folder))
    for match in found:
        sys.stdout.write(f"{match.package.name} {match.package.version}: {match.advisory}: {match.says}\n")
    known = sum((folder / "vulns" / package.name).is_dir() for package in packages)
    sys.stdout.write(
        f"{len(found)} advisories for {len(packages)} packages, of which the database knows {known}\n"
    )
    return int(bool(found))


def main(words: Sequence[str] | None = None) -> int:
    """Do what is asked; exit code 1 where an advisory or a licence stands against it, 2 for misuse."""
    parser = argparse.ArgumentParser(prog="python -m eval.supply_chain", description=__doc__)
    parser.add_argument("what", choices=("sbom", "licences", "audit"))
    parser.add_argument("path", nargs="?", type=Path, metavar="PATH")
    given = parser.parse_args(words)
    if given.path is None and given.what != "licences":
        parser.error(f"{given.what} needs a path")
    try:
        packages = read_lock()
        if given.what == "licences":
            return _licences(packages)
        if given.what == "audit":
            return _audit(packages, given.path)
        given.path.parent.mkdir(parents=True, exist_ok=True)
        given.path.write_text(json.dumps(bill_of_materials(packages), indent=1) + "\n", encoding="utf-8")
        sys.stdout.write(f"{given.path}: {len(packages)} packages\n")
    except EvalError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
