"""The message atlas: where the frameworks' own sources tell of which failure, found by a line's words.

One file (`atlas.bin`), written by `python -m corpus.extract messages pack`. It holds no text of a message: a
message is the set of hashes of its neighbouring fixed words. The file is mapped, and of it only those few
blocks are read that a line asks for, so that opening it costs nothing.

Format: `MAGIC`, the length of the head as 4 bytes, the head (JSON, packed), then the blocks one behind the
other, each packed by zlib. Blocks of the first kind (`buckets`) lead from a group's hash to the messages that
hold it; those of the second (`pages`) hold the messages with their sites.
"""

from __future__ import annotations

import json
import math
import mmap
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from heapq import nlargest
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from packaging.version import InvalidVersion, Version

from corpus.errors import InvalidCorpusError
from corpus.library import ROOT
from corpus.message_words import line_groups

FILE = "atlas.bin"
MAGIC = b"whycrash.atlas/1\n"
# A group's bucket is told by the first bits of its hash.
BUCKET_BITS = 12
PAGE = 16
SiteKind = Literal["raise", "assert", "check", "log"]
KINDS: tuple[SiteKind, ...] = ("raise", "assert", "check", "log")
# A line is no message unless it holds so much of its fixed words, weighed by how rare they are, and these
# say at least so much (in bits: two groups that no other message has say 34). The name of the exception says
# something, too. Of a message that is cut off, its beginning is asked for, and the less where that says more.
WHOLE_SHARE, LEAST_SHARE, LEAST_BITS, TYPED_BITS = 0.97, 0.8, 19.0, 6.0
CUT_SHARE, CUT_BITS = 0.5, 70.0
# A word alone says less than its rarity among lone words.
MOST_SINGLE_BITS = 6.0
# How rare words are is counted as in an atlas of so many messages, however few there are.
FEWEST_MESSAGES = 1 << 15
_CANDIDATES = 10
_LONGEST = 4000


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a package's source that tells of a failure.

    `lines` maps each version that was read and has it to the number of its line there; `before` and `after`
    are the versions read next to these, which do not have it (empty where none was read). `names` are the
    settings and arguments that the condition before it reads or its message names, the condition's first.
    `framework` is the framework that the package is, if any; `source` the address of a line of its source
    with `{version}`, `{path}` and `{line}`, empty where none is known.
    """

    package: str
    file: str
    symbol: str
    kind: SiteKind
    exception: str
    names: tuple[str, ...]
    lines: Mapping[str, int]
    before: str = ""
    after: str = ""
    framework: str = ""
    source: str = ""

    def nearest(self, version: str | None) -> str:
        """Give the version to look it up at: the job's own, or else the one read next before it.

        The newest that has it where the job's is not known.
        """
        read = list(self.lines)
        if version is None:
            return read[-1]
        earlier = []
        for known in read:
            with suppress(InvalidVersion):
                if known == version or Version(known) < Version(version):
                    earlier.append(known)
        return earlier[-1] if earlier else read[0]

    def address(self, version: str) -> str:
        """Give the address of its line at one of its versions."""
        return self.source.format(version=version, path=self.file, line=self.lines[version])

    @property
    def versions(self) -> str:
        """The specifier of the versions that may have it: it leaves out only those known to lack it."""
        low = f">{self.before}" if self.before else ""
        high = f"<{self.after}" if self.after else ""
        return ",".join(part for part in (low, high) if part)


@dataclass(frozen=True, slots=True)
class MessageMatch:
    """A message that a line holds.

    `sites` are the places that say it, the likeliest first; `share` is how much of its fixed words the line
    holds, `bits` how much these say; `is_typed` tells that the line names the exception as well, and
    `has_begin` that it holds the first of these words.
    """

    sites: tuple[Site, ...]
    share: float
    bits: float
    is_typed: bool
    has_begin: bool

    @property
    def fits(self) -> bool:
        """Tell whether the line is this message: whole, or cut off but too special to be another."""
        said = self.bits + TYPED_BITS * self.is_typed
        if self.share >= WHOLE_SHARE:
            return said >= LEAST_BITS + TYPED_BITS
        least, enough = (LEAST_SHARE, LEAST_BITS + TYPED_BITS) if said < CUT_BITS else (CUT_SHARE, CUT_BITS)
        return self.has_begin and self.share >= least and said >= enough


class Atlas:
    """The atlas in its file; safe to be shared by threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                raise InvalidCorpusError(f"{path}: is no message atlas of this version")
            size = int.from_bytes(stream.read(4), "little")
            self.head: dict[str, Any] = json.loads(zlib.decompress(stream.read(size)))
            self._map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        begin = len(MAGIC) + 4 + size
        self._buckets = list(accumulate(self.head["buckets"], initial=begin))
        self._pages = list(accumulate(self.head["pages"], initial=self._buckets[-1]))
        # The caches are the atlas's own: a method's would keep it alive for ever.
        # All buckets, unpacked, are 8 MB; each log asks for other ones.
        self.bucket = lru_cache(maxsize=1 << BUCKET_BITS)(
            lambda number: Bucket(self._unpacked(self._buckets, number))
        )
        self.page = lru_cache(maxsize=128)(lambda number: json.loads(self._unpacked(self._pages, number)))

    @property
    def packages(self) -> Mapping[str, Sequence[str]]:
        """The packages with the versions that were read, from old to new."""
        return {name: versions for name, versions, _, _ in self.head["packages"]}

    @property
    def sites(self) -> int:
        """How many sites it holds."""
        return int(self.head["sites"])

    def look_up(self, text: str, files: Sequence[str] = ()) -> list[MessageMatch]:
        """Give the messages that a line holds, the one that explains most of it first.

        `files` are those of the calls that led there, innermost last: of sites that say the same, those in
        the innermost of these come first.
        """
        count = self.head["messages"]
        held: dict[int, float] = {}
        groups = frozenset(line_groups(text[:_LONGEST]))
        for group in groups:
            found = self.bucket(group >> (32 - BUCKET_BITS)).messages(group)
            weight = weight_of(group, len(found), count) if found else 0.0
            for message in found:
                held[message] = held.get(message, 0.0) + weight
        likely = nlargest(_CANDIDATES, held.items(), key=itemgetter(1))
        matches = [self._match(row, text, groups, files) for row in likely if row[1] >= LEAST_BITS]
        fitting = [match for match in matches if match.fits]
        return sorted(fitting, key=lambda match: (-round(match.bits * match.share), -match.share))

    def _match(
        self, row: tuple[int, float], text: str, groups: Container[int], files: Sequence[str]
    ) -> MessageMatch:
        message, said = row
        total, begin, rows = self.page(message // PAGE)[message % PAGE]

        def distance(site: Site) -> tuple[bool, int]:
            # Those whose exception is named come first, then those of the innermost calls.
            calls = [place for place, file in enumerate(reversed(files)) if file.endswith(f"/{site.file}")]
            is_other = bool(site.exception) and site.exception not in text
            return is_other, min(calls, default=len(files))

        sites = sorted(map(self._site, rows), key=distance)
        is_typed = bool(sites[0].exception) and sites[0].exception in text
        return MessageMatch(tuple(sites), min(said / total, 1.0), said, is_typed, begin in groups)

    def _site(self, row: Sequence[Any]) -> Site:
        package, file, symbol, kind, exception, names, first, steps = row
        name, versions, framework, source = self.head["packages"][package]
        lines = list(accumulate(steps))
        last = first + len(lines)
        return Site(
            name,
            file,
            symbol,
            KINDS[kind],
            exception,
            tuple(names.split()),
            dict(zip(versions[first:last], lines, strict=True)),
            versions[first - 1] if first else "",
            versions[last] if last < len(versions) else "",
            framework,
            source,
        )

    def _unpacked(self, begins: Sequence[int], number: int) -> bytes:
        return zlib.decompress(self._map[begins[number] : begins[number + 1]])


def weight_of(group: int, held: int, of: int) -> float:
    """Give how many bits a group says that `held` of so many messages have."""
    said = math.log2(max(of, FEWEST_MESSAGES) / held)
    # The last bit tells a word that stands alone from two neighbours.
    return min(said, MOST_SINGLE_BITS) if group & 1 else said


def bucket_bytes(groups: Mapping[int, Sequence[int]]) -> bytes:
    """Write a bucket: counts, then hashes and messages, each in planes of their bytes, which pack better."""
    rows = sorted(groups.items())
    counts = array("I", [len(found) for _, found in rows])
    steps = [step for _, found in rows for step in _steps(found)]
    hashes = array("I", [group for group, _ in rows])
    head = array("I", [len(rows), len(steps)])
    parts = [part.tobytes() for part in (counts, hashes, array("I", steps))]
    return head.tobytes() + b"".join(part[place::4] for part in parts for place in range(4))


class Bucket:
    """What `bucket_bytes` wrote; of its lists of messages only those are unpacked that are asked for."""

    def __init__(self, data: bytes) -> None:
        rows, total = array("I", data[:8])
        self._starts = array("I", accumulate(_unplaned(data[8 : 8 + 4 * rows]), initial=0))
        self._hashes = _unplaned(data[8 + 4 * rows : 8 + 8 * rows])
        self._steps = _unplaned(data[8 + 8 * rows : 8 + 8 * rows + 4 * total])

    @property
    def groups(self) -> Sequence[int]:
        """The groups that have messages here, in order."""
        return self._hashes

    def messages(self, group: int) -> list[int]:
        """Give the messages that hold a group."""
        place = bisect_left(self._hashes, group)
        if place == len(self._hashes) or self._hashes[place] != group:
            return []
        return list(accumulate(self._steps[self._starts[place] : self._starts[place + 1]]))


def _steps(numbers: Iterable[int]) -> list[int]:
    """Give ascending numbers as differences."""
    last, found = 0, []
    for number in numbers:
        found.append(number - last)
        last = number
    return found


def _unplaned(data: bytes) -> array[int]:
    whole, length = bytearray(len(data)), len(data) // 4
    for place in range(4):
        whole[place::4] = data[place * length : (place + 1) * length]
    return array("I", bytes(whole))


@cache
def shipped() -> Atlas:
    """Open the atlas that ships."""
    return Atlas(ROOT / FILE)
