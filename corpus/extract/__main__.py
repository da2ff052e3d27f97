"""Facts out of source: settings, messages, exceptions, what releases require and which names they have.

`python -m corpus.extract FRAMEWORK CHECKOUT... --out FILE`, `merge FILE...`, `messages
read|pack|sample|labels|texts`, `releases PACKAGE GITDIR`, `symbols PACKAGE VERSION...`, `models
PACKAGE VERSION...`, `calls PACKAGE VERSION... --file FILE`, `exceptions PACKAGE...`, `standard-library
GITDIR`, `package-names LIST...`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from corpus import exceptions
from corpus.extract import (
    call_lines,
    exception_classes,
    merging,
    model_names,
    package_names,
    standard_library,
    symbols,
)
from corpus.extract.catalogue import facts, read
from corpus.extract.checkouts import opened, version_of
from corpus.extract.frameworks import declaring
from corpus.extract.messages import command
from corpus.extract.releases import command as releases
from corpus.extract.versions import ordered
from corpus.library import ROOT


def main(words: Sequence[str]) -> int:
    """Read checkouts, merge what was read, or read what else the first word names."""
    others = {
        "messages": command.main,
        "releases": releases.main,
        "symbols": symbols.main,
        "calls": call_lines.main,
        "models": model_names.main,
        "package-names": package_names.main,
        "exceptions": _exceptions,
        "standard-library": standard_library.main,
        "merge": _merge,
    }
    run = others.get(words[0]) if words else None
    return run(words[1:]) if run else _read(words)


def _exceptions(words: Sequence[str]) -> int:
    """Add the exception classes of packages to the table."""
    parser = argparse.ArgumentParser(
        prog="python -m corpus.extract exceptions",
        description="Tell the kinds of packages' exception classes.",
    )
    parser.add_argument(
        "package", nargs="+", type=Path, help="a package's folder, a module's file, or a wheel"
    )
    given = parser.parse_args(words)
    place = ROOT / exceptions.CLASSES
    classes = exception_classes.extended(exceptions.load(ROOT), given.package)
    head = [row for row in place.read_text(encoding="utf-8").splitlines() if row.startswith("#")]
    place.write_text(exception_classes.written(classes, "\n".join(head)), encoding="utf-8")
    sys.stdout.write(f"{place.name}: {len(classes)} packages\n")
    return 0


def _merge(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m corpus.extract merge", description="Merge what was read into the catalogue."
    )
    parser.add_argument("found", nargs="+", type=Path, help="files that the reading wrote")
    parser.add_argument(
        "--words", type=Path, help="a folder of what people write on new settings, a YAML file per catalogue"
    )
    parser.add_argument(
        "--settings", dest="specs", type=Path, default=ROOT / "settings", help="the catalogue's folder"
    )
    given = parser.parse_args(words)
    for correction in merging.into(given.specs, given.found, given.words):
        sys.stdout.write(f"{correction}\n")
    return 0


def _read(words: Sequence[str]) -> int:
    """Read the checkouts, from old to new, and write one JSON row per setting."""
    given = _parser().parse_args(words)
    versions = given.version or [version_of(place) for place in given.checkout]
    places = dict(zip(versions, given.checkout, strict=True))
    sample = ordered(versions)
    rows = read(given.framework, {version: opened(places[version]) for version in sample})
    lines = [
        json.dumps(
            {
                "catalogue": row.catalogue,
                "spelled": row.spelled,
                "key": row.key,
                **facts(row),
                "sure": row.sure,
                "seen": {name: ordered(found) for name, found in row.names.items()},
            },
            ensure_ascii=False,
        )
        for row in rows
    ]
    head = json.dumps({"framework": given.framework, "sample": sample})
    given.out.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    sys.stdout.write(f"{given.framework}: {len(lines)} settings of {len(sample)} versions\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m corpus.extract", description=__doc__)
    parser.add_argument("framework", choices=sorted(declaring()))
    parser.add_argument("checkout", nargs="+", help="an unpacked source tree, or GITDIR@REVISION")
    parser.add_argument(
        "--version",
        action="append",
        help="the version of a checkout, in their order; default: as its name ends",
    )
    parser.add_argument("--out", type=Path, required=True, help="the file for what was found")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
