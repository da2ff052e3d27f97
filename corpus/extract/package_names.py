"""`python -m corpus.extract package-names LIST...`: the names that packages of the index have.

A list is a lock or a list of requirements, the JSON of a ranking by downloads, or names in any text. What the
tables of releases require, the packages of the atlas and what frameworks bring count too, and what was known.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill

from packaging.utils import canonicalize_name

from corpus.extract.messages.packages import atlas_packages
from corpus.frameworks import known_frameworks
from corpus.library import ROOT
from corpus.package_names import FILE
from corpus.releases import known_packages, releases_of

_WIDTH = 110
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,100}[A-Za-z0-9])?")
# What a requirement has behind its name: extras, a version, a marker, a place or a remark.
_BEHIND = re.compile(r"\s*(?:[\[<>=!~;@#(].*)?$")


def main(words: Sequence[str]) -> int:
    """Add the names of lists and of the other tables to the file."""
    parser = argparse.ArgumentParser(prog="python -m corpus.extract package-names", description=__doc__)
    parser.add_argument("list", nargs="*", type=Path, help="files with names")
    parser.add_argument("--out", type=Path, default=ROOT / FILE, help="the file of names")
    given = parser.parse_args(words)
    known = given.out.read_text(encoding="utf-8").split() if given.out.exists() else []
    listed = (name for path in given.list for name in listed_names(path.read_text(encoding="utf-8")))
    names = sorted({canonicalize_name(name) for name in (*known, *listed, *_of_tables())})
    text = fill(" ".join(names), _WIDTH, break_long_words=False, break_on_hyphens=False)
    given.out.write_text(f"{text}\n", encoding="utf-8")
    sys.stdout.write(f"{given.out.name}: {len(names)} names, {len(set(names).difference(known))} new\n")
    return 0


def listed_names(text: str) -> Iterator[str]:
    """Give the names of a list: of JSON each `project`, of requirements what each row begins with."""
    if text.lstrip().startswith(("{", "[")):
        rows = json.loads(text)
        rows = rows.get("rows", []) if isinstance(rows, dict) else rows
        yield from (str(row["project"]) if isinstance(row, dict) else str(row) for row in rows)
        return
    for row in text.split("\n"):
        match = _NAME.match(row)
        # A row of hashes or options begins with a blank or a dash.
        if match is not None and _BEHIND.match(row, match.end()):
            yield match[0]
        elif match is not None and all(map(_NAME.fullmatch, row.split())):
            yield from row.split()


def _of_tables() -> Iterator[str]:
    """Name the packages that other tables speak of."""
    yield from (row.name for row in atlas_packages().values() if row.archive != "source")
    # A module of its package's own name tells no more than the module.
    yield from (name for module, name in known_frameworks().modules.items() if name != module)
    for package in known_packages():
        table = releases_of(package)
        yield package
        yield from (name for release in (table.releases if table else ()) for name in release.requires)
