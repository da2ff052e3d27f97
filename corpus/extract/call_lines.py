"""`python -m corpus.extract calls PACKAGE VERSION... --file FILE`: on which line a release calls what."""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.version import Version

from corpus.call_lines import FOLDER, digest_of
from corpus.errors import InvalidCorpusError
from corpus.extract.messages.archives import released
from corpus.extract.messages.packages import AtlasPackage
from corpus.extract.symbols import runs
from corpus.library import ROOT


def main(words: Sequence[str]) -> int:
    """Write the calls of one file of a package, with the releases that have each on that very line."""
    given = _parser().parse_args(words)
    found: dict[str, frozenset[str]] = {}
    for version in sorted(given.versions, key=Version):
        package = AtlasPackage(name=given.package, versions=(version,))
        try:
            text = next((text for path, text in released(package, version) if path == given.file), "")
        except InvalidCorpusError as error:
            sys.stderr.write(f"{error}\n")
            continue
        found[version] = frozenset(calls(text, given.function))
    has = {
        name: [name in own for own in found.values()] for name in sorted(frozenset().union(*found.values()))
    }
    table = {
        "versions": list(found),
        # What every release has on one line dates none of them.
        "calls": {name: runs(there) for name, there in has.items() if not all(there)},
    }
    place = given.out / Path(given.file).with_suffix(".json")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(table, separators=(",", ":")) + "\n", encoding="utf-8")
    sys.stdout.write(f"{given.file}: {len(table['calls'])} calls of {len(found)} versions\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m corpus.extract calls", description=__doc__)
    parser.add_argument("package", help="its name on the package index")
    parser.add_argument("versions", nargs="+", help="the releases to compare")
    parser.add_argument("--file", required=True, help="the file, as it is installed")
    parser.add_argument("--function", action="append", default=[], help="a function to read; default: all")
    parser.add_argument("--out", type=Path, default=ROOT / FOLDER, help="the folder of calls")
    return parser


def calls(text: str, functions: Sequence[str] = ()) -> Iterator[str]:
    """Give the digest of each line on which a function calls something, as a traceback names it."""
    rows = text.splitlines()
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if not functions or function.name in functions:
            for line in {node.lineno for node in ast.walk(function) if isinstance(node, ast.Call)}:
                yield digest_of(function.name, line, rows[line - 1].strip())
