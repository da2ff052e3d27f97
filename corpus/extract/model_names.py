"""`python -m corpus.extract models PACKAGE VERSION...`: which models an engine's releases know by name."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from packaging.version import Version

from corpus.errors import InvalidCorpusError
from corpus.extract.messages.archives import released
from corpus.extract.messages.packages import ModelNames, atlas_packages
from corpus.extract.symbols import write_history
from corpus.library import ROOT
from corpus.symbols import MODELS

_WORD = re.compile(r"[A-Za-z][\w-]*")


def main(words: Sequence[str]) -> int:
    """Write the names that came or went between the given releases of a package."""
    parser = argparse.ArgumentParser(prog="python -m corpus.extract models", description=__doc__)
    parser.add_argument("package", help="its name in `corpus/atlas.yaml`, whose row tells where they stand")
    parser.add_argument("versions", nargs="+", help="the releases to compare")
    parser.add_argument("--out", type=Path, default=ROOT / MODELS, help="the folder of these names")
    given = parser.parse_args(words)
    package = atlas_packages()[given.package]
    found: dict[str, Mapping[str, frozenset[str] | None]] = {}
    for version in sorted(given.versions, key=Version):
        try:
            names = model_names(released(package, version), package.models)
        except InvalidCorpusError as error:
            sys.stderr.write(f"{error}\n")
            continue
        if names:
            found[version] = {MODELS: names}
        else:
            sys.stderr.write(f"{package.name} {version}: no model is named where its row says\n")
    write_history(package.name, found, given.out)
    return 0


def model_names(files: Iterable[tuple[str, str]], places: Sequence[ModelNames]) -> frozenset[str]:
    """Give the names that stand in the files where a package keeps them."""
    return frozenset(
        word
        for path, text in files
        for place in places
        if re.search(place.files, path)
        for match in re.finditer(place.names, text, re.MULTILINE)
        for word in _WORD.findall(match["names"])
    )
