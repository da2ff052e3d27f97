"""Pack what was read of all releases into the atlas's one file."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from corpus.extract.messages.packages import AtlasPackage
from corpus.extract.messages.sites import FoundSite
from corpus.extract.versions import ordered
from corpus.message_atlas import BUCKET_BITS, KINDS, MAGIC, PAGE, SiteKind, bucket_bytes, weight_of
from corpus.message_words import fixed_groups

# A group that more messages have tells none from others.
MOST_HOLDING = 3000
# What has fewer fixed words, or says less, would be found in any line.
FEWEST_WORDS, LEAST_BITS = 3, 19.0


class SiteKey(NamedTuple):
    """What makes two findings of different versions the same site."""

    package: str
    file: str
    symbol: str
    kind: SiteKind
    exception: str
    names: str
    groups: tuple[int, ...]


@dataclass
class _GatheredSites:
    """All sites with the line in each version, and the versions that were read of each package."""

    sites: dict[SiteKey, dict[str, int]] = field(default_factory=dict)
    versions: dict[str, list[str]] = field(default_factory=dict)


def row_of(file: str, site: FoundSite) -> list[Any]:
    """Give what is kept of a site: hashes of its message, no text."""
    groups = list(dict.fromkeys(fixed_groups(site.runs)))
    count = sum(map(len, site.runs))
    return [file, site.symbol, site.line, site.kind, site.exception, " ".join(site.names), count, groups]


def pack(folders: Iterable[Path], table: Mapping[str, AtlasPackage], target: Path) -> tuple[int, int]:
    """Write the atlas of what was kept of every release: a folder a package, a file of rows a version.

    Gives how many sites and messages it holds.
    """
    found = _gathered(folders)
    packages = [
        (name, versions, table[name].framework, table[name].source)
        for name, versions in sorted(found.versions.items())
        if versions
    ]
    messages: dict[tuple[int, ...], list[SiteKey]] = {}
    for key in found.sites:
        messages.setdefault(tuple(sorted(key.groups)), []).append(key)
    first_weights = _weights(messages)
    told = [row for row in messages.items() if _total_weight(row[0], first_weights) >= LEAST_BITS]
    rows = sorted(told, key=lambda row: row[1][0][:3])
    weights = _weights([groups for groups, _ in rows])
    numbers = {row[0]: place for place, row in enumerate(packages)}
    pages: list[list[Any]] = []
    for place, (groups, keys) in enumerate(rows):
        if place % PAGE == 0:
            pages.append([])
        sites = [_site(key, numbers, found) for key in keys]
        begin = next((group for group in keys[0].groups if group in weights), 0)
        pages[-1].append([round(_total_weight(groups, weights), 1), begin, sites])
    count = sum(len(keys) for _, keys in rows)
    head = {"packages": packages, "sites": count, "messages": len(rows)}
    _write(target, head, _buckets([groups for groups, _ in rows], weights), pages)
    return count, len(rows)


def _gathered(folders: Iterable[Path]) -> _GatheredSites:
    found = _GatheredSites()
    for folder in folders:
        pages = {path.name.removesuffix(".jsonl"): path for path in folder.glob("*.jsonl")}
        found.versions[folder.name] = ordered(pages)
        for version in found.versions[folder.name]:
            for line in pages[version].read_text(encoding="utf-8").splitlines():
                file, symbol, number, kind, exception, names, count, groups = json.loads(line)
                if count >= FEWEST_WORDS:
                    key = SiteKey(folder.name, file, symbol, kind, exception, names, tuple(groups))
                    found.sites.setdefault(key, {}).setdefault(version, number)
    return found


def _weights(messages: Collection[Sequence[int]]) -> dict[int, float]:
    """Give the weight of each group that is rare enough to tell messages from each other."""
    holding = Counter(group for groups in messages for group in groups)
    return {
        group: weight_of(group, held, len(messages))
        for group, held in holding.items()
        if held <= MOST_HOLDING
    }


def _total_weight(groups: Iterable[int], weights: Mapping[int, float]) -> float:
    return sum(weights.get(group, 0.0) for group in groups)


def _site(key: SiteKey, numbers: Mapping[str, int], found: _GatheredSites) -> list[Any]:
    """Give a site's row; its lines as differences, over a version that lacks it the line before."""
    versions, lines = found.versions[key.package], found.sites[key]
    present = [place for place, version in enumerate(versions) if version in lines]
    steps, last = [], 0
    for version in versions[present[0] : present[-1] + 1]:
        line = lines.get(version, last)
        steps.append(line - last)
        last = line
    kind = KINDS.index(key.kind)
    return [numbers[key.package], key.file, key.symbol, kind, key.exception, key.names, present[0], steps]


def _buckets(messages: Sequence[Sequence[int]], weights: Mapping[int, float]) -> list[bytes]:
    table: list[dict[int, list[int]]] = [{} for _ in range(1 << BUCKET_BITS)]
    for place, groups in enumerate(messages):
        for group in groups:
            if group in weights:
                table[group >> (32 - BUCKET_BITS)].setdefault(group, []).append(place)
    return [bucket_bytes(bucket) for bucket in table]


def _write(target: Path, head: dict[str, Any], buckets: list[bytes], pages: list[list[Any]]) -> None:
    written = [json.dumps(page, separators=(",", ":")).encode() for page in pages]
    packed = [[zlib.compress(block, 9) for block in blocks] for blocks in (buckets, written)]
    sizes = {name: list(map(len, blocks)) for name, blocks in zip(("buckets", "pages"), packed, strict=True)}
    told = zlib.compress(json.dumps({**head, **sizes}).encode(), 9)
    # Put in place whole: who has the old one mapped goes on with it.
    part = target.with_suffix(".part")
    with part.open("wb") as stream:
        stream.write(MAGIC + len(told).to_bytes(4, "little") + told)
        stream.writelines(block for blocks in packed for block in blocks)
    part.replace(target)
