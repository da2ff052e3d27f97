"""Check the atlas: that it is whole, of its table, and small enough to ship."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from pathlib import Path

from corpus.extract.messages.packages import TABLE, AtlasPackage
from corpus.message_atlas import BUCKET_BITS, FILE, KINDS, PAGE, Atlas

MOST_BYTES = 15 << 20
_FIELDS = ("{version}", "{path}", "{line}")


def table_findings(table: Mapping[str, AtlasPackage], frameworks: Collection[str]) -> Iterator[str]:
    """Give what is wrong in the table of packages, a sentence each."""
    for name, row in table.items():
        if row.framework and row.framework not in frameworks:
            yield f"{TABLE}: {name}: unknown framework {row.framework}"
        if row.source and not all(field in row.source for field in _FIELDS):
            yield f"{TABLE}: {name}: an address names {', '.join(_FIELDS)}"
        if not row.versions:
            yield f"{TABLE}: {name}: no versions"


def atlas_findings(path: Path, table: Mapping[str, AtlasPackage]) -> Iterator[str]:
    """Give what is wrong in the atlas, a sentence each; all of it is read."""
    if path.stat().st_size > MOST_BYTES:
        yield f"{FILE}: {path.stat().st_size} bytes are more than ship"
    atlas = Atlas(path)
    for name, versions in atlas.packages.items():
        known = table[name].versions if name in table else ()
        yield from (
            f"{FILE}: {name} {version} is not in {TABLE}" for version in versions if version not in known
        )
    try:
        yield from _page_findings(atlas)
        yield from _bucket_findings(atlas)
    except (zlib.error, ValueError, IndexError) as error:
        yield f"{FILE}: is damaged: {error}"


def _page_findings(atlas: Atlas) -> Iterator[str]:
    messages = sites = 0
    for total, _, rows in chain.from_iterable(map(atlas.page, range(len(atlas.head["pages"])))):
        messages += 1
        sites += len(rows)
        if total <= 0 or not rows:
            yield f"{FILE}: message {messages} says nothing, or nobody says it"
        for package, file, _, kind, _, _, first, steps in rows:
            versions = atlas.head["packages"][package][1]
            if not steps or first + len(steps) > len(versions) or kind >= len(KINDS):
                yield f"{FILE}: {file}: its versions are none of its package"
    if (messages, sites) != (atlas.head["messages"], atlas.sites):
        yield f"{FILE}: {messages} messages of {sites} sites are not as many as it says"


def _bucket_findings(atlas: Atlas) -> Iterator[str]:
    for number in range(1 << BUCKET_BITS):
        bucket = atlas.bucket(number)
        for group in bucket.groups:
            found = bucket.messages(group)
            if group >> (32 - BUCKET_BITS) != number or found[-1] >= atlas.head["messages"]:
                yield f"{FILE}: a group of bucket {number} leads nowhere (page {found[-1] // PAGE})"
