"""Labels of sites: which cause an expert would name for a message, as careful readers gave it.

The table (`corpus/labels/sites.csv`) points at each site and tells what each of its readers said; of the
source it holds no text. `texts_of` finds the words again, in the releases themselves.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from corpus.errors import InvalidCorpusError
from corpus.extract.messages.archives import released
from corpus.extract.messages.packages import AtlasPackage
from corpus.extract.messages.sampling import DrawnSite, read_drawn, sites_of
from corpus.library import ROOT
from corpus.schema import Record

TABLE = ROOT / "labels" / "sites.csv"
# What a reader says of a message that is no failure of a job.
NO_FAILURE = "-"
# Gives path and text of each source file of a release.
ReleaseReader = Callable[[AtlasPackage, str], Iterable[tuple[str, str]]]


class SiteLabel(Record):
    """What one reader said of one site.

    `words` is the digest of the message's fixed words, `cause` an id of `causes.yaml` or `-` where the
    message is no failure of a job, `second` another that is likely where no single one reaches one half.
    """

    package: str
    version: str
    file: str
    symbol: str
    line: int
    words: str
    reader: str
    cause: str
    second: str = ""

    @property
    def site(self) -> tuple[str, str, str, int]:
        """What tells the site from others."""
        return self.package, self.version, self.file, self.line


class Agreement(NamedTuple):
    """How far two readers of the same sites agree.

    `share` is that of equal causes, `kappa` Cohen's, `near` the share where one's cause is among the two that
    the other names.
    """

    sites: int
    share: float
    kappa: float
    near: float


def words_digest(site: DrawnSite) -> str:
    """Give what tells a message's fixed words from others without showing them."""
    return sha256(json.dumps(site.runs).encode()).hexdigest()[:12]


def read_answers(folder: Path, causes: Collection[str]) -> list[SiteLabel]:
    """Read what the readers wrote under `out`, a row a site: number, cause, and a second or none.

    Raises InvalidCorpusError naming a row whose number was not drawn or whose cause does not exist.
    """
    drawn = {site.number: site for site in read_drawn(folder / "sites.jsonl")}
    found: dict[tuple[int, str], SiteLabel] = {}
    for page in sorted((folder / "out").glob("*.txt")):
        reader = page.stem.rsplit("-", 1)[0]
        for row in page.read_text(encoding="utf-8").splitlines():
            number, *named = row.split() or [""]
            if not number:
                continue
            site = drawn.get(int(number)) if number.isdecimal() else None
            if site is None or not 1 <= len(named) <= 2 or {*named} - {*causes, NO_FAILURE}:
                raise InvalidCorpusError(f"{page.name}: {row!r} is no number of a drawn site with its cause")
            found[site.number, reader] = label_of(site, reader, *named)
    return sorted(found.values(), key=lambda label: (*label.site, label.reader))


def label_of(site: DrawnSite, reader: str, cause: str, second: str = "") -> SiteLabel:
    """Label a site."""
    return SiteLabel(
        package=site.package,
        version=site.version,
        file=site.file,
        symbol=site.symbol,
        line=site.line,
        words=words_digest(site),
        reader=reader,
        cause=cause,
        second=second if second != cause else "",
    )


def write_labels(labels: Iterable[SiteLabel], path: Path = TABLE) -> None:
    """Write the table."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, list(SiteLabel.model_fields), lineterminator="\n")
        table.writeheader()
        table.writerows(label.model_dump() for label in labels)


def read_labels(path: Path = TABLE) -> list[SiteLabel]:
    """Read the table."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [SiteLabel.model_validate({**row, "line": int(row["line"])}) for row in csv.DictReader(stream)]


def labels_digest(path: Path = TABLE) -> str:
    """Give what tells one state of the table from another."""
    return sha256(path.read_bytes()).hexdigest()[:16]


def agreement(labels: Iterable[SiteLabel]) -> Agreement:
    """Tell how far the readers agree on the sites that two of them labelled."""
    ordered = sorted(labels, key=lambda label: (*label.site, label.reader))
    rows = [tuple(group) for _, group in groupby(ordered, key=attrgetter("site"))]
    pairs = [(row[0], row[1]) for row in rows if len(row) > 1]
    if not pairs:
        return Agreement(0, 0.0, 0.0, 0.0)
    share = sum(one.cause == other.cause for one, other in pairs) / len(pairs)
    near = sum(
        one.cause in (other.cause, other.second) or other.cause == one.second for one, other in pairs
    ) / len(pairs)
    # By chance two readers agree as often as both give a cause.
    first, second = (Counter(pair[place].cause for pair in pairs) for place in (0, 1))
    chance = sum(first[cause] * second[cause] for cause in first) / len(pairs) ** 2
    kappa = (share - chance) / (1 - chance) if chance < 1 else 1.0
    return Agreement(len(pairs), share, kappa, near)


def texts_of(
    labels: Sequence[SiteLabel], table: Mapping[str, AtlasPackage], read: ReleaseReader = released
) -> Iterator[DrawnSite]:
    """Read the releases that the labels name, one at a time, and give the labelled sites with their words.

    What a release does not have any more as it was labelled is left out. Raises InvalidCorpusError where a
    release cannot be had.
    """
    for (package, version), group in groupby(
        sorted(labels, key=lambda label: label.site), key=attrgetter("package", "version")
    ):
        wanted = {(label.file, label.line, label.words) for label in group}
        for site in sites_of(package, version, read(table[package], version)):
            if (site.file, site.line, words_digest(site)) in wanted:
                yield site
