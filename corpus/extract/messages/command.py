"""`python -m corpus.extract messages read|pack`: releases are read one after the other, then packed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from corpus.errors import InvalidCorpusError
from corpus.extract.messages import native_sites, python_sites
from corpus.extract.messages.archives import PYTHON, released, sources
from corpus.extract.messages.packages import TABLE, AtlasPackage, atlas_packages
from corpus.extract.messages.packing import pack, row_of
from corpus.extract.messages.sites import FoundSite
from corpus.library import ROOT
from corpus.message_atlas import FILE


def main(words: Sequence[str]) -> int:
    """Read releases of the packages of `atlas.yaml`, or pack what was read."""
    given = _parser().parse_args(words)
    if given.action == "pack":
        folders = sorted(path for path in given.rows.iterdir() if path.is_dir())
        sites, messages = pack(folders, atlas_packages(given.table), given.out)
        size = given.out.stat().st_size / 1e6
        sys.stdout.write(f"{sites} sites, {messages} messages, {size:.1f} MB\n")
        return 0
    table = atlas_packages(given.table)
    # What no registry has is read when it is named, with its source.
    names = given.package or [name for name, row in table.items() if row.archive != "source"]
    return 1 if sum(_read(table[name], given) for name in names) else 0


def _read(package: AtlasPackage, given: argparse.Namespace) -> int:
    """Read the releases of a package that were not read yet; gives how many could not be had."""
    folder = given.rows / package.name
    folder.mkdir(parents=True, exist_ok=True)
    missed = 0
    # A file that many versions have is read once.
    known: dict[bytes, list[FoundSite]] = {}
    for version in given.version or package.versions:
        page = folder / f"{version}.jsonl"
        if page.exists():
            continue
        try:
            files = sources(given.source, package) if given.source else released(package, version)
            count = _write(page, files, known)
        except InvalidCorpusError as error:
            missed += 1
            sys.stdout.write(f"{error}\n")
            continue
        sys.stdout.write(f"{package.name} {version}: {count} sites\n")
        sys.stdout.flush()
    return missed


def _write(page: Path, files: Iterable[tuple[str, str]], known: dict[bytes, list[FoundSite]]) -> int:
    rows: list[str] = []
    for path, text in files:
        content = sha256(text.encode()).digest()
        if content not in known:
            reader = python_sites if path.endswith(PYTHON) else native_sites
            known[content] = reader.read_sites(text)
        rows += (json.dumps(row_of(path, site), separators=(",", ":")) for site in known[content])
    part = page.with_suffix(".part")
    part.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    part.replace(page)
    return len(rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m corpus.extract messages", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    read = actions.add_parser("read", help="download releases one by one and keep the rows of their sites")
    read.add_argument("package", nargs="*", help="packages of atlas.yaml; default: all")
    read.add_argument("--version", action="append", help="a version; default: those of the table")
    read.add_argument("--source", type=Path, help="a folder or an archive to read in place of a release")
    read.add_argument("--rows", type=Path, required=True, help="the folder for the rows")
    packed = actions.add_parser("pack", help="pack the rows into the atlas")
    packed.add_argument("--rows", type=Path, required=True, help="the folder of the rows")
    for action in (read, packed):
        action.add_argument("--table", type=Path, default=ROOT / TABLE, help="the table of packages")
    packed.add_argument("--out", type=Path, default=ROOT / FILE, help="the file of the atlas")
    return parser
