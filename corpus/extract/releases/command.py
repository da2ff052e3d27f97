"""`python -m corpus.extract releases PACKAGE GITDIR`: writes what each release of a package requires."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from corpus.extract.releases.origins import release_origins
from corpus.extract.releases.reading import ask_installer, ask_versions, read_tags, write
from corpus.library import ROOT


def main(words: Sequence[str]) -> int:
    """Write the releases of one package, read from its tags or asked of pip."""
    parser = _parser()
    given = parser.parse_args(words)
    if (given.git is None) == (given.installer is None):
        parser.error("name a git directory, or versions after --installer")
    origin = release_origins().get(given.package)
    if given.installer:
        found, source = list(ask_installer(given.package, given.installer, given.extras)), "https://pypi.org"
    elif origin is not None:
        listed = ask_versions(given.package) if given.listed else None
        found = read_tags(given.git, given.package, origin, listed)
        source = f"https://github.com/{origin.repository}"
    else:
        parser.error(f"no origin is known for {given.package}: see corpus/extract/release_origins.yaml")
    write(found, given.package, source, given.out / f"{given.package}.json")
    sys.stdout.write(f"{given.package}: {len(found)} releases\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m corpus.extract releases",
        description="Read what each release of a package requires, and write it to the corpus.",
    )
    parser.add_argument("package", help="its name on the package index")
    parser.add_argument("git", nargs="?", type=Path, help="a git directory with the package's tags")
    parser.add_argument(
        "--installer", nargs="+", metavar="VERSION", help="ask pip for these releases instead, one by one"
    )
    parser.add_argument(
        "--extras", nargs="+", default=[], help="extras whose requirements count, of pip's answer"
    )
    parser.add_argument(
        "--listed",
        action="store_true",
        help="keep only tags that the index lists as releases (asks pip once)",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "releases", help="the folder of releases")
    return parser
