"""Draw sites of the atlas's packages for readers to label, and lay them out as pages."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from corpus.extract.messages import native_sites, python_sites
from corpus.extract.messages.archives import PYTHON
from corpus.extract.messages.sites import FoundSite
from corpus.library import ROOT, read_yaml, validated
from corpus.message_atlas import SiteKind
from corpus.schema import Expression, Record

PLAN = ROOT / "labels" / "sampling.yaml"
# Rows of the source that a reader sees before and after the statement, and how much of each.
AROUND, _WIDEST = 5, 170
# Of one package, at most this share stands in one file, but three sites may always.
_FILE_SHARE, _FILE_LEAST = 12, 3
_SHORTEST = 12
# So many words tell a wording from others.
_TELLING = 5
PAGE_SITES = 100
# Every so many sites are labelled by two readers.
TWICE_EVERY = 10


class SamplingPlan(Record):
    """How sites are drawn.

    A package gets a share of `count` in proportion to its sites to the power of `exponent`, times its factor
    in `packages`. A site whose words match `told` is drawn with weight 1, another with `untold_weight`; one
    that is only logged has `logged_weight` times that.
    """

    count: int
    seed: int
    exponent: float
    told: Expression
    untold_weight: float
    logged_weight: float
    packages: Mapping[str, float] = {}


class DrawnSite(Record):
    """A site with what its reader sees: `code` are the rows around it, `number` is its place in the draw."""

    package: str
    version: str
    file: str
    symbol: str
    line: int
    kind: SiteKind
    exception: str
    runs: tuple[tuple[str, ...], ...]
    names: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    number: int = 0

    @property
    def words(self) -> str:
        """The message's fixed words, one behind the other."""
        return " ".join(word for run in self.runs for word in run)


def sampling_plan(path: Path = PLAN) -> SamplingPlan:
    """Load the plan; raises InvalidCorpusError naming the field that is wrong."""
    return validated(SamplingPlan, read_yaml(path), str(path))


def sites_of(package: str, version: str, files: Iterable[tuple[str, str]]) -> Iterator[DrawnSite]:
    """Give the sites of one release, each wording of an exception once."""
    seen: set[tuple[object, str]] = set()
    for path, text in files:
        reader = python_sites if path.endswith(PYTHON) else native_sites
        rows = text.splitlines()
        for site in reader.read_sites(text):
            if (site.runs, site.exception) not in seen:
                seen.add((site.runs, site.exception))
                yield _drawn(package, version, path, site, rows)


def _drawn(package: str, version: str, path: str, site: FoundSite, rows: Sequence[str]) -> DrawnSite:
    code = rows[max(0, site.line - 1 - AROUND) : site.line + AROUND]
    return DrawnSite(
        package=package,
        version=version,
        file=path,
        symbol=site.symbol,
        line=site.line,
        kind=site.kind,
        exception=site.exception,
        runs=site.runs,
        names=site.names,
        code=tuple(code),
    )


def draw(pools: Mapping[str, Sequence[DrawnSite]], plan: SamplingPlan) -> list[DrawnSite]:
    """Draw sites from those of each package, in random order, numbered from 1; deterministic."""
    chance = random.Random(plan.seed)  # noqa: S311 - a sample, no secret
    shares = {
        name: len(sites) ** plan.exponent * plan.packages.get(name, 1.0) for name, sites in pools.items()
    }
    total = sum(shares.values()) or 1.0
    found: list[DrawnSite] = []
    seen: set[str] = set()
    for name, sites in sorted(pools.items()):
        found += _of_package(sites, round(plan.count * shares[name] / total), plan, chance, seen)
    chance.shuffle(found)
    return [site.model_copy(update={"number": number}) for number, site in enumerate(found, 1)]


def _of_package(
    sites: Sequence[DrawnSite], wanted: int, plan: SamplingPlan, chance: random.Random, seen: set[str]
) -> Iterator[DrawnSite]:
    told = re.compile(plan.told, re.IGNORECASE)
    files: Counter[str] = Counter()
    keyed = []
    for site in sites:
        if len(site.words) >= _SHORTEST:
            weight = 1.0 if told.search(site.words) else plan.untold_weight
            weight *= plan.logged_weight if site.kind == "log" else 1.0
            # Weighted sampling without replacement (Efraimidis and Spirakis, 2006).
            keyed.append((chance.random() ** (1 / weight), site))
    left = wanted
    for _, site in sorted(keyed, key=lambda row: -row[0]):
        wording = " ".join(site.words.split()[:_TELLING])
        if not left:
            return
        if wording not in seen and files[site.file] < max(_FILE_LEAST, wanted // _FILE_SHARE):
            seen.add(wording)
            files[site.file] += 1
            left -= 1
            yield site


def write_pages(sites: Sequence[DrawnSite], folder: Path, readers: Sequence[str]) -> None:
    """Write the sites, and under `in` the pages of each reader; every tenth site has two readers."""
    rows = (site.model_dump_json() for site in sites)
    (folder / "sites.jsonl").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    parts: dict[str, list[DrawnSite]] = {reader: [] for reader in readers}
    for place, site in enumerate(sites):
        parts[readers[place % len(readers)]].append(site)
        if place % TWICE_EVERY == 0 and len(readers) > 1:
            parts[readers[(place + 1) % len(readers)]].append(site)
    (folder / "in").mkdir(exist_ok=True)
    for reader, part in parts.items():
        for first in range(0, len(part), PAGE_SITES):
            text = "\n".join(map(_shown, part[first : first + PAGE_SITES]))
            page = folder / "in" / f"{reader}-{first // PAGE_SITES:02d}.txt"
            page.write_text(f"{text}\n", encoding="utf-8")


def _shown(site: DrawnSite) -> str:
    head = f"=== {site.number} {site.package} {site.version} {site.file} {site.symbol}"
    first = max(1, site.line - AROUND)
    rows = (
        f"{'>' if number == site.line else ' '}{row.rstrip()[:_WIDEST]}"
        for number, row in enumerate(site.code, first)
    )
    return "\n".join([f"{head} [{site.kind} {site.exception}]", *rows])


def read_drawn(path: Path) -> list[DrawnSite]:
    """Read the sites that were drawn."""
    rows = path.read_text(encoding="utf-8").splitlines()
    return [validated(DrawnSite, json.loads(row), f"{path}: row {n}") for n, row in enumerate(rows, 1)]
