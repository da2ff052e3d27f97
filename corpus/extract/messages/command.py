"""`python -m corpus.extract messages read|pack|sample|labels|texts`.

Releases are read one after the other, then packed; sites are drawn for readers, and their labels gathered.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from corpus import library, package_classes
from corpus.errors import InvalidCorpusError
from corpus.extract.messages import labels, native_sites, python_sites, sampling
from corpus.extract.messages.archives import PYTHON, released, sources
from corpus.extract.messages.packages import TABLE, AtlasPackage, atlas_packages
from corpus.extract.messages.packing import pack, row_of
from corpus.extract.messages.sampling import DrawnSite, sites_of
from corpus.extract.messages.sites import FoundSite
from corpus.library import ROOT
from corpus.message_atlas import FILE, Atlas


def main(words: Sequence[str]) -> int:
    """Read releases of the packages of `atlas.yaml`, pack what was read, or label sites of them."""
    given = _parser().parse_args(words)
    others = {"sample": _sample, "labels": _labels, "texts": _texts}
    if given.action in others:
        return others[given.action](given)
    if given.action == "pack":
        folders = sorted(path for path in given.rows.iterdir() if path.is_dir())
        sites, messages = pack(folders, atlas_packages(given.table), given.out)
        size = given.out.stat().st_size / 1e6
        classes = package_classes.write(Atlas(given.out), given.out.with_name(package_classes.FILE))
        sys.stdout.write(f"{sites} sites, {messages} messages, {classes} classes, {size:.1f} MB\n")
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


def _sample(given: argparse.Namespace) -> int:
    """Draw sites of one release of each package, the newest but one, and write the readers' pages."""
    plan = sampling.sampling_plan()
    pools: dict[str, list[DrawnSite]] = {}
    missed = 0
    for name, package in atlas_packages(given.table).items():
        version = package.versions[-2 if len(package.versions) > 2 else -1]
        try:
            pools[name] = list(sites_of(name, version, released(package, version)))
        except InvalidCorpusError as error:
            missed += 1
            sys.stdout.write(f"{error}\n")
    given.folder.mkdir(parents=True, exist_ok=True)
    drawn = sampling.draw(pools, plan)
    sampling.write_pages(drawn, given.folder, given.readers)
    sys.stdout.write(f"{len(drawn)} sites of {len(pools)} packages, {missed} could not be had\n")
    return 0


def _labels(given: argparse.Namespace) -> int:
    """Gather what the readers wrote into the table, and tell how far they agree."""
    found = labels.read_answers(given.folder, library.load().causes)
    labels.write_labels(found, given.out)
    told = labels.agreement(found)
    sites = len({label.site for label in found})
    sys.stdout.write(
        f"{sites} sites, {len(found)} labels; of {told.sites} sites with two readers {told.share:.3f} are "
        f"alike (kappa {told.kappa:.3f}), {told.near:.3f} where the second cause counts\n"
    )
    return 0


def _texts(given: argparse.Namespace) -> int:
    """Read the labelled sites' words out of their releases again."""
    found = labels.read_labels(given.labels)
    chosen = [label for label in found if not given.package or label.package in given.package]
    with given.out.open("w", encoding="utf-8") as stream:
        count = 0
        for site in labels.texts_of(chosen, atlas_packages(given.table)):
            count += 1
            stream.write(f"{site.model_dump_json()}\n")
    sys.stdout.write(f"{count} of {len({label.site for label in chosen})} sites\n")
    return 0


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
    drawn = actions.add_parser("sample", help="draw sites and lay them out as pages for readers")
    drawn.add_argument("folder", type=Path, help="the folder for the sites and their pages")
    drawn.add_argument("--readers", nargs="+", default=["A", "B"], help="a name for each reader")
    gathered = actions.add_parser("labels", help="gather the readers' answers into the table of labels")
    gathered.add_argument("folder", type=Path, help="the folder of the sites, answers under `out`")
    gathered.add_argument("--out", type=Path, default=labels.TABLE, help="the table")
    worded = actions.add_parser("texts", help="download the labelled releases and find the sites' words")
    worded.add_argument("package", nargs="*", help="packages of the labels; default: all")
    worded.add_argument("--labels", type=Path, default=labels.TABLE, help="the table of labels")
    worded.add_argument("--out", type=Path, required=True, help="the file for the sites, outside the project")
    for action in (read, packed, drawn, worded):
        action.add_argument("--table", type=Path, default=ROOT / TABLE, help="the table of packages")
    packed.add_argument("--out", type=Path, default=ROOT / FILE, help="the file of the atlas")
    return parser
